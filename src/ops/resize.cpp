// The tensor itself takes another geometry: transpose_, squeeze_, resize_ ...
#include "core/sizes.h"
#include "naru/compositions.h"
#include "naru/ops.h"
#include "ops/common.h"
#include "ops/sparse.h"
#include "ops/strides.h"

namespace naru {
namespace {

void take_geometry(const Tensor& t, const Tensor& view) {
  if (ops::has_sparse_form(t)) return ops::take_parts(t, view, "an in-place change of shape");
  if (t.requires_grad())
    throw RuntimeError("an in-place change of shape is not supported for a tensor that requires grad; use the form without underscore");
  ops::bump_version(t);  // backward of whoever has saved it would meet another shape
  t.impl()->set_geometry(view.sizes(), view.strides(), view.storage_offset());
}

}  // namespace

void t_(const Tensor& t) { take_geometry(t, t.t()); }
void transpose_(const Tensor& t, int64_t a, int64_t b) { take_geometry(t, t.transpose(a, b)); }
void unsqueeze_(const Tensor& t, int64_t dim) { take_geometry(t, t.unsqueeze(dim)); }
void squeeze_(const Tensor& t) { take_geometry(t, t.squeeze()); }
void squeeze_(const Tensor& t, int64_t dim) { take_geometry(t, t.squeeze(dim)); }
void as_strided_(const Tensor& t, const Dims& sizes, const Dims& strides, int64_t offset) {
  take_geometry(t, t.as_strided(sizes, strides, offset));
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
