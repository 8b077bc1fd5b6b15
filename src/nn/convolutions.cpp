// Convolution modules.
#include "naru/nn/images.h"

#include <fmt/format.h>

#include <cmath>

#include "naru/autograd.h"
#include "nn/text.h"

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

// "(3, 3)" for n numbers, "(3,)" for one.
std::string each_text(const Dims& given, int n) { return tuple_text(given.size() == 1 ? Dims(static_cast<size_t>(n), given[0]) : given); }
bool all(const Dims& given, int64_t value) {
  for (const int64_t v : given)
    if (v != value) return false;
  return true;
}

std::string conv_details(int n, int64_t in, int64_t out, const Tensor& weight, const ConvSettings& s, bool with_bias) {
  const Dims kernel(std::span<const int64_t>(weight.sizes()).subspan(2));
  std::string text = fmt::format("{}, {}, kernel_size={}, stride={}", in, out, each_text(kernel, n), each_text(s.stride, n));
  if (!s.padding.mode.empty())
    text += ", padding=" + s.padding.mode;
  else if (!all(s.padding.amounts, 0))
    text += ", padding=" + each_text(s.padding.amounts, n);
  if (!all(s.dilation, 1)) text += ", dilation=" + each_text(s.dilation, n);
  if (!all(s.output_padding, 0)) text += ", output_padding=" + each_text(s.output_padding, n);
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
std::shared_ptr<Module> Conv<N>::remake() const {
  const Dims kernel(std::span<const int64_t>(weight.sizes()).subspan(2));
  return std::make_shared<Conv<N>>(weight.size(1) * s_.groups, weight.size(0), kernel, s_);
}
template <int N>
std::shared_ptr<Module> ConvTranspose<N>::remake() const {
  const Dims kernel(std::span<const int64_t>(weight.sizes()).subspan(2));
  return std::make_shared<ConvTranspose<N>>(weight.size(0), weight.size(1) * s_.groups, kernel, s_);
}

template class Conv<1>;
template class Conv<2>;
template class Conv<3>;
template class ConvTranspose<1>;
template class ConvTranspose<2>;
template class ConvTranspose<3>;

}  // namespace naru::nn
