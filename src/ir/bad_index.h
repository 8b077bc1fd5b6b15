// The one text of an index out of bounds.
#pragma once

#include <string>

#include "ir/instruction.h"

namespace naru::ir {

// `flat`: the position, row-major in the dimensions of `shape` that the index moves in. `number`: of the operand. op, where: see Gather.
std::string bad_index_text(const IndexOperand& index, const Dims& shape, int number, int64_t flat, int64_t value, const char* op,
                           uint32_t where);

}  // namespace naru::ir
