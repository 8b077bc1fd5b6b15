// How a queue runs instructions that its device does not support (see naru/device/fallback.h).
#pragma once

#include "naru/device/fallback.h"
#include "runtime/queue/queue.h"

namespace naru::runtime {

// The first operator of the instruction that these capabilities do not support; null: all are supported.
const char* unsupported_in(const Capabilities& capabilities, const ir::Instruction& instruction);
// The name of an operator that is a node of a group if they do not support it, else null.
const char* unsupported_in(const Capabilities& capabilities, ir::OpId id);
// Throws or warns, as the fallback policy requires, if the device does not support `op`.
void note_unsupported(Device device, const char* op);
// Runs an instruction on the cpu: copies its storages to the host, runs it, and copies the written storages back.
void run_on_host(Queue& queue, ir::Instruction instruction, const Accesses& accesses, const char* op);

// Throws TypeError if the device does not support the dtype.
void require_type(Device device, DType type, const char* op);

}  // namespace naru::runtime
