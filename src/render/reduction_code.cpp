#include "render/reduction_code.h"

#include <algorithm>

namespace naru::render {
namespace {

std::vector<bool> scalars_of_all_rows(const ir::MapKernel& kernel) {
  std::vector<bool> scalar;
  for (const auto& input : kernel.inputs) scalar.push_back(input.scalar && !input.per_row);
  return scalar;
}

}  // namespace

Combiner::Graph::Graph(ir::ReduceOp op, VType type) : type(type) {
  a = ir::input(graph, 0, dtype_of(type)).id();
  b = ir::input(graph, 1, dtype_of(type)).id();
  result = {ir::combine(op, ir::V(graph, a), ir::V(graph, b)).id()};
}

Combiner::Combiner(ir::ReduceOp op, VType type, LaneMachine& machine)
    : combine_(op, type),
      plan_(combine_.graph, combine_.result, {false, false}),
      machine_(machine),
      walker_(combine_.graph, plan_, machine, frame_) {
  walker_.results = combine_.result;
}

std::vector<Value> Combiner::run(const std::vector<Value>& a, const std::vector<Value>& b) {
  std::vector<Value> results(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    walker_.bind(combine_.a, static_cast<int>(i), a[i]);
    walker_.bind(combine_.b, static_cast<int>(i), b[i]);
  }
  walker_.run(static_cast<int>(a.size()), 0, false,
              [&](size_t, int step, const Value& value) { results[static_cast<size_t>(step)] = value; });
  return results;
}

void Combiner::into(const Value& a, const Value& b) { machine_.move(combine_.type, a, run({a}, {b})[0]); }

ReductionCode::ReductionCode(const ir::ReduceKernel& kernel, Isa isa)
    : kernel_(kernel),
      plan_(kernel.map.graph, std::span(kernel.map.results.data(), 1), scalars_of_all_rows(kernel.map)),
      code_(isa),
      a_(code_.assembler()),
      machine_(code_.lanes()),
      combiner_(kernel.op, kernel.type, machine_) {
  for (const auto& input : kernel.map.inputs) frame_.repeated.push_back(input.per_row);
}

Walker ReductionCode::walker() {
  Walker w(kernel_.map.graph, plan_, machine_, frame_);
  w.results = {kernel_.map.results[0]};
  return w;
}

void ReductionCode::start_position() {
  frame_.position = a_.new_register();
  a_.zero(frame_.position);
  if (plan_.uses_index) frame_.index = a_.new_register();
}

std::vector<Value> ReductionCode::identities(int count) {
  std::vector<Value> all;
  const Value one = machine_.constant(kernel_.type, ir::identity_bits(kernel_.op, kernel_.type));
  for (int i = 0; i < count; ++i) all.push_back(machine_.copy(kernel_.type, one));
  return all;
}

int ReductionCode::interleaved(int steps, int room) const {
  if (plan_.calls) return 1;
  // Two masks are reserved for the combiner.
  const auto fits = [&](int together) {
    return together * step_registers() <= room && (machine_.masks() == 0 || together * plan_.bools <= machine_.masks() - 2);
  };
  int together = steps;
  while (together > 1 && !fits(together)) together /= 2;
  return together;
}

void ReductionCode::take(Walker& walker, int first, int count, const std::vector<Value>& accumulators) {
  std::vector<Value> values(static_cast<size_t>(count));
  walker.run(count, first, false, [&](size_t, int step, const Value& v) {
    store_mapped(v, first + step, StoreMode::Full);
    values[static_cast<size_t>(step)] = own(v);
  });
  const std::vector<Value> some(accumulators.begin() + first, accumulators.begin() + first + count);
  const std::vector<Value> results = combiner_.run(some, values);
  for (size_t i = 0; i < some.size(); ++i) machine_.move(kernel_.type, some[i], results[i]);
}

Value ReductionCode::tail_value(Walker& walker) {
  Value value;
  walker.run(1, 0, true, [&](size_t, int, const Value& v) {
    store_mapped(v, 0, StoreMode::Tail);
    value = own(v);
  });
  return value;
}

void ReductionCode::store_mapped(const Value& v, int step, StoreMode mode) {
  if (kernel_.map.outputs.empty()) return;
  const DType dtype = kernel_.map.outputs[0];
  machine_.store(dtype, v, element_at(mapped_, frame_, dtype, step * machine_.lanes()), mode);
}

Value ReductionCode::own(const Value& v) {
  const uint32_t root = plan_.root[kernel_.map.results[0]];
  return plan_.uniform[root] ? machine_.copy(kernel_.type, v) : v;
}

}  // namespace naru::render
