// Helpers for functions of one tensor that are computed in float64 and rounded once.
#pragma once

#include <span>
#include <vector>

#include "autograd/history/history.h"
#include "naru/ops.h"
#include "ops/tensor/common.h"

namespace naru::ops {

// The result type of such a function of t.
inline DType result_type(const Tensor& t) { return is_inexact(t.dtype()) ? t.dtype() : default_dtype(); }

// Runs an internal elementwise operator whose kernel computes in float64. derivative(t, y) returns dy / dt, computed the same way.
template <class D>
Tensor by_kernel(const Tensor& given, const char* name, ir::OpId id, D derivative) {
  require_defined(given, name, "input");
  const Tensor t = given.to(result_type(given));
  const Tensor y = apply(id, {{&t, {}, t.dtype()}}, t.dtype(), name);
  return autograd::record(
      y, name, {&t}, {&t},
      autograd::Symmetric([derivative](const std::vector<Tensor>& g, const std::vector<Tensor>& saved) -> std::vector<Tensor> {
        return {g[0] * derivative(saved[0], saved[1])};
      }),
      true);
}

// f(t) in float64. derivative(t, y) returns dy / dt and must be written in differentiable functions (for higher derivatives).
template <class F, class D>
Tensor by_float64(const Tensor& given, const char* name, F f, D derivative) {
  require_defined(given, name, "input");
  const Tensor t = given.to(result_type(given));
  Tensor y;
  {
    const NoGrad off;
    y = f(t.to(DType::F64)).to(t.dtype());
  }
  return autograd::record(
      y, name, {&t}, {&t},
      autograd::Symmetric([derivative](const std::vector<Tensor>& g, const std::vector<Tensor>& saved) -> std::vector<Tensor> {
        return {g[0] * derivative(saved[0], saved[1])};
      }),
      true);
}

// c[0] + c[1] x + ...
inline Tensor polynomial(std::span<const double> c, const Tensor& x) {
  Tensor sum = full_like(x, Scalar(c.back()));
  for (size_t i = c.size() - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

}  // namespace naru::ops
