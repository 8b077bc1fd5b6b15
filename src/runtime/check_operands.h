// Do the operands of an instruction lie within the storages that it says it accesses? Whoever makes instructions sees to that; this finds
// where that went wrong before anything is read or written next to them.
#pragma once

#include "runtime/queue.h"

namespace naru::runtime {

// Queues and captures check whatever they are given in debug and sanitizer builds.
#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kChecksOperands = true;
#else
inline constexpr bool kChecksOperands = false;
#endif

// Throws RuntimeError that names the operand where one of its elements, at any position of the iteration space, lies outside of the storages
// accessed, or where it is written and its storage is not among those written. The storages have memory.
void check_operands(const ir::Instruction& instruction, const Accesses& accesses);

}  // namespace naru::runtime
