#include "render/shortcut.h"

#include <array>

namespace naru::render {
namespace {

// The most nodes that the check may cost, and the fewest that the shortcut must save.
constexpr size_t kMostAsked = 4, kLeastSaved = 12;

// The kernel's graph without the selects whose condition is `condition`: their operands b remain.
Shortcut without(const ir::MapKernel& kernel, uint32_t condition) {
  Shortcut s{condition, {}, {}};
  const std::vector<ir::Node>& nodes = kernel.graph.nodes();
  std::vector<uint32_t> place(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    ir::Node node = nodes[i];
    for (uint32_t* id : {&node.a, &node.b, &node.c})
      if (*id != ir::kNoNode) *id = place[*id];
    place[i] = node.prim == ir::Prim::Select && nodes[i].a == condition ? node.b : s.graph.add(node);
  }
  for (const uint32_t id : kernel.results) s.results.push_back(place[id]);
  return s;
}

// True if the select is worth asking for: marked by where_usually(), or choosing the value that its condition compares.
bool is_likely(const ir::Graph& graph, const ir::Node& choice) noexcept {
  const ir::Node& condition = graph[choice.a];
  return choice.bits != 0 || (condition.b != ir::kNoNode && (condition.a == choice.b || condition.b == choice.b));
}

}  // namespace

std::optional<Shortcut> shortcut_of(const ir::MapKernel& kernel, const Plan& plan, const std::vector<bool>& scalar) {
  std::optional<Shortcut> best;
  size_t least = plan.order.size();
  for (const uint32_t id : plan.order) {
    const ir::Node& choice = kernel.graph[id];
    if (choice.prim != ir::Prim::Select || choice.type == ir::VType::Bool || plan.uniform[id] || plan.uniform[choice.b]) continue;
    if (!is_likely(kernel.graph, choice)) continue;
    const std::array<uint32_t, 1> asked{choice.a};
    if (Plan(kernel.graph, asked, scalar).order.size() > kMostAsked) continue;
    Shortcut way = without(kernel, choice.a);
    const size_t left = Plan(way.graph, way.results, scalar).order.size();
    if (left + kLeastSaved > plan.order.size() || left >= least) continue;
    least = left;
    best = std::move(way);
  }
  return best;
}

}  // namespace naru::render
