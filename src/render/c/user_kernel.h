// Users' kernels as text.
#pragma once

#include <string>

#include "ir/instruction.h"

namespace naru::render::c {

// What decides the text of a kernel in plain C.
struct UserC {
  const ir::KernelSource* source = nullptr;
  int entry = 0;
  bool wide = false;
  int64_t shared = 0;
  bool barriers() const { return source->kernels()[static_cast<size_t>(entry)].barriers; }
};
// A source for the machine's C compiler, with one function (see UserFunction).
std::string user_c_text(const UserC& kernel);
// Runs groups [first, last) of the grid, counted with the first dimension fastest. geometry: items, threads and groups of the three dimensions.
// Kernels with barriers need stacks for the items of a group, `stack_bytes` each, and behind them a pointer each. Returns 0; 1 where some items of a group met a barrier that
// others did not.
using UserFunction = int (*)(void* const* memory, const uint64_t* numbers, const int64_t* geometry, int64_t first, int64_t last,
                             char* stacks, int64_t stack_bytes);
inline constexpr const char* kUserFunction = "naru_run";

// Positions beyond 32 bits.
bool is_wide(const ir::UserKernel& kernel) noexcept;

}  // namespace naru::render::c
