#include "render/shortcut.h"

#include <array>

namespace naru::render {
namespace {

// The most nodes that the check may cost, and the fewest that the shortcut must save.
constexpr size_t kMostAsked = 4, kLeastSaved = 12;

// The kernel's graph with `choice` replaced by its operand b.
Shortcut without(const ir::MapKernel& kernel, uint32_t choice) {
  Shortcut s{kernel.graph[choice].a, {}, {}};
  const std::vector<ir::Node>& nodes = kernel.graph.nodes();
  std::vector<uint32_t> place(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    ir::Node node = nodes[i];
    for (uint32_t* id : {&node.a, &node.b, &node.c})
      if (*id != ir::kNoNode) *id = place[*id];
    place[i] = i == choice ? node.b : s.graph.add(node);
  }
  for (const uint32_t id : kernel.results) s.results.push_back(place[id]);
  return s;
}

}  // namespace

std::optional<Shortcut> shortcut_of(const ir::MapKernel& kernel, const Plan& plan, const std::vector<bool>& scalar) {
  std::optional<Shortcut> best;
  size_t least = plan.order.size();
  for (const uint32_t id : plan.order) {
    const ir::Node& choice = kernel.graph[id];
    if (choice.prim != ir::Prim::Select || choice.type == ir::VType::Bool || plan.uniform[id] || plan.uniform[choice.b]) continue;
    const ir::Node& condition = kernel.graph[choice.a];
    if (condition.b == ir::kNoNode || (condition.a != choice.b && condition.b != choice.b)) continue;
    const std::array<uint32_t, 1> asked{choice.a};
    if (Plan(kernel.graph, asked, scalar).order.size() > kMostAsked) continue;
    Shortcut way = without(kernel, id);
    const size_t left = Plan(way.graph, way.results, scalar).order.size();
    if (left + kLeastSaved > plan.order.size() || left >= least) continue;
    least = left;
    best = std::move(way);
  }
  return best;
}

}  // namespace naru::render
