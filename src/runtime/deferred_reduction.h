// A reduction of a group's results, deferred behind the group: what nobody wants by the time both run is reduced as it is computed, and never
// written.
#pragma once

#include <bitset>
#include <optional>
#include <vector>

#include "ir/instruction.h"
#include "runtime/group.h"

namespace naru::runtime {

// Storages an instruction accesses.
struct Accesses {
  SmallVector<Storage*, 4> reads, writes;
};

// The reduction's operands, where it can be computed as one with the group: over the group's shape, of a result of it, all at the places where
// the group has them.
std::optional<std::vector<Piece>> reducible(const Group& group, const ir::Reduce& reduce, const Dims& shape,
                                            std::span<const TensorImpl* const> reads);

struct DeferredReduction {
  Group group;
  ir::Reduce reduce;
  Dims order;  // the group's dimension that each of the reduction's is
  std::vector<Piece> reads;
  Ref<Storage> out;
  int64_t out_offset;

  using Nodes = std::bitset<ir::kMaxNodes>;
  // What becomes of the group's results: those that somebody wants are written first; the nodes inside are computed within the reduction, from
  // these, or from what they were computed from.
  struct Plan {
    Group::Chosen stored;
    Nodes inside;
  };
  Plan plan() const;
  // Whether it has no place in memory.
  bool computed_inside(const Piece& read, const Plan& plan) const;
  // Both as one instruction, whose operands have memory by now. What it accesses is added to `accesses`.
  ir::Reduce merge(const Plan& plan, Accesses& accesses);
};

}  // namespace naru::runtime
