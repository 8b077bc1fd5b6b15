// var, std, var_mean, norm, logsumexp.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "autograd/history/history.h"
#include "naru/ops/complex.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/half.h"
#include "ops/reduce/reductions.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {

using autograd::record;
using ir::ReduceOp;
using ops::DimSet;
using ops::FusedProducer;
using Tensors = std::vector<Tensor>;

namespace {

// What var, std and mean are made of.
struct Moments {
  Tensor mean;               // keeps its dimensions; of the accumulator's type
  Tensor variance;           // its dimensions as asked; not yet of the result's type
  Tensor first, from_first;  // where defined: what the mean is the sum of, before it is rounded
};

void divide(Tensor& t, double n) {
  const DType acc = t.dtype();
  const ops::OpOperand operands[] = {{&t, {}, acc}, {nullptr, n, acc}};
  ops::apply_into(ir::op::div, operands, t);
}

// The first element along the dimensions of `set`, which stay as ones.
Tensor first_along(const Tensor& t, const DimSet& set) {
  Tensor first = t.detach();
  for (int64_t d = 0; d < t.dim(); ++d)
    if (set[static_cast<size_t>(d)] && t.size(d) > 1) first = first.narrow(d, 0, 1);
  return first;
}

constexpr DType kWide = DType::F64;

// Of float32 and 16-bit types: one pass sums the distances d from the first element and their squares, in float64, where neither overflows;
// the variance is (sum d² - (sum d)² / n) / (n - correction). What cancels there is at most n times the variance, even if the first element is far
// from all others, so n units of 2^-53 are lost at most.
Moments moments_from_first(const Tensor& t, const DimSet& set, double correction, bool keepdim, const char* op) {
  const auto count = static_cast<double>(ops::reduced_count(t.sizes(), set));
  const auto step = [&](ir::OpId id, const ops::OpOperand& a, const ops::OpOperand& b) { return ops::apply(id, {a, b}, kWide, op); };
  const Tensor first = first_along(t, set);
  FusedProducer distances(ir::op::sub, kWide, {FusedProducer::of(t, kWide), FusedProducer::of(first, kWide)});
  distances.then(ir::op::mul, kWide, {FusedProducer::node(0, kWide), FusedProducer::node(0, kWide)});
  const std::vector<Tensor> sums = ops::reduce_several(ReduceOp::Sum, distances, std::array{0, 1}, t.sizes(), set, true, kWide, op);
  const ops::OpOperand sum{&sums[0], {}, kWide}, squares{&sums[1], {}, kWide}, n{nullptr, count, kWide};
  ops::ForceFusion fuse;
  const Tensor from_first = step(ir::op::div, sum, n);
  const Tensor square_of_sum = step(ir::op::mul, sum, {&from_first, {}, kWide});
  const Tensor left = step(ir::op::sub, squares, {&square_of_sum, {}, kWide});
  const Tensor positive = step(ir::op::maximum, {&left, {}, kWide}, {nullptr, 0.0, kWide});
  Moments m;
  m.variance = step(ir::op::div, {&positive, {}, kWide}, {nullptr, std::max(0.0, count - correction), kWide});
  m.mean = ops::apply(ir::op::add, {{&first, {}, kWide}, {&from_first, {}, kWide}}, DType::F32, op);
  m.first = first, m.from_first = from_first;
  if (!keepdim) {
    const Dims kept = ops::reduced_shape(t.sizes(), set, false);
    m.variance = ops::make_view(m.variance, kept, contiguous_strides(kept), m.variance.storage_offset(), op);
  }
  return m;
}

// float64 (and float32 where the device lacks float64): two passes, the mean, then the mean square of what is left. n - correction <= 0 gives NaN or
// infinity, as in PyTorch.
Moments moments(const Tensor& t, const DimSet& set, double correction, bool keepdim, const char* op) {
  const DType acc = ops::accumulator_of(t.dtype());
  if (acc == DType::F32 && ops::reduced_count(t.sizes(), set) > 0 && runtime::queue_of(t.device()).capabilities().arithmetic.fp64)
    return moments_from_first(t, set, correction, keepdim, op);
  Moments m;
  m.mean = ops::reduce_mean(t, set, true, acc, op);
  m.variance =
      ops::reduce(ReduceOp::Sum, FusedProducer(ir::op::square_diff, acc, {FusedProducer::of(t, acc), FusedProducer::of(m.mean, acc)}),
                  t.sizes(), set, keepdim, acc, op);
  divide(m.variance, std::max(0.0, static_cast<double>(ops::reduced_count(t.sizes(), set)) - correction));
  return m;
}

Tensor variance(const Moments& m, DType type, const char* op) {
  const DType from = m.variance.dtype();
  return from == type ? m.variance : ops::apply(ir::op::copy, {{&m.variance, {}, from}}, type, op);
}
Tensor deviation(const Moments& m, DType type, const char* op) {
  return ops::apply(ir::op::sqrt, {{&m.variance, {}, m.variance.dtype()}}, type, op);
}

void require_floating(const Tensor& t, const char* op, const char* text) {
  ops::require_defined(t, op, "input");
  if (!is_inexact(t.dtype()))
    throw NotImplementedError("{} only support floating point and complex dtypes (got {}; convert it first: t.float())", text,
                              ops::torch_name(t.dtype()));
}

// x less its mean, over `unit` where that is defined. From the first element on: the mean itself may be too great for what is left to be seen in it.
Tensor centred(const Tensor& x, const DimSet& set, const Tensor& unit = {}) {
  if (x.numel() == 0) return x;
  const Tensor first = first_along(x, set);
  Tensor shifted = x - where(isfinite(first), first, 0.0);
  if (unit.defined()) shifted = shifted / unit;
  return shifted - mean(shifted, ops::dims_of(set), true);
}

double degrees(const Tensor& x, const DimSet& set, double correction) {
  return static_cast<double>(ops::reduced_count(x.sizes(), set)) - correction;
}

Tensor record_var(Tensor value, const Tensor& t, const DimSet& set, double correction, bool keepdim, const char* node) {
  return record(std::move(value), node, {&t}, {&t},
                ops::reducing(set, keepdim, [set, correction, keepdim](const Tensors& g, const Tensors& saved) -> Tensors {
                  return {ops::restore_dims(g[0], set, keepdim) * (2.0 / degrees(saved[0], set, correction)) * centred(saved[0], set)};
                }));
}

// The gradient is 0 where all elements are equal.
Tensor record_std(Tensor value, const Tensor& t, const DimSet& set, double correction, bool keepdim, const char* node) {
  return record(std::move(value), node, {&t}, {&t},
                ops::reducing(set, keepdim,
                              [set, correction, keepdim](const Tensors& g, const Tensors& saved) -> Tensors {
                                const Tensor& s = saved[1];
                                const Tensor none = s == 0, unit = ops::restore_dims(where(none, 1.0, s), set, keepdim);
                                const Tensor part = where(none, 0.0, g[0]) / degrees(saved[0], set, correction);
                                return {ops::restore_dims(part, set, keepdim) * centred(saved[0], set, unit)};
                              }),
                true);
}

// Whether a gradient is to be computed that 16 bits are too few for: then it is that of the float32 function, which has the same value.
bool wants_wide(const Tensor& t) { return ops::is_half(t.dtype()) && autograd::recording({&t}); }

// The mean that moments have found.
Tensor recorded_mean(const Moments& m, const Tensor& t, const DimSet& set, bool keepdim, const char* op, const char* node) {
  Tensor value = m.mean;
  if (!keepdim) {
    const NoGrad off;
    value = value.reshape(ops::reduced_shape(t.sizes(), set, false));  // it lies in the order of t's dimensions
  }
  value = ops::apply(ir::op::copy, {{&value, {}, value.dtype()}}, t.dtype(), op);
  return record(std::move(value), node, {&t}, {},
                ops::reducing(set, keepdim, [set, keepdim, sizes = t.sizes()](const Tensors& g, const Tensors&) -> Tensors {
                  const auto n = static_cast<double>(ops::reduced_count(sizes, set));
                  return {(ops::restore_dims(g[0], set, keepdim) / n).expand(sizes)};
                }));
}

}  // namespace

// Formula: sum((x - mean)^2) / (n - correction). Floating point only.
Tensor var(const Tensor& t, const OptionalDims& dims, double correction, bool keepdim) {
  if (auto y = ops::wrapped(ops::kNoCasts, var, t, ops::Over{dims}, correction, keepdim)) return *std::move(y);
  require_floating(t, "var", "std and var");
  if (is_complex(t.dtype())) return var(real(t), dims, correction, keepdim) + var(imag(t), dims, correction, keepdim);
  const DimSet set = ops::dim_set(dims, t.dim());
  if (wants_wide(t)) return var(t.to(DType::F32), dims, correction, keepdim).to(t.dtype());
  const Moments m = moments(t, set, correction, keepdim, "var");
  return record_var(variance(m, t.dtype(), "var"), t, set, correction, keepdim, "VarBackward0");
}

namespace {
// The square root of a variance, with the gradient 0 where it is 0.
Tensor root(const Tensor& v) {
  const Tensor none = v == 0;
  return where(none, 0.0, sqrt(where(none, 1.0, v)));
}
}  // namespace

// The square root of var; its gradient is 0 where all elements are equal.
Tensor std(const Tensor& t, const OptionalDims& dims, double correction, bool keepdim) {
  if (auto y = ops::wrapped(ops::kNoCasts, naru::std, t, ops::Over{dims}, correction, keepdim)) return *std::move(y);
  require_floating(t, "std", "std and var");
  if (is_complex(t.dtype())) return root(var(t, dims, correction, keepdim));
  const DimSet set = ops::dim_set(dims, t.dim());
  if (wants_wide(t)) return std(t.to(DType::F32), dims, correction, keepdim).to(t.dtype());
  const Moments m = moments(t, set, correction, keepdim, "std");
  return record_std(deviation(m, t.dtype(), "std"), t, set, correction, keepdim, "StdBackward0");
}

namespace {

// Whether there is a great mean; where the host can not see the numbers at once, there may be.
bool has_great_mean(const ops::PopulationMoments& m) {
  if (!m.mean.device().is_cpu() || m.mean.numel() == 0) return true;
  const auto* const mean = static_cast<const float*>(m.mean.data_ptr());
  const auto* const variance = static_cast<const double*>(m.variance.data_ptr());
  for (int64_t i = 0; i < m.mean.numel(); ++i)
    if (const double part = static_cast<double>(mean[i]) * (1 / ops::kGreatMean); part * part > variance[i]) return true;
  return false;
}

}  // namespace

ops::PopulationMoments ops::population_moments(const Tensor& t, const DimSet& set, const char* op) {
  const Moments m = moments(t.detach(), set, 0, false, op);
  const Dims& sizes = m.variance.sizes();
  PopulationMoments result{m.variance, m.mean.reshape(sizes), {}};
  if (!m.first.defined() || (!recording_host() && !has_great_mean(result))) return result;
  const Tensor great = square(result.mean.to(kWide) * (1 / ops::kGreatMean)) > result.variance;
  const Tensor rest = (m.first.to(kWide) - m.mean.to(kWide)) + m.from_first;
  result.rest = where(great, rest.reshape(sizes).to(DType::F32), 0.0);
  return result;
}

// (var, mean)
std::pair<Tensor, Tensor> var_mean(const Tensor& t, const OptionalDims& dims, double correction, bool keepdim) {
  if (auto y = ops::wrapped(ops::kNoCasts, var_mean, t, ops::Over{dims}, correction, keepdim)) return *std::move(y);
  require_floating(t, "var_mean", "var_mean");
  if (is_complex(t.dtype())) return {var(t, dims, correction, keepdim), mean(t, dims, keepdim)};
  const DimSet set = ops::dim_set(dims, t.dim());
  if (wants_wide(t)) {
    const auto [v, mean] = var_mean(t.to(DType::F32), dims, correction, keepdim);
    return {v.to(t.dtype()), mean.to(t.dtype())};
  }
  const Moments m = moments(t, set, correction, keepdim, "var_mean");
  return {record_var(variance(m, t.dtype(), "var_mean"), t, set, correction, keepdim, "VarMeanBackward0"),
          recorded_mean(m, t, set, keepdim, "var_mean", "VarMeanBackward0")};
}

// (std, mean)
std::pair<Tensor, Tensor> std_mean(const Tensor& t, const OptionalDims& dims, double correction, bool keepdim) {
  if (auto y = ops::wrapped(ops::kNoCasts, std_mean, t, ops::Over{dims}, correction, keepdim)) return *std::move(y);
  require_floating(t, "std_mean", "std_mean");
  if (is_complex(t.dtype())) return {std(t, dims, correction, keepdim), mean(t, dims, keepdim)};
  const DimSet set = ops::dim_set(dims, t.dim());
  if (wants_wide(t)) {
    const auto [s, mean] = std_mean(t.to(DType::F32), dims, correction, keepdim);
    return {s.to(t.dtype()), mean.to(t.dtype())};
  }
  const Moments m = moments(t, set, correction, keepdim, "std_mean");
  return {record_std(deviation(m, t.dtype(), "std_mean"), t, set, correction, keepdim, "StdMeanBackward0"),
          recorded_mean(m, t, set, keepdim, "std_mean", "StdMeanBackward0")};
}

namespace {

// Sum over the reduced dimensions of |x|^p, to the power 1/p.
Tensor raw_norm(const Tensor& t, double p, const DimSet& set, bool keepdim) {
  const DType type = t.dtype(), acc = ops::accumulator_of(type);
  const auto reduced = [&](ReduceOp op, FusedProducer producer, DType out) {
    return ops::reduce(op, producer, t.sizes(), set, keepdim, out, "norm");
  };
  if (p == 0) return reduced(ReduceOp::Sum, FusedProducer(ir::op::not_zero, acc, {FusedProducer::of(t, type)}), type);
  if (std::isinf(p))
    return reduced(p > 0 ? ReduceOp::Max : ReduceOp::Min, FusedProducer(ir::op::abs, acc, {FusedProducer::of(t, acc)}), type);
  if (p == 1) return reduced(ReduceOp::Sum, FusedProducer(ir::op::abs, acc, {FusedProducer::of(t, acc)}), type);
  if (p == 2) {
    const Tensor s = reduced(ReduceOp::Sum, FusedProducer(ir::op::square, acc, {FusedProducer::of(t, acc)}), acc);
    return ops::apply(ir::op::sqrt, {{&s, {}, acc}}, type, "norm");
  }
  const Tensor s =
      reduced(ReduceOp::Sum, FusedProducer(ir::op::abs_power, acc, {FusedProducer::of(t, acc), FusedProducer::of(p, acc)}), acc);
  return ops::apply(ir::op::pow, {{&s, {}, acc}, {nullptr, 1 / p, acc}}, type, "norm");
}

Tensor norm_gradient(const Tensor& g, const Tensor& x, const Tensor& y, double p, const DimSet& set) {
  if (p == 0) return zeros_like(x);
  if (p == 1) return g * sign(x);
  if (p == 2) return x * where(y == 0, 0.0, g / y);
  if (std::isinf(p)) {
    const Tensor chosen = abs(x) == y;
    return where(chosen, sign(x) * (g / sum(chosen, ops::dims_of(set), true, x.dtype())), 0.0);
  }
  if (p < 0) {  // 0 for an infinite x, and for all beside an x of 0
    const Tensor none = x == 0, part = sign(x) * pow(where(none, 1.0, abs(x)), p - 1);
    return where(none, 0.0, part) * where(y == 0, 0.0, g / pow(y, p - 1));
  }
  // Of shares of the norm: powers of the elements themselves, and of the norm, may overflow.
  if (p < 2) return where(x == 0, 0.0, sign(x) * pow(abs(x) / where(y == 0, 1.0, y), p - 1)) * where(y == 0, 0.0, g);
  return x * pow(abs(x), p - 2) * where(y == 0, 0.0, g / pow(y, p - 1));
}

}  // namespace

// Formula: (sum |x|^p)^(1/p); p = inf, -inf: the greatest, least |x|; p = 0: how many are not zero. Floating point only.
Tensor norm(const Tensor& t, double p, const OptionalDims& dims, bool keepdim, std::optional<DType> dtype) {
  const auto sparse = [&] { return ops::sparse_norm(dtype ? t.to(*dtype) : t, p, dims); };
  if (auto y = ops::wrapped("norm", naru::norm, t, p, ops::Over{dims}, keepdim, dtype, ops::SparseRule{sparse})) return *std::move(y);
  ops::require_defined(t, "norm", "input");
  if (dtype && *dtype != t.dtype()) return norm(t.to(*dtype), p, dims, keepdim);
  if (!is_inexact(t.dtype()))
    throw NotImplementedError(
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}. Convert it first: t.float()",
        ops::torch_name(t.dtype()));
  if (is_complex(t.dtype())) return norm(abs(t), p, dims, keepdim);
  if (wants_wide(t)) return norm(t.to(DType::F32), p, dims, keepdim).to(t.dtype());
  const DimSet set = ops::dim_set(dims, t.dim());
  if ((std::isinf(p) || p < 0) && ops::reduced_count(t.sizes(), set) == 0)
    throw RuntimeError("linalg.vector_norm cannot compute the {} norm on an empty tensor because the operation does not have an identity",
                       std::isinf(p) ? (p > 0 ? "inf" : "-inf") : fmt::format("{}", p));
  return record(raw_norm(t, p, set, keepdim), "LinalgVectorNormBackward0", {&t}, {&t},
                ops::reducing(set, keepdim,
                              [p, set, keepdim](const Tensors& g, const Tensors& saved) -> Tensors {
                                const Tensor grad = ops::restore_dims(g[0], set, keepdim), y = ops::restore_dims(saved[1], set, keepdim);
                                return {norm_gradient(grad, saved[0], y, p, set)};
                              }),
                true);
}

namespace {
// Less the greatest real part.
Tensor complex_logsumexp(const Tensor& t, const Dims& dims, bool keepdim) {
  if (t.numel() == 0) return log(sum(exp(t), dims, keepdim));
  const Tensor greatest = amax(real(t.detach()), dims, true), m = where(isinf(greatest), 0.0, greatest);
  const Tensor y = log(sum(exp(t - m), dims, keepdim));
  return y + m.reshape(y.sizes());
}
}  // namespace

// Formula: log(sum(exp(x - m))) + m with m = max(x), so that nothing overflows. Integers count as the default floating type.
Tensor logsumexp(const Tensor& t, const Dims& dims, bool keepdim) {
  if (auto y = ops::wrapped("logsumexp", logsumexp, t, ops::Over{dims}, keepdim)) return *std::move(y);
  ops::require_defined(t, "logsumexp", "input");
  if (!is_inexact(t.dtype())) return logsumexp(t.to(default_dtype()), dims, keepdim);
  if (is_complex(t.dtype())) return complex_logsumexp(t, dims, keepdim);
  if (wants_wide(t)) return logsumexp(t.to(DType::F32), dims, keepdim).to(t.dtype());
  const DimSet set = ops::dim_set(dims, t.dim());
  const DType acc = ops::accumulator_of(t.dtype());
  Tensor y;
  if (ops::reduced_count(t.sizes(), set) == 0) {
    y = full(ops::reduced_shape(t.sizes(), set, keepdim), -std::numeric_limits<double>::infinity(), Options(t.dtype(), t.device()));
  } else {
    Tensor m = ops::reduce_extreme(t, true, set, true, "logsumexp");
    // An infinite maximum would give inf - inf.
    const Tensor infinite = ops::apply(ir::op::isinf, {{&m, {}, m.dtype()}}, DType::Bool, "logsumexp");
    m = ops::apply(ir::op::where, {{&infinite, {}, DType::Bool}, {nullptr, 0.0, m.dtype()}, {&m, {}, m.dtype()}}, m.dtype(), "logsumexp");
    const Tensor s = ops::reduce(ReduceOp::Sum, FusedProducer(ir::op::sub_exp, acc, {FusedProducer::of(t, acc), FusedProducer::of(m, acc)}),
                                 t.sizes(), set, keepdim, acc, "logsumexp");
    if (!keepdim) m = ops::make_view(m, s.sizes(), s.strides(), m.storage_offset(), "logsumexp");
    const Tensor l = ops::apply(ir::op::log, {{&s, {}, acc}}, acc, "logsumexp");
    y = ops::apply(ir::op::add, {{&l, {}, acc}, {&m, {}, acc}}, t.dtype(), "logsumexp");
  }
  return record(std::move(y), "LogsumexpBackward0", {&t}, {&t},
                ops::reducing(set, keepdim,
                              [set, keepdim](const Tensors& g, const Tensors& saved) -> Tensors {
                                const Tensor& x = saved[0];
                                return {ops::restore_dims(g[0], set, keepdim) * exp(x - ops::restore_dims(saved[1], set, keepdim))};
                              }),
                true);
}

}  // namespace naru
