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

Values Combiner::run(const Values& a, const Values& b) {
  Values results(a.size());
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
      plan_(kernel.map.graph, kernel.map.results, scalars_of_all_rows(kernel.map)),
      code_(isa),
      a_(code_.assembler()),
      machine_(code_.lanes()),
      combiner_(kernel.op, kernel.type, machine_) {
  for (const auto& input : kernel.map.inputs) frame_.repeated.push_back(input.per_row);
}

Walker ReductionCode::walker() {
  Walker w(kernel_.map.graph, plan_, machine_, frame_);
  w.results = kernel_.map.results;
  return w;
}

void ReductionCode::start_position() {
  frame_.position = a_.new_register();
  a_.zero(frame_.position);
  if (plan_.uses_index) frame_.index = a_.new_register();
}

std::vector<Values> ReductionCode::identities(int count) {
  std::vector<Values> all(results());
  const Value one = machine_.constant(kernel_.type, ir::identity_bits(kernel_.op, kernel_.type));
  for (Values& of_result : all)
    for (int i = 0; i < count; ++i) of_result.push_back(machine_.copy(kernel_.type, one));
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

void ReductionCode::take(Walker& walker, int first, int count, const std::vector<Values>& accumulators) {
  std::vector<Values> values(results(), Values(static_cast<size_t>(count)));
  walker.run(count, first, false, [&](size_t result, int step, const Value& v) {
    store_mapped(v, first + step, StoreMode::Full);
    values[result][static_cast<size_t>(step)] = own(result, v);
  });
  for (size_t r = 0; r < results(); ++r) {
    const Values some(accumulators[r].begin() + first, accumulators[r].begin() + first + count);
    const Values combined = combiner_.run(some, values[r]);
    for (size_t i = 0; i < some.size(); ++i) machine_.move(kernel_.type, some[i], combined[i]);
  }
}

Values ReductionCode::tail_values(Walker& walker) {
  Values values(results());
  walker.run(1, 0, true, [&](size_t result, int, const Value& v) {
    store_mapped(v, 0, StoreMode::Tail);
    values[result] = own(result, v);
  });
  return values;
}

void ReductionCode::store_mapped(const Value& v, int step, StoreMode mode) {
  if (kernel_.map.outputs.empty()) return;
  const DType dtype = kernel_.map.outputs[0];
  machine_.store(dtype, v, element_at(mapped_, frame_, dtype, step * machine_.lanes()), mode);
}

Value ReductionCode::own(size_t result, const Value& v) {
  const std::vector<uint32_t>& all = kernel_.map.results;
  const uint32_t root = plan_.root[all[result]];
  const bool shared = std::ranges::count_if(all, [&](uint32_t id) { return plan_.root[id] == root; }) > 1;
  const bool read_later = plan_.last_use[root] > plan_.store_at[result];
  return plan_.uniform[root] || shared || read_later ? machine_.copy(kernel_.type, v) : v;
}

}  // namespace naru::render
