// A way around most of a kernel's work, for steps in all of whose lanes a choice goes to the value that was compared: of where(a > 0, a, expensive), a.
#pragma once

#include <optional>
#include <vector>

#include "render/plan.h"

namespace naru::render {

struct Shortcut {
  uint32_t condition;             // of the kernel's graph: Bool
  ir::Graph graph;                // what is left to do where it holds in all lanes
  std::vector<uint32_t> results;  // the kernel's, in that graph
};
// The one that saves most; none where it would not be worth asking. plan: of the whole kernel.
std::optional<Shortcut> shortcut_of(const ir::MapKernel& kernel, const Plan& plan, const std::vector<bool>& scalar);

}  // namespace naru::render
