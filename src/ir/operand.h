// How an instruction uses an operand.
#pragma once

#include <cstdint>
#include <span>

#include "naru/device.h"
#include "naru/dtype.h"

namespace naru::ir {

// The elements of an operand that an instruction uses: those at address + sum over d of i[d] * strides[d], 0 <= i[d] < sizes[d], and, where
// indices move, up to `before` elements before and `behind` elements after each.
struct OperandUse {
  const char* what;  // "input of a reduction"
  bool written;
  DType dtype;
  std::span<const int64_t> sizes, strides;
  int64_t before = 0, behind = 0;
  const Device* device = nullptr;  // where its memory is; null: on the device that carries out the instruction
};

}  // namespace naru::ir
