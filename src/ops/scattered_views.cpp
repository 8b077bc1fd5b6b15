#include "naru/scattered_views.h"

#include <algorithm>

#include "core/sizes.h"
#include "naru/autograd.h"
#include "ops/autocast.h"
#include "ops/common.h"
#include "ops/host_loop.h"
#include "ops/reduction.h"
#include "ops/sparse.h"
#include "ops/type_names.h"

namespace naru {
namespace {

// A copy of t, of which `view` is a part, with the source's elements there.
template <class F>
Tensor with_part(const Tensor& t, const Tensor& source, const char* op, F view) {
  ops::require_defined(t, op, "input"), ops::require_defined(source, op, "src");
  ops::refuse_sparse(t, op);
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

Tensor diag_embed(const Tensor& t, int64_t offset, int64_t dim1, int64_t dim2) {
  ops::require_defined(t, "diag_embed", "input");
  const int64_t rank = t.dim() + 1, first = wrap_dim(dim1, rank), second = wrap_dim(dim2, rank);
  if (first == second) throw RuntimeError("diagonal dimensions cannot be identical {}, {}", dim1, dim2);
  const int64_t side = plus(t.size(-1), std::abs(std::max(offset, -INT64_MAX)));
  Dims sizes = t.sizes();
  sizes.resize(sizes.size() - 1);
  sizes.insert(static_cast<size_t>(std::min(first, second)), side);
  sizes.insert(static_cast<size_t>(std::max(first, second)), side);
  const Tensor out = zeros(sizes, Options(t.dtype(), t.device()));
  out.diagonal(offset, first, second).copy_(t);
  return out;
}

Tensor diagflat(const Tensor& t, int64_t offset) { return diag(t.reshape({-1}), offset); }

namespace {

// The dimension that is split, checked.
int64_t dim_to_split(const Tensor& t, const char* op, int64_t dim) {
  ops::require_defined(t, op, "input");
  const int64_t least = dim == 1 ? 1 : dim == 0 ? 2 : 3;  // hsplit takes vectors
  if (t.dim() < least)
    throw RuntimeError("torch.{} requires a tensor with at least {} dimension, but got a tensor with {} dimensions!", op, least, t.dim());
  return t.dim() == 1 ? 0 : dim;
}

std::vector<Tensor> split_evenly(const Tensor& t, const char* op, int64_t dim, int64_t sections) {
  const int64_t d = dim_to_split(t, op, dim);
  if (sections == 0 || t.size(d) % sections != 0)
    throw RuntimeError(
        "torch.{} attempted to split along dimension {}, but the size of the dimension {} is not divisible by the split_size {}!", op, d,
        t.size(d), sections);
  return tensor_split(t, sections, d);
}

}  // namespace

std::vector<Tensor> hsplit(const Tensor& t, int64_t sections) { return split_evenly(t, "hsplit", 1, sections); }
std::vector<Tensor> vsplit(const Tensor& t, int64_t sections) { return split_evenly(t, "vsplit", 0, sections); }
std::vector<Tensor> dsplit(const Tensor& t, int64_t sections) { return split_evenly(t, "dsplit", 2, sections); }
std::vector<Tensor> hsplit(const Tensor& t, const Dims& ends) { return tensor_split(t, ends, dim_to_split(t, "hsplit", 1)); }
std::vector<Tensor> vsplit(const Tensor& t, const Dims& ends) { return tensor_split(t, ends, dim_to_split(t, "vsplit", 0)); }
std::vector<Tensor> dsplit(const Tensor& t, const Dims& ends) { return tensor_split(t, ends, dim_to_split(t, "dsplit", 2)); }

Tensor narrow_copy(const Tensor& t, int64_t dim, int64_t start, int64_t length) {
  ops::require_defined(t, "narrow_copy", "input");
  if (ops::has_sparse_form(t)) return ops::sparse_narrow_copy(t, dim, start, length);
  return t.narrow(dim, start, length).clone(MemoryFormat::Contiguous);
}

Tensor sum_to_size(const Tensor& t, const Dims& sizes) {
  ops::require_defined(t, "sum_to_size", "input");
  const size_t extra = t.sizes().size() - std::min(sizes.size(), t.sizes().size());
  bool fits = sizes.size() <= t.sizes().size();
  Dims reduced;
  for (size_t d = 0; d < t.sizes().size(); ++d) {
    if (d >= extra && fits) fits = sizes[d - extra] == t.sizes()[d] || sizes[d - extra] == 1;
    if (d < extra || (fits && sizes[d - extra] != t.sizes()[d])) reduced.push_back(static_cast<int64_t>(d));
  }
  if (!fits) throw RuntimeError("size {{{}}} is not expandable to size {{{}}}.", sizes.str(), t.sizes().str());
  if (sizes.empty()) return sum(t);
  return (reduced.empty() ? t : sum(t, reduced, true)).view(sizes);
}

std::vector<Tensor> unravel_index(const Tensor& given, const Dims& shape) {
  ops::require_defined(given, "unravel_index", "indices");
  if (!is_integral(given.dtype())) throw TypeError("expected 'indices' to be integer dtype, but got torch.{}", name_of(given.dtype()));
  const Tensor indices = given.to(DType::I64);
  int64_t step = 1;
  std::vector<Tensor> out(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] < 0) throw ValueError("'shape' cannot have negative values, but got {}", shape.str());
    out[d] = remainder(step == 1 ? indices : floor_divide(indices, step), shape[d]);
    step = times(step, shape[d]);
  }
  return out;
}

Tensor nonzero_static(const Tensor& t, int64_t size, int64_t fill_value) {
  if (size < 0) throw RuntimeError("nonzero_static: 'size' must be an non-negative integer");
  if (t.device().is_meta()) return empty({size, t.dim()}, Options(DType::I64, t.device()));
  const Tensor found = nonzero(t);
  const int64_t count = found.size(0);
  if (count >= size) return found.narrow(0, 0, size);
  return cat({found, full({size - count, found.size(1)}, fill_value, Options(DType::I64, t.device()))}, 0);
}

Tensor norm_except_dim(const Tensor& t, double p, int64_t dim) {
  ops::require_defined(t, "norm_except_dim", "v");
  if (dim == -1) return norm(t, p);
  const int64_t kept = wrap_dim(dim, t.dim());
  Dims others;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (d != kept) others.push_back(d);
  return norm(t, p, others, true);
}

Tensor pdist(const Tensor& t, double p) {
  ops::require_defined(t, "pdist", "input");
  if (const autocast::Casts c("pdist", {&t}); c) return pdist(c[0], p);
  if (t.dim() != 2) throw RuntimeError("pdist only supports 2D tensors, got: {}D", t.dim());
  if (!is_floating(t.dtype())) throw RuntimeError("pdist only supports floating-point dtypes");
  if (!(p >= 0)) throw RuntimeError("pdist only supports non-negative p values");
  const int64_t n = t.size(0);
  if (n > 1 && size_of(t.dtype()) == 2) ops::throw_not_implemented("pdist", t.dtype());
  if (n <= 1) return sum(t.narrow(0, 0, 0), Dims{1});
  if (p == 2 && t.size(1) > 0 && t.size(1) <= ir::kContiguousChunk && ops::takes_host_loop({&t})) {
    const Tensor rows = t.contiguous(), out = ops::make_result({times(n, n - 1) / 2}, t.dtype(), t.device(), "pdist");
    ops::run_host_loop(ir::HostLoop::Kind::Distances, {&rows}, {&out});
    return out;
  }
  // Many short pieces of work cost devices more than all pairs at once.
  if (t.device().is_cpu() && n >= 64 && !(t.requires_grad() && grad_enabled())) {
    std::vector<Tensor> rows;
    for (int64_t i = 0; i + 1 < n; ++i) rows.push_back(norm(t.narrow(0, i + 1, n - 1 - i) - t.narrow(0, i, 1), p, Dims{1}));
    return cat(rows, 0);
  }
  // Pair k is in the row whose first pair is the last not behind it. Found on the device, so that a capture may hold it.
  const Options integers(DType::I64, t.device());
  const Tensor row = arange(0, n - 1, 1, integers), starts = floor_divide(row * (2 * n - 1 - row), 2),
               k = arange(0, times(n, n - 1) / 2, 1, integers);
  const Tensor first = searchsorted(starts, k, false, true) - 1, second = k - index_select(starts, 0, first) + first + 1;
  return norm(index_select(t, 0, first) - index_select(t, 0, second), p, Dims{1});
}

Tensor addbmm(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  if (const autocast::Casts k("addbmm", {&c, &a, &b}); k) return addbmm(k[0], k[1], k[2], beta, alpha);
  for (const auto& [t, role] : {std::pair(&a, "batch1"), std::pair(&b, "batch2")}) {
    ops::require_defined(*t, "addbmm", role);
    if (t->dim() != 3) throw RuntimeError("{} must be a 3D tensor", role);
  }
  if (a.size(0) != b.size(0)) throw RuntimeError("batch1 and batch2 must have same number of batches, got {} and {}", a.size(0), b.size(0));
  if (a.size(2) != b.size(1))
    throw RuntimeError("Incompatible matrix sizes for bmm ({}x{} and {}x{})", a.size(1), a.size(2), b.size(1), b.size(2));
  // The batch beside the dimension that is summed over: one product.
  const Tensor left = a.permute({1, 0, 2}).reshape({a.size(1), a.size(0) * a.size(2)}),
               right = b.reshape({b.size(0) * b.size(1), b.size(2)});
  return addmm(c.expand({a.size(1), b.size(2)}), left, right, beta, alpha);
}

}  // namespace naru
