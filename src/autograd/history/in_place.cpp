// Makes in-place writes to a tensor, or to a view of it, part of its history.
#include <algorithm>
#include <mutex>

#include "autograd/history/history.h"
#include "naru/ops.h"
#include "naru/ops/complex.h"
#include "ops/tensor/common.h"

namespace naru::autograd {
namespace {

// Number of elements of memory from a tensor's first element to its last, both included.
int64_t span_of(const Dims& sizes, const Dims& strides) {
  int64_t span = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    span += (sizes[i] - 1) * strides[i];
  }
  return span;
}

// A tensor's geometry. in_real: in real elements, a complex one being a pair; needed if one of a view and its base is complex and the other is not.
struct StridedGeometry {
  Dims sizes, strides;
  int64_t offset;
  bool parts;  // a complex tensor, counted in real elements
  StridedGeometry(const Tensor& t, bool in_real)
      : sizes(t.sizes()), strides(t.strides()), offset(t.storage_offset()), parts(in_real && is_complex(t.dtype())) {
    if (!parts) return;
    for (int64_t& s : strides) s *= 2;
    sizes.push_back(2), strides.push_back(1);
    offset *= 2;
  }
  // Convert a gradient of the tensor to this geometry, and back.
  Tensor enter(const Tensor& g) const { return parts ? view_as_real(g) : g; }
  Tensor leave(const Tensor& g) const { return parts ? view_as_complex(g.contiguous()) : g; }
  bool lies_within(const StridedGeometry& base) const {
    return offset >= base.offset && offset + span_of(sizes, strides) <= base.offset + span_of(base.sizes, base.strides);
  }
  // A copy of a gradient of the tensor in memory that is laid out as the tensor's is.
  Tensor laid_out(const Tensor& g) const {
    const Tensor entered = enter(g);
    Tensor whole = zeros({span_of(sizes, strides)}, Options(entered.dtype(), entered.device())).as_strided(sizes, strides, 0);
    whole.copy_(entered);
    return whole;
  }
  // This view of memory that is laid out as the base's.
  Tensor part_of(const Tensor& whole, const StridedGeometry& base) const {
    return whole.as_strided(sizes, strides, whole.storage_offset() + offset - base.offset);
  }
};

// Backward of a view of any geometry over its base. It becomes a view's grad_fn after its base was written in place.
class AsStridedNode final : public Node {
 public:
  AsStridedNode(const Tensor& view, const Tensor& base)
      : Node("AsStridedBackward0"), view_(view, view.dtype() != base.dtype()), base_(base, view.dtype() != base.dtype()) {
    next().push_back(gradient_edge(base));
  }
  std::vector<Tensor> apply(std::vector<Tensor> grads, Needed) override {
    if (!grads[0].defined()) return {Tensor()};
    return {base_.leave(gradient_of_base(view_.enter(grads[0]), view_.strides, view_.offset - base_.offset, base_.sizes, base_.strides))};
  }
  std::optional<std::vector<Tensor>> jvp(std::vector<Tensor> tangents) override {
    if (!view_.lies_within(base_)) return std::nullopt;
    return std::vector<Tensor>{view_.leave(view_.part_of(base_.laid_out(tangents[0]), base_))};
  }

 private:
  StridedGeometry view_, base_;
};

// The grad_fn of a base after a view of it was written in place. `inner` is the backward node of the write.
class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& view, const Tensor& base, Ref<Node> inner)
      : Node("CopySlices"), view_(view, view.dtype() != base.dtype()), base_(base, view.dtype() != base.dtype()), inner_(std::move(inner)) {
    next().push_back(requires_grad(base) ? gradient_edge(base) : Edge{});
    auto& edges = inner_->next();
    for (size_t i = 1; i < edges.size(); ++i) next().push_back(edges[i]);
  }
  // The edges of `inner` are those of this node, but for the first, so what is needed here is needed there.
  std::vector<Tensor> apply(std::vector<Tensor> grads, Needed needed) override {
    if (!grads[0].defined()) return std::vector<Tensor>(next().size());
    const Tensor whole = base_.laid_out(grads[0]);
    Tensor part = view_.part_of(whole, base_);
    std::vector<Tensor> results = inner_->apply({view_.leave(part.clone())}, needed);
    results.resize(next().size());
    if (!needed[0]) return results[0] = {}, results;
    if (results[0].defined())
      part.copy_(view_.enter(results[0]));
    else
      part.zero_();
    results[0] = base_.leave(whole);
    return results;
  }
  std::optional<std::vector<Tensor>> jvp(std::vector<Tensor> tangents) override {
    const TensorLike& base = *extras()->results.at(0);
    const Tensor before = tangents[0].defined() ? tangents[0] : zeros(base.sizes, Options(base.dtype, base.device));
    const Tensor whole = base_.laid_out(before);
    Tensor part = view_.part_of(whole, base_);
    if (tangents[0].defined()) tangents[0] = view_.leave(part.clone());
    const std::optional<std::vector<Tensor>> written = inner_->jvp(std::move(tangents));
    if (!written) return std::nullopt;
    if ((*written)[0].defined())
      part.copy_(view_.enter((*written)[0]));
    else
      part.zero_();
    return std::vector<Tensor>{base_.leave(whole)};
  }
  void release_saved() override {
    if (inner_->use_count() == 1) inner_->release_saved();  // otherwise inner is also the grad_fn of its unpacked result, which needs it
  }
  void each_saved(const TensorVisitor& f) const override { inner_->each_saved(f); }

 private:
  StridedGeometry view_, base_;
  Ref<Node> inner_;
};

Tensor base_of(const Tensor& t) {
  TensorImpl* b = t.impl()->base.get();
  if (b) b->retain();
  return Tensor(b);
}

}  // namespace

Tensor gradient_of_base(const Tensor& g, const Dims& strides, int64_t shift, const Dims& base_sizes, const Dims& base_strides) {
  const int64_t first = std::max<int64_t>(0, -shift);  // offset of the base in the memory that the two span together
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
    // Base elements at one address share its gradient equally.
    Tensor count = zeros_like(flat);
    const Tensor at = positions(base_sizes, base_strides, first);
    scatter_add_(count, 0, at, ones({at.numel()}, Options(g.dtype(), g.device())));
    flat = flat / count.clamp_min(1);
  }
  return flat.as_strided(base_sizes, base_strides, first);
}

void rebase_history(const Tensor& target, Ref<Node> node) {
  if (!is_inexact(target.dtype())) return;
  const Tensor base = base_of(target);
  Meta& m = ensure_meta(base.defined() ? base : target);
  const Ref<Node> former = m.grad_fn;
  if (base.defined()) mark_tangent(*node, target);
  m.grad_fn = base.defined() ? Ref<Node>(make_ref<CopySlices>(target, base, std::move(node))) : std::move(node);
  m.output = 0;
  mark_tangent(*m.grad_fn, base.defined() ? base : target);
  move_retained(m, former);
  m.history.fetch_add(1, std::memory_order_release);
  // Updates the view's grad_fn from the base's.
  if (base.defined()) gradient_edge(target);
}

void follow_base(const Tensor& view, Meta& m) {
  const auto* b = static_cast<const Meta*>(view.impl()->base->autograd.get());
  if (!b || b->history.load(std::memory_order_acquire) == m.history.load(std::memory_order_acquire)) return;
  const ViewKind kind = view.impl()->view_kind;
  if (kind != ViewKind::Tracked && !(kind == ViewKind::MadeWithoutGrad && tangents_carried)) throw_untracked(view, true);
  static std::mutex mutex;  // several threads may find a shared view out of date at once
  Ref<Node> node = make_ref<AsStridedNode>(view, base_of(view)), former;
  mark_tangent(*node, view);
  const std::lock_guard lock(mutex);
  const uint64_t now = b->history.load(std::memory_order_acquire);
  if (now == m.history.load(std::memory_order_relaxed)) return;
  former = std::exchange(m.grad_fn, std::move(node));
  m.output = 0;
  move_retained(m, former);
  m.history.store(now, std::memory_order_release);
}

void leave_history(const Tensor& view) {
  Meta& m = ensure_meta(view);
  const auto& base = static_cast<const Meta&>(*view.impl()->base->autograd);
  m.history.store(base.history.load(std::memory_order_acquire) - 1, std::memory_order_release);
  follow_base(view, m);
}

}  // namespace naru::autograd
