// What is known of a graph before any code is emitted: which nodes are needed, in what order, which are the same for
// every element, when each is read for the last time, how many registers they take.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/expr.h"

namespace naru::render {

// No operation: an input, a constant, or the index.
inline bool is_leaf(ir::Prim p) noexcept { return p <= ir::Prim::Index; }

struct Plan {
  // `scalar[slot]`: the input is one element for the whole run.
  Plan(const ir::Graph& graph, std::span<const uint32_t> results, const std::vector<bool>& scalar);

  // Moments: evaluating order[i] reads its operands at moment 2 i; results that are complete are stored at 2 i + 1.
  static constexpr uint32_t kNever = 0;
  uint32_t end() const noexcept { return static_cast<uint32_t>(2 * order.size()) + 1; }

  std::vector<uint32_t> order;     // the nodes to evaluate, operands first: no leaf, no Bitcast
  std::vector<uint32_t> root;      // the node whose registers hold a node: another one for Bitcasts
  std::vector<bool> uniform;       // the same for all elements
  std::vector<uint32_t> uses;      // by nodes and results; shift counts that are constants are not counted
  std::vector<uint32_t> last_use;  // the moment of the last use (of roots)
  std::vector<uint32_t> store_at;  // per result: the moment when it may be stored, all inputs having been read
  int vectors = 0;                 // 32-bit-lane registers alive at once, of values that are not uniform
  int bools = 0;
  bool calls = false;  // some primitive is a call per step
  bool uses_index = false;

 private:
  void order_nodes(const ir::Graph& graph, std::span<const uint32_t> results, const std::vector<bool>& scalar);
  void place_stores(const ir::Graph& graph, std::span<const uint32_t> results);
  void count_registers(const ir::Graph& graph, std::span<const uint32_t> results);
};

}  // namespace naru::render
