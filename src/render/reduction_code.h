// What both kinds of reduction share: the plan of what is reduced, accumulators, and how they take values.
#pragma once

#include <vector>

#include "render/code.h"
#include "render/walker.h"

namespace naru::render {

// Emits a takes b, for several steps side by side.
class Combiner {
 public:
  Combiner(ir::ReduceOp op, VType type, LaneMachine& machine);
  // The registers of `a` may be overwritten; those of `b`, too. Returns where the results are.
  std::vector<Value> run(const std::vector<Value>& a, const std::vector<Value>& b);
  void into(const Value& a, const Value& b);
  const Plan& plan() const noexcept { return plan_; }

 private:
  // combine(a, b) as a graph of its own, whose leaves the walker binds to registers.
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
  std::vector<Value> identities(int count);
  int accumulator_registers() const { return machine_.registers_of(kernel_.type); }
  int step_registers() const { return std::max(1, machine_.registers_of(plan_.vectors, plan_.bools)); }
  // Steps to interleave, a divisor of `steps`.
  int interleaved(int steps, int room) const;
  // The next `count` steps of the map, each value in registers of its own, taken by the accumulators.
  void take(Walker& walker, int first, int count, const std::vector<Value>& accumulators);
  // The step at the frame's position, of as many lanes as the tail has.
  Value tail_value(Walker& walker);
  void start_position();

  const ir::ReduceKernel& kernel_;
  Plan plan_;
  Code code_;
  Assembler& a_;
  LaneMachine& machine_;
  Combiner combiner_;
  Frame frame_;
  Register mapped_;  // where the reduced values go

 private:
  // The reduced value itself, where it is an output as well.
  void store_mapped(const Value& v, int step, StoreMode mode);
  // The reduced value may be the same for all elements, and then lies in registers that stay.
  Value own(const Value& v);
};

}  // namespace naru::render
