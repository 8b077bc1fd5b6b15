// conv1d ... conv_transpose3d and convolution: argument checks and result shapes.
#include "naru/ops/convolution.h"

#include <fmt/format.h>

#include "ops/call/wrapped.h"
#include "ops/nn/convolution.h"
#include "ops/shape/strides.h"
#include "ops/tensor/checked.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

using ops::ConvGeometry;
using Use = ir::Convolution::Use;

struct Settings {
  Dims stride, padding, dilation, output_padding;
  int64_t groups = 1;
  bool transposed = false, same = false;
};

// Expands one value to n dimensions.
Dims spread(const Dims& given, int64_t n, const char* what) {
  if (given.size() == 1) return Dims(static_cast<size_t>(n), given[0]);
  if (static_cast<int64_t>(given.size()) != n)
    throw RuntimeError(
        "expected {0} to be a single integer value or a list of {1} values to match the convolution dimensions, but got {0}={2}", what, n,
        given.str());
  return given;
}

bool any_below(const Dims& list, int64_t least) {
  for (const int64_t v : list)
    if (v < least) return true;
  return false;
}

// Sizes as PyTorch's messages print them: "2 x 3".
std::string sizes_text(const Dims& sizes) {
  std::string text;
  for (const int64_t s : sizes) text += fmt::format("{}{}", text.empty() ? "" : " x ", s);
  return text;
}

void check_types(const Tensor& x, const Tensor& w, const Tensor& bias, const char* op) {
  if (w.dtype() != x.dtype())
    throw RuntimeError("expected scalar type {} but found {} ({}: input and weight should be of one type; convert one with .to())",
                       ops::torch_name(x.dtype()), ops::torch_name(w.dtype()), op);
  if (bias.defined() && bias.dtype() != x.dtype())
    throw RuntimeError("Input type ({}) and bias type ({}) should be the same ({}: convert one with .to())", ops::c_name(x.dtype()),
                       ops::c_name(bias.dtype()), op);
  if (x.dtype() == DType::Bool)
    throw NotImplementedError("\"slow_conv2d_cpu\" not implemented for 'Bool' ({}: convert to numbers first)", op);
}

void check_settings(const Settings& s) {
  if (any_below(s.padding, 0)) throw RuntimeError("negative padding is not supported");
  if (any_below(s.output_padding, 0)) throw RuntimeError("negative output_padding is not supported");
  if (any_below(s.stride, 1)) throw RuntimeError("non-positive stride is not supported");
  if (any_below(s.dilation, 1)) throw RuntimeError("non-positive dilation is not supported");
  if (s.groups < 1) throw RuntimeError("non-positive groups is not supported");
}

void check_shapes(const Tensor& x, const Tensor& w, const Tensor& bias, const Settings& s) {
  const Dims &sx = x.sizes(), &sw = w.sizes();
  if (sx.size() != sw.size())
    throw RuntimeError("Expected {0}-dimensional input for {0}-dimensional weight {1}, but got {2}-dimensional input of size {3} instead",
                       sw.size(), sw.str(), sx.size(), sx.str());
  if (sw[0] < s.groups)
    throw RuntimeError("Given groups={0}, expected weight to be at least {0} at dimension 0, but got weight of size {1} instead", s.groups,
                       sw.str());
  if (sw[0] % s.groups != 0)
    throw RuntimeError("Given groups={0}, expected weight to be divisible by {0} at dimension 0, but got weight of size [{1}] instead",
                       s.groups, sw.str());
  const std::string given = s.transposed ? fmt::format("Given transposed=1, weight of size {}", sw.str())
                                         : fmt::format("Given groups={}, weight of size {}", s.groups, sw.str());
  const int64_t channels = s.transposed ? sw[0] : sw[1] * s.groups, results = s.transposed ? sw[1] * s.groups : sw[0];
  if (sx[1] != channels)
    throw RuntimeError("{}, expected input{} to have {} channels, but got {} channels instead", given, sx.str(), channels, sx[1]);
  if (bias.defined() && (bias.dim() != 1 || bias.size(0) != results))
    throw RuntimeError("Given {}weight of size {}, expected bias to be 1-dimensional with {} elements, but got bias of size {} instead",
                       s.transposed ? "transposed=1, " : "", sw.str(), results, bias.sizes().str());
}

// The result's sizes: the number of window positions in the padded input.
Dims sizes_of_result(const Dims& sx, const Dims& sw, const Settings& s) {
  Dims padded, kernel, out{sx[0], sw[0]};
  bool fits = true;
  for (size_t d = 0; d + 2 < sx.size(); ++d) {
    const int64_t reach = ops::times(s.dilation[d], sw[d + 2] - 1);
    padded.push_back(ops::plus(sx[d + 2], s.same ? reach : ops::times(2, s.padding[d])));
    kernel.push_back(ops::plus(reach, 1));
    fits = fits && sw[d + 2] > 0 && padded[d] >= kernel[d];
    if (sw[d + 2] > 0) out.push_back((padded[d] - kernel[d]) / s.stride[d] + 1);
  }
  if (!fits)
    throw RuntimeError(
        "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater than actual input size (input {}, "
        "weight {}, padding {}: an input of at least the kernel's size fits, or more padding)",
        sizes_text(padded), sizes_text(kernel), sx.str(), sw.str(), s.padding.str());
  return out;
}

Dims sizes_of_transposed(const Dims& sx, const Dims& sw, const Settings& s) {
  Dims out{sx[0], sw[1] * s.groups};
  for (size_t d = 0; d < s.stride.size(); ++d)
    if (s.output_padding[d] >= s.stride[d] && s.output_padding[d] >= s.dilation[d])
      throw RuntimeError(
          "output padding must be smaller than either stride or dilation, but got output_padding: {} stride: {} dilation: {}",
          s.output_padding.str(), s.stride.str(), s.dilation.str());
  for (size_t d = 0; d < s.stride.size(); ++d) {
    const int64_t spread = ops::plus(ops::times(sx[d + 2] - 1, s.stride[d]), ops::times(s.dilation[d], sw[d + 2] - 1));
    const int64_t size = ops::plus(spread, s.output_padding[d] + 1) - ops::times(2, s.padding[d]);
    if (size < 1 || sw[d + 2] < 1)
      throw RuntimeError(
          "Given input size per channel: ({}). Calculated output size per channel: ({}) in dimension {}. Output size is too small (weight "
          "{}, padding {}: less padding, or a larger input or kernel fits)",
          sizes_text(Dims(std::span<const int64_t>(sx).subspan(2))), size, d, sw.str(), s.padding.str());
    out.push_back(size);
  }
  return out;
}

// x and w have a batch dimension.
Tensor convolve(const Tensor& x, const Tensor& w, const Tensor& bias, Settings s, const char* op) {
  check_settings(s);
  check_shapes(x, w, bias, s);
  check_types(x, w, bias, op);
  ConvGeometry g;
  g.w = w.sizes();
  g.weight_format = ops::suggested_format(w);
  g.image_format = g.weight_format != MemoryFormat::Contiguous ? g.weight_format : ops::suggested_format(x);
  g.stride = s.stride, g.dilation = s.dilation, g.groups = s.groups;
  if (s.transposed) {
    g.x = sizes_of_transposed(x.sizes(), w.sizes(), s), g.y = x.sizes();
    g.padding = s.padding;
    return ops::convolve(Use::Input, x, w, bias, g);
  }
  g.x = x.sizes(), g.y = sizes_of_result(x.sizes(), w.sizes(), s);
  g.padding = s.padding;
  if (s.same)
    for (size_t d = 0; d < g.padding.size(); ++d) g.padding[d] = g.dilation[d] * (g.w[d + 2] - 1) / 2;
  return ops::convolve(Use::Forward, x, w, bias, g);
}

void check_operands(const Tensor& x, const Tensor& w, const Tensor& bias, const char* op) {
  ops::require_defined(x, op, "input");
  ops::require_defined(w, op, "weight");
  const Tensor* tensors[] = {&x, &w, &bias};
  const char* roles[] = {"input", "weight", "bias"};
  ops::common_device(std::span(tensors, bias.defined() ? 3 : 2), roles, op);
}

// A convolution of n dimensions whose x has a batch dimension or none.
Tensor batched(const Tensor& x, const Tensor& w, const Tensor& bias, const Settings& s, int64_t n, const char* op) {
  if (x.dim() != n + 1 && x.dim() != n + 2)
    throw RuntimeError("Expected {}D (unbatched) or {}D (batched) input to {}, but got input of size: {}", n + 1, n + 2, op,
                       x.sizes().str());
  if (x.dim() == n + 2) return convolve(x, w, bias, s, op);
  return convolve(x.unsqueeze(0), w, bias, s, op).squeeze(0);
}

constexpr const char* kNames[] = {"conv1d", "conv2d", "conv3d"};
constexpr const char* kTransposed[] = {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"};

Tensor forward(int64_t n, const Tensor& x, const Tensor& w, const Tensor& bias, const Dims& stride, const ConvPadding& padding,
               const Dims& dilation, int64_t groups) {
  const char* op = kNames[n - 1];
  if (auto y = ops::wrapped(op, forward, n, x, w, bias, stride, padding, dilation, groups)) return *std::move(y);
  check_operands(x, w, bias, op);
  Settings s{spread(stride, n, "stride"), {}, spread(dilation, n, "dilation"), Dims(static_cast<size_t>(n), 0), groups};
  s.padding = padding.mode.empty() ? spread(padding.amounts, n, "padding") : Dims(static_cast<size_t>(n), 0);
  if (padding.mode == "same") {
    s.same = true;
    for (const int64_t v : s.stride)
      if (v != 1) throw RuntimeError("padding='same' is not supported for strided convolutions");
  } else if (!padding.mode.empty() && padding.mode != "valid") {
    throw RuntimeError("Invalid padding string: '{}' ({}: wanted 'same', 'valid' or numbers)", padding.mode, op);
  }
  return batched(x, w, bias, s, n, op);
}

Tensor transposed(int64_t n, const Tensor& x, const Tensor& w, const Tensor& bias, const Dims& stride, const Dims& padding,
                  const Dims& output_padding, int64_t groups, const Dims& dilation) {
  const char* op = kTransposed[n - 1];
  if (auto y = ops::wrapped(op, transposed, n, x, w, bias, stride, padding, output_padding, groups, dilation)) return *std::move(y);
  check_operands(x, w, bias, op);
  const Settings s{spread(stride, n, "stride"),
                   spread(padding, n, "padding"),
                   spread(dilation, n, "dilation"),
                   spread(output_padding, n, "output_padding"),
                   groups,
                   true};
  return batched(x, w, bias, s, n, op);
}

}  // namespace

Tensor conv1d(const Tensor& x, const Tensor& w, const Tensor& b, const Dims& stride, const ConvPadding& padding, const Dims& dilation,
              int64_t groups) {
  return forward(1, x, w, b, stride, padding, dilation, groups);
}
Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& b, const Dims& stride, const ConvPadding& padding, const Dims& dilation,
              int64_t groups) {
  return forward(2, x, w, b, stride, padding, dilation, groups);
}
Tensor conv3d(const Tensor& x, const Tensor& w, const Tensor& b, const Dims& stride, const ConvPadding& padding, const Dims& dilation,
              int64_t groups) {
  return forward(3, x, w, b, stride, padding, dilation, groups);
}
Tensor conv_transpose1d(const Tensor& x, const Tensor& w, const Tensor& b, const Dims& stride, const Dims& padding,
                        const Dims& output_padding, int64_t groups, const Dims& dilation) {
  return transposed(1, x, w, b, stride, padding, output_padding, groups, dilation);
}
Tensor conv_transpose2d(const Tensor& x, const Tensor& w, const Tensor& b, const Dims& stride, const Dims& padding,
                        const Dims& output_padding, int64_t groups, const Dims& dilation) {
  return transposed(2, x, w, b, stride, padding, output_padding, groups, dilation);
}
Tensor conv_transpose3d(const Tensor& x, const Tensor& w, const Tensor& b, const Dims& stride, const Dims& padding,
                        const Dims& output_padding, int64_t groups, const Dims& dilation) {
  return transposed(3, x, w, b, stride, padding, output_padding, groups, dilation);
}

Tensor convolution(const Tensor& x, const Tensor& w, const Tensor& bias, const Dims& stride, const Dims& padding, const Dims& dilation,
                   bool transposed, const Dims& output_padding, int64_t groups) {
  check_operands(x, w, bias, "convolution");
  const int64_t n = w.dim() - 2;
  if (n < 1 || n > 3)
    throw RuntimeError("weight should have at least three dimensions (convolution: wanted 3 to 5, got weight of size {})", w.sizes().str());
  const Settings s{spread(stride, n, "stride"),
                   spread(padding, n, "padding"),
                   spread(dilation, n, "dilation"),
                   spread(output_padding, n, "output_padding"),
                   groups,
                   transposed};
  return convolve(x, w, bias, s, "convolution");
}

Tensor conv_tbc(const Tensor& x, const Tensor& w, const Tensor& bias, int64_t padding) {
  if (auto y = ops::wrapped("conv_tbc", conv_tbc, x, w, bias, padding)) return *std::move(y);
  ops::require_defined(bias, "conv_tbc", "bias");
  if (x.dim() != 3) throw RuntimeError("Input must have 3 dims: time, batch, in_channel");
  if (w.dim() != 3) throw RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.");
  if (bias.dim() != 1) throw RuntimeError("Bias must be 1-D");
  if (x.size(2) != w.size(1))
    throw RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor (conv_tbc: got {} and {})", x.size(2), w.size(1));
  if (bias.size(0) != w.size(2))
    throw RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels). (conv_tbc: got {} and {})", bias.size(0),
                       w.size(2));
  const int64_t steps = x.size(0) - w.size(0) + 1 + 2 * padding;
  if (steps < 0)
    throw RuntimeError("Trying to create tensor with negative dimension {} (conv_tbc: {} steps, of which {} make one, padding {})", steps,
                       x.size(0), w.size(0), padding);
  if (steps == 0) return bias.expand({0, x.size(1), w.size(2)});
  return conv1d(x.permute({1, 2, 0}), w.permute({2, 1, 0}), bias, {1}, ConvPadding(Dims{padding})).permute({2, 0, 1});
}

}  // namespace naru
