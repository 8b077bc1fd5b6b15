// Common to both kinds of reduction: the plan of the map, accumulators, and combining values into them.
#pragma once

#include <vector>

#include "render/code.h"
#include "render/walker.h"

namespace naru::render {

// Of a step, or of several, one behind another.
using Values = std::vector<Value>;

// Emits combine(a, b) for several independent steps.
class Combiner {
 public:
  Combiner(ir::ReduceOp op, VType type, LaneMachine& machine);
  // May overwrite the registers of `a` and of `b`. Returns the registers of the results.
  Values run(const Values& a, const Values& b);
  void into(const Value& a, const Value& b);
  const Plan& plan() const noexcept { return plan_; }

 private:
  // combine(a, b) as a separate graph, whose leaves the walker binds to registers.
  struct Graph {
    Graph(ir::ReduceOp op, VType type);
    ir::Graph graph;
    VType type;
    uint32_t a = 0, b = 0;
    std::vector<uint32_t> result;
  };
  Graph combine_;
  Plan plan_;
  LaneMachine& machine_;
  Frame frame_;
  Walker walker_;
};

class ReductionCode {
 protected:
  ReductionCode(const ir::ReduceKernel& kernel, Isa isa);

  Walker walker();
  size_t results() const { return kernel_.map.results.size(); }
  // Accumulators of `count` steps, for each result.
  std::vector<Values> identities(int count);
  // Of one step of all results.
  int accumulator_registers() const { return static_cast<int>(results()) * machine_.registers_of(kernel_.type); }
  int step_registers() const { return std::max({1, machine_.registers_of(plan_.vectors, plan_.bools), accumulator_registers()}); }
  // The number of steps to interleave, a divisor of `steps`.
  int interleaved(int steps, int room) const;
  // Combines the next `count` steps of the map, each value in its own registers, into the accumulators of each result.
  void take(Walker& walker, int first, int count, const std::vector<Values>& accumulators);
  // The step at the frame's position of each result, with the tail's lanes.
  Values tail_values(Walker& walker);
  void start_position();

  const ir::ReduceKernel& kernel_;
  Plan plan_;
  Code code_;
  Assembler& a_;
  LaneMachine& machine_;
  Combiner combiner_;
  Frame frame_;
  Register mapped_;  // pointer to where the reduced values are stored

 private:
  // Stores the reduced value, if it is also an output.
  void store_mapped(const Value& v, int step, StoreMode mode);
  // Copies a result's value if its registers must not change, or if later steps of the map may overwrite them.
  Value own(size_t result, const Value& v);
};

}  // namespace naru::render
