#include "autograd/node.h"

#include <algorithm>
#include <atomic>

#include "naru/ops.h"
#include "ops/common.h"

namespace naru {
namespace {
thread_local bool grad_mode = true;
}
bool grad_enabled() noexcept { return grad_mode; }
bool set_grad_enabled(bool on) noexcept { return std::exchange(grad_mode, on); }

namespace autograd {
namespace {

std::atomic<uint64_t> next_sequence{1};

// Adds gradients into a leaf's grad.
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(const Tensor& leaf) : Node("AccumulateGrad"), leaf_(leaf) {}
  ~AccumulateGrad() override {
    if (Meta* m = meta_of(leaf_); m && m->accumulator == this) m->accumulator = nullptr;
  }
  std::vector<Tensor> apply(std::vector<Tensor> grads) override {
    Tensor g = grads[0];
    if (!g.defined()) return {};
    Meta& m = ensure_meta(leaf_);
    if (m.hooks)
      for (auto& [number, hook] : *m.hooks)
        if (Tensor changed = hook(g); changed.defined()) g = changed;
    if (!m.grad.defined()) {
      // A gradient nobody else holds is taken over; else the leaf gets its own.
      grads[0] = {};
      const bool sole =
          !grad_enabled() && g.impl()->use_count() == 1 && g.impl()->storage->use_count() == 1 && !g.impl()->base && g.is_contiguous();
      m.grad = sole || grad_enabled() ? g : g.clone();
    } else if (grad_enabled()) {
      m.grad = m.grad + g;
    } else {
      m.grad.add_(g);
    }
    return {};
  }
  const Tensor& leaf() const { return leaf_; }

 private:
  Tensor leaf_;
};

// Elements of memory from the first one of a tensor to behind its last.
int64_t span_of(const Dims& sizes, const Dims& strides) {
  int64_t span = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    span += (sizes[i] - 1) * strides[i];
  }
  return span;
}

// Gradient of a view with any geometry over its base; also what a view's history becomes after its base was written in place.
class AsStridedNode final : public Node {
 public:
  AsStridedNode(const Tensor& view, const Tensor& base)
      : Node("AsStridedBackward0"),
        sizes_(view.sizes()),
        strides_(view.strides()),
        base_sizes_(base.sizes()),
        base_strides_(base.strides()),
        offset_(view.storage_offset() - base.storage_offset()) {
    next().push_back(gradient_edge(base));
  }
  std::vector<Tensor> apply(std::vector<Tensor> grads) override {
    if (!grads[0].defined()) return {Tensor()};
    return {gradient_of_base(grads[0], strides_, offset_, base_sizes_, base_strides_)};
  }

 private:
  Dims sizes_, strides_, base_sizes_, base_strides_;
  int64_t offset_;
};

// PendingUses of a base after one of its views was written by `inner`.
class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& view, const Tensor& base, Ref<Node> inner)
      : Node("CopySlices"),
        sizes_(view.sizes()),
        strides_(view.strides()),
        base_sizes_(base.sizes()),
        base_strides_(base.strides()),
        offset_(view.storage_offset() - base.storage_offset()),
        inner_(std::move(inner)) {
    next().push_back(requires_grad(base) ? gradient_edge(base) : Edge{});
    auto& edges = inner_->next();
    for (size_t i = 1; i < edges.size(); ++i) next().push_back(edges[i]);
  }
  std::vector<Tensor> apply(std::vector<Tensor> grads) override {
    if (!grads[0].defined()) return std::vector<Tensor>(next().size());
    const Options like(grads[0].dtype(), grads[0].device());
    Tensor whole = zeros({span_of(base_sizes_, base_strides_)}, like).as_strided(base_sizes_, base_strides_, 0);
    whole.copy_(grads[0]);
    Tensor part = whole.as_strided(sizes_, strides_, whole.storage_offset() + offset_);
    std::vector<Tensor> results = inner_->apply({part.clone()});
    results.resize(next().size());
    if (results[0].defined())
      part.copy_(results[0]);
    else
      part.zero_();
    results[0] = whole;
    return results;
  }
  void release_saved() override { inner_->release_saved(); }

 private:
  Dims sizes_, strides_, base_sizes_, base_strides_;
  int64_t offset_;
  Ref<Node> inner_;
};

Tensor base_of(const Tensor& t) {
  TensorImpl* b = t.impl()->base.get();
  if (b) b->retain();
  return Tensor(b);
}

}  // namespace

Node::Node(const char* name) : name_(name), sequence_(next_sequence.fetch_add(1, std::memory_order_relaxed)) {}

// A node that holds the last reference to the one before it would free it from within its own destructor, and so on down a
// history of any length: a deep stack. The outermost destructor frees them instead, one after the other.
Node::~Node() {
  thread_local std::vector<Ref<Node>>* waiting = nullptr;
  std::vector<Ref<Node>> own;
  const bool outermost = waiting == nullptr;
  if (outermost) waiting = &own;
  for (Edge& e : next_)
    if (e.node && e.node->use_count() == 1) waiting->push_back(std::move(e.node));
  if (!outermost) return;
  while (!own.empty()) {
    const Ref<Node> last = std::move(own.back());
    own.pop_back();
  }
  waiting = nullptr;
}

Meta::~Meta() {
  if (grad_fn && grad_fn->extras) std::erase_if(grad_fn->extras->retained, [&](const auto& r) { return r.second == owner; });
}

Meta* meta_of(const Tensor& t) noexcept { return t.defined() ? static_cast<Meta*>(t.impl()->autograd.get()) : nullptr; }

Meta& ensure_meta(const Tensor& t) {
  if (!t.impl()->autograd) {
    auto meta = std::make_unique<Meta>();
    meta->owner = t.impl();
    t.impl()->autograd = std::move(meta);
  }
  return static_cast<Meta&>(*t.impl()->autograd);
}

bool requires_grad(const Tensor& t) noexcept {
  if (!t.defined()) return false;
  if (const Meta* m = meta_of(t); m && (m->requires_grad || m->grad_fn)) return true;
  if (const auto& base = t.impl()->base; base && base->autograd) {
    const auto& b = static_cast<const Meta&>(*base->autograd);
    const Meta* m = meta_of(t);
    return b.grad_fn && b.history != (m ? m->history : 0);
  }
  return false;
}

Edge gradient_edge(const Tensor& t) {
  Meta& m = ensure_meta(t);
  if (t.impl()->base) {
    const Tensor base = base_of(t);
    if (Meta* b = meta_of(base); b && b->history != m.history) {
      m.grad_fn = make_ref<AsStridedNode>(t, base);
      m.output = 0;
      m.history = b->history;
    }
  }
  if (m.grad_fn) return {m.grad_fn, m.output};
  if (!m.requires_grad) return {};
  if (m.accumulator) return {Ref<Node>::share(m.accumulator), 0};
  Ref<Node> node = make_ref<AccumulateGrad>(t);
  m.accumulator = node.get();
  return {node, 0};
}

Saved::Saved(const Tensor& t, bool output_of_this_node, uint32_t output)
    : version_(t.defined() ? t.version() : 0), output_(output), is_output_(output_of_this_node), undefined_(!t.defined()) {
  if (t.defined()) tensor_ = output_of_this_node ? t.detach() : t;
}

Tensor Saved::get(Node* self) const {
  if (released_)
    throw RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved "
        "intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
        "backward through the graph a second time or if you need to access saved tensors after calling backward. (in {})",
        self->name());
  if (undefined_) return {};
  if (tensor_.version() != version_)
    throw RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: [{} {} on {}], saved by {} at "
        "version {}, is at version {} now; the last operator that wrote it was {}. Use the out-of-place form, or clone() the tensor first.",
        name_of(tensor_.dtype()), tensor_.sizes().str(), tensor_.device().str(), self->name(), version_, tensor_.version(),
        tensor_.impl()->origin.op ? tensor_.impl()->origin.op : "an in-place operator");
  if (!is_output_ || !grad_enabled()) return tensor_;
  Tensor attached = tensor_.detach();
  Meta& m = ensure_meta(attached);
  m.grad_fn = Ref<Node>::share(self);
  m.output = output_;
  return attached;
}

bool recording(std::initializer_list<const Tensor*> inputs) noexcept {
  if (!grad_mode) return false;
  for (const Tensor* t : inputs)
    if (requires_grad(*t)) return true;
  return false;
}
bool recording(std::span<const Tensor> inputs) noexcept {
  if (!grad_mode) return false;
  for (const Tensor& t : inputs)
    if (requires_grad(t)) return true;
  return false;
}

void set_history(const Tensor& out, Ref<Node> node, uint32_t output) {
  if (!is_floating(out.dtype())) return;
  Meta& m = ensure_meta(out);
  m.grad_fn = std::move(node);
  m.output = output;
  if (out.impl()->base && out.impl()->base->autograd) m.history = static_cast<Meta&>(*out.impl()->base->autograd).history;
}

void connect(Node& node, std::initializer_list<const Tensor*> inputs) {
  for (const Tensor* t : inputs) node.next().push_back(requires_grad(*t) ? gradient_edge(*t) : Edge{});
}
void connect(Node& node, std::span<const Tensor> inputs) {
  for (const Tensor& t : inputs) node.next().push_back(requires_grad(t) ? gradient_edge(t) : Edge{});
}

Tensor gradient_of_base(const Tensor& g, const Dims& strides, int64_t shift, const Dims& base_sizes, const Dims& base_strides) {
  const int64_t first = std::max<int64_t>(0, -shift);  // where the base begins in the memory of both
  const int64_t begin = first + shift;
  const int64_t span = std::max(begin + span_of(g.sizes(), strides), first + span_of(base_sizes, base_strides));
  const auto positions = [&](const Dims& sizes, const Dims& steps, int64_t offset) {
    return arange(0, span, 1, Options(DType::I64, g.device())).as_strided(sizes, steps, offset).reshape({-1});
  };
  Tensor flat = zeros({span}, Options(g.dtype(), g.device()));
  if (may_overlap(g.sizes(), strides))
    scatter_add_(flat, 0, positions(g.sizes(), strides, begin), g.reshape({-1}));
  else
    flat.as_strided(g.sizes(), strides, begin).copy_(g);
  if (may_overlap(base_sizes, base_strides)) {
    // Elements of the base at one address share what came there.
    Tensor count = zeros_like(flat);
    const Tensor at = positions(base_sizes, base_strides, first);
    scatter_add_(count, 0, at, ones({at.numel()}, Options(g.dtype(), g.device())));
    flat = flat / count.clamp_min(1);
  }
  return flat.as_strided(base_sizes, base_strides, first);
}

void check_in_place(const Tensor& target, const char* op) {
  if (!grad_mode) return;
  const Meta* m = meta_of(target);
  if (m && m->requires_grad && !m->grad_fn)
    throw RuntimeError(
        "a leaf Variable that requires grad is being used in an in-place operation. ({}: write under no_grad(), or use the "
        "out-of-place form)",
        op);
  if (target.impl()->base) {
    const Meta* b = static_cast<const Meta*>(target.impl()->base->autograd.get());
    if (b && b->requires_grad && !b->grad_fn)
      throw RuntimeError(
          "a view of a leaf Variable that requires grad is being used in an in-place operation. ({}: write under no_grad(), "
          "or use the out-of-place form)",
          op);
  }
}

void rebase_history(const Tensor& target, Ref<Node> node) {
  if (!is_floating(target.dtype())) return;
  if (target.impl()->base) {
    const Tensor base = base_of(target);
    Meta& b = ensure_meta(base);
    b.grad_fn = make_ref<CopySlices>(target, base, node);
    b.output = 0;
    ++b.history;
    // The view's own history follows from the base's, when somebody asks.
    gradient_edge(target);
    return;
  }
  Meta& m = ensure_meta(target);
  m.grad_fn = std::move(node);
  m.output = 0;
  ++m.history;
}

}  // namespace autograd
}  // namespace naru
