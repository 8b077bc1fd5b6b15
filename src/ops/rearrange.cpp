// Dimensions dropped, moved and turned; diagonals and triangles.
#include <algorithm>
#include <cstdlib>

#include "core/sizes.h"
#include "naru/complex.h"
#include "naru/compositions.h"
#include "naru/ops.h"

namespace naru {

Tensor squeeze(const Tensor& t, const Dims& dims) {
  if (dims.size() == 1) return t.squeeze(dims[0]);
  std::vector<int64_t> order;
  for (int64_t d : dims) order.push_back(wrap_dim(d, t.dim()));
  std::sort(order.rbegin(), order.rend());
  Tensor out = t;
  for (int64_t d : order) out = out.squeeze(d);
  return out;
}

Tensor movedim(const Tensor& t, const Dims& from, const Dims& to) {
  if (from.size() != to.size())
    throw RuntimeError(
        "movedim: Invalid source or destination dims: source ({} dims) should contain the same number of dims as destination ({} dims)",
        from.str(), to.str());
  const int64_t n = t.dim();
  if (n == 0) {
    for (int64_t d : from) wrap_dim(d, 0);
    for (int64_t d : to) wrap_dim(d, 0);
    return t.view(t.sizes());
  }
  std::vector<int64_t> order(static_cast<size_t>(n), -1);
  std::vector<bool> taken(static_cast<size_t>(n), false);
  for (size_t i = 0; i < from.size(); ++i) {
    const auto a = static_cast<size_t>(wrap_dim(from[i], n)), b = static_cast<size_t>(wrap_dim(to[i], n));
    if (taken[a]) throw RuntimeError("movedim: repeated dim in `source` ({})", from.str());
    if (order[b] >= 0) throw RuntimeError("movedim: repeated dim in `destination` ({})", to.str());
    order[b] = static_cast<int64_t>(a);
    taken[a] = true;
  }
  int64_t next = 0;
  for (auto& d : order) {
    if (d >= 0) continue;
    while (taken[static_cast<size_t>(next)]) ++next;
    d = next++;
  }
  return t.permute(Dims(order));
}

Tensor numpy_T(const Tensor& t) {
  Dims order;
  for (int64_t d = t.dim(); d-- > 0;) order.push_back(d);
  return t.permute(order);
}

Tensor mT(const Tensor& t) {
  if (t.dim() == 0) {
    warn("Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases.");
    return t.view(t.sizes());
  }
  if (t.dim() < 2) throw RuntimeError("tensor.mT is only supported on matrices or batches of matrices. Got {}-D tensor.", t.dim());
  return t.transpose(-2, -1);
}

Tensor matrix_H(const Tensor& t) {
  if (t.dim() == 0) {
    warn("Tensor.H is deprecated on 0-D tensors. Consider using x.conj().");
    return conj(t);
  }
  if (t.dim() != 2) throw RuntimeError("tensor.H is only supported on matrices (2-D tensors). Got {}-D tensor.", t.dim());
  return conj(t.t());
}

Tensor mH(const Tensor& t) {
  if (t.dim() == 0) {
    warn("Tensor.mH is deprecated on 0-D tensors. Consider using x.conj().");
    return conj(t);
  }
  if (t.dim() < 2) throw RuntimeError("tensor.mH is only supported on matrices or batches of matrices. Got {}-D tensor.", t.dim());
  return conj(t.transpose(-2, -1));
}

Tensor rot90(const Tensor& t, int64_t k, const Dims& dims) {
  if (dims.size() != 2) throw RuntimeError("expected total rotation dims == 2, but got dims = {}", dims.size());
  if (t.dim() < 2) throw RuntimeError("expected total dims >= 2, but got total dims = {}", t.dim());
  switch (((k % 4) + 4) % 4) {
    case 1:
      return flip(t, {dims[1]}).transpose(dims[0], dims[1]);
    case 2:
      return flip(t, dims);
    case 3:
      return flip(t, {dims[0]}).transpose(dims[0], dims[1]);
    default:
      return t.clone();
  }
}

Tensor diag(const Tensor& t, int64_t k) {
  if (t.dim() == 2) return t.diagonal(k, 0, 1).clone();
  if (t.dim() != 1) throw RuntimeError("diag(): Supports 1D or 2D tensors. Got {}D", t.dim());
  if (k == INT64_MIN) throw RuntimeError("diag(): diagonal {} is out of range", k);
  const int64_t n = plus(t.numel(), std::abs(k));
  times(times(n, n), static_cast<int64_t>(t.element_size()));  // throws where no memory holds so many
  const Options like(t.dtype(), t.device());
  const auto gap = [&](int64_t size) { return zeros({std::max<int64_t>(size, 0)}, like); };
  const Tensor line = mul(ones({n, 1}, like), cat({gap(k), t, gap(-k)}));
  const Tensor rows = arange(0, n, 1, Options(t.device())).unsqueeze(1), columns = arange(0, n, 1, Options(t.device())).unsqueeze(0);
  return where(eq(columns, add(rows, Operand(k))), line, zeros({}, like));
}

namespace {

// How many elements (i, j) of a matrix have j - i <= k.
__int128 elements_below(int64_t rows, int64_t columns, __int128 k) {
  const __int128 first = std::clamp<__int128>(-k, 0, rows);                   // the first row that has some
  const __int128 whole = std::clamp<__int128>(columns - k - 1, first, rows);  // the first that has all
  return (whole - first) * (first + whole + 2 * k + 1) / 2 + (rows - whole) * columns;
}

Tensor triangle_indices(int64_t rows, int64_t columns, int64_t k, const Options& options, bool lower) {
  const char* op = lower ? "tril_indices" : "triu_indices";
  if (rows < 0) throw RuntimeError("row must be non-negative, got{}", rows);
  if (columns < 0) throw RuntimeError("col must be non-negative, got{}", columns);
  const __int128 below = elements_below(rows, columns, lower ? k : static_cast<__int128>(k) - 1);
  const __int128 count = lower ? below : static_cast<__int128>(rows) * columns - below;
  if (count > INT64_MAX / 16) throw RuntimeError("{}: {} x {} elements are too many for any memory", op, rows, columns);
  const Tensor places = empty({2, static_cast<int64_t>(count)}, Options(DType::I64, Device(DeviceType::Cpu)));
  auto* row = count ? places.data<int64_t>() : nullptr;
  auto* column = row + static_cast<int64_t>(count);
  for (int64_t i = 0, n = 0; n < count; ++i) {
    const auto diagonal = static_cast<__int128>(i) + k;
    const auto begin = static_cast<int64_t>(lower ? 0 : std::clamp<__int128>(diagonal, 0, columns));
    const auto end = static_cast<int64_t>(lower ? std::clamp<__int128>(diagonal + 1, 0, columns) : columns);
    if (lower && end == 0) i = std::max<int64_t>(i, -k - 1);  // the rows without elements
    for (int64_t j = begin; j < end; ++j, ++n) row[n] = i, column[n] = j;
  }
  return places.to(options.device, options.dtype.value_or(DType::I64), false, false);
}

}  // namespace

Tensor tril_indices(int64_t rows, int64_t columns, int64_t offset, const Options& options) {
  return triangle_indices(rows, columns, offset, options, true);
}
Tensor triu_indices(int64_t rows, int64_t columns, int64_t offset, const Options& options) {
  return triangle_indices(rows, columns, offset, options, false);
}

}  // namespace naru
