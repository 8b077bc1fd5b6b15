// Walks a graph and emits code for one or more steps, on any lane machine: order, liveness, loads at first use, uniform values.
#pragma once

#include <functional>
#include <vector>

#include "render/lane_machine.h"
#include "render/plan.h"

namespace naru::render {

// The run-time locations of a graph's leaves. Element 0 of the first step is base[slot][position].
struct Frame {
  std::vector<Register> base;  // per input
  Register position;
  Register params;
  Register index;              // the value of Index at `position`; only if the plan uses it
  std::vector<bool> repeated;  // per input: its base holds one element, which is not uniform; may be empty
};

// The address of the element `lane` elements after the frame's position, in the array at `base`.
Address element_at(const Register& base, const Frame& frame, DType dtype, int lane);

class Walker {
 public:
  Walker(const ir::Graph& graph, const Plan& plan, LaneMachine& machine, const Frame& frame);

  // Loads uniform values into registers before a loop: the computed ones, and the most used ones of those that instructions could read from
  // memory, as far as `registers` suffice.
  void hoist(int registers);

  using Store = std::function<void(size_t result, int step, const Value& value)>;
  // Emits `steps` consecutive steps, beginning `first` steps after the frame's position. Calls `store` for complete results once all inputs have
  // been read.
  void run(int steps, int first, bool tail, const Store& store);
  // In the next run, the leaf `node` has this value instead of a loaded one. The registers may be overwritten.
  void bind(uint32_t node, int step, const Value& value);

  std::vector<uint32_t> results;

 private:
  Arg uniform_arg(uint32_t id);
  Arg arg(uint32_t id, int step, uint32_t moment);
  void evaluate(uint32_t id, int step, uint32_t moment);
  void keep_uniform(uint32_t root, const Value& value);
  void store_complete(uint32_t moment, int steps, const Store& store);

  const ir::Graph& graph_;
  const Plan& plan_;
  LaneMachine& machine_;
  const Frame& frame_;
  int first_ = 0;
  bool tail_ = false;
  std::vector<Value> uniform_values_;
  std::vector<bool> has_uniform_;
  std::vector<std::vector<Value>> values_;  // by step, then node
  std::vector<std::vector<bool>> has_value_;
};

}  // namespace naru::render
