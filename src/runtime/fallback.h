// What a queue does with instructions that its device lacks (see naru/fallback.h).
#pragma once

#include "naru/fallback.h"
#include "runtime/queue.h"

namespace naru::runtime {

// The first operator of the instruction that the device lacks; null if it lacks none.
const char* lacking(Backend& backend, Device device, const ir::Instruction& instruction);
// Likewise for one node of a group.
const char* lacking(Backend& backend, Device device, ir::OpId id, std::span<const Source> sources, DType out);
// Throws or warns, as the policy says, where the device lacks `op`.
void note_lacking(Device device, const char* op);
// Does the work on the cpu: copies the storages there, runs the instruction, and copies what was written back.
void run_on_host(Queue& queue, ir::Instruction instruction, const Accesses& accesses, const char* op);

// Whether the device cannot compute in float64, not even inside an operator on other types.
bool lacks_double(Device device);
// Throws TypeError where the device has no such type.
void require_type(Device device, DType type, const char* op);

}  // namespace naru::runtime
