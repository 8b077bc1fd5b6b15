#include "ops/fft/fft.h"

#include "autograd/history/history.h"
#include "naru/ops/complex.h"
#include "ops/complex/complex.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru::ops {
namespace {

using ir::Fft;
using Kind = ir::Fft::Kind;
using Tensors = std::vector<Tensor>;

// Strides of one side in real elements: those of the batch dimensions, and that of the transform.
Fft::Side side_of(const Tensor& t, int64_t dim) {
  const Tensor x = is_complex(t.dtype()) ? as_real(t) : t;
  Fft::Side s;
  s.data = view_of(x, x.sizes()).data;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (d == dim)
      s.step = x.strides()[static_cast<size_t>(d)];
    else
      s.strides.push_back(x.strides()[static_cast<size_t>(d)]);
  return s;
}

Tensor transformed(const Tensor& t, Kind kind, int64_t dim, int64_t n, bool inverse, double scale) {
  Fft op;
  op.kind = kind, op.inverse = inverse, op.n = n, op.scale = scale;
  op.dtype = real_of(t.dtype());
  Dims sizes = t.sizes();
  sizes[static_cast<size_t>(dim)] = op.made();
  for (int64_t d = 0; d < t.dim(); ++d)
    if (d != dim) op.shape.push_back(t.sizes()[static_cast<size_t>(d)]);
  const Tensor x = t.detach();
  const Tensor out = make_result(sizes, op.complex_out() ? complex_of(op.dtype) : op.dtype, t.device(), op.name());
  if (out.numel() == 0) return out;
  op.in = side_of(x, dim), op.out = side_of(out, dim);
  const Tensor given = op.complex_in() ? as_real(x) : x, made = op.complex_out() ? as_real(out) : out;
  const Tensor* const reads[] = {&given};
  const Tensor* const writes[] = {&made};
  submit(std::move(op), reads, writes);
  return out;
}

// Multiplies by `factor` all of a half spectrum but its first element and, if n is even, its last.
Tensor with_inner(const Tensor& t, int64_t dim, int64_t n, double factor) {
  const int64_t half = t.size(dim), inner = half - 1 - (n % 2 == 0 ? 1 : 0);
  if (inner <= 0) return t;
  const Tensor weights = ones({half}, Options(real_of(t.dtype()), t.device()));
  weights.narrow(0, 1, inner).fill_(factor);
  Dims shape(t.sizes().size(), 1);
  shape[static_cast<size_t>(dim)] = half;
  return t * weights.view(shape);
}

}  // namespace

Tensor fft_operand(const Tensor& t, bool complex) {
  const DType type = is_inexact(t.dtype()) ? t.dtype() : default_dtype();
  if (real_of(type) != DType::F32 && real_of(type) != DType::F64) throw NotImplementedError("Unsupported dtype {}", torch_name(type));
  return t.to(complex ? complex_of(type) : type);
}

Tensor fft_complex(const Tensor& t, int64_t dim, bool inverse, double scale) {
  return autograd::record(
      transformed(t, Kind::Complex, dim, t.size(dim), inverse, scale), "FftC2CBackward0", {&t}, {},
      autograd::WithJvp([=](const Tensors& g, const Tensors&) -> Tensors { return {fft_complex(g[0], dim, !inverse, scale)}; },
                        [=](const Tensors& along, const Tensors&) { return fft_complex(along[0], dim, inverse, scale); }));
}

Tensor fft_real_to_half(const Tensor& t, int64_t dim, bool inverse, double scale) {
  const int64_t n = t.size(dim);
  return autograd::record(transformed(t, Kind::RealToHalf, dim, n, inverse, scale), "FftR2CBackward0", {&t}, {},
                          autograd::WithJvp(
                              [=](const Tensors& g, const Tensors&) -> Tensors {
                                return {fft_half_to_real(with_inner(g[0], dim, n, 0.5), dim, n, !inverse, scale)};
                              },
                              [=](const Tensors& along, const Tensors&) { return fft_real_to_half(along[0], dim, inverse, scale); }));
}

Tensor fft_half_to_real(const Tensor& t, int64_t dim, int64_t n, bool inverse, double scale) {
  return autograd::record(
      transformed(t, Kind::HalfToReal, dim, n, inverse, scale), "FftC2RBackward0", {&t}, {},
      autograd::WithJvp([=](const Tensors& g,
                            const Tensors&) -> Tensors { return {with_inner(fft_real_to_half(g[0], dim, !inverse, scale), dim, n, 2)}; },
                        [=](const Tensors& along, const Tensors&) { return fft_half_to_real(along[0], dim, n, inverse, scale); }));
}

}  // namespace naru::ops
