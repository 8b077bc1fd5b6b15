#include "naru/ops/functions.h"

#include <algorithm>

#include "naru/autograd.h"
#include "ops/call/wrapped.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"

namespace naru {
namespace {

// A copy of t in which the part that `view` selects is replaced by the source.
template <class F>
Tensor with_part(const Tensor& t, const Tensor& source, const char* op, F view) {
  ops::require_defined(t, op, "input"), ops::require_defined(source, op, "src");
  const auto entries = [&]() -> std::optional<Tensor> {
    const batching::Batch b{&t, &source};
    if (b.has(t)) return {};
    return with_part(b.entry(b.whole(t)), source, op, view);
  };
  if (ops::has_sparse_form(t)) ops::throw_no_sparse(op, t);
  if (auto y = ops::by_rules(t, source, ops::BatchRule{entries})) return *std::move(y);
  const Tensor out = t.clone(), part = view(out);
  if (!(part.sizes() == source.sizes()))
    throw RuntimeError("expected src to have a size equal to the slice of self. src size = {}, slice size = {}", source.sizes().str(),
                       part.sizes().str());
  part.copy_(source);
  return out;
}

}  // namespace

Tensor select_scatter(const Tensor& t, const Tensor& source, int64_t dim, int64_t index) {
  return with_part(t, source, "select_scatter", [&](const Tensor& out) { return out.select(dim, index); });
}

Tensor slice_scatter(const Tensor& t, const Tensor& source, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                     int64_t step) {
  return with_part(t, source, "slice_scatter", [&](const Tensor& out) {
    if (step <= 0) throw RuntimeError("slice step must be positive");
    const int64_t n = out.size(dim);
    const auto place = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
    const int64_t from = place(start.value_or(0)), to = std::max(from, place(end.value_or(n)));
    const int64_t d = wrap_dim(dim, out.dim());
    Dims sizes = out.sizes(), strides = out.strides();
    const auto at = static_cast<size_t>(d);
    const int64_t offset = out.storage_offset() + from * strides[at];
    sizes[at] = to > from ? (to - from - 1) / step + 1 : 0;
    if (sizes[at] > 1) strides[at] *= step;
    return out.as_strided(sizes, strides, offset);
  });
}

Tensor diagonal_scatter(const Tensor& t, const Tensor& source, int64_t offset, int64_t dim1, int64_t dim2) {
  return with_part(t, source, "diagonal_scatter", [&](const Tensor& out) { return out.diagonal(offset, dim1, dim2); });
}

Tensor as_strided_scatter(const Tensor& t, const Tensor& source, const Dims& sizes, const Dims& strides, std::optional<int64_t> offset) {
  return with_part(t, source, "as_strided_scatter",
                   [&](const Tensor& out) { return out.as_strided(sizes, strides, offset.value_or(t.storage_offset())); });
}

}  // namespace naru
