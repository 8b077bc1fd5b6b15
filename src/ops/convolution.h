// Convolution without checks: its three uses, each of which is the derivative of the others.
#pragma once

#include "ir/instruction.h"
#include "naru/tensor.h"

namespace naru::ops {

// The shapes of x (N, C, d1...), w (O, C / groups, k1...) and y (N, O, e1...), and how the window moves. One number a spatial dimension.
struct ConvGeometry {
  Dims x, w, y;
  Dims stride, padding, dilation;  // padding: in front; behind follows from y
  int64_t groups = 1;
  // Of x, y and their gradients; of w and its gradient.
  MemoryFormat image_format = MemoryFormat::Contiguous, weight_format = MemoryFormat::Contiguous;
};

// An image (N, C, d1...) or a weight, as instructions take them: three spatial dimensions, of which those that are not there have stride 0.
ir::Convolution::Array array_of(const Tensor& t);

// Forward: y of (x, w). Input: x of (y, w). Weight: w of (x, y). bias, of one number for each channel of the result, or undefined (not for Weight).
// Records itself for autograd. name: as FlopCounters know it.
Tensor convolve(ir::Convolution::Use use, const Tensor& a, const Tensor& b, const Tensor& bias, const ConvGeometry& g,
                const char* name = "convolution");

}  // namespace naru::ops
