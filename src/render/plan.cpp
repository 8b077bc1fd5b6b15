#include "render/plan.h"

#include <algorithm>

#include "render/lane_machine.h"

namespace naru::render {
namespace {

bool is_shift(Prim p) noexcept { return p == Prim::Shl || p == Prim::Shr || p == Prim::ShrU; }

template <class F>
void for_operands(const ir::Node& node, F f) {
  for (const uint32_t id : {node.a, node.b, node.c})
    if (id != ir::kNoNode) f(id);
}

std::vector<bool> needed_for(const ir::Graph& graph, std::span<const uint32_t> results) {
  std::vector<bool> needed(graph.nodes().size());
  for (const uint32_t id : results) needed[id] = true;
  for (size_t i = needed.size(); i-- > 0;)
    if (needed[i]) for_operands(graph[static_cast<uint32_t>(i)], [&](uint32_t id) { needed[id] = true; });
  return needed;
}

}  // namespace

Plan::Plan(const ir::Graph& graph, std::span<const uint32_t> results, const std::vector<bool>& scalar) {
  order_nodes(graph, results, scalar);
  place_stores(graph, results);
  count_registers(graph, results);
}

// Sets order, root, uniform, and the uses by nodes.
void Plan::order_nodes(const ir::Graph& graph, std::span<const uint32_t> results, const std::vector<bool>& scalar) {
  const size_t count = graph.nodes().size();
  root.resize(count);
  uniform.resize(count);
  uses.assign(count, 0);
  last_use.assign(count, 0);
  const std::vector<bool> needed = needed_for(graph, results);
  for (uint32_t i = 0; i < count; ++i) {
    const ir::Node& node = graph[i];
    root[i] = node.prim == Prim::Bitcast ? root[node.a] : i;
    if (!needed[i]) continue;
    if (is_leaf(node.prim)) {
      uniform[i] = node.prim == Prim::Const || node.prim == Prim::Param || (node.prim == Prim::Input && scalar[node.bits]);
      uses_index |= node.prim == Prim::Index;
      continue;
    }
    bool all = true;
    for_operands(node, [&](uint32_t id) { all = all && uniform[id]; });
    uniform[i] = all;
    if (node.prim == Prim::Bitcast) continue;
    calls |= is_called(node);
    const uint32_t now = static_cast<uint32_t>(2 * order.size());
    order.push_back(i);
    for_operands(node, [&](uint32_t id) {
      const uint32_t r = root[id];
      if (id == node.b && is_shift(node.prim) && graph[r].prim == Prim::Const) return;
      ++uses[r];
      last_use[r] = now;
    });
  }
}

// Sets store_at: when each result is complete and all inputs have been read. Adds the uses by results.
void Plan::place_stores(const ir::Graph& graph, std::span<const uint32_t> results) {
  std::vector<uint32_t> made(root.size(), 0);
  uint32_t read = 0;  // the moment after which no input is read
  std::vector<bool> seen(root.size());
  for (size_t i = 0; i < order.size(); ++i) {
    made[order[i]] = static_cast<uint32_t>(2 * i);
    for_operands(graph[order[i]], [&](uint32_t id) {
      const uint32_t r = root[id];
      if (graph[r].prim != Prim::Input || uniform[r] || seen[r]) return;
      seen[r] = true;
      read = static_cast<uint32_t>(2 * i);
    });
  }
  for (const uint32_t id : results)
    if (is_leaf(graph[root[id]].prim)) read = end();
  for (const uint32_t id : results) {
    const uint32_t r = root[id];
    const uint32_t at = read == end() || order.empty() ? end() : std::max(read, made[r]) + 1;
    store_at.push_back(at);
    ++uses[r];
    last_use[r] = std::max(last_use[r], at);
  }
}

// A value is live from its evaluation (inputs: from their first use) to its last use.
void Plan::count_registers(const ir::Graph& graph, std::span<const uint32_t> results) {
  std::vector<int> delta(2 * order.size() + 3, 0), bool_delta(delta.size(), 0);
  std::vector<bool> seen(root.size());
  const auto live = [&](uint32_t r, uint32_t from) {
    if (uniform[r] || seen[r]) return;
    seen[r] = true;
    auto& d = graph[r].type == VType::Bool ? bool_delta : delta;
    const int width = parts_of(graph[r].type);
    d[from] += width;
    d[std::max(from, last_use[r]) + 1] -= width;
  };
  for (size_t i = 0; i < order.size(); ++i) {
    for_operands(graph[order[i]], [&](uint32_t id) { live(root[id], static_cast<uint32_t>(2 * i)); });
    live(order[i], static_cast<uint32_t>(2 * i + 1));
  }
  for (const uint32_t id : results) live(root[id], end());
  int now = 0, now_bools = 0;
  for (size_t i = 0; i < delta.size(); ++i) {
    vectors = std::max(vectors, now += delta[i]);
    bools = std::max(bools, now_bools += bool_delta[i]);
  }
}

}  // namespace naru::render
