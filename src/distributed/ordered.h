// The order of sums. Elements of several ranks are combined by one binary tree over numbered shards, whose shape depends only on the number
// of shards. So the bits of a result depend neither on an element's place nor on the tensor's size, nor on how bytes were moved. A rank that
// has several shards reduces the subtrees that it has complete; then the ranks exchange their roots. So the bits do not depend on the number
// of ranks either, if the shards are the same. A plain all_reduce has one shard for each rank.
#pragma once

#include <bit>
#include <span>
#include <vector>

#include "distributed/reduction.h"

namespace naru::distributed {

// Consecutive shards: those of a rank, or the leaves of a node of the tree.
struct Shards {
  int first = 0, count = 0;
  bool operator==(const Shards&) const = default;
};

// How many of a node's leaves are in its left half: the largest power of two that is less than `count`, which is at least 2.
constexpr int left_half(int count) noexcept { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(count)) / 2); }

// The shards of a rank. They differ by at most one between ranks.
constexpr Shards shards_of(int rank, int ranks, int shards) noexcept {
  const auto begin = [&](int r) { return static_cast<int>(int64_t{shards} * r / ranks); };
  return {begin(rank), begin(rank + 1) - begin(rank)};
}

// The largest nodes of the tree over `shards` shards that are within `mine`, from left to right.
std::vector<Shards> nodes_within(Shards mine, int shards);

// Evaluates the tree. Keeps its memory for the next time.
class TreeFold {
 public:
  // out = the tree over `nodes`, which must cover all shards from left to right; node i's elements are at data[i]. `out` may be one of them.
  void operator()(char* out, std::span<const Shards> nodes, std::span<const char* const> data, size_t elements, size_t element,
                  const Reduction& reduction);

 private:
  const char* value(Shards of, char* into, size_t depth);
  char* space(size_t depth) noexcept { return spaces_.data() + depth * kPiece; }

  // Small enough for the intermediate results to stay in the first-level cache.
  static constexpr size_t kPiece = 8192;
  std::span<const Shards> nodes_;
  std::span<const char* const> data_;
  Reduction reduction_;
  size_t next_ = 0, at_ = 0, elements_ = 0;
  std::vector<char> spaces_;
};

}  // namespace naru::distributed
