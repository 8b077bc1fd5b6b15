// Convolution without argument checks, in its three uses (forward, input gradient, weight gradient), each of which is the derivative of the others.
#pragma once

#include "ir/instruction.h"
#include "naru/tensor.h"

namespace naru::ops {

// The shapes of x (N, C, d1...), w (O, C / groups, k1...) and y (N, O, e1...), and how the window moves: one entry per spatial dimension.
struct ConvGeometry {
  Dims x, w, y;
  Dims stride, padding, dilation;  // padding: at the start; the padding at the end follows from y
  int64_t groups = 1;
  // image_format: of x, y and their gradients. weight_format: of w and its gradient.
  MemoryFormat image_format = MemoryFormat::Contiguous, weight_format = MemoryFormat::Contiguous;
};

// An image (N, C, d1...) or a weight as an instruction operand: three spatial dimensions, the missing ones with stride 0.
ir::Convolution::Array array_of(const Tensor& t);

// Forward: y from (x, w). Input: x from (y, w). Weight: w from (x, y). bias: one element per channel of the result, or undefined (always for Weight).
// Recorded for autograd. name: the operator's name for FlopCounters.
Tensor convolve(ir::Convolution::Use use, const Tensor& a, const Tensor& b, const Tensor& bias, const ConvGeometry& g,
                const char* name = "convolution");

}  // namespace naru::ops
