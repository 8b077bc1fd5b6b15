// Distances between vectors, and cosine similarity.
#include <algorithm>

#include "autograd/history/constant.h"
#include "autograd/history/history.h"
#include "core/sizes.h"
#include "naru/autograd.h"
#include "naru/ops/functions.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/half.h"
#include "ops/elementwise/host_loop.h"
#include "ops/elementwise/rules.h"
#include "ops/reduce/reduction.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {

namespace {

// |x|² - 2 x y + |y|²: less accurate than differences if x and y are close, but much less work.
Tensor euclidean_by_products(const Tensor& a, const Tensor& b) {
  Tensor y;
  {
    const NoGrad off;
    const Tensor x = a.detach(), z = b.detach(), product = matmul(x, z.transpose(-1, -2));
    const Tensor of_a = sum(square(x), Dims{-1}, true), of_b = sum(square(z), Dims{-1}).unsqueeze(-2);
    y = sqrt(clamp_min(of_a - product * 2.0 + of_b, 0.0));
  }
  return autograd::record(
      std::move(y), "CdistBackward0", {&a, &b}, {&a, &b},
      [](const std::vector<Tensor>& g, const std::vector<Tensor>& saved, autograd::Needed needed) -> std::vector<Tensor> {
        const Tensor &x = saved[0], &z = saved[1], &y = saved[2];
        const Tensor share = where(y == 0.0, 0.0, g[0] / y);
        Tensor gx, gz;
        if (needed[0]) gx = ops::sum_to(x * sum(share, Dims{-1}, true) - matmul(share, z), x.sizes());
        if (needed[1]) gz = ops::sum_to(z * sum(share, Dims{-2}).unsqueeze(-1) - matmul(share.transpose(-1, -2), x), z.sizes());
        return {gx, gz};
      },
      true);
}

bool by_products(const Tensor& a, const Tensor& b, double p, std::string_view mode) {
  constexpr int64_t kFew = 25;  // rows; PyTorch's threshold
  if (mode == "use_mm_for_euclid_dist") return p == 2;
  if (mode == "donot_use_mm_for_euclid_dist") return false;
  if (mode == "use_mm_for_euclid_dist_if_necessary") return p == 2 && (a.size(-2) > kFew || b.size(-2) > kFew);
  throw ValueError("{} is not a valid value for compute_mode", mode);
}

}  // namespace

Tensor dist(const Tensor& a, const Tensor& b, double p) {
  if (auto y = ops::wrapped("dist", dist, a, b, p)) return *std::move(y);
  return norm(sub(a, b), p);
}

Tensor cdist(const Tensor& a, const Tensor& b, double p, std::string_view compute_mode) {
  if (auto y = ops::wrapped("cdist", cdist, a, b, p, compute_mode)) return *std::move(y);
  if (a.dim() < 2 || b.dim() < 2)
    throw RuntimeError("cdist only supports at least 2D tensors, got {} and {}", a.sizes().str(), b.sizes().str());
  if (a.size(-1) != b.size(-1)) throw RuntimeError("X1 and X2 must have the same number of columns. X1: {} X2: {}", a.size(-1), b.size(-1));
  for (const auto& [t, role] : {std::pair(&a, "X1"), std::pair(&b, "X2")})
    if (!is_floating(t->dtype()))
      throw RuntimeError("cdist only supports floating-point dtypes, {} got: {}", role, ops::torch_name(t->dtype()));
  if (a.element_size() == 2)
    throw NotImplementedError("\"cdist\" not implemented for '{}' (convert to float32 first)", ops::torch_name(a.dtype()));
  if (by_products(a, b, p, compute_mode) && a.dtype() == b.dtype() && a.size(-1) > 0) return euclidean_by_products(a, b);
  if (p == 2 && a.dim() == 2 && b.dim() == 2 && a.dtype() == b.dtype() && a.size(1) <= ir::kContiguousChunk &&
      ops::can_use_host_loop({&a, &b})) {
    const Tensor x = a.contiguous(), y = b.contiguous(), out = ops::make_result({x.size(0), y.size(0)}, x.dtype(), x.device(), "cdist");
    ops::run_host_loop(ir::HostLoop::Kind::Distances, {&x, &y}, {&out});
    return out;
  }
  return autograd::reading_inputs(norm(sub(a.unsqueeze(-2), b.unsqueeze(-3)), p, Dims{-1}));
}

Tensor pdist(const Tensor& t, double p) {
  ops::require_defined(t, "pdist", "input");
  if (auto y = ops::wrapped("pdist", pdist, t, p)) return *std::move(y);
  if (t.dim() != 2) throw RuntimeError("pdist only supports 2D tensors, got: {}D", t.dim());
  if (!is_floating(t.dtype())) throw RuntimeError("pdist only supports floating-point dtypes");
  if (!(p >= 0)) throw RuntimeError("pdist only supports non-negative p values");
  const int64_t n = t.size(0);
  if (n > 1 && size_of(t.dtype()) == 2) ops::throw_not_implemented("pdist", t.dtype());
  if (n <= 1) return sum(t.narrow(0, 0, 0), Dims{1});
  if (p == 2 && t.size(1) > 0 && t.size(1) <= ir::kContiguousChunk && ops::can_use_host_loop({&t})) {
    const Tensor rows = t.contiguous(), out = ops::make_result({times(n, n - 1) / 2}, t.dtype(), t.device(), "pdist");
    ops::run_host_loop(ir::HostLoop::Kind::Distances, {&rows}, {&out});
    return out;
  }
  // Not on accelerators: many short kernels cost more there than all pairs at once.
  if (t.device().is_cpu() && n >= 64 && !(t.requires_grad() && grad_enabled())) {
    std::vector<Tensor> rows;
    for (int64_t i = 0; i + 1 < n; ++i) rows.push_back(norm(t.narrow(0, i + 1, n - 1 - i) - t.narrow(0, i, 1), p, Dims{1}));
    return cat(rows, 0);
  }
  // Pair k belongs to the last row whose first pair is at or before k. Computed on the device, so that a graph can capture it.
  const Options integers(DType::I64, t.device());
  const Tensor row = arange(0, n - 1, 1, integers), starts = floor_divide(row * (2 * n - 1 - row), 2),
               k = arange(0, times(n, n - 1) / 2, 1, integers);
  const Tensor first = searchsorted(starts, k, false, true) - 1, second = k - index_select(starts, 0, first) + first + 1;
  return autograd::reading_inputs(norm(index_select(t, 0, first) - index_select(t, 0, second), p, Dims{1}));
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim, double eps) {
  if (auto y = ops::wrapped("cosine_similarity", cosine_similarity, a, b, dim, eps)) return *std::move(y);
  const Dims shape = broadcast_shapes(a.sizes(), b.sizes());
  const Operand operands[] = {a, b};
  if (const DType common = ops::result_type(operands); !is_floating(common))
    throw RuntimeError("expected common dtype to be floating point, yet common dtype is {} (cosine_similarity)", ops::torch_name(common));
  if (const DType common = ops::result_type(operands); ops::is_half(common))
    return cosine_similarity(a.to(DType::F32), b.to(DType::F32), dim, eps).to(common);
  const auto unit = [&](const Tensor& t) {
    const Tensor x = (is_inexact(t.dtype()) ? t : t.to(default_dtype())).expand(shape);
    return x / clamp_min(norm(x, 2, Dims{dim}, true), Operand(eps));
  };
  return sum(unit(a) * unit(b), Dims{dim});
}

}  // namespace naru
