// Convolutions.
#include "naru/ops/convolution.h"
#include "object/tensor_object.h"

namespace naru::py {
namespace {

using Forward = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Dims&, const ConvPadding&, const Dims&, int64_t);
using Transposed = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Dims&, const Dims&, const Dims&, int64_t, const Dims&);

void define_forward(const char* name, Forward f, const char* doc) {
  def(kFunction, name, "input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1", doc,
      [f](const Tensor& x, const Tensor& w, const OptTensor& b, const Dims& stride, const Dims& padding, const Dims& dilation,
          int64_t groups) { return f(x, w, or_undefined(b), stride, padding, dilation, groups); });
  def(kFunction, name, "input, weight, bias=None, stride=1, padding='valid', dilation=1, groups=1", doc,
      [f](const Tensor& x, const Tensor& w, const OptTensor& b, const Dims& stride, std::string_view padding, const Dims& dilation,
          int64_t groups) { return f(x, w, or_undefined(b), stride, padding, dilation, groups); });
}

void define_transposed(const char* name, Transposed f, const char* doc) {
  def(kFunction, name, "input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1", doc,
      [f](const Tensor& x, const Tensor& w, const OptTensor& b, const Dims& stride, const Dims& padding, const Dims& output_padding,
          int64_t groups, const Dims& dilation) { return f(x, w, or_undefined(b), stride, padding, output_padding, groups, dilation); });
}

}  // namespace

void define_convolutions() {
  define_forward(
      "conv1d", conv1d,
      "Sums of products of weight (O, C / groups, k) and each window of input (N, C, l) or (C, l), plus bias (O): (N, O, l'). padding: "
      "zeros on both sides, or 'same', 'valid'.");
  define_forward(
      "conv2d", conv2d,
      "Sums of products of weight (O, C / groups, kh, kw) and each window of input (N, C, h, w) or (C, h, w), plus bias (O): (N, O, h', "
      "w'). padding: zeros on all sides, or 'same', 'valid'.");
  define_forward(
      "conv3d", conv3d,
      "Sums of products of weight (O, C / groups, kd, kh, kw) and each window of input (N, C, d, h, w) or (C, d, h, w), plus bias (O): "
      "(N, O, d', h', w'). padding: zeros on all sides, or 'same', 'valid'.");
  define_transposed("conv_transpose1d", conv_transpose1d,
                    "The gradient of conv1d by its input: input (N, C, l) or (C, l), weight (C, O / groups, k), bias (O): (N, O, l').");
  define_transposed("conv_transpose2d", conv_transpose2d,
                    "The gradient of conv2d by its input: input (N, C, h, w) or (C, h, w), weight (C, O / groups, kh, kw), bias (O).");
  define_transposed(
      "conv_transpose3d", conv_transpose3d,
      "The gradient of conv3d by its input: input (N, C, d, h, w) or (C, d, h, w), weight (C, O / groups, kd, kh, kw), bias (O).");
  def(kFunction, "convolution", "input, weight, bias, stride, padding, dilation, transposed, output_padding, groups",
      "A convolution of as many dimensions as input and weight have, or its transpose.",
      [](const Tensor& x, const Tensor& w, const OptTensor& b, const Dims& stride, const Dims& padding, const Dims& dilation,
         bool transposed, const Dims& output_padding,
         int64_t groups) { return convolution(x, w, or_undefined(b), stride, padding, dilation, transposed, output_padding, groups); });
}

}  // namespace naru::py
