// Operators that change a tensor's geometry in place: transpose_, squeeze_, as_strided_, resize_ ...
#include "autograd/history/history.h"
#include "core/sizes.h"
#include "naru/ops.h"
#include "naru/ops/functions.h"
#include "ops/shape/strides.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"

namespace naru {
namespace {

// Gives t the geometry of `view`, which is a view of t, and records the view as t's history.
void set_geometry_of(const Tensor& t, const Tensor& view, const char* op) {
  if (ops::have_parts(t)) return is_batched(t) ? set_batched(t, batch_parts(view).value) : ops::take_parts(t, view, op);
  autograd::before_write(t);
  ops::bump_version(t);  // the backward of nodes that saved t would see another shape
  autograd::Edge history;
  if (t.requires_grad()) {
    if (grad_enabled()) autograd::check_in_place(t, op);
    // In no-grad mode only a leaf may change: its gradients have the new shape. In grad mode, leave_history() derives a view's history again.
    if (!grad_enabled() && !t.is_leaf())
      throw RuntimeError(
          "an in-place change of shape is not supported for a tensor with history under no_grad(); use the form without "
          "underscore ({})",
          op);
    if (grad_enabled() && !t.impl()->base) history = autograd::gradient_edge(view);
  }
  const bool moved = t.requires_grad() && grad_enabled() && t.impl()->base;
  t.impl()->set_geometry(view.sizes(), view.strides(), view.storage_offset());
  if (history.node) autograd::rebase_history(t, history.node);
  if (moved) autograd::leave_history(t);
}

}  // namespace

void t_(const Tensor& t) { set_geometry_of(t, t.t(), "t_"); }
void transpose_(const Tensor& t, int64_t a, int64_t b) { set_geometry_of(t, t.transpose(a, b), "transpose_"); }
void unsqueeze_(const Tensor& t, int64_t dim) { set_geometry_of(t, t.unsqueeze(dim), "unsqueeze_"); }
void squeeze_(const Tensor& t) { set_geometry_of(t, t.squeeze(), "squeeze_"); }
void squeeze_(const Tensor& t, int64_t dim) { set_geometry_of(t, t.squeeze(dim), "squeeze_"); }
void as_strided_(const Tensor& t, const Dims& sizes, const Dims& strides, int64_t offset) {
  set_geometry_of(t, t.as_strided(sizes, strides, offset), "as_strided_");
}

void resize_(const Tensor& t, const Dims& size, std::optional<MemoryFormat> format) {
  ops::refuse_parts(t, "resize_");
  for (int64_t n : size)
    if (n < 0) throw RuntimeError("numel: integer multiplication overflow (resize_: negative size in {})", size.str());
  if (t.requires_grad()) throw RuntimeError("cannot resize variables that require grad");
  if (format == MemoryFormat::Preserve)
    throw RuntimeError("Unsupported memory formatPreserve (resize_: wanted contiguous_format, channels_last or channels_last_3d)");
  if (size == t.sizes() && !format) return;
  const Dims strides = ops::format_strides(size, format.value_or(MemoryFormat::Contiguous));
  const int64_t n = plus(checked_product(size), t.storage_offset());
  autograd::before_write(t);
  ops::grow_storage(t, n);
  ops::bump_version(t);  // copies saved for backward are no longer valid
  t.impl()->set_geometry(size, strides, t.impl()->offset);
}

void resize_as_(const Tensor& t, const Tensor& model, std::optional<MemoryFormat> format) {
  if (format == MemoryFormat::Preserve) {
    format = MemoryFormat::Contiguous;
    for (const MemoryFormat of_model : {MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d})
      if (!model.is_contiguous() && model.is_contiguous(of_model)) format = of_model;
  }
  resize_(t, model.sizes(), format);
}

}  // namespace naru
