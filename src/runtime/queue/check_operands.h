// Checks that the operands of an instruction are within the storages that it declares to access. The makers of instructions must ensure
// that; this check finds mistakes before memory outside the storages is read or written.
#pragma once

#include "runtime/queue/queue.h"

namespace naru::runtime {

// Queues and captures run the check in debug and sanitizer builds.
#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kChecksOperands = true;
#else
inline constexpr bool kChecksOperands = false;
#endif

// Throws a RuntimeError that names an operand if any of its elements, at any position of the iteration space, is outside the accessed
// storages, or if it is written and its storage is not among those written. The storages must have memory.
void check_operands(const ir::Instruction& instruction, const Accesses& accesses);

}  // namespace naru::runtime
