// var, std, var_mean, norm, logsumexp.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "naru/complex.h"
#include "ops/autocast.h"
#include "ops/common.h"
#include "ops/history.h"
#include "ops/reductions.h"
#include "ops/sparse.h"
#include "ops/type_names.h"

namespace naru {

using autograd::record;
using ir::ReduceOp;
using ops::DimSet;
using ops::FusedProducer;
using Tensors = std::vector<Tensor>;

namespace {

struct Moments {
  Tensor mean, var;  // of the accumulator's type; mean keeps its dimensions, var as asked
};

// Two passes: the mean, then the mean square of what is left. n - correction <= 0 gives NaN or infinity, as in PyTorch.
Moments moments(const Tensor& t, const DimSet& set, double correction, bool keepdim, const char* op) {
  const DType acc = ops::accumulator_of(t.dtype());
  Moments m;
  m.mean = ops::reduce_mean(t, set, true, acc, op);
  m.var = ops::reduce(ReduceOp::Sum, FusedProducer(ir::op::square_diff, acc, {FusedProducer::of(t, acc), FusedProducer::of(m.mean, acc)}),
                      t.sizes(), set, keepdim, acc, op);
  const double n = std::max(0.0, static_cast<double>(ops::reduced_count(t.sizes(), set)) - correction);
  const ops::OpOperand divide[] = {{&m.var, {}, acc}, {nullptr, n, acc}};
  ops::apply_into(ir::op::div, divide, m.var);
  return m;
}

void require_floating(const Tensor& t, const char* op, const char* text) {
  ops::require_defined(t, op, "input");
  if (!is_inexact(t.dtype()))
    throw NotImplementedError("{} only support floating point and complex dtypes (got {}; convert it first: t.float())", text,
                              ops::torch_name(t.dtype()));
}

// Gradient of the variance: 2 (x - mean) / (n - correction).
Tensor var_gradient(const Tensor& g, const Tensor& x, const DimSet& set, double correction, bool keepdim) {
  const double n = static_cast<double>(ops::reduced_count(x.sizes(), set)) - correction;
  Dims dims;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (set[static_cast<size_t>(d)]) dims.push_back(d);
  return ops::restore_dims(g, set, keepdim) * (2.0 / n) * (x - mean(x, dims, true));
}

Tensor record_var(Tensor value, const Tensor& t, const DimSet& set, double correction, bool keepdim, const char* node) {
  return record(std::move(value), node, {&t}, {&t}, [set, correction, keepdim](const Tensors& g, const Tensors& saved) -> Tensors {
    return {var_gradient(g[0], saved[0], set, correction, keepdim)};
  });
}

Tensor as_type(const Tensor& t, DType dtype, const char* op) {
  return t.dtype() == dtype ? t : ops::apply(ir::op::copy, {{&t, {}, t.dtype()}}, dtype, op);
}

}  // namespace

// Formula: sum((x - mean)^2) / (n - correction). Floating point only.
Tensor var(const Tensor& t, const OptionalDims& dims, double correction, bool keepdim) {
  require_floating(t, "var", "std and var");
  if (is_complex(t.dtype())) return var(real(t), dims, correction, keepdim) + var(imag(t), dims, correction, keepdim);
  const DimSet set = ops::dim_set(dims, t.dim());
  return record_var(as_type(moments(t, set, correction, keepdim, "var").var, t.dtype(), "var"), t, set, correction, keepdim,
                    "VarBackward0");
}

// The square root of var; its gradient is 0 where all elements are equal.
Tensor std(const Tensor& t, const OptionalDims& dims, double correction, bool keepdim) {
  require_floating(t, "std", "std and var");
  if (is_complex(t.dtype())) return sqrt(var(t, dims, correction, keepdim));
  const DimSet set = ops::dim_set(dims, t.dim());
  Tensor y = moments(t, set, correction, keepdim, "std").var;
  const DType acc = y.dtype();
  y = ops::apply(ir::op::sqrt, {{&y, {}, acc}}, t.dtype(), "std");
  return record(
      std::move(y), "StdBackward0", {&t}, {&t},
      [set, correction, keepdim](const Tensors& g, const Tensors& saved) -> Tensors {
        const Tensor& x = saved[0];
        const Tensor& s = saved[1];
        return {var_gradient(where(s == 0, 0.0, g[0] / (s * 2)), x, set, correction, keepdim)};
      },
      true);
}

// (var, mean)
std::pair<Tensor, Tensor> var_mean(const Tensor& t, const OptionalDims& dims, double correction, bool keepdim) {
  require_floating(t, "var_mean", "var_mean");
  if (is_complex(t.dtype())) return {var(t, dims, correction, keepdim), mean(t, dims, keepdim)};
  const DimSet set = ops::dim_set(dims, t.dim());
  Moments m = moments(t, set, correction, keepdim, "var_mean");
  Tensor v = record_var(as_type(m.var, t.dtype(), "var_mean"), t, set, correction, keepdim, "VarMeanBackward0");
  return {std::move(v), mean(t, dims, keepdim)};
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
    Dims dims;
    for (int64_t d = 0; d < x.dim(); ++d)
      if (set[static_cast<size_t>(d)]) dims.push_back(d);
    return where(chosen, sign(x) * (g / sum(chosen, dims, true, x.dtype())), 0.0);
  }
  const Tensor scale = where(y == 0, 0.0, g / pow(y, p - 1));
  if (p < 2) return where(x == 0, 0.0, x * pow(abs(x), p - 2)) * scale;
  return x * pow(abs(x), p - 2) * scale;
}

}  // namespace

// Formula: (sum |x|^p)^(1/p); p = inf, -inf: the greatest, least |x|; p = 0: how many are not zero. Floating point only.
Tensor norm(const Tensor& t, double p, const OptionalDims& dims, bool keepdim, std::optional<DType> dtype) {
  if (const autocast::Casts c("norm", {&t}, dtype.has_value()); c) return norm(c[0], p, dims, keepdim, dtype);
  ops::require_defined(t, "norm", "input");
  if (dtype && *dtype != t.dtype()) return norm(t.to(*dtype), p, dims, keepdim);
  if (ops::has_sparse_form(t)) [[unlikely]]
    return ops::sparse_norm(t, p, dims);
  if (!is_inexact(t.dtype()))
    throw NotImplementedError(
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}. Convert it first: t.float()",
        ops::torch_name(t.dtype()));
  if (is_complex(t.dtype())) return norm(abs(t), p, dims, keepdim);
  const DimSet set = ops::dim_set(dims, t.dim());
  if ((std::isinf(p) || p < 0) && ops::reduced_count(t.sizes(), set) == 0)
    throw RuntimeError("linalg.vector_norm cannot compute the {} norm on an empty tensor because the operation does not have an identity",
                       std::isinf(p) ? (p > 0 ? "inf" : "-inf") : fmt::format("{}", p));
  return record(
      raw_norm(t, p, set, keepdim), "LinalgVectorNormBackward0", {&t}, {&t},
      [p, set, keepdim](const Tensors& g, const Tensors& saved) -> Tensors {
        return {norm_gradient(ops::restore_dims(g[0], set, keepdim), saved[0], ops::restore_dims(saved[1], set, keepdim), p, set)};
      },
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
  if (const autocast::Casts c("logsumexp", {&t}); c) return logsumexp(c[0], dims, keepdim);
  ops::require_defined(t, "logsumexp", "input");
  if (!is_inexact(t.dtype())) return logsumexp(t.to(default_dtype()), dims, keepdim);
  if (is_complex(t.dtype())) return complex_logsumexp(t, dims, keepdim);
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
  return record(
      std::move(y), "LogsumexpBackward0", {&t}, {&t},
      [set, keepdim](const Tensors& g, const Tensors& saved) -> Tensors {
        const Tensor& x = saved[0];
        return {ops::restore_dims(g[0], set, keepdim) * exp(x - ops::restore_dims(saved[1], set, keepdim))};
      },
      true);
}

}  // namespace naru
