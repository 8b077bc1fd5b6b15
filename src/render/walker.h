// The walk over a graph that emits code for one or more steps, whatever the lane machine: order, liveness, loads at
// first use, values that are the same for all elements.
#pragma once

#include <functional>
#include <vector>

#include "render/lane_machine.h"
#include "render/plan.h"

namespace naru::render {

// Where the leaves of a graph are found at run time. Element 0 of the first step is base[slot][position].
struct Frame {
  std::vector<Register> base;  // per input
  Register position;
  Register params;
  Register index;              // the value of Index there; only where the plan uses it
  std::vector<bool> repeated;  // per input: its base holds the one element, which is no uniform; may be empty
};

// The element `lane` places behind the frame's position in what begins at `base`.
Address element_at(const Register& base, const Frame& frame, DType dtype, int lane);

class Walker {
 public:
  Walker(const ir::Graph& graph, const Plan& plan, LaneMachine& machine, const Frame& frame);

  // Brings values that are the same for all elements to registers, ahead of a loop: the computed ones, and of those
  // that instructions could take from memory the most used ones, as far as `registers` go.
  void hoist(int registers);

  using Store = std::function<void(size_t result, int step, const Value& value)>;
  // Emits `steps` neighbouring steps, the first one `first` steps behind the frame's position. `store` is called when
  // results are complete and all inputs have been read.
  void run(int steps, int first, bool tail, const Store& store);
  // Instead of loading: the leaf `node` has this value in a step of the next run. It may be overwritten.
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
