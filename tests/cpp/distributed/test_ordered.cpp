#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "distributed/groups.h"
#include "distributed/ordered.h"
#include "naru/ops.h"

namespace naru::distributed {
namespace {

using Floats = std::vector<float>;

// Values of very different sizes, so that each order of additions gives other bits.
Floats values_of(int shard, size_t n) {
  Floats v(n);
  uint32_t state = static_cast<uint32_t>(shard) * 2654435761u + 12345;
  for (float& x : v) {
    state = state * 1664525u + 1013904223u;
    x = std::ldexp(static_cast<float>(state >> 8) / 16777216.0f - 0.5f, static_cast<int>(state >> 4) % 20);
  }
  return v;
}

// The sum as the definition of the tree says it.
float tree_sum(const std::vector<Floats>& shards, int first, int count, size_t i) {
  if (count == 1) return shards[static_cast<size_t>(first)][i];
  int left = 1;
  while (2 * left < count) left *= 2;
  return tree_sum(shards, first, left, i) + tree_sum(shards, first + left, count - left, i);
}

Floats wanted(const std::vector<Floats>& shards) {
  Floats sum(shards[0].size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = tree_sum(shards, 0, static_cast<int>(shards.size()), i);
  return sum;
}
std::vector<Floats> all_shards(int n, size_t elements) {
  std::vector<Floats> shards;
  for (int s = 0; s < n; ++s) shards.push_back(values_of(s, elements));
  return shards;
}
bool same_bits(const Tensor& t, const Floats& v) {
  return t.numel() == static_cast<int64_t>(v.size()) && (v.empty() || std::memcmp(t.data_ptr(), v.data(), v.size() * sizeof(float)) == 0);
}
Tensor tensor_of(const Floats& v) {
  const Tensor t = empty({static_cast<int64_t>(v.size())});
  if (!v.empty()) std::memcpy(t.data_ptr(), v.data(), v.size() * sizeof(float));
  return t;
}

TEST(Ordered, ANodesLeftHalfIsTheLargestPowerOfTwoBelowItsSize) {
  const int expected[] = {1, 2, 2, 4, 4, 4, 4, 8, 8};
  for (int n = 2; n <= 10; ++n) EXPECT_EQ(left_half(n), expected[n - 2]) << n;
}

TEST(Ordered, RanksHaveConsecutiveShardsAndTheirNodesCoverThem) {
  for (int shards = 1; shards <= 40; ++shards)
    for (int ranks = 1; ranks <= shards; ++ranks) {
      int next = 0;
      for (int r = 0; r < ranks; ++r) {
        const Shards mine = shards_of(r, ranks, shards);
        EXPECT_EQ(mine.first, next);
        EXPECT_GE(mine.count, shards / ranks);
        EXPECT_LE(mine.count, (shards + ranks - 1) / ranks);
        for (const Shards& node : nodes_within(mine, shards)) {
          EXPECT_EQ(node.first, next);
          next += node.count;
        }
        EXPECT_EQ(next, mine.first + mine.count);
      }
      EXPECT_EQ(next, shards);
    }
}

TEST(Ordered, AFoldIsTheTreeAndMayWriteToAnyOperand) {
  const Reduction sum = reduction_of(ReduceOp::Sum, DType::F32);
  TreeFold fold;
  for (const size_t n : {size_t{1}, size_t{5}, size_t{2048}, size_t{5001}})
    for (int shards = 1; shards <= 9; ++shards) {
      std::vector<Floats> all = all_shards(shards, n);
      const Floats expected = wanted(all);
      std::vector<Shards> leaves;
      std::vector<const char*> data;
      for (int s = 0; s < shards; ++s) leaves.push_back({s, 1});
      for (int into = 0; into < shards; ++into) {
        std::vector<Floats> copies = all;
        data.clear();
        for (const Floats& c : copies) data.push_back(reinterpret_cast<const char*>(c.data()));
        Floats& out = copies[static_cast<size_t>(into)];
        fold(reinterpret_cast<char*>(out.data()), leaves, data, n, sizeof(float), sum);
        EXPECT_EQ(std::memcmp(out.data(), expected.data(), n * sizeof(float)), 0)
            << shards << " shards, " << n << " elements, into " << into;
      }
    }
}

class OrderedGroup : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { setenv("NARU_DISTRIBUTED_TRANSPORT", GetParam(), 1); }
  void TearDown() override { unsetenv("NARU_DISTRIBUTED_TRANSPORT"); }
};
INSTANTIATE_TEST_SUITE_P(Engines, OrderedGroup, ::testing::Values("shared", "threads"));

// The same values as one large tensor, in pieces of many sizes, in one list and by each collective that reduces.
TEST_P(OrderedGroup, BitsDependNeitherOnPlaceNorOnSizeNorOnTheCollective) {
  constexpr size_t kElements = 60'000;
  for (const int ranks : {2, 3, 4, 5}) {
    const std::vector<Floats> all = all_shards(ranks, kElements);
    const Floats expected = wanted(all);
    const auto part = [](const Floats& v, size_t at, size_t n) {
      return Floats(v.begin() + static_cast<ptrdiff_t>(at), v.begin() + static_cast<ptrdiff_t>(at + n));
    };
    const std::vector<std::string> thrown = as_ranks(ranks, [&](ProcessGroup& g) {
      const Floats& mine = all[static_cast<size_t>(g.rank())];
      const Tensor whole = tensor_of(mine);
      g.all_reduce(whole);
      EXPECT_TRUE(same_bits(whole, expected)) << ranks;
      std::vector<Tensor> pieces;
      size_t at = 0;
      for (const size_t n : {1, 7, 500, 1024, 1025, 3000, 20'000}) {
        const Tensor piece = tensor_of(part(mine, at, n));
        pieces.push_back(piece.clone());
        g.all_reduce(piece);
        EXPECT_TRUE(same_bits(piece, part(expected, at, n))) << ranks << " ranks, " << n << " elements at " << at;
        at += n;
      }
      g.all_reduce(pieces);
      at = 0;
      for (const Tensor& piece : pieces) {
        EXPECT_TRUE(same_bits(piece, part(expected, at, static_cast<size_t>(piece.numel()))));
        at += static_cast<size_t>(piece.numel());
      }
      for (int root = 0; root < ranks; ++root) {
        const Tensor x = tensor_of(mine);
        g.reduce(x, root);
        EXPECT_TRUE(same_bits(x, g.rank() == root ? expected : mine)) << root;
      }
      const size_t share = kElements / static_cast<size_t>(ranks);
      std::vector<Tensor> shares;
      for (int r = 0; r < ranks; ++r) shares.push_back(tensor_of(part(mine, share * static_cast<size_t>(r), share)));
      const Tensor got = empty({static_cast<int64_t>(share)});
      g.reduce_scatter(got, shares);
      EXPECT_TRUE(same_bits(got, part(expected, share * static_cast<size_t>(g.rank()), share)));
    });
    EXPECT_EQ(thrown, std::vector<std::string>(static_cast<size_t>(ranks)));
  }
}

// Each rank reduces its own part of the tree over the shards first.
std::vector<Tensor> nodes_of(const std::vector<Floats>& all, int rank, int ranks) {
  const int shards = static_cast<int>(all.size());
  std::vector<Tensor> nodes;
  for (const Shards& node : nodes_within(shards_of(rank, ranks, shards), shards)) {
    Floats sum(all[0].size());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = tree_sum(all, node.first, node.count, i);
    nodes.push_back(tensor_of(sum));
  }
  return nodes;
}

TEST_P(OrderedGroup, ShardsGiveTheSameBitsForAnyNumberOfRanks) {
  for (const int shards : {8, 12})
    for (const size_t n : {size_t{0}, size_t{3}, size_t{1000}, size_t{30'001}}) {
      const std::vector<Floats> all = all_shards(shards, n);
      Floats sum = wanted(all), mean = sum;
      for (float& x : mean) x /= static_cast<float>(shards);
      for (const int ranks : {1, 2, 3, 4, 5, 6, 8}) {
        const std::vector<std::string> thrown = as_ranks(ranks, [&](ProcessGroup& g) {
          const std::vector<Tensor> nodes = nodes_of(all, g.rank(), ranks), others = nodes_of(all, g.rank(), ranks);
          g.all_reduce_shards(nodes, shards);
          EXPECT_TRUE(same_bits(nodes[0], sum)) << ranks << " ranks, " << shards << " shards, " << n << " elements";
          for (size_t i = 1; i < nodes.size(); ++i) EXPECT_TRUE(equal(nodes[i], others[i]));
          const WorkRef work = g.all_reduce_shards(others, shards, ReduceOp::Avg, true);
          work->wait();
          EXPECT_TRUE(same_bits(others[0], mean)) << ranks;
        });
        EXPECT_EQ(thrown, std::vector<std::string>(static_cast<size_t>(ranks)));
      }
    }
}

TEST_P(OrderedGroup, WrongShardsAreRefusedAndDifferentOnesAreTold) {
  const auto thrown = as_ranks(2, [](ProcessGroup& g) {
    EXPECT_THROW(g.all_reduce_shards({ones({2})}, 1), ValueError);
    EXPECT_THROW(g.all_reduce_shards({ones({2}), ones({2})}, 2), ValueError);
    EXPECT_THROW(g.all_reduce_shards({ones({2})}, 2, ReduceOp::BOr), RuntimeError);
    g.all_reduce_shards({ones({2})}, g.rank() ? 4 : 2);
  });
  for (const std::string& text : thrown)
    EXPECT_NE(text.find("all_reduce of shards(SUM) of 2 elements of float32 [2] over 4 shards"), std::string::npos) << text;
}

TEST(FakeEngine, PlaysOneRankOfMany) {
  const auto store = std::make_shared<HashStore>();
  ProcessGroup g(store, 3, 4096, kDefaultTimeout, "fake");
  EXPECT_EQ(g.transport(), "fake");
  const Tensor x = arange(3, DType::F32), before = x.clone();
  g.all_reduce(x, ReduceOp::Avg);
  g.reduce(x, 0);
  g.broadcast(x, 0);
  g.send(x, 7);
  g.recv(x, 7);
  g.barrier();
  EXPECT_TRUE(equal(x, before));
  std::vector<Tensor> all;
  for (int r = 0; r < g.size(); ++r) all.push_back(zeros({3}));
  g.all_gather(all, x);
  EXPECT_TRUE(equal(all[0], x));
  EXPECT_TRUE(equal(all[4095], x));
  // Checks of arguments are the same.
  EXPECT_THROW(g.broadcast(x, 4096), ValueError);
  EXPECT_THROW(g.send(x, 3), ValueError);
  EXPECT_THROW(ProcessGroup(store, 0, 2, kDefaultTimeout, "carrier pigeons"), ValueError);
}

}  // namespace
}  // namespace naru::distributed
