// Reductions of tensors on devices: which of them a device's library has, and the order of ordered.h by naru's own operators.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/communicator.h"
#include "distributed/ordered.h"
#include "naru/distributed/group.h"

namespace naru::distributed {

// The library's call for a reduction, if it has one with the same meaning; in_order: and if any order gives the same bits.
struct Native {
  DType type;
  size_t numbers;  // of each element
  Communicator::Op op;
};
std::optional<Native> native(ReduceOp op, DType type, bool in_order);

// One dimension; of a type that operators compute with, if that is the same for `op`: complex numbers as pairs of reals.
Tensor flat(const Tensor& t, ReduceOp op);
// (first, count) of each rank's part of n elements, as collectives.cpp divides them.
std::vector<std::pair<int64_t, int64_t>> parts_of(int64_t n, int ranks);
// The tree over `nodes`, which must cover all shards from left to right, and whose elements are `values`.
Tensor tree_of(const std::vector<Shards>& nodes, std::vector<Tensor> values, ReduceOp op, int shards);

}  // namespace naru::distributed
