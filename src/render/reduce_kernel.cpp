// Reductions, in the order that ir/reduce.h lays down.
#include <algorithm>

#include "render/code.h"
#include "render/walker.h"

namespace naru::render {
namespace {

using asmjit::imm;

constexpr int kMaxColumnSteps = 8;

DType dtype_of(VType t) noexcept {
  constexpr DType kOf[] = {DType::Bool, DType::I32, DType::I64, DType::F32, DType::F64};
  return kOf[static_cast<int>(t)];
}

std::vector<bool> scalars(const ir::MapKernel& kernel) {
  std::vector<bool> scalar;
  for (const auto& input : kernel.inputs) scalar.push_back(input.scalar && !input.per_row);
  return scalar;
}

// combine(a, b) as a graph of its own, whose leaves the walker binds to registers.
struct Combine {
  Combine(ir::ReduceOp op, VType type) : type(type) {
    a = ir::input(graph, 0, dtype_of(type)).id();
    b = ir::input(graph, 1, dtype_of(type)).id();
    result = {ir::combine(op, ir::V(graph, a), ir::V(graph, b)).id()};
  }
  ir::Graph graph;
  VType type;
  uint32_t a = 0, b = 0;
  std::vector<uint32_t> result;
};

// Emits a takes b, for several steps side by side.
class Combiner {
 public:
  Combiner(ir::ReduceOp op, VType type, LaneMachine& machine)
      : combine_(op, type),
        plan_(combine_.graph, combine_.result, {false, false}),
        machine_(machine),
        walker_(combine_.graph, plan_, machine, frame_) {
    walker_.results = combine_.result;
  }
  // The registers of `a` may be overwritten; those of `b`, too. Returns where the results are.
  std::vector<Value> run(const std::vector<Value>& a, const std::vector<Value>& b) {
    std::vector<Value> results(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      walker_.bind(combine_.a, static_cast<int>(i), a[i]);
      walker_.bind(combine_.b, static_cast<int>(i), b[i]);
    }
    walker_.run(static_cast<int>(a.size()), 0, false,
                [&](size_t, int step, const Value& value) { results[static_cast<size_t>(step)] = value; });
    return results;
  }
  void into(const Value& a, const Value& b) { machine_.move(combine_.type, a, run({a}, {b})[0]); }
  const Plan& plan() const noexcept { return plan_; }

 private:
  Combine combine_;
  Plan plan_;
  LaneMachine& machine_;
  Frame frame_;
  Walker walker_;
};

// What both kinds of reduction share: the map's plan, the machine, accumulators.
struct ReductionCode {
  ReductionCode(const ir::ReduceKernel& kernel, Isa isa)
      : kernel(kernel),
        plan(kernel.map.graph, std::span(kernel.map.results.data(), 1), scalars(kernel.map)),
        code(isa),
        cc(code.cc()),
        machine(LaneMachine::make(isa, cc)),
        bools_in_vectors(isa == Isa::Avx2) {
    for (const auto& input : kernel.map.inputs) frame.repeated.push_back(input.per_row);
  }

  Walker walker() {
    Walker w(kernel.map.graph, plan, *machine, frame);
    w.results = {kernel.map.results[0]};
    return w;
  }
  std::vector<Value> identities(int count) {
    std::vector<Value> all;
    const Value one = machine->constant(kernel.type, ir::identity_bits(kernel.op, kernel.type));
    for (int i = 0; i < count; ++i) all.push_back(machine->copy(kernel.type, one));
    return all;
  }
  int accumulator_registers() const { return kernel.type == VType::Bool && !bools_in_vectors ? 0 : parts_of(kernel.type); }
  int step_registers() const { return std::max(1, plan.vectors + (bools_in_vectors ? plan.bools : 0)); }
  // Steps to interleave, a divisor of `steps`.
  int interleaved(int steps, int room) const {
    if (plan.calls) return 1;
    int together = steps;
    while (together > 1 && (together * step_registers() > room || (!bools_in_vectors && together * plan.bools > 5))) together /= 2;
    return together;
  }
  // The next `count` steps of the map, each value in registers of its own, taken by the accumulators.
  void take(Walker& walker, Combiner& combiner, int first, int count, const std::vector<Value>& accumulators) {
    std::vector<Value> values(static_cast<size_t>(count));
    walker.run(count, first, false, [&](size_t, int step, const Value& v) {
      store_mapped(v, first + step, StoreMode::Full);
      values[static_cast<size_t>(step)] = own(v);
    });
    const std::vector<Value> some(accumulators.begin() + first, accumulators.begin() + first + count);
    const std::vector<Value> results = combiner.run(some, values);
    for (size_t i = 0; i < some.size(); ++i) machine->move(kernel.type, some[i], results[i]);
  }
  // The reduced value itself, where it is an output as well.
  void store_mapped(const Value& v, int step, StoreMode mode) {
    if (kernel.map.outputs.empty()) return;
    const DType dtype = kernel.map.outputs[0];
    const auto shift = static_cast<uint32_t>(std::countr_zero(size_of(dtype)));
    machine->store(dtype, v, x86::ptr(mapped, frame.position, shift, step * machine->lanes() * static_cast<int>(size_of(dtype))), mode);
  }
  // The reduced value may be the same for all elements, and then lies in registers that stay.
  Value own(const Value& v) {
    const uint32_t root = plan.root[kernel.map.results[0]];
    return plan.uniform[root] ? machine->copy(kernel.type, v) : v;
  }

  const ir::ReduceKernel& kernel;
  Plan plan;
  Code code;
  x86::Compiler& cc;
  std::unique_ptr<LaneMachine> machine;
  bool bools_in_vectors;
  Frame frame;
  x86::Gp mapped;  // where the reduced values go
};

x86::Mem at(const x86::Gp& base, int offset = 0) { return x86::ptr(base, offset); }

}  // namespace

ir::ContiguousFunction compile_contiguous(const ir::ReduceKernel& kernel, Isa isa) {
  if (!can_run(isa)) return nullptr;
  ReductionCode f(kernel, isa);
  x86::Compiler& cc = f.cc;
  LaneMachine& machine = *f.machine;
  const VType type = kernel.type;
  asmjit::FuncNode* function = f.code.begin(asmjit::FuncSignatureT<void, void* const*, const uint64_t*, int64_t, int64_t, void*>());
  if (function == nullptr) return nullptr;

  x86::Gp inputs = cc.newIntPtr(), n = cc.newInt64(), index0 = cc.newInt64(), out = cc.newIntPtr();
  f.frame.params = cc.newIntPtr();
  f.frame.position = cc.newInt64();
  function->setArg(0, inputs);
  function->setArg(1, f.frame.params);
  function->setArg(2, n);
  function->setArg(3, index0);
  function->setArg(4, out);
  for (size_t i = 0; i < kernel.map.inputs.size(); ++i) {
    f.frame.base.push_back(cc.newIntPtr());
    cc.mov(f.frame.base.back(), at(inputs, static_cast<int>(8 * i)));
  }
  if (!kernel.map.outputs.empty()) {
    f.mapped = cc.newIntPtr();
    cc.mov(f.mapped, at(inputs, static_cast<int>(8 * kernel.map.inputs.size())));
  }
  cc.xor_(f.frame.position, f.frame.position);
  if (f.plan.uses_index) f.frame.index = cc.newInt64();
  const auto set_index = [&] {
    if (f.plan.uses_index) cc.lea(f.frame.index, x86::ptr(index0, f.frame.position));
  };

  const int lanes = machine.lanes();
  const int steps = static_cast<int>(ir::kLanes) / lanes;
  const int bytes = machine.bytes_of(type);
  Combiner combiner(kernel.op, type, machine);
  std::vector<Value> accumulators = f.identities(steps);
  const asmjit::Label rest = cc.newLabel(), tree = cc.newLabel(), loop = cc.newLabel();

  // Groups of 64 elements.
  {
    Walker walker = f.walker();
    x86::Gp last = cc.newInt64();
    const int room = machine.registers() - 2 - steps * f.accumulator_registers();
    const int together = f.interleaved(steps, room);
    cc.lea(last, at(n, -static_cast<int>(ir::kLanes)));
    cc.test(last, last);
    cc.js(rest);
    walker.hoist(room - together * f.step_registers() - 2 * static_cast<int>(combiner.plan().order.size() > 1));
    cc.align(asmjit::AlignMode::kCode, 32);
    cc.bind(loop);
    set_index();
    for (int first = 0; first < steps; first += together) f.take(walker, combiner, first, together, accumulators);
    cc.add(f.frame.position, imm(ir::kLanes));
    cc.cmp(f.frame.position, last);
    cc.jle(loop);
  }

  // The rest, step by step, with the accumulators in memory.
  cc.bind(rest);
  cc.sub(n, f.frame.position);
  cc.jle(tree);
  {
    const x86::Mem stack = cc.newStack(static_cast<uint32_t>(steps * bytes), 64);
    x86::Gp place = cc.newIntPtr();
    cc.lea(place, stack);
    for (int s = 0; s < steps; ++s) machine.spill(type, accumulators[static_cast<size_t>(s)], at(place, s * bytes));
    const asmjit::Label next = cc.newLabel();
    cc.bind(next);
    set_index();
    machine.set_tail(n);
    Walker walker = f.walker();
    Value value;
    walker.run(1, 0, true, [&](size_t, int, const Value& v) {
      f.store_mapped(v, 0, StoreMode::Tail);
      value = f.own(v);
    });
    const Value before = machine.fill(type, at(place));
    const Value after = combiner.run({machine.copy(type, before)}, {value})[0];
    machine.spill(type, machine.blend_tail(type, after, before), at(place));
    cc.add(place, imm(bytes));
    cc.add(f.frame.position, imm(lanes));
    cc.sub(n, imm(lanes));
    cc.jg(next);
    cc.lea(place, stack);
    for (int s = 0; s < steps; ++s) machine.move(type, accumulators[static_cast<size_t>(s)], machine.fill(type, at(place, s * bytes)));
  }

  // The tree: first between steps, then within one.
  cc.bind(tree);
  for (int half = steps / 2; half >= 1; half /= 2)
    for (int s = 0; s < half; ++s) combiner.into(accumulators[static_cast<size_t>(s)], accumulators[static_cast<size_t>(s + half)]);
  for (int by = lanes / 2; by >= 1; by /= 2)
    combiner.into(accumulators[0], machine.copy(type, machine.shift_down(type, accumulators[0], by)));
  machine.store_first(type, accumulators[0], at(out));
  cc.ret();
  return reinterpret_cast<ir::ContiguousFunction>(f.code.finish());
}

ir::StridedFunction compile_strided(const ir::ReduceKernel& kernel, Isa isa) {
  if (!can_run(isa)) return nullptr;
  ReductionCode f(kernel, isa);
  x86::Compiler& cc = f.cc;
  LaneMachine& machine = *f.machine;
  const VType type = kernel.type;
  asmjit::FuncNode* function = f.code.begin(
      asmjit::FuncSignatureT<void, void* const*, const int64_t*, const uint64_t*, int64_t, int64_t, int64_t, int64_t, void*>());
  if (function == nullptr) return nullptr;

  x86::Gp inputs = cc.newIntPtr(), strides = cc.newIntPtr(), rows = cc.newInt64(), columns = cc.newInt64();
  x86::Gp index0 = cc.newInt64(), index_stride = cc.newInt64(), out = cc.newIntPtr();
  f.frame.params = cc.newIntPtr();
  f.frame.position = cc.newInt64();
  function->setArg(0, inputs);
  function->setArg(1, strides);
  function->setArg(2, f.frame.params);
  function->setArg(3, rows);
  function->setArg(4, columns);
  function->setArg(5, index0);
  function->setArg(6, index_stride);
  function->setArg(7, out);
  cc.xor_(f.frame.position, f.frame.position);
  if (f.plan.uses_index) f.frame.index = cc.newInt64();
  for (size_t i = 0; i < kernel.map.inputs.size(); ++i) f.frame.base.push_back(cc.newIntPtr());

  const int lanes = machine.lanes();
  const DType dtype = dtype_of(type);
  const auto shift = static_cast<uint32_t>(std::countr_zero(size_of(dtype)));
  const auto results = [&](int step) { return x86::ptr(out, f.frame.position, shift, step * lanes * static_cast<int>(size_of(dtype))); };
  Combiner combiner(kernel.op, type, machine);
  x86::Gp row = cc.newInt64();

  // To the first row, and from row to row.
  const auto rewind = [&] {
    for (size_t i = 0; i < f.frame.base.size(); ++i) cc.mov(f.frame.base[i], at(inputs, static_cast<int>(8 * i)));
    cc.mov(row, rows);
    if (f.plan.uses_index) cc.lea(f.frame.index, x86::ptr(index0, f.frame.position));
  };
  const auto advance = [&] {
    for (size_t i = 0; i < f.frame.base.size(); ++i)
      if (!kernel.map.inputs[i].scalar || kernel.map.inputs[i].per_row) cc.add(f.frame.base[i], at(strides, static_cast<int>(8 * i)));
    if (f.plan.uses_index) cc.add(f.frame.index, index_stride);
  };

  // Blocks of columns with all their accumulators in registers.
  const asmjit::Label tail = cc.newLabel(), done = cc.newLabel();
  {
    const int room = machine.registers() - 3;
    int steps = f.plan.calls ? 1 : kMaxColumnSteps;
    const int each = std::max(1, f.accumulator_registers());
    while (steps > 1 && (steps * each + f.step_registers() > room || (type == VType::Bool && !f.bools_in_vectors && steps > 2))) steps /= 2;
    const int together = std::min(f.interleaved(steps, room - steps * each), 4);
    Walker walker = f.walker();
    x86::Gp last = cc.newInt64();
    const asmjit::Label block = cc.newLabel(), loop = cc.newLabel(), empty = cc.newLabel();
    cc.lea(last, at(columns, -steps * lanes));
    cc.test(last, last);
    cc.js(tail);
    rewind();
    walker.hoist(room - steps * each - together * f.step_registers());
    cc.bind(block);
    rewind();
    std::vector<Value> accumulators;
    for (int s = 0; s < steps; ++s) accumulators.push_back(machine.load(dtype, results(s), false));
    cc.test(row, row);
    cc.jle(empty);
    cc.align(asmjit::AlignMode::kCode, 32);
    cc.bind(loop);
    for (int first = 0; first < steps; first += together) f.take(walker, combiner, first, together, accumulators);
    advance();
    cc.sub(row, imm(1));
    cc.jg(loop);
    cc.bind(empty);
    for (int s = 0; s < steps; ++s) machine.store(dtype, accumulators[static_cast<size_t>(s)], results(s), StoreMode::Full);
    cc.add(f.frame.position, imm(steps * lanes));
    cc.cmp(f.frame.position, last);
    cc.jle(block);
  }

  // The remaining columns, a step at a time.
  cc.bind(tail);
  cc.sub(columns, f.frame.position);
  cc.jle(done);
  {
    Walker walker = f.walker();
    const asmjit::Label block = cc.newLabel(), loop = cc.newLabel(), empty = cc.newLabel();
    rewind();
    walker.hoist(machine.registers() - 6 - f.accumulator_registers() - f.step_registers());
    cc.bind(block);
    rewind();
    machine.set_tail(columns);
    const Value accumulator = machine.load(dtype, results(0), true);
    cc.test(row, row);
    cc.jle(empty);
    cc.bind(loop);
    Value value;
    walker.run(1, 0, true, [&](size_t, int, const Value& v) { value = f.own(v); });
    combiner.into(accumulator, value);
    advance();
    cc.sub(row, imm(1));
    cc.jg(loop);
    cc.bind(empty);
    machine.store(dtype, accumulator, results(0), StoreMode::Tail);
    cc.add(f.frame.position, imm(lanes));
    cc.sub(columns, imm(lanes));
    cc.jg(block);
  }
  cc.bind(done);
  cc.ret();
  return reinterpret_cast<ir::StridedFunction>(f.code.finish());
}

}  // namespace naru::render
