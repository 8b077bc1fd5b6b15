// rand_like, randn_like, randint_like.
#include "naru/ops.h"
#include "ops/random/host_draws.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"

namespace naru {
namespace {

Options like(const Tensor& t, const Options& options) {
  Options o = options;
  if (!o.dtype) o.dtype = t.dtype();
  if (!o.device) o.device = t.device();
  return o;
}

Options values_as(Options o, std::optional<MemoryFormat> format = {}) {
  o.requires_grad = false, o.memory_format = format;
  return o;
}

// Copies `made` to the requested memory format, by default that of `model`.
Tensor laid_out(const Tensor& made, const Tensor& model, const Options& o) {
  if (!o.memory_format && model.strides() == made.strides()) return made;
  Options plain(made.dtype(), made.device());
  plain.memory_format = o.memory_format;
  Tensor out = empty_like(model, plain);
  out.copy_(made.detach());
  return o.requires_grad ? out.requires_grad_() : out;
}

// PyTorch draws in memory order, which is not row-major order if t is not row-major.
template <class Fill>
Tensor filled_like(const Tensor& t, const Options& o, Fill fill) {
  Tensor out = empty_like(t, values_as(o, o.memory_format));
  fill(out);
  return o.requires_grad ? out.requires_grad_() : out;
}
bool needs_memory_order_fill(const Tensor& t, const Options& o) {
  return ops::draws_as_pytorch() && (!t.is_contiguous() || o.memory_format.value_or(MemoryFormat::Preserve) > MemoryFormat::Preserve);
}

// For compressed sparse layouts, numbers are drawn for the stored elements.
bool stores_by_lines(const Tensor& t) { return ops::has_sparse_form(t) && is_compressed(t); }
template <class Draw>
Tensor drawn_like(const Tensor& t, const Options& o, Draw draw) {
  const Tensor own = t.detach();
  const Tensor made = ops::compressed_to(own, o.device.value_or(t.device()), draw(ops::values_of(own)));
  return o.requires_grad ? made.requires_grad_() : made;
}

}  // namespace

Tensor rand_like(const Tensor& t, const Options& o, Generator* generator) {
  if (stores_by_lines(t)) return drawn_like(t, o, [&](const Tensor& values) { return rand_like(values, values_as(o), generator); });
  if (needs_memory_order_fill(t, o)) return filled_like(t, o, [&](const Tensor& out) { uniform_(out, 0, 1, generator); });
  return laid_out(rand(t.sizes(), like(t, o), generator), t, o);
}
Tensor randn_like(const Tensor& t, const Options& o, Generator* generator) {
  if (stores_by_lines(t)) return drawn_like(t, o, [&](const Tensor& values) { return randn_like(values, values_as(o), generator); });
  if (needs_memory_order_fill(t, o)) return filled_like(t, o, [&](const Tensor& out) { normal_(out, 0, 1, generator); });
  return laid_out(randn(t.sizes(), like(t, o), generator), t, o);
}
Tensor randint_like(const Tensor& t, int64_t low, int64_t high, const Options& o, Generator* generator) {
  if (stores_by_lines(t))
    return drawn_like(t, o, [&](const Tensor& values) { return randint_like(values, low, high, values_as(o), generator); });
  if (needs_memory_order_fill(t, o)) return filled_like(t, o, [&](const Tensor& out) { random_(out, low, high, generator); });
  return laid_out(randint(low, high, t.sizes(), like(t, o), generator), t, o);
}

}  // namespace naru
