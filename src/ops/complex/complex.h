// Complex tensors are computed by real operators over views of their real and imaginary parts. There is no other path: programs and instructions are
// real, and they reject complex operands.
#pragma once

#include <span>
#include <string_view>

#include "ops/elementwise/rules.h"
#include "ops/tensor/common.h"

namespace naru::ops {

// as_real views a complex tensor as real with one more dimension, of size 2, at the end; as_complex is the inverse view. Both share memory and record
// nothing for autograd.
Tensor as_real(const Tensor& t);
Tensor as_complex(const Tensor& t);
// Views of the real and the imaginary part. They share memory and record nothing for autograd.
Tensor real_part(const Tensor& t);
Tensor imaginary_part(const Tensor& t);

// The conjugate of a complex tensor, recorded for autograd; a real tensor is returned unchanged. Gradient formulas use it.
Tensor conjugate(const Tensor& t);
// Converts a gradient to `type`. If the operand is real and the gradient complex, returns the real part.
Tensor gradient_as(const Tensor& g, DType type);

// The compute and result types of an elementwise operator for complex type t. Throws PyTorch's error if PyTorch has no such operator.
Types complex_types(Rule rule, DType t, const char* op);
// Throws the same error for a tensor of any type that instructions do not support (sparse ones included).
void refuse_unknown(const Tensor& t, std::string_view op);
inline void refuse_complex(DType type, std::string_view kernel) {
  if (is_complex(type)) [[unlikely]]
    throw_not_implemented(kernel, type);
}
// The same given the operator's name, with PyTorch's error text. The text names the kernel, which is mostly the operator's name followed by "_cpu".
[[noreturn]] void refuse(std::string_view op, DType type);
void refuse_complex(const Tensor& t, std::string_view op);

// apply_into for complex operands or a complex result.
void apply_complex(ir::OpId id, std::span<const OpOperand> operands, const Tensor& out);

// The derivative of an elementwise operator with respect to operand i, if PyTorch's complex formula differs from the table's; else undefined. args:
// operands, result and gradient; operands and result are conjugated.
Tensor complex_derivative(ir::OpId id, int i, std::span<const Tensor> args);

// The product a b of matrices or of batches of matrices, computed as one real product with twice the columns.
Tensor complex_matmul(const Tensor& a, const Tensor& b, const char* op);

}  // namespace naru::ops
