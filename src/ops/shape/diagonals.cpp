// Diagonals and triangular parts of matrices.
#include <algorithm>
#include <cstdlib>

#include "autograd/history/history.h"
#include "core/sizes.h"
#include "naru/ops/functions.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/host_loop.h"
#include "ops/tensor/common.h"

namespace naru {

using Grads = std::vector<Tensor>&;

Tensor diag(const Tensor& t, int64_t k) {
  if (t.dim() == 2) return t.diagonal(k, 0, 1).clone();
  if (t.dim() != 1) throw RuntimeError("diag(): Supports 1D or 2D tensors. Got {}D", t.dim());
  if (k == INT64_MIN) throw RuntimeError("diag(): diagonal {} is out of range", k);
  const int64_t n = plus(t.numel(), std::abs(k));
  times(times(n, n), static_cast<int64_t>(t.element_size()));  // throws if no memory can hold this many
  const Options like(t.dtype(), t.device());
  const auto gap = [&](int64_t size) { return zeros({std::max<int64_t>(size, 0)}, like); };
  const Tensor line = mul(ones({n, 1}, like), cat({gap(k), t, gap(-k)}));
  const Tensor rows = arange(0, n, 1, Options(t.device())).unsqueeze(1), columns = arange(0, n, 1, Options(t.device())).unsqueeze(0);
  return where(eq(columns, add(rows, Operand(k))), line, zeros({}, like));
}

Tensor diag_embed(const Tensor& t, int64_t offset, int64_t dim1, int64_t dim2) {
  ops::require_defined(t, "diag_embed", "input");
  const int64_t rank = t.dim() + 1, first = wrap_dim(dim1, rank), second = wrap_dim(dim2, rank);
  if (first == second) throw RuntimeError("diagonal dimensions cannot be identical {}, {}", dim1, dim2);
  const auto again = [&](const Tensor& v) { return diag_embed(v, offset, first + 1, second + 1); };
  if (auto y = ops::wrapped(ops::kNoCasts, again, ops::Entries{t})) return *std::move(y);
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

// Keeps the elements (r, c) with c <= r + diagonal (lower) or c >= r + diagonal (upper); the others become 0.
Tensor triangle(const Tensor& t, int64_t diagonal, bool lower, const char* op, const char* node) {
  if (auto y = ops::wrapped(ops::kNoCasts, triangle, ops::matrices(t), diagonal, lower, op, node)) return *std::move(y);
  ops::require_defined(t, op, "input");
  if (t.dim() < 2) throw RuntimeError("{}: input tensor must have at least 2 dimensions", op);
  diagonal = std::clamp(diagonal, -t.size(-2), t.size(-1));  // beyond these bounds all or nothing is kept
  if (t.is_contiguous() && ops::can_use_host_loop({&t})) {
    const Tensor out = ops::make_result(t.sizes(), t.dtype(), t.device(), op);
    ops::run_host_loop(ir::HostLoop::Kind::Triangle, {&t}, {&out}, {diagonal, lower});
    return out;
  }
  const Options places(DType::I64, t.device());
  const Tensor columns = arange(0, t.size(-1), 1, places), rows = arange(diagonal, t.size(-2) + diagonal, 1, places).unsqueeze(1);
  Tensor out = ops::make_result(t.sizes(), t.dtype(), t.device(), op, true);
  const Tensor kept = ops::apply(lower ? ir::op::le : ir::op::ge, {{&columns, {}, DType::I64}, {&rows, {}, DType::I64}}, DType::Bool, op);
  const ops::OpOperand operands[] = {{&kept, {}, DType::Bool}, {&t, {}, t.dtype()}, {nullptr, 0, t.dtype()}};
  ops::apply_into(ir::op::where, operands, out);
  const auto kept_part = [diagonal, lower](const Tensor& x) { return lower ? tril(x, diagonal) : triu(x, diagonal); };
  return autograd::record(
      out, node, {&t}, {},
      autograd::WithJvp([kept_part](Grads g, Grads) { return std::vector{g[0].defined() ? kept_part(g[0]) : Tensor()}; },
                        [kept_part](Grads t, Grads) { return kept_part(t[0]); }));
}

}  // namespace

Tensor tril(const Tensor& t, int64_t diagonal) { return triangle(t, diagonal, true, "tril", "TrilBackward0"); }
Tensor triu(const Tensor& t, int64_t diagonal) { return triangle(t, diagonal, false, "triu", "TriuBackward0"); }

namespace {

// The number of elements (i, j) of a matrix with j - i <= k.
__int128 elements_below(int64_t rows, int64_t columns, __int128 k) {
  const __int128 first = std::clamp<__int128>(-k, 0, rows);                   // first row that has such elements
  const __int128 whole = std::clamp<__int128>(columns - k - 1, first, rows);  // first row in which all elements are such
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
    if (lower && end == 0) i = std::max<int64_t>(i, -k - 1);  // skip the rows without elements
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
