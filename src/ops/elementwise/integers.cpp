// gcd and lcm.
#include "naru/ops/functions.h"
#include "ops/batch/batch.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/host_loop.h"
#include "ops/elementwise/rules.h"
#include "ops/shape/strides.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {

namespace {

void require_integers(const Tensor& t, const char* kernel) {
  if (!is_integral(t.dtype()) || t.dtype() == DType::Bool)
    throw NotImplementedError("\"{}\" not implemented for '{}' (wanted integers)", kernel, ops::torch_name(t.dtype()));
}

}  // namespace

Tensor gcd(const Tensor& a, const Tensor& b) {
  require_integers(a, "gcd_cpu");
  require_integers(b, "gcd_cpu");
  const Operand both[] = {a, b};
  const DType type = ops::result_type(both);
  const auto entries = [&] {
    const batching::Batch batch{&a, &b};
    const int64_t rank = std::max(a.dim(), b.dim());
    return batch.entry(gcd(batch.aligned(a.to(type), rank), batch.aligned(b.to(type), rank)));
  };
  if (auto y = ops::by_rules(a, b, ops::BatchRule{entries})) return *std::move(y);
  if (ops::can_use_host_loop({&a, &b})) {
    const Dims shape = broadcast_shapes(a.sizes(), b.sizes());
    const Dims strides = ops::elementwise_strides(shape, both);
    const auto laid_out = [&] { return ops::make_result(shape, strides, type, a.device(), "gcd"); };
    const auto operand = [&](const Tensor& t) { return t.sizes() == shape && t.strides() == strides ? t.to(type) : laid_out().copy_(t); };
    const Tensor first = operand(a), second = operand(b), out = laid_out();
    ops::run_host_loop(ir::HostLoop::Kind::Gcd, {&first, &second}, {&out});
    return out;
  }
  Tensor x = abs(a.to(type)), y = abs(b.to(type));
  // Euclid's algorithm, until all elements are done.
  while (ops::number_or(any(y != 0), 0) != 0) {
    const Tensor done = y == 0, rest = where(done, y, remainder(x, where(done, ones_like(y), y)));
    x = where(done, x, y);
    y = rest;
  }
  const Tensor shape = x + y;
  return abs(x).expand(shape.sizes()).clone();  // abs, because the least integer, which has no absolute value, gives negative values
}

Tensor lcm(const Tensor& a, const Tensor& b) {
  require_integers(a, "lcm_cpu");
  require_integers(b, "lcm_cpu");
  const Tensor g = gcd(a, b);
  return where(g == 0, zeros_like(g), abs(floor_divide(a.to(g.dtype()), where(g == 0, ones_like(g), g)) * b.to(g.dtype())));
}

}  // namespace naru
