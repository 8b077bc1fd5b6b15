// Renders user kernels to text.
#pragma once

#include <string>

#include "ir/instruction.h"

namespace naru::render::c {

// Everything that a kernel's text in plain C depends on.
struct UserC {
  const ir::KernelSource* source = nullptr;
  int entry = 0;
  bool wide = false;
  int64_t shared = 0;
  bool barriers() const { return source->kernels()[static_cast<size_t>(entry)].barriers; }
};
// A source for the system's C compiler, with one function (see UserFunction).
std::string user_c_text(const UserC& kernel);
// Runs groups [first, last) of the grid, numbered with the first dimension fastest. geometry: items, threads and groups, three dimensions
// each. Kernels with barriers need `stacks`: one stack of `stack_bytes` for each item of a group, then one pointer per item. Returns 0, or
// 1 if some items of a group reached a barrier that others did not.
using UserFunction = int (*)(void* const* memory, const uint64_t* numbers, const int64_t* geometry, int64_t first, int64_t last,
                             char* stacks, int64_t stack_bytes);
inline constexpr const char* kUserFunction = "naru_run";

// True if positions need more than 32 bits.
bool is_wide(const ir::UserKernel& kernel) noexcept;

}  // namespace naru::render::c
