// The type rules of the elementwise table: from the operands' types to the compute type and the result type.
#pragma once

#include <cstdint>
#include <span>

#include "naru/tensor.h"

namespace naru::ops {

enum class Rule : uint8_t {
  Arith,        // promoted type; bool allowed
  ArithNoBool,  // promoted type; bool is a TypeError
  Float,        // promoted type; integers and bool become the default floating type
  Power,        // Arith; a negative integer exponent of integers is an error
  Rounding,     // as Arith, but integers are returned unchanged
  Compare,      // computed in the promoted type, result bool
  Logical,      // operands become bool, result bool
  Predicate,    // one operand in its own type, result bool
  Bits,         // promoted type; bool and integers only
  Shift,        // promoted type; integers only
  Where,        // first operand bool, the others promoted
};

const char* name_of(Rule rule) noexcept;

struct Types {
  DType compute;  // type of the operands (for Where, of all but the first)
  DType out;
};
// Throws RuntimeError with PyTorch's text if the rule does not support the types.
Types apply_rule(Rule rule, std::span<const Operand> operands, const char* op);

// torch.result_type of the operands. Priority: tensors with dimensions, then 0-d tensors, then Python scalars; a lower level counts only if its
// category is higher.
DType result_type(std::span<const Operand> operands);

}  // namespace naru::ops
