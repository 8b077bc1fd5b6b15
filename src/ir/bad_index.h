// The error for an index out of bounds.
#pragma once

#include <exception>

#include "ir/instruction.h"

namespace naru::ir {

// `flat`: row-major position in the dimensions of `shape` that the index varies over. `number`: which operand it is. op, where: see Gather.
std::exception_ptr bad_index(const IndexOperand& index, const Dims& shape, int number, int64_t flat, int64_t value, const char* op,
                             uint32_t where);

}  // namespace naru::ir
