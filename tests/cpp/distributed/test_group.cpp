#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "distributed/groups.h"
#include "naru/ops.h"
#include "naru/ops/complex.h"

namespace naru::distributed {
namespace {

using Texts = std::vector<std::string>;
using Ints = std::vector<int64_t>;
Texts quiet(int size) { return Texts(static_cast<size_t>(size)); }

// Each test runs over shared memory, and over threads of one process.
class Group : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { setenv("NARU_DISTRIBUTED_TRANSPORT", GetParam(), 1); }
  void TearDown() override { unsetenv("NARU_DISTRIBUTED_TRANSPORT"); }
};
INSTANTIATE_TEST_SUITE_P(Transports, Group, ::testing::Values("shared", "threads"));

TEST_P(Group, AllReduceGivesTheSameBitsOnEveryRankWhateverTheSize) {
  const Options on_cpu;
  EXPECT_EQ(as_ranks(3,
                     [](ProcessGroup& g) {
                       const std::string kind = GetParam();
                       EXPECT_EQ(g.transport(), kind == "shared" ? "shared memory" : kind);
                       for (const int64_t n : {0, 1, 2, 7, 1000, 1024, 5000, 300'001}) {
                         const Tensor x = arange(n, DType::F32).add(0.1 * (g.rank() + 1));
                         const Tensor wanted = arange(n, DType::F32);
                         g.all_reduce(x);
                         EXPECT_TRUE(allclose(x, wanted * 3 + 0.6)) << n;
                         std::vector<Tensor> all;
                         for (int r = 0; r < g.size(); ++r) all.push_back(empty_like(x));
                         g.all_gather(all, x);
                         for (const Tensor& other : all) EXPECT_TRUE(equal(x, other)) << n;
                       }
                     }),
            quiet(3));
}

TEST_P(Group, EveryReductionOfEveryTypeIsWhatItsNameSays) {
  EXPECT_EQ(as_ranks(2,
                     [](ProcessGroup& g) {
                       for (const DType type : kAllDTypes) {
                         if (type == DType::Bool) continue;
                         if (is_float8(type)) {
                           EXPECT_THROW(g.all_reduce(ones({3}, Options(type)), ReduceOp::Sum), TypeError) << name_of(type);
                           continue;
                         }
                         const auto reduced = [&](ReduceOp op, int64_t n) {
                           const Tensor x = full({n}, g.rank() == 0 ? 6 : 2, Options(type));
                           g.all_reduce(x, op);
                           return is_complex(type) ? view_as_real(x.to(kComplex64)).select(1, 0).to_doubles() : x.to_doubles();
                         };
                         for (const int64_t n : {3, 5000}) {
                           const auto all = [n](double v) { return std::vector<double>(static_cast<size_t>(n), v); };
                           EXPECT_EQ(reduced(ReduceOp::Sum, n), all(8)) << name_of(type);
                           EXPECT_EQ(reduced(ReduceOp::Avg, n), all(4)) << name_of(type);
                           EXPECT_EQ(reduced(ReduceOp::Product, n), all(12)) << name_of(type);
                           if (is_complex(type)) continue;
                           EXPECT_EQ(reduced(ReduceOp::Min, n), all(2)) << name_of(type);
                           EXPECT_EQ(reduced(ReduceOp::Max, n), all(6)) << name_of(type);
                           if (is_floating(type)) continue;
                           EXPECT_EQ(reduced(ReduceOp::BAnd, n), all(2)) << name_of(type);
                           EXPECT_EQ(reduced(ReduceOp::BOr, n), all(6)) << name_of(type);
                           EXPECT_EQ(reduced(ReduceOp::BXor, n), all(4)) << name_of(type);
                         }
                       }
                       const Tensor mixed = full({2}, g.rank() == 0, Options(DType::Bool));
                       g.all_reduce(mixed, ReduceOp::Max);
                       EXPECT_EQ(mixed.to_ints(), (Ints{1, 1}));
                       EXPECT_THROW(g.all_reduce(ones({2}), ReduceOp::BOr), RuntimeError);
                       EXPECT_THROW(g.all_reduce(ones({2}, Options(kComplex64)), ReduceOp::Max), RuntimeError);
                       EXPECT_THROW(g.all_reduce(mixed, ReduceOp::Avg), RuntimeError);
                     }),
            quiet(2));
}

TEST_P(Group, HalvesAreRoundedAsNaruRoundsThem) {
  for (const DType type : {DType::F16, DType::BF16})
    EXPECT_EQ(as_ranks(2,
                       [&](ProcessGroup& g) {
                         // All bit patterns, including NaN and infinities, combined with themselves in another order.
                         const Tensor bits = arange(0, 65536, 1, DType::I32).sub(32768).to(DType::I16).view(type);
                         const Tensor a = bits.clone(), b = bits.flip({0}).mul(0.37);
                         const Tensor mine = (g.rank() == 0 ? a : b).clone();
                         g.all_reduce(mine);
                         EXPECT_TRUE(equal(mine.nan_to_num(1.5), (a + b).nan_to_num(1.5)));
                         EXPECT_TRUE(equal(isnan(mine), isnan(a + b)));
                       }),
              quiet(2));
}

TEST_P(Group, ElementsGoWhereTheCollectivesNamesSay) {
  EXPECT_EQ(as_ranks(4,
                     [](ProcessGroup& g) {
                       const int r = g.rank(), n = g.size();
                       for (const int64_t m : {1, 70'000}) {  // elements
                         const auto full_of = [m](int v) { return full({m}, v, Options(DType::I64)); };
                         const auto four = [&](int from, int by) {
                           std::vector<Tensor> list;
                           for (int i = 0; i < n; ++i) list.push_back(full_of(from + by * i));
                           return list;
                         };
                         Tensor x = full_of(r);
                         g.broadcast(x, 2);
                         EXPECT_TRUE(equal(x, full_of(2)));
                         x = full_of(r + 1);
                         g.reduce(x, 3);
                         EXPECT_TRUE(equal(x, full_of(r == 3 ? 10 : r + 1)));
                         std::vector<Tensor> gathered = r == 1 ? four(0, 0) : std::vector<Tensor>();
                         g.gather(gathered, full_of(r * 10), 1);
                         EXPECT_TRUE(r != 1 || equal(cat(gathered), cat(four(0, 10))));
                         g.scatter(x, r == 2 ? four(5, 1) : std::vector<Tensor>(), 2);
                         EXPECT_TRUE(equal(x, full_of(5 + r)));
                         g.reduce_scatter(x, four(r, 1));
                         EXPECT_TRUE(equal(x, full_of(6 + 4 * r)));
                         std::vector<Tensor> out = four(0, 0);
                         g.all_to_all(out, four(100 * r, 1));
                         EXPECT_TRUE(equal(cat(out), cat(four(r, 100))));
                         g.barrier();
                       }
                     }),
            quiet(4));
}

TEST_P(Group, TensorsMayLieAnyhow) {
  EXPECT_EQ(as_ranks(2,
                     [](ProcessGroup& g) {
                       const Tensor whole = zeros({3, 4}), view = whole.t().narrow(0, 1, 2);
                       view.fill_(g.rank() + 1);
                       const uint32_t before = whole.version();
                       g.all_reduce(view);
                       EXPECT_GT(whole.version(), before);
                       EXPECT_EQ(whole.to_ints(), (Ints{0, 3, 3, 0, 0, 3, 3, 0, 0, 3, 3, 0}));
                     }),
            quiet(2));
}

TEST_P(Group, WhatIsNotWaitedForGoesOnInItsOrder) {
  EXPECT_EQ(as_ranks(2,
                     [](ProcessGroup& g) {
                       std::vector<Tensor> tensors;
                       std::vector<WorkRef> works;
                       for (int i = 0; i < 20; ++i) {
                         tensors.push_back(full({1 + 5000 * (i % 3)}, g.rank() + i));
                         works.push_back(g.all_reduce(tensors.back(), ReduceOp::Sum, true));
                       }
                       const Tensor last = full({1}, g.rank());
                       g.all_reduce(last);  // queued after them
                       EXPECT_EQ(last.item<float>(), 1);
                       for (size_t i = 0; i < works.size(); ++i) {
                         EXPECT_TRUE(works[i]->is_completed());
                         EXPECT_TRUE(works[i]->wait());
                         EXPECT_EQ(tensors[i].max().item<float>(), 1 + 2 * static_cast<float>(i));
                       }
                     }),
            quiet(2));
}

TEST_P(Group, MessagesGoByTagAndInAnyOrder) {
  EXPECT_EQ(as_ranks(3,
                     [](ProcessGroup& g) {
                       const Options longs(DType::I64);
                       // Large messages in both directions at once.
                       if (g.rank() < 2) {
                         const Tensor mine = full({1 << 18}, g.rank(), longs), theirs = zeros({1 << 18}, longs);
                         const WorkRef sent = g.send(mine, 1 - g.rank(), 5, true), got = g.recv(theirs, 1 - g.rank(), 5, true);
                         sent->wait(), got->wait();
                         EXPECT_TRUE(equal(theirs, full({1 << 18}, 1 - g.rank(), longs)));
                       }
                       if (g.rank() == 2) {
                         g.send(full({2}, 7, longs), 0, 1);
                         g.send(full({2}, 8, longs), 0, 2);
                       } else if (g.rank() == 1) {
                         g.send(full({2}, 9, longs), 0, 3);
                       } else {
                         const Tensor x = zeros({2}, longs);
                         g.recv(x, 2, 2);
                         EXPECT_EQ(x.to_ints(), (Ints{8, 8}));
                         const WorkRef any = g.recv(x, kAnyRank, 3);
                         EXPECT_EQ(any->source(), 1);
                         g.recv(x, 2, 1);
                         EXPECT_EQ(x.to_ints(), (Ints{7, 7}));
                       }
                       EXPECT_THROW(g.send(zeros({1}), g.rank()), ValueError);
                       EXPECT_THROW(g.recv(zeros({1}), 3), ValueError);
                       g.barrier();
                     }),
            quiet(3));
}

TEST_P(Group, RanksThatDoNotCallTheSameAreToldOnEach) {
  const auto mismatched = [](const std::function<void(ProcessGroup&)>& f) {
    const Texts thrown = as_ranks(3, f);
    for (const std::string& text : thrown) EXPECT_NE(text.find("ranks do not call the same"), std::string::npos) << text;
  };
  mismatched([](ProcessGroup& g) { g.all_reduce(zeros({g.rank() == 1 ? 5 : 4})); });
  mismatched([](ProcessGroup& g) { g.all_reduce(zeros({100'000 + g.rank()})); });
  mismatched([](ProcessGroup& g) { g.all_reduce(zeros({3}, Options(g.rank() == 2 ? DType::F64 : DType::F32))); });
  mismatched([](ProcessGroup& g) { g.all_reduce(zeros({3}), g.rank() == 2 ? ReduceOp::Max : ReduceOp::Min); });
  mismatched([](ProcessGroup& g) {
    if (g.rank() == 0)
      g.barrier();
    else
      g.all_reduce(zeros({3}));
  });
}

TEST_P(Group, ARankThatLeavesIsNamedByAllThatWaitForIt) {
  const Texts thrown = as_ranks(3, [](ProcessGroup& g) {
    g.barrier();
    if (g.rank() == 1) return;
    g.all_reduce(zeros({g.rank() == 0 ? 10 : 10}));
  });
  EXPECT_EQ(thrown[1], "");
  for (const int r : {0, 2})
    EXPECT_NE(thrown[static_cast<size_t>(r)].find("rank 1 has left the group"), std::string::npos) << thrown[static_cast<size_t>(r)];
  const Texts alone = as_ranks(2, [](ProcessGroup& g) {
    if (g.rank() == 0) g.recv(zeros({1}), 1);
  });
  EXPECT_NE(alone[0].find("rank 1 has left the group"), std::string::npos) << alone[0];
}

TEST_P(Group, WhoDoesNotComeInTimeIsNamed) {
  const Texts thrown = as_ranks(
      3,
      [](ProcessGroup& g) {
        g.barrier();
        g.set_timeout(Milliseconds(300));
        if (g.rank() == 2) {
          std::this_thread::sleep_for(Milliseconds(900));
          EXPECT_THROW(g.all_reduce(zeros({10})), DistBackendError);  // the other ranks have given up
          return;
        }
        g.all_reduce(zeros({10}));
      },
      Milliseconds(20'000));
  EXPECT_EQ(thrown[2], "");
  for (const int r : {0, 1})
    EXPECT_NE(thrown[static_cast<size_t>(r)].find("nothing has come from rank 2"), std::string::npos) << thrown[static_cast<size_t>(r)];
}

TEST(OneRank, HasNobodyToTalkTo) {
  EXPECT_EQ(as_ranks(1,
                     [](ProcessGroup& g) {
                       const Tensor x = ones({2});
                       g.all_reduce(x, ReduceOp::Avg);
                       g.broadcast(x, 0);
                       std::vector<Tensor> all{zeros({2})};
                       g.all_gather(all, x);
                       g.all_to_all(all, {x});
                       g.reduce_scatter(x, {x});
                       g.barrier();
                       EXPECT_EQ(all[0].to_ints(), (Ints{1, 1}));
                       EXPECT_THROW(g.send(x, 0), ValueError);
                       EXPECT_THROW(g.broadcast(x, 1), ValueError);
                       EXPECT_THROW(g.all_gather({}, x), ValueError);
                     }),
            quiet(1));
}

}  // namespace
}  // namespace naru::distributed
