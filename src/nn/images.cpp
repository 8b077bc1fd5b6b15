#include "naru/nn_images.h"

#include <cmath>

#include "naru/autograd.h"

namespace naru::nn {
namespace {

// (first, second / groups, kernel...)
Tensor weight_of(int n, int64_t first, int64_t second, const Dims& kernel, int64_t groups, const Options& options) {
  if (groups <= 0) throw ValueError("groups must be a positive integer");
  Dims shape{first, second / groups};
  for (int d = 0; d < n; ++d) shape.push_back(kernel[kernel.size() == 1 ? 0 : static_cast<size_t>(d)]);
  return empty(shape, options);
}

void check_groups(int64_t in, int64_t out, int64_t groups) {
  if (groups > 0 && in % groups != 0) throw ValueError("in_channels must be divisible by groups");
  if (groups > 0 && out % groups != 0) throw ValueError("out_channels must be divisible by groups");
}

void draw(const Tensor& weight, const Tensor& bias) {
  kaiming_uniform_(weight, std::sqrt(5.0));
  const int64_t window = weight.size(0) ? weight.numel() / weight.size(0) : 0;
  const double bound = window > 0 ? 1 / std::sqrt(static_cast<double>(window)) : 0;
  const NoGrad no_grad;
  if (bias.defined()) uniform_(bias, -bound, bound);
}

// "(3, 3)" of n numbers, "(3,)" of one.
std::string tuple_text(const Dims& given, int n) {
  std::string text;
  for (int d = 0; d < n; ++d) text += fmt::format("{}{}", d ? ", " : "", given[given.size() == 1 ? 0 : static_cast<size_t>(d)]);
  return "(" + text + (n == 1 ? ",)" : ")");
}
bool all(const Dims& given, int64_t value) {
  for (const int64_t v : given)
    if (v != value) return false;
  return true;
}

std::string conv_details(int n, int64_t in, int64_t out, const Tensor& weight, const ConvSettings& s, bool with_bias) {
  const Dims kernel(std::span<const int64_t>(weight.sizes()).subspan(2));
  std::string text = fmt::format("{}, {}, kernel_size={}, stride={}", in, out, tuple_text(kernel, n), tuple_text(s.stride, n));
  if (!s.padding.mode.empty())
    text += ", padding=" + s.padding.mode;
  else if (!all(s.padding.amounts, 0))
    text += ", padding=" + tuple_text(s.padding.amounts, n);
  if (!all(s.dilation, 1)) text += ", dilation=" + tuple_text(s.dilation, n);
  if (!all(s.output_padding, 0)) text += ", output_padding=" + tuple_text(s.output_padding, n);
  if (s.groups != 1) text += fmt::format(", groups={}", s.groups);
  return with_bias ? text : text + ", bias=False";
}

constexpr decltype(&conv1d) kForward[] = {conv1d, conv2d, conv3d};
constexpr decltype(&conv_transpose1d) kTransposed[] = {conv_transpose1d, conv_transpose2d, conv_transpose3d};

}  // namespace

template <int N>
Conv<N>::Conv(int64_t in, int64_t out, const Dims& kernel, ConvSettings settings, const Options& options) : s_(std::move(settings)) {
  check_groups(in, out, s_.groups);
  weight = register_parameter("weight", weight_of(N, out, in, kernel, s_.groups, options));
  bias = register_parameter("bias", s_.bias ? empty({out}, options) : Tensor());
  draw(weight, bias);
}
template <int N>
Tensor Conv<N>::forward(const Tensor& x) {
  return kForward[N - 1](x, weight, bias, s_.stride, s_.padding, s_.dilation, s_.groups);
}
template <int N>
std::string Conv<N>::details() const {
  return conv_details(N, weight.size(1) * s_.groups, weight.size(0), weight, s_, bias.defined());
}

template <int N>
ConvTranspose<N>::ConvTranspose(int64_t in, int64_t out, const Dims& kernel, ConvSettings settings, const Options& options)
    : s_(std::move(settings)) {
  check_groups(in, out, s_.groups);
  if (!s_.padding.mode.empty()) throw ValueError("ConvTranspose{}d: wanted numbers for padding, got '{}'", N, s_.padding.mode);
  weight = register_parameter("weight", weight_of(N, in, out, kernel, s_.groups, options));
  bias = register_parameter("bias", s_.bias ? empty({out}, options) : Tensor());
  draw(weight, bias);
}
template <int N>
Tensor ConvTranspose<N>::forward(const Tensor& x) {
  return kTransposed[N - 1](x, weight, bias, s_.stride, s_.padding.amounts, s_.output_padding, s_.groups, s_.dilation);
}
template <int N>
std::string ConvTranspose<N>::details() const {
  return conv_details(N, weight.size(0), weight.size(1) * s_.groups, weight, s_, bias.defined());
}

template <int N>
BatchNorm<N>::BatchNorm(int64_t features, double eps, double momentum, bool affine, const Options& options)
    : eps_(eps), momentum_(momentum) {
  weight = register_parameter("weight", affine ? ones({features}, options) : Tensor());
  bias = register_parameter("bias", affine ? zeros({features}, options) : Tensor());
  Options counts = options;
  counts.dtype = DType::I64;
  running_mean = zeros({features}, options), running_var = ones({features}, options), num_batches_tracked = zeros({}, counts);
  register_buffer("running_mean", running_mean);
  register_buffer("running_var", running_var);
  register_buffer("num_batches_tracked", num_batches_tracked);
}
template <int N>
Tensor BatchNorm<N>::forward(const Tensor& x) {
  if (x.dim() != N + 2 && (N != 1 || x.dim() != 2))
    throw ValueError("expected {}{}D input (got {}D input)", N == 1 ? "2D or " : "", N + 2, x.dim());
  if (is_training()) {
    if (x.numel() == x.size(1))
      throw ValueError("Expected more than 1 value per channel when training, got input size {}", x.sizes().str());
    const NoGrad no_grad;
    num_batches_tracked.add_(1);
  }
  return batch_norm(x, running_mean, running_var, weight, bias, is_training(), momentum_, eps_);
}
template <int N>
std::string BatchNorm<N>::details() const {
  const char* affine = weight.defined() ? "True" : "False";
  return fmt::format("{}, eps={}, momentum={}, affine={}, bias={}, track_running_stats=True", running_mean.size(0), eps_, momentum_, affine,
                     affine);
}

GroupNorm::GroupNorm(int64_t groups, int64_t channels, double eps, bool affine, const Options& options)
    : groups_(groups), channels_(channels), eps_(eps) {
  if (groups <= 0 || channels % groups != 0) throw ValueError("num_channels ({}) must be divisible by num_groups ({})", channels, groups);
  weight = register_parameter("weight", affine ? ones({channels}, options) : Tensor());
  bias = register_parameter("bias", affine ? zeros({channels}, options) : Tensor());
}
std::string GroupNorm::details() const {
  const char* affine = weight.defined() ? "True" : "False";
  return fmt::format("{}, {}, eps={}, affine={}, bias={}", groups_, channels_, eps_, affine, affine);
}

template class Conv<1>;
template class Conv<2>;
template class Conv<3>;
template class ConvTranspose<1>;
template class ConvTranspose<2>;
template class ConvTranspose<3>;
template class BatchNorm<1>;
template class BatchNorm<2>;
template class BatchNorm<3>;

}  // namespace naru::nn
