#include "render/walker.h"

#include "ir/reduce.h"

#include <algorithm>
#include <bit>

namespace naru::render {
namespace {

constexpr int kMaxSteps = static_cast<int>(ir::kLanes / 4);  // for 4 lanes, the fewest of any machine

// True for element types that need no conversion: machines may use them as memory operands.
bool is_direct(DType t) noexcept { return size_of(t) >= 4; }

}  // namespace

Walker::Walker(const ir::Graph& graph, const Plan& plan, LaneMachine& machine, const Frame& frame)
    : graph_(graph), plan_(plan), machine_(machine), frame_(frame) {
  uniform_values_.resize(graph.nodes().size());
  has_uniform_.resize(graph.nodes().size());
  values_.resize(kMaxSteps);
  has_value_.resize(kMaxSteps);
}

Address element_at(const Register& base, const Frame& frame, DType dtype, int lane) {
  const size_t size = size_of(dtype);
  return {base, frame.position, static_cast<uint32_t>(std::countr_zero(size)), lane * static_cast<int>(size)};
}

void Walker::keep_uniform(uint32_t root, const Value& value) {
  uniform_values_[root] = value;
  has_uniform_[root] = true;
}

Arg Walker::uniform_arg(uint32_t id) {
  const uint32_t r = plan_.root[id];
  const ir::Node& node = graph_[r];
  const VType type = graph_[id].type;
  if (!has_uniform_[r]) {
    switch (node.prim) {
      case Prim::Const:
        if (type != VType::Bool) return machine_.constant_arg(type, node.bits);
        keep_uniform(r, machine_.constant(type, node.bits));
        break;
      case Prim::Param: {
        const Address from = at(frame_.params, static_cast<int>(8 * node.bits));
        if (type != VType::Bool) return machine_.broadcast_arg(type, from);
        keep_uniform(r, machine_.broadcast(DType::Bool, from));
        break;
      }
      case Prim::Input: {
        const Address from = at(frame_.base[node.bits]);
        if (is_direct(node.dtype)) return machine_.broadcast_arg(type, from);
        keep_uniform(r, machine_.broadcast(node.dtype, from));
        break;
      }
      default:
        break;
    }
  }
  Arg arg(type, uniform_values_[r], false);
  arg.constant = node.prim == Prim::Const;
  arg.bits = node.bits;
  return arg;
}

Arg Walker::arg(uint32_t id, int step, uint32_t moment) {
  const uint32_t r = plan_.root[id];
  if (plan_.uniform[r]) return uniform_arg(id);
  const VType type = graph_[id].type;
  Value& value = values_[step][r];
  if (!has_value_[step][r]) {
    const ir::Node& node = graph_[r];
    if (node.prim == Prim::Input && !frame_.repeated.empty() && frame_.repeated[node.bits]) {
      value = machine_.broadcast(node.dtype, at(frame_.base[node.bits]));
    } else if (node.prim == Prim::Input) {
      const Address from = element_at(frame_.base[node.bits], frame_, node.dtype, (first_ + step) * machine_.lanes());
      if (plan_.uses[r] == 1 && is_direct(node.dtype) && !tail_) return machine_.load_arg(type, from);
      value = machine_.load(node.dtype, from, tail_);
    } else {
      value = machine_.index(frame_.index, (first_ + step) * machine_.lanes());
    }
    has_value_[step][r] = true;
  }
  return Arg(type, value, plan_.last_use[r] == moment);
}

void Walker::evaluate(uint32_t id, int step, uint32_t moment) {
  const ir::Node& node = graph_[id];
  Arg args[3];
  const uint32_t operands[3] = {node.a, node.b, node.c};
  for (int i = 0; i < 3; ++i)
    if (operands[i] != ir::kNoNode) args[i] = arg(operands[i], step, moment);
  const Value value = machine_.eval(node, args);
  if (plan_.uniform[id]) {
    keep_uniform(id, value);
  } else {
    values_[step][id] = value;
    has_value_[step][id] = true;
  }
}

void Walker::hoist(int registers) {
  for (size_t i = 0; i < plan_.order.size(); ++i)
    if (plan_.uniform[plan_.order[i]]) evaluate(plan_.order[i], 0, static_cast<uint32_t>(2 * i));

  std::vector<uint32_t> leaves;
  for (uint32_t r = 0; r < graph_.nodes().size(); ++r) {
    const ir::Node& node = graph_[r];
    if (!plan_.uniform[r] || plan_.uses[r] == 0 || plan_.root[r] != r) continue;
    if (!is_leaf(node.prim)) {
      if (node.type != VType::Bool) --registers;
    } else if (node.type == VType::Bool || (node.prim == Prim::Input && !is_direct(node.dtype))) {
      uniform_arg(r);
      if (node.type != VType::Bool) --registers;
    } else {
      leaves.push_back(r);
    }
  }
  std::stable_sort(leaves.begin(), leaves.end(), [&](uint32_t a, uint32_t b) { return plan_.uses[a] > plan_.uses[b]; });
  for (const uint32_t r : leaves) {
    if (registers-- <= 0) break;
    const ir::Node& node = graph_[r];
    if (node.prim == Prim::Const)
      keep_uniform(r, machine_.constant(node.type, node.bits));
    else if (node.prim == Prim::Param)
      keep_uniform(r, machine_.broadcast(dtype_of(node.type), at(frame_.params, static_cast<int>(8 * node.bits))));
    else
      keep_uniform(r, machine_.broadcast(node.dtype, at(frame_.base[node.bits])));
  }
}

void Walker::bind(uint32_t node, int step, const Value& value) {
  if (has_value_[step].empty()) {
    values_[step].resize(graph_.nodes().size());
    has_value_[step].assign(graph_.nodes().size(), false);
  }
  values_[step][node] = value;
  has_value_[step][node] = true;
}

// Computes all values before storing any: a result may alias an input, and its address may be another input's.
void Walker::store_complete(uint32_t moment, int steps, const Store& store) {
  std::vector<Value> complete;
  for (size_t i = 0; i < results.size(); ++i)
    if (plan_.store_at[i] == moment)
      for (int step = 0; step < steps; ++step) complete.push_back(machine_.in_registers(arg(results[i], step, 0)));
  auto next = complete.begin();
  for (size_t i = 0; i < results.size(); ++i)
    if (plan_.store_at[i] == moment)
      for (int step = 0; step < steps; ++step) store(i, step, *next++);
}

void Walker::run(int steps, int first, bool tail, const Store& store) {
  first_ = first;
  tail_ = tail;
  for (int step = 0; step < steps; ++step) {
    values_[step].resize(graph_.nodes().size());
    if (has_value_[step].empty()) has_value_[step].assign(graph_.nodes().size(), false);
  }
  for (size_t i = 0; i < plan_.order.size(); ++i) {
    const uint32_t id = plan_.order[i];
    const uint32_t moment = static_cast<uint32_t>(2 * i);
    if (!plan_.uniform[id]) {
      for (int step = 0; step < steps; ++step) evaluate(id, step, moment);
    } else if (!has_uniform_[id]) {
      evaluate(id, 0, moment);
    }
    store_complete(moment + 1, steps, store);
  }
  if (plan_.order.empty() || std::count(plan_.store_at.begin(), plan_.store_at.end(), plan_.end()) > 0)
    store_complete(plan_.end(), steps, store);
  for (int step = 0; step < steps; ++step) has_value_[step].clear();
}

}  // namespace naru::render
