// Kernels of the user's own, on their way from a call to an instruction.
#pragma once

#include "ir/instruction.h"
#include "naru/kernel.h"

namespace naru {

struct Kernel::Plan {
  const ir::KernelSource* source = nullptr;
  int number = 0;
  Backward backward;
  const ir::KernelEntry& entry() const { return source->kernels()[static_cast<size_t>(number)]; }
};

namespace ops {

// Checks a call's arguments and extent against the parameters; the instruction, without addresses.
ir::UserKernel check_call(const Kernel::Plan& plan, std::span<const KernelArgument> arguments, const Extent& extent);
// The device of a checked call's tensors.
Device device_of(std::span<const KernelArgument> arguments);
// A backward function that calls a kernel; throws ValueError if its parameters don't fit.
Kernel::Backward backward_by_kernel(const Kernel::Plan& forward, const Kernel& backward, const Kernel::Plan& plan);

}  // namespace ops
}  // namespace naru
