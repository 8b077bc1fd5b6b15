// User kernels: from a call to an instruction.
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

// Checks a call's arguments and extent against the parameters. Returns the instruction, without addresses.
ir::UserKernel check_call(const Kernel::Plan& plan, std::span<const KernelArgument> arguments, const Extent& extent);
// The device of the tensors of a checked call.
Device device_of(std::span<const KernelArgument> arguments);
// A backward function that calls a kernel. Throws ValueError if the kernel's parameters do not fit.
Kernel::Backward backward_by_kernel(const Kernel::Plan& forward, const Kernel& backward, const Kernel::Plan& plan);

}  // namespace ops
}  // namespace naru
