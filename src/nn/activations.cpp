// Activations and dropout as functions.
#include <fmt/format.h>

#include <cmath>

#include "autograd/history/constant.h"
#include "autograd/history/history.h"
#include "naru/autograd.h"
#include "naru/nn/functional.h"
#include "ops/elementwise/shrink.h"
#include "ops/random/host_draws.h"
#include "ops/tensor/common.h"

namespace naru::nn::functional {
namespace {

constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;

// The input of an in-place function: a copy if autograd records, so that the write does not change it.
Tensor apart(const Tensor& x) { return x.requires_grad() && grad_enabled() ? x.clone() : x; }

void check_probability(double p) {
  if (!(p >= 0 && p <= 1)) throw ValueError("dropout probability has to be between 0 and 1, but got {}", p);
}

// (N, C, 1...): one draw per channel.
Dims of_channels(const Tensor& x) {
  if (x.dim() < 2) throw RuntimeError("Feature dropout requires at least 2 dimensions in the input");
  Dims shape;
  for (int64_t d = 0; d < x.dim(); ++d) shape.push_back(d < 2 ? x.size(d) : 1);
  return shape;
}

// Alpha dropout: drops elements of x with probability p, with one draw per element of `shape`. Dropped elements become selu's least value; then
// mean and variance are restored.
Tensor drop_to_least(const Tensor& x, const Dims& shape, double p) {
  constexpr double kLow = -1.7580993408473766;
  const double scale = 1 / std::sqrt((kLow * kLow * p + 1) * (1 - p));
  const Options o(real_of(x.dtype()), x.device());
  Tensor keep = empty(shape, o);
  if (ops::draws_as_pytorch())
    bernoulli_(keep, 1 - p);
  else
    keep = (rand(shape, o) >= p).to(keep.dtype());
  return (x * keep + Scalar(kLow) * (Scalar(1.0) - keep)) * scale - scale * kLow * p;
}

}  // namespace

Tensor celu(const Tensor& x, double alpha) {
  if (alpha == 0) throw RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU");
  if (alpha == 1 || !is_floating(x.dtype())) return naru::elu(x, alpha);  // equivalent; elu also rejects unsupported dtypes
  return where(x <= 0, Scalar(alpha) * expm1(where(x <= 0, x, zeros_like(x)) / alpha), x);
}

Tensor selu(const Tensor& x) { return Scalar(kSeluScale) * naru::elu(x, kSeluAlpha); }

Tensor hardtanh(const Tensor& x, double min_val, double max_val) {
  if (min_val > max_val) throw ValueError("min_val cannot be greater than max_val");
  if (x.dtype() == DType::Bool) throw NotImplementedError("Bool inputs not supported for hardtanh");
  if (is_floating(x.dtype()) && x.requires_grad() && grad_enabled()) {
    using Tensors = const std::vector<Tensor>&;
    // Unlike clamp's, the gradient passes for NaN.
    return autograd::reading_inputs(autograd::record(x.detach().clamp(min_val, max_val), "HardtanhBackward0", {&x}, {&x},
                                                     [min_val, max_val](Tensors g, Tensors saved) -> std::vector<Tensor> {
                                                       return {masked_fill(g[0], (saved[0] <= min_val) | (saved[0] >= max_val), 0.0)};
                                                     }));
  }
  if (is_floating(x.dtype())) return x.clamp(min_val, max_val);
  return x.clamp(static_cast<int64_t>(min_val), static_cast<int64_t>(max_val));
}

namespace {

// y, whose gradient passes outside [-lambd, lambd].
Tensor recorded_shrink(Tensor y, const char* node, const Tensor& x, double lambd) {
  using Tensors = const std::vector<Tensor>&;
  return autograd::reading_inputs(
      autograd::record(std::move(y), node, {&x}, {&x}, autograd::Symmetric([lambd](Tensors g, Tensors saved) -> std::vector<Tensor> {
                         return {masked_fill(g[0], abs(saved[0].detach()) <= lambd, 0.0)};
                       })));
}

}  // namespace

Tensor hardshrink(const Tensor& x, double lambd) {
  ops::require_floating(x.dtype(), "hardshrink_cpu");
  return recorded_shrink(ops::hard_shrunk(x, lambd), "HardshrinkBackward0", x, lambd);
}

Tensor softshrink(const Tensor& x, double lambd) {
  ops::require_floating(x.dtype(), "softshrink_check");
  if (lambd < 0) throw RuntimeError("lambda must be greater or equal to 0, but found to be {}.", lambd);
  return recorded_shrink(ops::soft_shrunk(x, lambd), "SoftshrinkBackward0", x, lambd);
}

Tensor tanhshrink(const Tensor& x) { return x - x.tanh(); }

Tensor glu(const Tensor& x, int64_t dim) {
  if (x.dim() == 0) throw RuntimeError("glu does not support 0-dimensional tensors");
  const int64_t size = x.size(dim);
  if (size % 2) throw RuntimeError("Halving dimension must be even, but dimension {} is size {}", dim < 0 ? dim + x.dim() : dim, size);
  ops::require_floating(x.dtype(), "glu_cpu");
  const std::vector<Tensor> halves = chunk(x, 2, dim);
  return halves[0] * halves[1].sigmoid();
}

Tensor softmin(const Tensor& x, int64_t dim, std::optional<DType> dtype) { return softmax(-x, dim, dtype); }

Tensor gumbel_softmax(const Tensor& logits, double tau, bool hard, int64_t dim, Generator* generator) {
  const Tensor drawn = empty(logits.sizes(), Options(logits.dtype(), logits.device()));
  exponential_(drawn, 1, generator);
  const Tensor soft = softmax((logits - drawn.log()) / tau, dim);
  if (!hard) return soft;
  const Tensor top = soft.argmax(dim, true);
  Tensor places = arange(0, soft.dim() ? soft.size(dim) : 1, 1, Options(soft.device()));
  if (soft.dim()) {
    Dims shape(static_cast<size_t>(soft.dim()), 1);
    shape[static_cast<size_t>(dim < 0 ? dim + soft.dim() : dim)] = -1;
    places = places.reshape(shape);
  }
  return (places == top).to(soft.dtype()) - soft.detach() + soft;
}

Tensor rrelu(const Tensor& x, double lower, double upper, bool training, Generator* generator) {
  for (const auto& [bound, name] : {std::pair(lower, "lower"), std::pair(upper, "upper")})
    if (!std::isfinite(bound)) throw RuntimeError("rrelu: {} bound must be finite, got {}", name, bound);
  if (lower > upper) throw RuntimeError("Lower bound should be less than or equal to the upper bound (rrelu: got {} and {})", lower, upper);
  if (!training) return naru::leaky_relu(x, (lower + upper) / 2);
  ops::require_floating(x.dtype(), "rrelu_with_noise_out_cpu");
  if (ops::draws_as_pytorch()) {  // draws only for elements that are not positive, in float64
    const Tensor leaks = x.detach() <= 0;
    const Tensor draws = empty({sum(leaks).item<int64_t>()}, Options(DType::F64, x.device()));
    uniform_(draws, lower, upper, generator);
    return autograd::reading_inputs(x * ones_like(x.detach()).masked_scatter(leaks, draws.to(x.dtype())));
  }
  const Tensor slopes = empty_like(x.detach());
  uniform_(slopes, lower, upper, generator);
  return autograd::reading_inputs(where(x > 0, x, x * slopes));
}
Tensor rrelu_(Tensor x, double lower, double upper, bool training, Generator* generator) {
  return x.copy_(rrelu(apart(x), lower, upper, training, generator));
}

Tensor relu_(Tensor x) {
  x.relu_();
  return x;
}
Tensor elu_(Tensor x, double alpha) { return x.copy_(elu(apart(x), alpha)); }
Tensor celu_(Tensor x, double alpha) { return x.copy_(celu(apart(x), alpha)); }
Tensor selu_(Tensor x) { return x.copy_(selu(apart(x))); }
Tensor hardtanh_(Tensor x, double min_val, double max_val) { return x.copy_(hardtanh(apart(x), min_val, max_val)); }
Tensor leaky_relu_(Tensor x, double negative_slope) { return x.copy_(leaky_relu(apart(x), negative_slope)); }
Tensor threshold_(Tensor x, double threshold, double value) { return x.copy_(functional::threshold(apart(x), threshold, value)); }

Tensor feature_dropout(const Tensor& x, double p, bool training) {
  check_probability(p);
  if (!training || p == 0) return x;
  return x * dropout(ones(of_channels(x), Options(real_of(x.dtype()), x.device())), p, true);
}

Tensor dropout1d(const Tensor& x, double p, bool training) {
  return x.dim() == 2 ? feature_dropout(x.unsqueeze(0), p, training).squeeze(0) : feature_dropout(x, p, training);
}
Tensor dropout2d(const Tensor& x, double p, bool training) {
  if (x.dim() != 3 && x.dim() != 4)
    warn(fmt::format(
        "dropout2d: Received a {}-D input to dropout2d, which is deprecated and will result in an error in a future release. To retain the "
        "behavior and silence this warning, please use dropout instead. Note that dropout2d exists to provide channel-wise dropout on "
        "inputs "
        "with 2 spatial dimensions, a channel dimension, and an optional batch dimension (i.e. 3D or 4D inputs).",
        x.dim()));
  return feature_dropout(x, p, training);
}
Tensor dropout3d(const Tensor& x, double p, bool training) {
  return x.dim() == 4 ? feature_dropout(x.unsqueeze(0), p, training).squeeze(0) : feature_dropout(x, p, training);
}

Tensor alpha_dropout(const Tensor& x, double p, bool training) {
  check_probability(p);
  if (!training || p == 0) return x;
  if (p == 1) return x * 0.0;
  return drop_to_least(x, x.sizes(), p);
}

Tensor feature_alpha_dropout(const Tensor& x, double p, bool training) {
  check_probability(p);
  if (!training || p == 0) return x;
  const Dims shape = of_channels(x);
  if (p == 1) return x * 0.0;
  if (!is_inexact(x.dtype())) ops::require_floating(x.dtype(), "bernoulli_scalar_cpu_");
  return drop_to_least(x, shape, p);
}

}  // namespace naru::nn::functional
