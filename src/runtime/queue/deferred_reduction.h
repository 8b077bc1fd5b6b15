// A reduction of a group's results, deferred together with the group. Results that have no other reader by the time both run are reduced as
// they are computed, and never stored.
#pragma once

#include <bitset>
#include <optional>
#include <vector>

#include "ir/instruction.h"
#include "runtime/queue/group.h"

namespace naru::runtime {

// Storages an instruction accesses.
struct Accesses {
  SmallVector<Storage*, 4> reads, writes;
};

// The reduction's operands, if it can be fused with the group: it must be over the group's shape, reduce a result of the group, and read
// all operands at the offsets and strides the group uses. Otherwise nullopt.
std::optional<std::vector<Piece>> reducible(const Group& group, const ir::Reduce& reduce, const Dims& shape,
                                            std::span<const TensorImpl* const> reads);

struct DeferredReduction {
  Group group;
  ir::Reduce reduce;
  Dims order;  // for each dimension of the reduction, the group's dimension
  std::vector<Piece> reads;
  Ref<Storage> out;
  int64_t out_offset;

  using Nodes = std::bitset<ir::kMaxNodes>;
  // How to compute the group's results: `stored` ones have other readers and are written first; `inside` nodes are computed within the
  // reduction, from the stored ones or from their own inputs.
  struct Plan {
    Group::Chosen stored;
    Nodes inside;
  };
  Plan plan() const;
  // True if the operand is computed inside the reduction and has no memory.
  bool computed_inside(const Piece& read, const Plan& plan) const;
  // Merges both into one instruction; its operands must have memory by now. Adds the storages it accesses to `accesses`.
  ir::Reduce merge(const Plan& plan, Accesses& accesses);
};

}  // namespace naru::runtime
