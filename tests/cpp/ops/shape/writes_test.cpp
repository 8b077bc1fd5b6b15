// Assignments to x[...] write to x.
#include "ops/checks.h"

#include "naru/device/sync.h"
#include "naru/device/virtual.h"

namespace naru {
namespace {

using namespace naru::testing;

TEST(Writes, AssignmentToAnElementRowOrSliceWritesTheTensor) {
  Tensor x = counted({3, 2});
  x[0] = zeros({2});
  x[1][1] = 7;
  x[Slice(2, None)] = -1.5;
  EXPECT_EQ(x.to_doubles(), (Doubles{0, 0, 2, 7, -1.5, -1.5}));
  x[{Slice(), 0}] = tensor({10, 20, 30});  // converted
  EXPECT_EQ(x.to_doubles(), (Doubles{10, 0, 20, 7, 30, -1.5}));
  x[{Ellipsis, Slice(1)}] = ones({1, 1, 3, 1});  // leading dimensions of 1 are dropped
  EXPECT_EQ(x.to_doubles(), (Doubles{10, 1, 20, 1, 30, 1}));
  x[Ellipsis] = 4;
  x[None] = x[None] * 2;
  EXPECT_EQ(x.to_doubles(), Doubles(6, 8));
  x.narrow(0, 0, 1) = 0;
  x.t()[1] = scalar_tensor(5);
  EXPECT_EQ(x.to_doubles(), (Doubles{0, 5, 8, 5, 8, 5}));
}

TEST(Writes, AssignmentToAnIndexCopiesElementsNotHandles) {
  Tensor x = counted({3, 2}), y = counted({3, 2}) + 10;
  x[0] = y[2];
  x[{1}] = y[{0}];
  x[{2, Slice()}] = x[{1, Slice()}];
  EXPECT_EQ(x.to_doubles(), (Doubles{14, 15, 10, 11, 10, 11}));
  y.zero_();
  EXPECT_EQ(x.to_doubles(), (Doubles{14, 15, 10, 11, 10, 11}));
  x[0] = x[1] = 3;
  EXPECT_EQ(x.to_doubles(), (Doubles{3, 3, 3, 3, 10, 11}));
}

TEST(Writes, AssignmentToANameStillMovesTheName) {
  Tensor x = counted({2, 2});
  Tensor row = x[0];
  row = zeros({5});
  EXPECT_EQ(row.sizes(), (Dims{5}));
  EXPECT_EQ(x.to_doubles(), (Doubles{0, 1, 2, 3}));
  static_assert(!std::is_assignable_v<Tensor&, int>, "a name is no element");
  static_assert(!std::is_assignable_v<Indexed&, const Tensor&> && !std::is_assignable_v<Indexed&, const Indexed&>,
                "auto y = x[mask]; y = z does not compile");
  static_assert(std::is_assignable_v<Indexed, const Tensor&> && std::is_assignable_v<Tensor, double>);
}

TEST(Writes, MasksAndPositionsWrite) {
  Tensor x = counted({2, 3});
  x[x > 3] = 0;
  EXPECT_EQ(x.to_doubles(), (Doubles{0, 1, 2, 3, 0, 0}));
  x[x == 0] = counted({3}) - 3;
  EXPECT_EQ(x.to_doubles(), (Doubles{-3, 1, 2, 3, -2, -1}));
  x[{Slice(), tensor({2, 0})}] = tensor({{1.0, 2.0}, {3.0, 4.0}}, DType::F64);
  EXPECT_EQ(x.to_doubles(), (Doubles{2, 1, 1, 4, -2, 3}));
  x[{1, std::vector<int64_t>{0, 1}}] = 9;
  x[tensor({0})] += 1;
  EXPECT_EQ(x.to_doubles(), (Doubles{3, 2, 2, 9, 9, 3}));
  x[x > 2] *= 2;
  EXPECT_EQ(x.to_doubles(), (Doubles{6, 2, 2, 18, 18, 6}));
  x[{true}] = 1;
  x[false] = 2;
  EXPECT_EQ(x.to_doubles(), Doubles(6, 1));
}

TEST(Writes, CompoundAssignmentToAViewWrites) {
  Tensor x = counted({2, 2});
  x[0] += 10;
  x[{Slice(), 1}] *= 2;
  x[{1, 0}] -= 5;
  x[Slice(1, None)] /= 2;
  EXPECT_EQ(x.to_doubles(), (Doubles{10, 22, -1.5, 3}));
  x[{0, Slice()}].fill_(1);
  EXPECT_EQ(x.to_doubles(), (Doubles{1, 1, -1.5, 3}));
}

TEST(Writes, AMaskThatIsWrittenIsNotReadSoThatNobodyWaitsForTheDevice) {
  const VirtualDevices devices(DeviceType::Cuda, {});
  Tensor x = arange(0, 6).to("cuda");
  const Tensor mask = x > 2, one = tensor(1).to("cuda");
  {
    const ForbidSync forbidden;
    x[mask] = 0;
    x[{mask}] = one;
  }
  EXPECT_EQ(x.to_ints(), (Ints{0, 1, 2, 1, 1, 1}));
}

TEST(Writes, IndexPutTakesBracesAndReturnsTheTensor) {
  Tensor x = zeros({2, 3});
  EXPECT_TRUE(x.index_put_({0, Slice(None, 2)}, 1).is(x));
  x.index_put_({tensor({1, 1}), tensor({0, 0})}, tensor({2.0, 3.0}), true);
  EXPECT_EQ(x.to_doubles(), (Doubles{1, 1, 0, 5, 0, 0}));
  EXPECT_EQ(x.index({"...", 0}).to_doubles(), (Doubles{1, 5}));
  EXPECT_EQ(x.index({None, 0}).sizes(), (Dims{1, 3}));
  EXPECT_EQ(x.index({}).sizes(), (Dims{2, 3}));
  EXPECT_EQ(x.index_put({0}, 4).to_doubles(), (Doubles{4, 4, 4, 5, 0, 0}));
  EXPECT_THROW(x.index({"..", 0}), IndexError);
}

TEST(Writes, ErrorsAreThoseOfPython) {
  Tensor x = zeros({2, 3});
  expect_starts(text_of<RuntimeError>([&] { x[0] = zeros({2}); }), "The expanded size of the tensor (3) must match the existing size (2)");
  EXPECT_EQ(text_of<RuntimeError>([&] {
              x[tensor({0, 1})] = zeros({3, 3});
            }),
            "shape mismatch: value tensor of shape [3, 3] cannot be broadcast to indexing result of shape [2, 3]");
  EXPECT_THROW(x[2] = 1, IndexError);
  EXPECT_THROW((x[{0, 0, 0}] = 1), IndexError);
  EXPECT_THROW(x[tensor({true})] = 1, IndexError);
  EXPECT_THROW(x[0] = Tensor(), RuntimeError);
  EXPECT_THROW(Tensor() = x, RuntimeError);
  EXPECT_THROW((Tensor()[{0}]), RuntimeError);
  EXPECT_THROW((x[{Tensor()}]), TypeError);
  x.requires_grad_();
  EXPECT_THROW(x[0] = 1, RuntimeError);
}

TEST(Indexed, IsReadAsATensor) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(x[x > 2].to_doubles(), (Doubles{3, 4, 5}));
  EXPECT_EQ(x[x > 2].sum().item<double>(), 12);
  EXPECT_EQ((x[x > 2] + x[x < 3]).to_doubles(), (Doubles{3, 5, 7}));
  EXPECT_EQ((2 * x[{0, Slice(1, None)}]).to_doubles(), (Doubles{2, 4}));
  EXPECT_EQ((x[{0, 1}].item<int>()), 1);
  EXPECT_EQ((x[{0}].sizes()), (Dims{3}));
  EXPECT_EQ((x[{Slice(), 0}].sum({0}).item<double>()), 3);
  EXPECT_EQ((x[{0}] == x[{0}]).sum().item<int>(), 3);
  EXPECT_EQ((x[{0}] != x[0]).sum().item<int>(), 0);
  EXPECT_EQ((x[0] == x[{0}]).sum().item<int>(), 3);
  EXPECT_EQ((x[{0}] == 1).sum().item<int>(), 1);
  EXPECT_EQ((1 == x[{0}]).sum().item<int>(), 1);
  EXPECT_EQ((1 != x).sum().item<int>(), 5);
  EXPECT_EQ(cat({x[{0}], x[{1}]}).sizes(), (Dims{6}));
  EXPECT_EQ(x[x > 2][1].item<int>(), 4);
  EXPECT_EQ(add(x[{0}], x[{1}]).to_doubles(), (Doubles{3, 5, 7}));
  const Tensor kept = x[x > 100];
  EXPECT_EQ(kept.sizes(), (Dims{0}));
  const Tensor& extended = x[{1}];
  EXPECT_EQ(extended.to_doubles(), (Doubles{3, 4, 5}));
}

TEST(Indexed, KeptAsAutoItIsAViewOrAnErrorNeverLaterElements) {
  Tensor x = counted({4});
  const auto view = x[{Slice(0, 2)}];
  x[0] = 8;
  EXPECT_EQ(view.to_doubles(), (Doubles{8, 1}));
  const auto chosen = x[x > 2];
  x[x > 2] = 0;
  expect_starts(text_of<RuntimeError>([&] { (void)chosen.sum(); }), "index: the tensor of shape [4] has changed since it was indexed");
  const auto early = x[x == 0];
  EXPECT_EQ(early.numel(), 2);
  x.fill_(1);
  EXPECT_EQ(early.to_doubles(), (Doubles{0, 0}));
}

TEST(Indexed, GradientsFlowThroughReadsAndWrites) {
  Tensor w = counted({4}).requires_grad_();
  w[w > 1].sum().backward();
  EXPECT_EQ(w.grad().to_doubles(), (Doubles{0, 0, 1, 1}));
  Tensor y = w * 2;
  y[0] = w[3];
  y[y > 5] = 0;
  w.set_grad({});
  y.sum().backward();
  EXPECT_EQ(w.grad().to_doubles(), (Doubles{0, 2, 2, 1}));
}

}  // namespace
}  // namespace naru
