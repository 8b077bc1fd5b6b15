#include "distributed/ordered.h"

#include <algorithm>

namespace naru::distributed {
namespace {

void add_nodes(Shards mine, Shards node, std::vector<Shards>& found) {
  const int end = mine.first + mine.count, node_end = node.first + node.count;
  if (node_end <= mine.first || end <= node.first) return;
  if (mine.first <= node.first && node_end <= end) {
    found.push_back(node);
    return;
  }
  const int left = left_half(node.count);
  add_nodes(mine, {node.first, left}, found);
  add_nodes(mine, {node.first + left, node.count - left}, found);
}

}  // namespace

std::vector<Shards> nodes_within(Shards mine, int shards) {
  std::vector<Shards> found;
  add_nodes(mine, {0, shards}, found);
  return found;
}

void TreeFold::operator()(char* out, std::span<const Shards> nodes, std::span<const char* const> data, size_t elements, size_t element,
                          const Reduction& reduction) {
  const Shards all{0, nodes.back().first + nodes.back().count};
  nodes_ = nodes, data_ = data, reduction_ = reduction;
  // The tree's depth, with a left and a right result at each level.
  spaces_.resize((2 * static_cast<size_t>(std::bit_width(static_cast<unsigned>(all.count))) + 2) * kPiece);
  for (size_t done = 0; done < elements; done += elements_) {
    at_ = done * element, elements_ = std::min(kPiece / element, elements - done), next_ = 0;
    const char* const result = value(all, out + at_, 0);
    // A tree of one node.
    if (result != out + at_) std::copy_n(result, elements_ * element, out + at_);
  }
}

// The elements of a node: where they are, or `into`, which is written after everything below the node has been read.
const char* TreeFold::value(Shards of, char* into, size_t depth) {
  if (nodes_[next_] == of) return data_[next_++] + at_;
  const int left = left_half(of.count);
  const char* const a = value({of.first, left}, space(depth), depth + 1);
  const char* const b = value({of.first + left, of.count - left}, space(depth + 1), depth + 2);
  reduction_.fold(into, a, b, elements_);
  return into;
}

}  // namespace naru::distributed
