// Analysis of a graph before code is emitted: which nodes are needed, in what order, which are the same for every element, the last use of each,
// and how many registers they need.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/expr.h"

namespace naru::render {

// True for nodes that are not operations: inputs, parameters, constants, the index.
inline bool is_leaf(ir::Prim p) noexcept { return p <= ir::Prim::Index; }

struct Plan {
  // `scalar[slot]`: the input is one element for the whole run.
  Plan(const ir::Graph& graph, std::span<const uint32_t> results, const std::vector<bool>& scalar);

  // Moments: evaluating order[i] reads its operands at moment 2 i; complete results are stored at 2 i + 1.
  static constexpr uint32_t kNever = 0;
  uint32_t end() const noexcept { return static_cast<uint32_t>(2 * order.size()) + 1; }

  std::vector<uint32_t> order;     // the nodes to evaluate, operands first: no leaf, no Bitcast
  std::vector<uint32_t> root;      // the node whose registers hold a node; for Bitcasts, the operand's
  std::vector<bool> uniform;       // same value for all elements
  std::vector<uint32_t> uses;      // by nodes and results, without constant shift counts
  std::vector<uint32_t> last_use;  // the moment of the last use (of roots)
  std::vector<uint32_t> store_at;  // per result: the moment from which it may be stored, when all inputs have been read
  int vectors = 0;                 // 32-bit-lane registers live at once, without uniform values
  int bools = 0;
  bool calls = false;  // some primitive calls a function
  bool uses_index = false;

 private:
  void order_nodes(const ir::Graph& graph, std::span<const uint32_t> results, const std::vector<bool>& scalar);
  void place_stores(const ir::Graph& graph, std::span<const uint32_t> results);
  void count_registers(const ir::Graph& graph, std::span<const uint32_t> results);
};

}  // namespace naru::render
