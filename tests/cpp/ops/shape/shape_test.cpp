#include "ops/checks.h"

namespace naru {
namespace {

using namespace naru::testing;

TEST(Cat, JoinsAlongADimensionAndPromotesDtypes) {
  const Tensor a = counted({2, 2}), b = counted({2, 1}) + 10.0;
  EXPECT_EQ(cat({a, b}, 1).to_doubles(), (Doubles{0, 1, 10, 2, 3, 11}));
  EXPECT_EQ(cat({a, a.t()}, -2).to_doubles(), (Doubles{0, 1, 2, 3, 0, 2, 1, 3}));
  EXPECT_EQ(cat({ints({1}), tensor(Doubles{2.5})}).dtype(), DType::F32);
  EXPECT_EQ(cat({a, zeros(Dims{0})}).sizes(), (Dims{2, 2}));  // empty 1-D tensors are ignored
}

TEST(Cat, SplitsTheGradientAmongItsOperands) {
  const Tensor x = counted({2, 2});
  expect_gradient([](const Tensor& t) { return cat({t, t * 2.0, t[{Slice(), Slice(0, 1)}]}, 1).square(); }, x);
  expect_gradient([](const Tensor& t) { return stack({t, t * 2.0}, 1).square(); }, x);
}

TEST(Cat, ErrorsSpeakLikePyTorch) {
  const Tensor x = counted({2, 2});
  expect_starts(text_of<RuntimeError>([&] {
                  cat({x, counted({2, 3})});
                }),
                "Sizes of tensors must match except in dimension 0. Expected size 2 but got size 3 for tensor number 1 "
                "in the list.");
  expect_starts(text_of<RuntimeError>([&] {
                  cat({x, scalar_tensor(1.0)});
                }),
                "zero-dimensional tensor (at position 1) cannot be concatenated");
  expect_starts(text_of<RuntimeError>([&] { cat({x, counted({3})}); }), "Tensors must have same number of dimensions: got 2 and 1");
  EXPECT_THROW(cat({}), ValueError);
  EXPECT_THROW(cat({x, x}, 2), IndexError);
  expect_starts(text_of<RuntimeError>([&] {
                  stack({x, counted({3})});
                }),
                "stack expects each tensor to be equal size, but got [2, 2] at entry 0 and [3] at entry 1");
}

TEST(Stack, AddsADimension) {
  const Tensor a = counted({2}), b = counted({2}) + 5.0;
  EXPECT_EQ(stack({a, b}).to_doubles(), (Doubles{0, 1, 5, 6}));
  EXPECT_EQ(stack({a, b}, -1).to_doubles(), (Doubles{0, 5, 1, 6}));
}

TEST(Split, GivesViewsOfTheParts) {
  Tensor x = counted({5, 2});
  std::vector<Tensor> parts = split(x, 2);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[2].to_doubles(), (Doubles{8, 9}));
  parts[0].zero_();
  EXPECT_EQ(x[1].to_doubles(), (Doubles{0, 0}));
  EXPECT_EQ(split(x, Dims{1, 4})[1].sizes(), (Dims{4, 2}));
  EXPECT_EQ(chunk(x, 4).size(), 3u);
  EXPECT_EQ(unbind(x, 1)[1].to_doubles(), (Doubles{0, 0, 5, 7, 9}));
  expect_starts(text_of<RuntimeError>([&] {
                  split(x, Dims{1, 2});
                }),
                "split_with_sizes expects split_sizes to sum exactly to 5 (input tensor's size at dimension 0), but "
                "got split_sizes=[1, 2]");
  expect_starts(text_of<RuntimeError>([&] { chunk(x, 0); }), "chunk expects `chunks` to be greater than 0, got: 0");
}

TEST(Repeat, TilesAndSumsTheGradient) {
  const Tensor x = counted({2});
  EXPECT_EQ(repeat(x, {2, 2}).to_doubles(), (Doubles{0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(repeat(x, {0}).sizes(), (Dims{0}));
  expect_gradient([](const Tensor& t) { return repeat(t, {3, 2}).square(); }, counted({2, 2}));
  EXPECT_THROW(repeat(counted({2, 2}), {2}), RuntimeError);
}

TEST(Flip, ReversesDimensions) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(flip(x, {0, 1}).to_doubles(), (Doubles{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(flip(x.t(), {1}).to_doubles(), (Doubles{3, 0, 4, 1, 5, 2}));
  expect_gradient([](const Tensor& t) { return flip(t, {-1}).square(); }, x);
  EXPECT_THROW(flip(x, {0, 0}), RuntimeError);
}

TEST(Roll, MovesElementsAround) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(roll(x, {1}, {1}).to_doubles(), (Doubles{2, 0, 1, 5, 3, 4}));
  EXPECT_EQ(roll(x, {-4}).to_doubles(), (Doubles{4, 5, 0, 1, 2, 3}));
  EXPECT_EQ(roll(x, {1, 1}, {0, 1}).to_doubles(), (Doubles{5, 3, 4, 2, 0, 1}));
  expect_gradient([](const Tensor& t) { return roll(t, {2}, {1}).square(); }, x);
  EXPECT_THROW(roll(x, {1, 2}, {0}), RuntimeError);
}

TEST(Triangles, KeepOneSideOfADiagonal) {
  const Tensor x = counted({3, 3}) + 1.0;
  EXPECT_EQ(tril(x).to_doubles(), (Doubles{1, 0, 0, 4, 5, 0, 7, 8, 9}));
  EXPECT_EQ(triu(x, 1).to_doubles(), (Doubles{0, 2, 3, 0, 0, 6, 0, 0, 0}));
  EXPECT_EQ(tril(ones({2, 2, 3}), -1).to_doubles(), (Doubles{0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0}));
  expect_gradient([](const Tensor& t) { return triu(t, -1).square(); }, x);
  EXPECT_THROW(tril(ones({3})), RuntimeError);
}

TEST(Broadcast, SpreadsTensorsToOneShape) {
  const std::vector<Tensor> both = broadcast_tensors({counted({3}), counted({2, 1})});
  EXPECT_EQ(both[0].to_doubles(), (Doubles{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(both[1].to_doubles(), (Doubles{0, 0, 0, 1, 1, 1}));
  EXPECT_THROW(broadcast_tensors({counted({3}), counted({2})}), RuntimeError);
  const std::vector<Tensor> xy = meshgrid({ints({1, 2, 3}), ints({4, 5})}, false);
  EXPECT_EQ(xy[0].to_ints(), (Ints{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(xy[1].to_ints(), (Ints{4, 4, 4, 5, 5, 5}));
  EXPECT_EQ(meshgrid({ints({1, 2, 3}), ints({4, 5})})[1].to_ints(), (Ints{4, 5, 4, 5, 4, 5}));
}

}  // namespace
}  // namespace naru
