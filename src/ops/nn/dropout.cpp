// dropout.
#include "autograd/history/history.h"
#include "naru/ops/complex.h"
#include "ops/elementwise/elementwise.h"
#include "ops/random/host_draws.h"
#include "ops/shape/strides.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {

using autograd::record;
using Tensors = std::vector<Tensor>;

namespace {

Tensor scale_masked(const Tensor& x, const Tensor& mask, double scale) {
  const Dims strides = ops::strides_like(x.sizes(), x.strides(), MemoryFormat::Preserve);
  const Tensor out = ops::make_result(x.sizes(), strides, x.dtype(), x.device(), "dropout", true);
  const ops::OpOperand operands[] = {{&x, {}, x.dtype()}, {&mask, {}, DType::Bool}, {nullptr, scale, x.dtype()}};
  ops::apply_into(ir::op::masked_scale, operands, out);
  return record(out, "DropoutBackward0", {&x}, {&mask}, autograd::Symmetric([scale](const Tensors& g, const Tensors& saved) -> Tensors {
                  return {scale_masked(g[0], saved[0], scale)};
                }));
}

}  // namespace

// Throws ValueError unless 0 <= p <= 1. Without training it is x itself.
Tensor dropout(const Tensor& x, double p, bool training, Generator* generator) {
  ops::require_defined(x, "dropout", "input");
  if (!(p >= 0 && p <= 1)) throw ValueError("dropout probability has to be between 0 and 1, but got {}", p);
  if (!training || p == 0 || x.numel() == 0) return x;
  if (!is_inexact(x.dtype()))
    throw RuntimeError("result type Float can't be cast to the desired output type {} (dropout wants floating point; convert first)",
                       ops::torch_name(x.dtype()));
  const Dims strides =
      ops::draws_as_pytorch() ? ops::strides_like(x.sizes(), x.strides(), MemoryFormat::Preserve) : contiguous_strides(x.sizes());
  Tensor mask = ops::make_result(x.sizes(), strides, DType::Bool, x.device(), "dropout", true);
  const double scale = p == 1 ? 0.0 : 1 / (1 - p);
  if (is_complex(x.dtype())) return x * dropout(ones(x.sizes(), Options(real_of(x.dtype()), x.device())), p, true, generator);
  if (ops::draws_as_pytorch()) {
    ops::host_bernoulli(ops::in_memory_order(mask), 1 - p, generator);
    return scale_masked(x, mask, scale);
  }
  const auto [key, offset] = ops::draw(generator);
  const ops::OpOperand draw[] = {
      {nullptr, 1 - p, DType::F32}, {nullptr, static_cast<int64_t>(key), DType::I64}, {nullptr, static_cast<int64_t>(offset), DType::I64}};
  ops::ForceFusion fuse;
  ops::apply_into(ir::op::bernoulli, draw, mask);
  return scale_masked(x, mask, scale);
}

}  // namespace naru
