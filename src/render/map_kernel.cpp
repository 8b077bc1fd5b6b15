// Elementwise kernels: a loop of several steps at a time, then a loop of single steps, the last of them a tail.
#include <algorithm>
#include <array>

#include "render/code.h"
#include "render/walker.h"

namespace naru::render {
namespace {

using asmjit::imm;

// Large graphs take long to compile: from here on four steps are not interleaved, and where two have no room in
// registers one body, the tail's, serves all steps.
constexpr size_t kLargeGraph = 100;

// How many steps the main loop interleaves; 0 for no such loop. Constants want registers as well.
int unrolling(const Plan& plan, const LaneMachine& machine, bool bools_in_vectors) {
  if (plan.calls) return 0;
  const bool large = plan.order.size() > kLargeGraph;
  const int vectors = plan.vectors + (bools_in_vectors ? plan.bools : 0);
  const int room = (machine.registers() - 2) * 3 / 4;
  if (!large && 4 * (vectors + 1) <= room && (bools_in_vectors || 4 * plan.bools <= 6)) return 4;
  if (2 * vectors <= room && (bools_in_vectors || 2 * plan.bools <= 6)) return 2;
  return large ? 0 : 1;
}

}  // namespace

ir::MapFunction compile(const ir::MapKernel& kernel, Isa isa, bool streaming) {
  if (!can_run(isa)) return nullptr;
  std::vector<bool> scalar;
  for (const auto& input : kernel.inputs) scalar.push_back(input.scalar);
  const Plan plan(kernel.graph, kernel.results, scalar);

  Code code(isa);
  x86::Compiler& cc = code.cc();
  asmjit::FuncNode* function = code.begin(asmjit::FuncSignatureT<void, void* const*, const uint64_t*, int64_t, int64_t>());
  if (function == nullptr) return nullptr;
  const std::unique_ptr<LaneMachine> machine = LaneMachine::make(isa, cc);

  x86::Gp operands = cc.newIntPtr(), n = cc.newInt64(), index0 = cc.newInt64();
  Frame frame;
  frame.params = cc.newIntPtr();
  frame.position = cc.newInt64();
  function->setArg(0, operands);
  function->setArg(1, frame.params);
  function->setArg(2, n);
  function->setArg(3, index0);
  std::vector<x86::Gp> outputs;
  for (size_t i = 0; i < kernel.inputs.size() + kernel.outputs.size(); ++i) {
    x86::Gp base = cc.newIntPtr();
    cc.mov(base, x86::ptr(operands, static_cast<int>(8 * i)));
    (i < kernel.inputs.size() ? frame.base : outputs).push_back(base);
  }
  cc.xor_(frame.position, frame.position);
  if (plan.uses_index) frame.index = cc.newInt64();
  const auto set_index = [&] {
    if (plan.uses_index) cc.lea(frame.index, x86::ptr(index0, frame.position));
  };
  const auto store = [&](StoreMode mode) {
    return [&, mode](size_t result, int step, const Value& value) {
      const DType dtype = kernel.outputs[result];
      const int size = static_cast<int>(size_of(dtype));
      const auto shift = static_cast<uint32_t>(std::countr_zero(size_of(dtype)));
      machine->store(dtype, value, x86::ptr(outputs[result], frame.position, shift, step * machine->lanes() * size), mode);
    };
  };

  const int lanes = machine->lanes();
  const int steps = unrolling(plan, *machine, isa == Isa::Avx2);
  const asmjit::Label done = cc.newLabel(), single = cc.newLabel();
  if (steps > 0) {
    Walker walker(kernel.graph, plan, *machine, frame);
    walker.results = kernel.results;
    x86::Gp last = cc.newInt64();
    const asmjit::Label loop = cc.newLabel();
    cc.lea(last, x86::ptr(n, -steps * lanes));
    cc.test(last, last);
    cc.js(single);
    walker.hoist(machine->registers() - 2 - steps * plan.vectors);
    cc.align(asmjit::AlignMode::kCode, 32);
    cc.bind(loop);
    set_index();
    walker.run(steps, 0, false, store(streaming ? StoreMode::Streaming : StoreMode::Full));
    cc.add(frame.position, imm(steps * lanes));
    cc.cmp(frame.position, last);
    cc.jle(loop);
  }
  cc.bind(single);
  cc.sub(n, frame.position);
  cc.jle(done);
  {
    Walker walker(kernel.graph, plan, *machine, frame);
    walker.results = kernel.results;
    const asmjit::Label loop = cc.newLabel();
    cc.bind(loop);
    set_index();
    machine->set_tail(n);
    walker.run(1, 0, true, store(StoreMode::Tail));
    cc.add(frame.position, imm(lanes));
    cc.sub(n, imm(lanes));
    cc.jg(loop);
  }
  cc.bind(done);
  cc.ret();
  return reinterpret_cast<ir::MapFunction>(code.finish());
}

}  // namespace naru::render
