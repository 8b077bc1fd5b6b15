// cov and corrcoef.
#include <algorithm>

#include "naru/autograd.h"
#include "naru/ops/complex.h"
#include "naru/ops/functions.h"
#include "ops/elementwise/half.h"
#include "ops/elementwise/host_loop.h"
#include "ops/tensor/common.h"

namespace naru {

namespace {

// x and its transpose's conjugate multiplied. The product is symmetric: of large ones without a history the cpu computes blocks of rows up to the
// diagonal only, and copies the rest.
Tensor product_with_itself(const Tensor& x) {
  constexpr int64_t kBlocks = 4, kWorthIt = 512;
  const int64_t n = x.size(0), each = n / kBlocks;
  if (n < kWorthIt || !(x.dtype() == DType::F32 || x.dtype() == DType::F64) || !ops::can_use_host_loop({&x})) return matmul(x, conj(x.t()));
  const NoGrad off;
  const Tensor rows = x.detach().contiguous(), out = empty({n, n}, Options(x.dtype(), x.device()));
  for (int64_t b = 0; b < kBlocks; ++b) {
    const int64_t first = b * each, end = b + 1 == kBlocks ? n : first + each;
    const Tensor left = out.narrow(0, first, end - first).narrow(1, 0, end);
    Tensor(left).copy_(matmul(rows.narrow(0, first, end - first), rows.narrow(0, 0, end).t()));
    if (first > 0) Tensor(out.narrow(0, 0, first).narrow(1, first, end - first)).copy_(left.narrow(1, 0, first).t());
  }
  return out;
}

}  // namespace

Tensor cov(const Tensor& t, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  ops::require_defined(t, "cov", "input");
  if (t.dim() > 2) throw RuntimeError("cov(): expected input to have two or fewer dimensions but got an input with {} dimensions", t.dim());
  if (t.dtype() == DType::Bool) throw NotImplementedError("cov(): bool dtype is not supported for input");
  Tensor x = t.dim() < 2 ? t.reshape({1, -1}) : t;
  if (!is_inexact(x.dtype())) x = x.to(default_dtype());
  const int64_t n = x.size(1);
  for (const auto& [w, name] : {std::pair(&fweights, "fweights"), std::pair(&aweights, "aweights")})
    if (w->defined() && (w->dim() > 1 || w->numel() != n))
      throw RuntimeError("cov(): expected {} to have the same numel() as there are observations in the input but got {} != {}", name,
                         w->numel(), n);
  if (ops::is_half(x.dtype())) {  // rounded once, at the end
    DType type = x.dtype();
    for (const Tensor* w : {&fweights, &aweights})
      if (w->defined()) type = promote(type, w->dtype());
    const Tensor wide = aweights.defined() && ops::is_half(aweights.dtype()) ? aweights.to(DType::F32) : aweights;
    return cov(t.to(DType::F32), correction, fweights, wide).to(type);
  }
  const Dims shape = x.size(0) == 1 ? Dims{} : Dims{x.size(0), x.size(0)};  // for a single variable: 0-d
  if (n > 0) x = x - x.detach().narrow(1, 0, 1);                            // so that a large mean cancels no digits
  Tensor weights = fweights.defined() ? fweights : Tensor();
  if (aweights.defined()) weights = weights.defined() ? weights * aweights : aweights;
  if (!weights.defined()) {
    const Tensor centered = x - mean(x, Dims{1}, true);
    return (product_with_itself(centered) / static_cast<double>(std::max<int64_t>(n - correction, 0))).reshape(shape);
  }
  const Tensor total = sum(weights);
  const Tensor centered = x - (sum(x * weights, Dims{1}, true) / total);
  const Tensor norm = aweights.defined() && correction != 0 ? total - sum(weights * aweights) * static_cast<double>(correction) / total
                                                            : total - static_cast<double>(correction);
  // Divide before the reshape to 0-d, so that norm's dtype does not affect the result's.
  return (matmul(centered, conj((centered * weights).t())) / clamp_min(norm, zeros_like(norm))).reshape(shape);
}

Tensor corrcoef(const Tensor& t) {
  ops::require_defined(t, "corrcoef", "input");
  if (t.dim() > 2)
    throw RuntimeError("corrcoef(): expected input to have two or fewer dimensions but got an input with {} dimensions", t.dim());
  const Tensor c = cov(t);
  if (c.dim() == 0) return c / c;
  const Tensor deviation = sqrt(real(c.diagonal()));
  const Tensor r = c / deviation.unsqueeze(-1) / deviation.unsqueeze(0);
  const auto limited = [](const Tensor& x) { return clamp(x, std::optional<Operand>(Operand(-1)), std::optional<Operand>(Operand(1))); };
  return is_complex(r.dtype()) ? complex(limited(real(r)), limited(imag(r))) : limited(r);
}

}  // namespace naru
