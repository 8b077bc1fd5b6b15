// Strides of results, by PyTorch's rules.
#pragma once

#include <span>

#include "naru/tensor.h"

namespace naru::ops {

// True if no two elements share an address and there are no gaps, in any order of dimensions (non-overlapping and dense).
bool is_dense(const Dims& sizes, const Dims& strides);
// True if an element stands at several positions: a dimension of more than one has stride 0.
bool is_expanded(const Dims& sizes, const Dims& strides) noexcept;
// Dense strides in the dimension order of the operands' strides, which are broadcast to `sizes`. For two dimensions the first operand that orders
// them decides.
Dims strides_after(const Dims& sizes, std::span<const Dims> operands);
// Strides of an elementwise result: the operands' strides if all agree and are dense, else strides_after. Scalars and 0-d tensors are ignored.
Dims elementwise_strides(const Dims& sizes, std::span<const Operand> operands);
// Strides of an elementwise operator's gradient, computed from g and others: the layout of the incoming g, so that channels-last images stay
// channels-last.
struct OpOperand;
Dims gradient_strides(const Tensor& g, std::span<const OpOperand> operands);
// Strides of a tensor like one with these sizes and strides in `format`. RuntimeError if the format needs another number of dimensions.
Dims strides_like(const Dims& sizes, const Dims& strides, MemoryFormat format);
Dims format_strides(const Dims& sizes, MemoryFormat format);
// ChannelsLast or ChannelsLast3d if the strides are in that order (PyTorch's rules for sizes of 1), else Contiguous.
MemoryFormat suggested_format(const Tensor& t);

}  // namespace naru::ops
