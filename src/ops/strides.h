// How results lie in memory: PyTorch's rules of strides.
#pragma once

#include <span>

#include "naru/tensor.h"

namespace naru::ops {

// Every element at a place of its own, and no gaps between them, in whatever order of dimensions.
bool is_dense(const Dims& sizes, const Dims& strides);
// Row-major strides after the dimensions are brought into the order of the operands' strides (the first operand that tells two apart decides;
// all broadcast to `sizes`).
Dims strides_after(const Dims& sizes, std::span<const Dims> operands);
// Of an elementwise result: the operands' own strides where all agree and are dense, else strides_after. Operands that are numbers or
// without dimensions have no say.
Dims elementwise_strides(const Dims& sizes, std::span<const Operand> operands);
// Of an elementwise operator's gradient, computed from g and others: as g lies that comes in, so that pictures whose channels are last keep them so.
struct OpOperand;
Dims gradient_strides(const Tensor& g, std::span<const OpOperand> operands);
// Of a tensor like `t` in a format. Throws RuntimeError where the format wants another number of dimensions.
Dims strides_like(const Dims& sizes, const Dims& strides, MemoryFormat format);
Dims format_strides(const Dims& sizes, MemoryFormat format);
// ChannelsLast or ChannelsLast3d where the tensor's strides are in that order (by PyTorch's rules for sizes of 1), else Contiguous.
MemoryFormat suggested_format(const Tensor& t);

}  // namespace naru::ops
