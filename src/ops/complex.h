// How operators compute with complex tensors: by real operators over views of the parts. This is the only way there is: what programs and
// instructions are given is real, and whatever hands them a complex operand is refused.
#pragma once

#include <span>
#include <string_view>

#include "ops/common.h"
#include "ops/rules.h"

namespace naru::ops {

// A complex tensor's memory as real numbers, with one more dimension, of size 2; a real tensor of that kind as complex numbers. Both share memory and
// record nothing.
Tensor as_real(const Tensor& t);
Tensor as_complex(const Tensor& t);
// The parts, in the same way.
Tensor real_part(const Tensor& t);
Tensor imaginary_part(const Tensor& t);

// The conjugate of a complex tensor, recorded; a real one itself. What is conjugated in a gradient.
Tensor conjugate(const Tensor& t);
// A gradient as one of `type`: of a complex one the real part is taken for a real operand.
Tensor gradient_as(const Tensor& g, DType type);

// The types of an operator of the table in the complex type t. Throws what PyTorch throws where it has no such operator.
Types complex_types(Rule rule, DType t, const char* op);
// The same for tensors of any type that instructions do not know.
void refuse_unknown(const Tensor& t, std::string_view op);
inline void refuse_complex(DType type, std::string_view kernel) {
  if (is_complex(type)) [[unlikely]]
    throw_not_implemented(kernel, type);
}
// The same by the operator's name, in the words that PyTorch has for it: a kernel's name, mostly the operator's with "_cpu" behind it.
[[noreturn]] void refuse(std::string_view op, DType type);
void refuse_complex(const Tensor& t, std::string_view op);

// apply_into for complex operands or a complex result.
void apply_complex(ir::OpId id, std::span<const OpOperand> operands, const Tensor& out);

// The derivative of an operator of the table by operand i, where PyTorch's formula over complex numbers is another than the table's. args: operands,
// result and gradient, operands and result conjugated. Undefined where it is the table's.
Tensor complex_derivative(ir::OpId id, int i, std::span<const Tensor> args);

// a b of matrices or of batches of them: one real product of twice the columns.
Tensor complex_product(const Tensor& a, const Tensor& b, const char* op);

}  // namespace naru::ops
