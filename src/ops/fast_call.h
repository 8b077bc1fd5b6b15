// The quick way of an elementwise operator: small, dense, resting cpu tensors of one type and shape (numbers beside them), by a table of ready
// kernels.
#pragma once

#include <array>
#include <atomic>

#include "ir/interpret.h"
#include "ir/program.h"
#include "ops/common.h"
#include "ops/rules.h"
#include "runtime/memory.h"

namespace naru::ops {

inline constexpr int64_t kFast = 4096;
struct Quick {
  const runtime::DirectKernel* kernel;
  Types types;
};
// By operator (derivatives too), type of the tensors, and which of the first three operands are numbers of which kind.
inline std::atomic<const Quick*> fast_table[ir::op::kTable * 4 * kDTypes * 64];

// One node of an operator or a derivative. Operands are added in order; then it is run.
struct FastCall {
  const TensorImpl* first = nullptr;
  unsigned mask = 0;
  int count = 0, tensors = 0, numbers = 0;
  std::array<void*, 6> addresses;
  std::array<Scalar, 3> scalars;
  std::array<int8_t, 5> input_of;  // which input an operand is; -1: a number
  Types types;                     // once it has run

  // False: this operand asks for the long way.
  bool add(const TensorImpl* t) {
    if (!t || !t->contiguous || !t->storage->device.is_cpu() || runtime::busy(*t->storage)) return false;
    if (!first) {
      first = t;
      if (t->numel > kFast || t->numel == 0) return false;
    } else if (t->dtype != first->dtype || !(t->sizes == first->sizes)) {
      return false;
    }
    input_of[count++] = static_cast<int8_t>(tensors);
    addresses[tensors++] = t->address();
    return true;
  }
  bool add(Scalar s) {
    mask |= (1u + static_cast<unsigned>(s.kind())) << 2 * count;
    input_of[count++] = -1;
    scalars[numbers++] = s;
    return true;
  }
  // An operand that the operator does not read.
  void add_unused() { input_of[count++] = 0; }

  template <class F>
  Tensor run(ir::OpId id, const char* op, F find_types) {
    std::atomic<const Quick*>& slot = fast_table[(id * kDTypes + static_cast<int>(first->dtype)) * 64 + mask];
    const Quick* quick = slot.load(std::memory_order_acquire);
    if (!quick) {
      quick = prepare(id, find_types());
      if (!quick) return {};
      const Quick* expected = nullptr;
      if (!slot.compare_exchange_strong(expected, quick)) quick = expected;
    }
    types = quick->types;
    auto* impl = new TensorImpl(
        runtime::make_storage(Device(DeviceType::Cpu, 0), static_cast<size_t>(first->numel) * size_of(quick->types.out)), quick->types.out);
    Tensor out(impl);
    impl->sizes = first->sizes;
    impl->strides = first->strides;
    impl->numel = first->numel;
    impl->origin.op = op;
    addresses[tensors] = impl->storage->data;
    std::array<uint64_t, 3> params;
    for (int p = 0; p < numbers; ++p) params[p] = param_bits(scalars[p], quick->types.compute);
    if (quick->kernel->machine)
      quick->kernel->machine(addresses.data(), params.data(), impl->numel, 0);
    else
      ir::interpret(*quick->kernel->kernel, addresses.data(), params.data(), impl->numel, 0);
    return out;
  }

 private:
  const Quick* prepare(ir::OpId id, Types types) const {
    ir::Program program;
    ir::Program::Node& s = program.nodes[0];
    s.op = id;
    s.out = types.out;
    s.args_count = static_cast<uint8_t>(count);
    for (int i = 0; i < count; ++i) {
      if (input_of[i] >= 0) {
        s.args[i] = {ir::Program::From::Input, types.compute, static_cast<uint16_t>(input_of[i])};
      } else {
        s.args[i] = {ir::Program::From::Param, types.compute, program.params_count};
        program.params[program.params_count++] = ir::vtype_of(types.compute);
      }
    }
    for (int i = 0; i < tensors; ++i) program.inputs[program.inputs_count++] = {first->dtype, false};
    program.nodes_count = program.outputs_count = 1;
    program.outputs[0] = 0;
    const runtime::DirectKernel* kernel = runtime::backend_of(DeviceType::Cpu).direct_kernel(program);
    return kernel ? new Quick{kernel, types} : nullptr;  // lives as long as the process, like the kernel
  }
};

}  // namespace naru::ops
