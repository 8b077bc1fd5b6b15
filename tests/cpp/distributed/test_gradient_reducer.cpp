#include "naru/distributed/gradient_reducer.h"

#include <gtest/gtest.h>

#include "distributed/groups.h"
#include "naru/naru.h"

namespace naru::distributed {
namespace {

using Texts = std::vector<std::string>;
using Way = GradientReducer::Options;

struct Net {
  Tensor first = tensor({{1.0F, -2.0F}, {0.5F, 3.0F}}, naru::Options().with_grad()),
         bias = tensor({0.25F, -1.0F}, naru::Options().with_grad());
  Tensor last = tensor({{2.0F}, {-1.5F}}, naru::Options().with_grad()), idle = tensor({1.0F, 2.0F, 3.0F}, naru::Options().with_grad());
  std::vector<Tensor> parameters() const { return {first, bias, last, idle}; }
  Tensor loss(int rank, bool with_idle) const {
    const Tensor x = tensor({{0.3F, 0.7F}, {-1.0F, 0.9F}}) * (1.1 * (rank + 1));
    const Tensor out = mm(relu(mm(x, first) + bias), last).pow(2).sum();
    return with_idle ? out + (idle * (0.7 + rank)).sum() : out;
  }
};

const Way kWays[] = {{}, {.as_views = true}, {.first_bucket = 1, .bucket = 1}, {.first_bucket = 20, .bucket = 16, .as_views = true}};

TEST(GradientReducer, GradientsAreTheMeansOverTheRanks) {
  const Texts said = as_ranks(3, [](ProcessGroup& group) {
    for (const Way& way : kWays) {
      Net averaged, alone;
      GradientReducer reducer(averaged.parameters(), group, way);
      for (int step = 0; step < 3; ++step) {
        reducer.prepare();
        averaged.loss(group.rank(), true).backward();
        alone.loss(group.rank(), true).backward();
        for (size_t i = 0; i < 4; ++i) {
          const Tensor wanted = alone.parameters()[i].grad().clone(), got = averaged.parameters()[i].grad();
          group.all_reduce(wanted, ReduceOp::Avg);
          EXPECT_TRUE(equal(got, wanted)) << i;
          averaged.parameters()[i].set_grad({}), alone.parameters()[i].set_grad({});
        }
      }
      reducer.stop();
      averaged.loss(group.rank(), true).backward(), alone.loss(group.rank(), true).backward();
      EXPECT_TRUE(equal(averaged.first.grad(), alone.first.grad()));
    }
  });
  EXPECT_EQ(said, Texts(3));
}

TEST(GradientReducer, ParametersThatNoOutputDependsOnKeepTheirGradients) {
  const Texts said = as_ranks(2, [](ProcessGroup& group) {
    Net net;
    GradientReducer reducer(net.parameters(), group, {.names = {"first", "bias", "last", "idle"}});
    const auto loss = [&](bool with_idle) {
      const Tensor out = net.loss(group.rank(), with_idle);
      reducer.prepare({out});
      return out;
    };
    loss(false).backward();
    EXPECT_FALSE(net.idle.grad().defined());
    EXPECT_TRUE(net.first.grad().defined());
    loss(group.rank() == 1).backward();  // of one rank: zeros of the other
    EXPECT_EQ(net.idle.grad().to_doubles(), std::vector<double>(3, double(0.5F * 1.7F)));
    const Tensor kept = net.idle.grad().clone();
    loss(false).backward();
    EXPECT_TRUE(equal(net.idle.grad(), kept));

    reducer.prepare();
    net.loss(group.rank(), false).backward();
    try {
      reducer.prepare();
      ADD_FAILURE() << "the parameter without a gradient was not missed";
    } catch (const RuntimeError& e) {
      EXPECT_NE(std::string(e.what()).find("parameters that were not used in producing loss: idle."), std::string::npos) << e.what();
    }
  });
  EXPECT_EQ(said, Texts(2));
}

TEST(GradientReducer, ARankWithoutInputsTakesPart) {
  for (const bool as_views : {false, true}) {
    const Texts said = as_ranks(2, [&](ProcessGroup& group) {
      Net net;
      GradientReducer reducer(net.parameters(), group, {.as_views = as_views});
      reducer.set_divisor(1);
      if (group.rank() == 1) return reducer.join_with_zeros();
      Net alone;
      reducer.prepare();
      net.loss(0, true).backward(), alone.loss(0, true).backward();
      for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(equal(net.parameters()[i].grad(), alone.parameters()[i].grad()));
    });
    EXPECT_EQ(said, Texts(2));
  }
}

TEST(GradientReducer, AnotherExchangeOfBuckets) {
  const Texts said = as_ranks(2, [](ProcessGroup& group) {
    Net net, alone;
    GradientReducer reducer(net.parameters(), group, {.first_bucket = 1, .bucket = 16});
    std::vector<int64_t> sizes;
    std::vector<bool> lasts;
    reducer.set_exchange([&](size_t bucket, const Tensor& vector, const std::vector<Tensor>& parameters, bool last) {
      EXPECT_EQ(bucket, sizes.size());
      int64_t numbers = 0;
      for (const Tensor& p : parameters) numbers += p.numel();
      EXPECT_EQ(vector.numel(), numbers);
      sizes.push_back(numbers), lasts.push_back(last);
      return [vector] { vector.mul_(3); };
    });
    reducer.prepare();
    net.loss(group.rank(), true).backward(), alone.loss(group.rank(), true).backward();
    EXPECT_EQ(sizes, (std::vector<int64_t>{3, 4, 4}));  // from the last parameter on
    EXPECT_EQ(lasts, (std::vector<bool>{false, false, true}));
    for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(equal(net.parameters()[i].grad(), alone.parameters()[i].grad() * 3));
  });
  EXPECT_EQ(said, Texts(2));
}

TEST(GradientReducer, BroadcastAndWhatIsRefused) {
  const Texts said = as_ranks(2, [](ProcessGroup& group) {
    Net net;
    const NoGrad off;
    if (group.rank() == 1) net.first.zero_();
    GradientReducer reducer(net.parameters(), group);
    reducer.broadcast();
    EXPECT_EQ(net.first.to_doubles(), (std::vector<double>{1, -2, 0.5, 3}));
    EXPECT_THROW(GradientReducer({ones({2})}, group), ValueError);
  });
  EXPECT_EQ(said, Texts(2));
}

}  // namespace
}  // namespace naru::distributed
