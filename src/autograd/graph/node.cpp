#include "autograd/graph/node.h"

#include <atomic>

#include "autograd/graph/anomaly.h"
#include "autograd/graph/batch.h"

namespace naru {
namespace {
thread_local bool grad_mode = true;
}
bool grad_enabled() noexcept { return grad_mode; }
bool set_grad_enabled(bool on) noexcept { return std::exchange(grad_mode, on); }
InferenceMode::InferenceMode(bool on) : inference_(std::exchange(inference_enabled, on)), grad_(set_grad_enabled(!on)) {}
InferenceMode::~InferenceMode() {
  inference_enabled = inference_;
  set_grad_enabled(grad_);
}
bool is_inference_mode_enabled() noexcept { return inference_enabled; }
SavedTensorHooks::SavedTensorHooks(Pack p, Unpack u)
    : pack(std::move(p)), unpack(std::move(u)), before_(std::exchange(autograd::saved_tensor_hooks, this)) {}
SavedTensorHooks::~SavedTensorHooks() { autograd::saved_tensor_hooks = before_; }

namespace autograd {
namespace {

std::atomic<uint64_t> next_sequence{1};
std::atomic<int64_t> next_hook{0};

// Nodes that the dispose() running on this thread has yet to delete: a list linked through visit.pass.
thread_local Node* disposed = nullptr;
thread_local bool disposing = false;

}  // namespace

int64_t next_hook_number() noexcept { return next_hook.fetch_add(1, std::memory_order_relaxed); }

Node::Node(const char* name) : Node(name, next_sequence.fetch_add(1, std::memory_order_relaxed)) {
  if (anomaly_mode.load(std::memory_order_relaxed)) [[unlikely]]
    note_stack(*this);
}

Node::~Node() { delete extras(); }

// A node's destructor may release the last reference to its next node, and so on: recursion over a long history would overflow the stack. So
// nested calls only add to the list, and the outermost call deletes the nodes one after the other.
void Node::dispose(const Node* node) noexcept {
  auto* const n = const_cast<Node*>(node);
  if (disposing) {
    n->visit.pass.store(std::exchange(disposed, n), std::memory_order_relaxed);
    return;
  }
  disposing = true;
  delete n;
  while (Node* const next = disposed) {
    disposed = static_cast<Node*>(const_cast<void*>(next->visit.pass.load(std::memory_order_relaxed)));
    delete next;
  }
  disposing = false;
}

Node::Extras& Node::ensure_extras() {
  if (Extras* x = extras()) return *x;
  auto made = std::make_unique<Extras>();
  Extras* other = nullptr;
  return extras_.compare_exchange_strong(other, made.get(), std::memory_order_acq_rel) ? *made.release() : *other;
}

Meta::~Meta() {
  if (retains_grad && grad_fn)
    if (Node::Extras* x = grad_fn->extras()) {
      const std::lock_guard lock(x->mutex);
      std::erase_if(x->retained, [&](const auto& r) { return r.second == this; });
    }
  if (LeafNode* a = accumulator.load(std::memory_order_acquire)) {
    a->forget(*this);
    a->release();
  }
}

Meta* meta_of(const Tensor& t) noexcept { return t.defined() ? static_cast<Meta*>(t.impl()->autograd.get()) : nullptr; }

Meta& ensure_meta(const Tensor& t) {
  if (AutogradMeta* m = t.impl()->autograd.get()) return static_cast<Meta&>(*m);
  auto meta = std::make_unique<Meta>();
  meta->owner = t.impl();
  return static_cast<Meta&>(t.impl()->autograd.offer(std::move(meta)));
}

bool takes_part(const Tensor& t) noexcept {
  if (!t.defined()) return false;
  const Meta* m = meta_of(t);
  if (m && m->requires_grad) return true;
  if (const auto& base = t.impl()->base; base && base->autograd) {
    const auto& b = static_cast<const Meta&>(*base->autograd);
    // The view's grad_fn is out of date, and another thread may be replacing it now (follow_base).
    if (b.history.load(std::memory_order_acquire) != (m ? m->history.load(std::memory_order_acquire) : 0))
      return b.grad_fn || (m && m->grad_fn);
  }
  return m && m->grad_fn;
}

namespace {

bool carries_tangent(const TensorImpl* t) noexcept {
  const auto* m = t ? static_cast<const Meta*>(t->autograd.get()) : nullptr;
  return m && m->grad_fn && m->grad_fn->carries_tangent;
}

}  // namespace

bool requires_grad(const Tensor& t) noexcept {
  if (tangents_only) [[unlikely]]
    return t.defined() &&
           (carries_tangent(t.impl()) || carries_tangent(t.impl()->base.get()) || (is_batched(t) && requires_grad(batch_parts(t).value)));
  return takes_part(t);
}

void mark_tangent(Node& node, const Tensor& out, uint32_t output) {
  for (const Edge& e : node.next()) node.carries_tangent |= e.node && e.node->carries_tangent;
  if (!node.carries_tangent) return;
  std::vector<std::optional<TensorLike>>& results = node.ensure_extras().results;
  if (results.size() <= output) results.resize(output + 1);
  results[output] = TensorLike(out);
}

void move_retained(Meta& m, const Ref<Node>& former) {
  if (!m.retains_grad || !former || former == m.grad_fn) return;
  if (Node::Extras* x = former->extras()) {
    const std::lock_guard lock(x->mutex);
    std::erase_if(x->retained, [&](const auto& r) { return r.second == &m; });
  }
  if (!m.grad_fn) return;
  Node::Extras& x = m.grad_fn->ensure_extras();
  const std::lock_guard lock(x.mutex);
  x.retained.emplace_back(m.output, &m);
}

Saved::Saved(const Tensor& t, bool output_of_this_node, uint32_t output)
    : version_(t.defined() ? t.version() : 0), output_(output), is_output_(output_of_this_node), undefined_(!t.defined()) {
  if (t.defined() && t.is_inference())
    throw RuntimeError(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by "
        "autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` "
        "instead of `torch.inference_mode()`.");
  if (!t.defined()) return;
  if (Storage* const s = t.impl()->storage.get(); s && s->role.load(std::memory_order_relaxed) == MemoryRole::Other)
    s->role.store(MemoryRole::Activation, std::memory_order_relaxed);
  if (tangents_carried) [[unlikely]] {
    packed_ = packed_like(t);
    packed_->kept = keep(t);
  } else if (saved_tensor_hooks) [[unlikely]]
    pack(t);
  else
    tensor_ = output_of_this_node ? t.detach() : t;
}

SavedValue Node::saved_as(std::string_view) { return {}; }

void Saved::pack_kept() {
  if (released_)
    throw RuntimeError(
        "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed when you call "
        ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need "
        "to access saved variables after calling backward.");
  if (undefined_) throw RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden");
  if (packed_ && !packed_->kept)
    throw RuntimeError(
        "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed at a time.");
  const Ref<PackedTensor> before = packed_;
  const Tensor value = before ? value_of(*before->kept) : tensor_;
  if (!value.defined()) throw_written(before->kept->tensor, "");
  pack(value);
  if (before) packed_->edge = before->edge;
  tensor_ = {};
}

void Saved::keep_value() {
  if (!tensor_.defined() || is_output_) return;
  packed_ = packed_like(tensor_);
  packed_->kept = keep(tensor_);
  tensor_ = {};
}

// Returns a PackedTensor without a value, with the edge that t's gradient follows.
Ref<PackedTensor> Saved::packed_like(const Tensor& t) const {
  auto packed = make_ref<PackedTensor>();
  if (const Meta* m = is_output_ ? nullptr : meta_of(t)) {
    LeafNode* const leaf = m->accumulator.load(std::memory_order_acquire);
    packed->edge = {m->grad_fn ? m->grad_fn : leaf ? Ref<Node>::share(leaf) : Ref<Node>(), m->grad_fn ? m->output : 0};
  }
  return packed;
}

void Saved::pack(const Tensor& t) {
  const NoGrad guard;
  auto packed = packed_like(t);
  packed->unpack = saved_tensor_hooks->unpack;
  // Detach results: with its history, a result would own the node that saves it.
  const Tensor given = is_output_ ? t.detach() : t;
  const uint32_t version = given.version();
  const SavedTensorHooks* const hooks = std::exchange(saved_tensor_hooks, nullptr);
  struct Restore {
    const SavedTensorHooks* hooks;
    ~Restore() { saved_tensor_hooks = hooks; }
  } const restore{hooks};
  packed->value = hooks->pack(given);
  if (given.version() != version)
    throw RuntimeError(
        "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be modified by in-place "
        "operations as this can lead to unexpected side-effects. Please open an issue if you need to perform in-place operations on the "
        "input to a pack hook.");
  packed_ = std::move(packed);
}

// Returns t detached, with a gradient that follows `edge`. Returns t itself if `edge` is null or t is not floating-point or complex.
Tensor Saved::attached(const Tensor& t, Edge edge) const {
  if (!edge.node || !is_inexact(t.dtype())) return t;
  Tensor result = t.detach();
  Meta& m = ensure_meta(result);
  m.grad_fn = std::move(edge.node);
  m.output = edge.slot;
  return result;
}

void Saved::throw_written(const Tensor& t, const std::string& node) const {
  throw RuntimeError(
      "one of the variables needed for gradient computation has been modified by an inplace operation: [{} {} on {}], saved by {} at "
      "version {}, is at version {} now; the last operator that wrote it was {}. Use the out-of-place form, or clone() the tensor first.",
      name_of(t.dtype()), t.sizes().str(), t.device().str(), node, version_, t.version(),
      t.impl()->origin.op ? t.impl()->origin.op : "an in-place operator");
}

thread_local constinit bool saved_are_constant = false;

Tensor Saved::get(Node* self) const {
  const auto name = [&] { return self ? self->name() : "a function that is gone"; };
  if (released_)
    throw RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved "
        "intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
        "backward through the graph a second time or if you need to access saved tensors after calling backward. (in {})",
        name());
  if (undefined_) return {};
  if (packed_) [[unlikely]] {
    const Ref<PackedTensor> packed = packed_;
    const Tensor t = packed->kept ? value_of(*packed->kept) : packed->unpack(packed->value);
    if (packed->kept && !t.defined()) throw_written(packed->kept->tensor, name());
    if (!grad_enabled() || saved_are_constant) return t;
    return attached(t, is_output_ ? Edge{self ? Ref<Node>::share(self) : Ref<Node>(), output_} : packed->edge);
  }
  if (tensor_.version() != version_) throw_written(tensor_, name());
  if (saved_are_constant) [[unlikely]]
    return tensor_.detach();
  if (!is_output_ || !grad_enabled()) return tensor_;
  return attached(tensor_, {Ref<Node>::share(self), output_});
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
  if (!is_inexact(out.dtype())) return;
  TensorImpl& impl = *out.impl();
  if (!impl.autograd) {
    auto meta = std::make_unique<Meta>();
    meta->owner = &impl;
    impl.autograd.set(std::move(meta));
  }
  Meta& m = static_cast<Meta&>(*impl.autograd);
  std::swap(m.grad_fn, node);
  m.output = output;
  if (m.retains_grad) [[unlikely]]
    move_retained(m, node);
  if (tangents_carried && m.grad_fn) [[unlikely]]
    mark_tangent(*m.grad_fn, out, output);
  if (impl.base && impl.base->autograd)
    m.history.store(static_cast<Meta&>(*impl.base->autograd).history.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

}  // namespace autograd
}  // namespace naru
