// What an instruction says of an operand.
#pragma once

#include <cstdint>
#include <span>

#include "naru/device.h"
#include "naru/dtype.h"

namespace naru::ir {

// How an instruction uses an operand: the elements at address + sum over d of i[d] * strides[d], 0 <= i[d] < sizes[d], and up to `before`
// elements in front of each and `behind` elements behind it, where indices lead.
struct OperandUse {
  const char* what;  // "input of a reduction"
  bool written;
  DType dtype;
  std::span<const int64_t> sizes, strides;
  int64_t before = 0, behind = 0;
  const Device* device = nullptr;  // where it lives; null: on the device that carries the instruction out
};

}  // namespace naru::ir
