// Reductions at indexed positions: scatter with reduce, scatter_reduce, index_reduce; and polygamma.
#include "object/out.h"
#include "object/tensor_object.h"

namespace naru::py {
namespace {

Tensor scattered(const Tensor& t, int64_t dim, const Tensor& index, const Operand& src, std::string_view reduce) {
  const Tensor source = src.is_tensor() ? src.tensor() : full(index.sizes(), src.scalar(), Options(t.dtype(), t.device()));
  if (reduce == "add") return scatter_add(t, dim, index, source);
  if (reduce != "multiply") throw RuntimeError("reduce argument must be either add or multiply. (scatter: got {})", reduce);
  return scatter_reduce(t, dim, index, source, "prod");
}

Self scattered_in_place(const Tensor& t, int64_t dim, const Tensor& index, const Operand& src, std::string_view reduce) {
  Tensor(t).copy_(scattered(to_be_read(t, src.is_tensor() && src.tensor().requires_grad()), dim, index, src, reduce));
  return Self();
}

}  // namespace

void define_scatters() {
  const char* const words = "Adds src at the indexed places, or multiplies by it (reduce: 'add' or 'multiply').";
  def(kBoth, "scatter", "input, dim, index, src, *, reduce, out=None", words,
      [](const Tensor& t, int64_t dim, const Tensor& index, const Operand& src, std::string_view reduce) {
        return scattered(t, dim, index, src, reduce);
      });
  def(kBoth, "scatter", "input, dim, index, value, *, reduce, out=None", words,
      [](const Tensor& t, int64_t dim, const Tensor& index, const Operand& src, std::string_view reduce) {
        return scattered(t, dim, index, src, reduce);
      });
  def(kMethod, "scatter_", "input, dim, index, src, *, reduce", words,
      [](const Tensor& t, int64_t dim, const Tensor& index, const Operand& src, std::string_view reduce) {
        return scattered_in_place(t, dim, index, src, reduce);
      });
  def(kMethod, "scatter_", "input, dim, index, value, *, reduce", words,
      [](const Tensor& t, int64_t dim, const Tensor& index, const Operand& src, std::string_view reduce) {
        return scattered_in_place(t, dim, index, src, reduce);
      });
  def(kBoth, "scatter_reduce", "input, dim, index, src, reduce, *, include_self=True, out=None",
      "The sum, prod, mean, amax or amin (reduce) of what src has for each place, and of what was there if include_self.",
      [](const Tensor& t, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce, bool include_self) {
        return scatter_reduce(t, dim, index, src, reduce, include_self);
      });
  def(kBoth, "index_reduce", "input, dim, index, source, reduce, *, include_self=True, out=None",
      "The prod, mean, amax or amin (reduce) of the slices of source for each slice, and of the slice itself if include_self.",
      [](const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce, bool include_self) {
        return index_reduce(t, dim, index, source, reduce, include_self);
      });
  def(kMethod, "polygamma", "input, n", "The n-th derivative of digamma.", [](const Tensor& t, int64_t n) { return polygamma(n, t); });
  def(kFunction, "polygamma", "n, input, *, out=None", "The n-th derivative of digamma.",
      [](int64_t n, const Tensor& t) { return polygamma(n, t); });
  add_in_place("scatter_reduce"), add_in_place("index_reduce");
}

}  // namespace naru::py
