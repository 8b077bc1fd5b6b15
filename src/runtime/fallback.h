// What a queue does with instructions that its device does not support (see naru/fallback.h).
#pragma once

#include "naru/fallback.h"
#include "runtime/queue.h"

namespace naru::runtime {

// The first operator of the instruction that a device of these capabilities does not support; null: it supports all of them.
const char* unsupported_in(const Capabilities& capabilities, const ir::Instruction& instruction);
// Likewise for one node of a group.
const char* unsupported_in(const Capabilities& capabilities, ir::OpId id, std::span<const Source> sources, DType out);
// Throws or warns, as the policy says, where the device does not support `op`.
void note_unsupported(Device device, const char* op);
// Does the work on the cpu: copies the storages there, runs the instruction, and copies what was written back.
void run_on_host(Queue& queue, ir::Instruction instruction, const Accesses& accesses, const char* op);

// Whether the device computes in float64, be it only inside an operator on other types.
bool computes_in_double(Device device);
// Throws TypeError where the device has no such type.
void require_type(Device device, DType type, const char* op);

}  // namespace naru::runtime
