#include "ops/nn/convolution.h"

#include "autograd/history/history.h"
#include "naru/ops.h"
#include "naru/ops/complex.h"
#include "ops/complex/complex.h"
#include "ops/linalg/matmul.h"
#include "ops/shape/strides.h"
#include "ops/tensor/common.h"
#include "ops/tensor/flops.h"

namespace naru::ops {

using autograd::record;
using autograd::requires_grad;
using autograd::WithJvp;
using ir::Convolution;
using Use = Convolution::Use;
using Tensors = std::vector<Tensor>;

namespace {

// Extends per-dimension values to the instruction's three spatial dimensions.
Convolution::Sizes three(std::span<const int64_t> spatial, int64_t missing) {
  Convolution::Sizes s{missing, missing, missing};
  std::copy(spatial.begin(), spatial.end(), s.begin() + static_cast<std::ptrdiff_t>(3 - spatial.size()));
  return s;
}
Convolution::Sizes spatial(const Dims& sizes) { return three(std::span<const int64_t>(sizes).subspan(2), 1); }

Tensor computed(Use use, const Tensor& a, const Tensor& b, const Tensor& bias, const ConvGeometry& g);

// Complex convolution is bilinear: four real convolutions of the parts.
Tensor of_parts(Use use, const Tensor& a, const Tensor& b, const Tensor& bias, const ConvGeometry& g) {
  const NoGrad off;
  const auto product = [&](const Tensor& x, const Tensor& y) { return computed(use, x, y, {}, g); };
  const Tensor ar = real_part(a), ai = imaginary_part(a), br = real_part(b), bi = imaginary_part(b);
  const Tensor out = complex(product(ar, br) - product(ai, bi), product(ar, bi) + product(ai, br));
  if (!bias.defined()) return out;
  Dims column(out.sizes().size(), 1);
  column[1] = -1;
  return out + bias.detach().reshape(column);
}

// A copy of an expanded operand, such as the gradient of a sum: libraries take none, and each element is read many times.
Tensor unexpanded(const Tensor& t, MemoryFormat format) { return is_expanded(t.sizes(), t.strides()) ? t.detach().contiguous(format) : t; }

// Computes the result; records nothing for autograd.
Tensor computed(Use use, const Tensor& given_a, const Tensor& given_b, const Tensor& bias, const ConvGeometry& g) {
  const Tensor a = unexpanded(given_a, g.image_format), b = unexpanded(given_b, use == Use::Weight ? g.image_format : g.weight_format);
  if (is_complex(a.dtype())) return of_parts(use, a, b, bias, g);
  const Dims& sizes = use == Use::Forward ? g.y : use == Use::Input ? g.x : g.w;
  const MemoryFormat format = use == Use::Weight ? g.weight_format : g.image_format;
  const Tensor out = make_result(sizes, format_strides(sizes, format), a.dtype(), a.device(), Convolution::kNames[static_cast<int>(use)]);
  if (out.numel() == 0) return out;
  if (product(g.x) == 0 || product(g.y) == 0 || product(g.w) == 0) {
    NoGrad guard;
    Tensor target = out;
    Dims column(sizes.size(), 1);
    column[1] = -1;
    bias.defined() ? target.copy_(bias.reshape(column)) : target.zero_();
    return out;
  }
  Convolution q;
  q.use = use;
  q.dtype = a.dtype();
  q.batch = g.x[0], q.groups = g.groups, q.in = g.x[1] / g.groups, q.out = g.y[1] / g.groups;
  q.size = spatial(g.x), q.result = spatial(g.y), q.kernel = spatial(g.w);
  q.stride = three(g.stride, 1), q.padding = three(g.padding, 0), q.dilation = three(g.dilation, 1);
  q.precision = precision_of(a.dtype());
  q.x = array_of(use == Use::Input ? out : a);
  q.y = array_of(use == Use::Forward ? out : use == Use::Input ? a : b);
  q.w = array_of(use == Use::Weight ? out : b);
  if (bias.defined()) {
    const ir::View v = view_of(bias, bias.sizes());
    q.bias = v.data, q.bias_stride = v.strides.back();
  }
  submit(std::move(q), {&a, &b, &bias}, {&out});
  return out;
}

// The sum over all dimensions but the channels.
Tensor bias_gradient(const Tensor& g) {
  Dims dims{0};
  for (int64_t d = 2; d < g.dim(); ++d) dims.push_back(d);
  return sum(g, dims);
}

}  // namespace

Convolution::Array array_of(const Tensor& t) {
  const ir::View v = view_of(t, t.sizes());
  Convolution::Array a{v.data, {v.strides[0], v.strides[1], 0, 0, 0}};
  const size_t n = v.strides.size() - 2;
  for (size_t d = 0; d < n; ++d) a.strides[5 - n + d] = v.strides[2 + d];
  return a;
}

Tensor convolve(Use use, const Tensor& a, const Tensor& b, const Tensor& bias, const ConvGeometry& g, const char* name) {
  if (flop_counters) [[unlikely]]
    count_flops(name, 2 * g.y[0] * product(std::span<const int64_t>(g.y).subspan(2)) * product(g.w));
  const auto [kept_a, kept_b] = ops::factors_to_save(a, b);
  return record(computed(use, a, b, bias, g), "ConvolutionBackward0", {&a, &b, &bias}, {kept_a, kept_b},
                WithJvp(
                    [use, g](const Tensors& grads, const Tensors& saved, autograd::Needed needed) -> Tensors {
                      const Tensor &d = grads[0], a = conjugate(saved[0]), b = conjugate(saved[1]);
                      const auto part = [&](bool wanted, Use of, const Tensor& left, const Tensor& right) {
                        return wanted ? convolve(of, left, right, {}, g, "convolution_backward") : Tensor();
                      };
                      const Tensor gb = needed[2] ? bias_gradient(d) : Tensor();
                      switch (use) {
                        case Use::Forward:  // y of x and w
                          return {part(needed[0], Use::Input, d, b), part(needed[1], Use::Weight, a, d), gb};
                        case Use::Input:  // x of y and w
                          return {part(needed[0], Use::Forward, d, b), part(needed[1], Use::Weight, d, a), gb};
                        case Use::Weight:  // w of x and y
                          return {part(needed[0], Use::Input, b, d), part(needed[1], Use::Forward, a, d), gb};
                      }
                      return {};
                    },
                    [use, g, name](const Tensors& t, const Tensors& saved) {
                      // Linear in each of a and b; the bias has one element a channel.
                      Tensor sum = t[0].defined() ? convolve(use, t[0], saved[1], {}, g, name) : Tensor();
                      if (t[1].defined()) sum = autograd::added(sum, convolve(use, saved[0], t[1], {}, g, name));
                      if (!t[2].defined()) return sum;
                      Dims channels(g.y.size(), 1);
                      channels[1] = t[2].numel();
                      return autograd::added(sum, t[2].reshape(channels));
                    }));
}

}  // namespace naru::ops
