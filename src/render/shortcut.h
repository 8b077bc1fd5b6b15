// A fast path for steps in which selects choose the same operand in every lane: those of where_usually(), or the value that the condition
// compares: in where(a > 0, a, expensive), a.
#pragma once

#include <optional>
#include <vector>

#include "render/plan.h"

namespace naru::render {

struct Shortcut {
  uint32_t condition;             // a Bool of the kernel's graph
  ir::Graph graph;                // the remaining work if the condition holds in all lanes
  std::vector<uint32_t> results;  // the kernel's results, in `graph`
};
// The shortcut that saves most, or none if the check is not worth its cost. plan: of the whole kernel.
std::optional<Shortcut> shortcut_of(const ir::MapKernel& kernel, const Plan& plan, const std::vector<bool>& scalar);

}  // namespace naru::render
