// The tensor itself takes another geometry: transpose_, squeeze_, resize_ ...
#include "core/sizes.h"
#include "naru/compositions.h"
#include "naru/ops.h"
#include "ops/common.h"
#include "ops/history.h"
#include "ops/sparse.h"
#include "ops/strides.h"

namespace naru {
namespace {

// A result that others may be derived from becomes its own view, with the view's history.
void take_geometry(const Tensor& t, const Tensor& view, const char* op) {
  if (ops::has_sparse_form(t)) return ops::take_parts(t, view, op);
  autograd::before_write(t);
  ops::bump_version(t);  // backward of whoever has saved it would meet another shape
  autograd::Edge history;
  if (t.requires_grad()) {
    if (grad_enabled()) autograd::check_in_place(t, op);
    // A leaf may change while nothing is recorded: its gradients have the new shape. A view takes its place among its base's elements anew.
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

void t_(const Tensor& t) { take_geometry(t, t.t(), "t_"); }
void transpose_(const Tensor& t, int64_t a, int64_t b) { take_geometry(t, t.transpose(a, b), "transpose_"); }
void unsqueeze_(const Tensor& t, int64_t dim) { take_geometry(t, t.unsqueeze(dim), "unsqueeze_"); }
void squeeze_(const Tensor& t) { take_geometry(t, t.squeeze(), "squeeze_"); }
void squeeze_(const Tensor& t, int64_t dim) { take_geometry(t, t.squeeze(dim), "squeeze_"); }
void as_strided_(const Tensor& t, const Dims& sizes, const Dims& strides, int64_t offset) {
  take_geometry(t, t.as_strided(sizes, strides, offset), "as_strided_");
}

void resize_(const Tensor& t, const Dims& size, std::optional<MemoryFormat> format) {
  ops::refuse_sparse(t, "resize_");
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
  ops::bump_version(t);  // what backward has kept of it is no longer what it was
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
