// Tensors from literals and containers.
#include <complex>

#include "ops/checks.h"

namespace naru {
namespace {

using namespace naru::testing;

TEST(Literal, NestedBracesAreTensorsOfAsManyDimensions) {
  EXPECT_EQ(tensor({{1, 2}, {3, 4}, {5, 6}}).sizes(), (Dims{3, 2}));
  EXPECT_EQ(tensor({{1, 2}, {3, 4}}).to_ints(), (Ints{1, 2, 3, 4}));
  EXPECT_EQ(tensor({{1, 2}}).sizes(), (Dims{1, 2}));
  EXPECT_EQ(tensor({{{1}, {2}}}).sizes(), (Dims{1, 2, 1}));
  const Tensor deep = tensor({{{{{1, 2}, {3, 4}}}, {{{5, 6}, {7, 8}}}}});
  EXPECT_EQ(deep.sizes(), (Dims{1, 2, 1, 2, 2}));
  EXPECT_EQ(deep.to_ints(), (Ints{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(Literal, NumbersAndEmptyBracesHaveTheShapesOfPython) {
  EXPECT_EQ(tensor(3).sizes(), Dims{});
  EXPECT_EQ(tensor({}).sizes(), (Dims{0}));
  EXPECT_EQ(tensor({}).dtype(), DType::F32);
  EXPECT_EQ(tensor({{}, {}}).sizes(), (Dims{2, 0}));
}

TEST(Literal, TheTypeHoldsAllElements) {
  EXPECT_EQ(tensor({1, 2}).dtype(), DType::I64);
  EXPECT_EQ(tensor({1.0, 2.0}).dtype(), DType::F32);
  EXPECT_EQ(tensor({1.F, 2.F}).dtype(), DType::F32);
  EXPECT_EQ(tensor({{1, 2}, {3, 4.5}}).dtype(), DType::F32);
  EXPECT_EQ(tensor({{1, 2}, {3, 4.5}}).to_doubles(), (Doubles{1, 2, 3, 4.5}));
  EXPECT_EQ(tensor({true, false}).dtype(), DType::Bool);
  EXPECT_EQ(tensor({true, false}).to_ints(), (Ints{1, 0}));
  EXPECT_EQ(tensor({{true, 2}}).dtype(), DType::I64);
  EXPECT_EQ(tensor(true).dtype(), DType::Bool);
  EXPECT_EQ(tensor(2.5F).dtype(), DType::F32);
  EXPECT_EQ(tensor({{1, 2}, {3, 4}}, DType::F64).dtype(), DType::F64);
  EXPECT_EQ(tensor({1, 2}, Options().with_grad(false)).dtype(), DType::I64);
  EXPECT_EQ(tensor(int64_t{1} << 60).to_ints(), (Ints{int64_t{1} << 60}));
}

TEST(Literal, VectorsSpansAndArraysAreTensors) {
  EXPECT_EQ(tensor(std::vector<float>{1, 2.5}).to_doubles(), (Doubles{1, 2.5}));
  EXPECT_EQ(tensor(std::vector<double>{1, 2.5}).dtype(), DType::F32);
  EXPECT_EQ(tensor(std::vector<double>{0.1}, DType::F64).to_doubles(), (Doubles{0.1}));
  EXPECT_EQ(tensor(std::vector<int>{1, -2}).to_ints(), (Ints{1, -2}));
  EXPECT_EQ(tensor(std::vector<int>{}).dtype(), DType::I64);
  EXPECT_EQ(tensor(std::vector<uint8_t>{1, 255}).dtype(), DType::U8);
  EXPECT_EQ(tensor(std::vector<int16_t>{-1, 300}).to_ints(), (Ints{-1, 300}));
  EXPECT_EQ(tensor(std::vector<uint16_t>{65535}).to_ints(), (Ints{65535}));
  EXPECT_EQ(tensor(std::vector<bool>{true, false, true}).to_ints(), (Ints{1, 0, 1}));
  EXPECT_EQ(tensor(std::vector<bool>{}).dtype(), DType::Bool);
  EXPECT_EQ(tensor(std::array<double, 2>{1, 2}).sizes(), (Dims{2}));
  const int plain[] = {4, 5, 6};
  EXPECT_EQ(tensor(plain).to_ints(), (Ints{4, 5, 6}));
  EXPECT_EQ(tensor(std::span<const int>(plain).first(2)).to_ints(), (Ints{4, 5}));
  EXPECT_EQ(tensor(std::vector<std::vector<double>>{{1, 2}, {3, 4}}).sizes(), (Dims{2, 2}));
  const std::vector<double> row{1, 2};
  EXPECT_EQ(tensor({row, row, row}).sizes(), (Dims{3, 2}));
}

TEST(Literal, ComplexNumbersAreOfTheComplexTypeOfTheDefault) {
  using C = std::complex<double>;
  EXPECT_EQ(tensor(C(1, 2)).str(), "tensor(1.+2.j)");
  const Tensor list = tensor({C(1, -2), C(0, 1)});
  EXPECT_EQ(list.dtype(), kComplex64);
  EXPECT_EQ(list[0].item<C>(), C(1, -2));
  EXPECT_EQ(tensor(std::vector<C>{{1, 2}, {3, 4}}, kComplex128)[1].item<C>(), C(3, 4));
}

TEST(Arange, BeginsAtZeroAndTakesOptionsBehindAnyOfItsNumbers) {
  // "float32" must not be taken as `end`: converted to bool it would be 1.
  static_assert(std::is_convertible_v<bool, Scalar> && !std::is_convertible_v<const char*, Scalar>);
  EXPECT_EQ(arange(3).str(), "tensor([0, 1, 2])");
  EXPECT_EQ(arange(3, "float32").str(), "tensor([0., 1., 2.])");
  EXPECT_EQ(arange(1, 3, DType::F64).str(), "tensor([1., 2.], dtype=torch.float64)");
  EXPECT_EQ(arange(5, 2, -1).str(), "tensor([5, 4, 3])");
  EXPECT_EQ(arange(1.5).str(), "tensor([0., 1.])");
}

TEST(DimsInBraces, GoWhereDimsMayBeLeftOut) {
  const Tensor x = arange(24, "float32").reshape({2, 3, 4});
  const int64_t last = x.dim() - 1;
  EXPECT_TRUE(equal(sum(x, {0, 1}), sum(x, Dims{0, 1})));
  EXPECT_TRUE(equal(sum(x, {}), sum(x)));
  EXPECT_TRUE(equal(mean(x, {last, last - 2}, true), mean(x, Dims{0, 2}, true)));
  EXPECT_TRUE(equal(x.amax({0, 2}), amax(x, {0, 2})) && equal(x.amin({0, 2}), amin(x, {0, 2})));
  EXPECT_TRUE(equal(x.any({0, 1}), any(x, {0, 1})) && equal(x.all({0, 1}), all(x, {0, 1})));
  EXPECT_TRUE(equal(x.var({0, 1}, 0), var(x, {0, 1}, 0)) && equal(x.std({0, 1}), naru::std(x, {0, 1})));
  EXPECT_TRUE(equal(x.norm(2, {0, 1}), norm(x, 2, {0, 1})));
  EXPECT_EQ(count_nonzero(x, {0, 1}).str(), "tensor([5, 6, 6, 6])");
  EXPECT_EQ(x.nansum({0, 1}).str(), "tensor([60., 66., 72., 78.])");
}

TEST(Literal, ListsThatDoNotFitAreErrors) {
  EXPECT_EQ(text_of<ValueError>([] { tensor({{1, 2}, {3}}); }), "expected sequence of length 2 at dim 1 (got 1)");
  EXPECT_EQ(text_of<ValueError>([] { tensor({{{1, 2}}, {{3, 4, 5}}}); }), "expected sequence of length 2 at dim 2 (got 3)");
  expect_starts(text_of<TypeError>([] { tensor({{1, 2}, 3}); }), "tensor: a list of 1 dimensions stands beside one of 0");
  EXPECT_THROW(tensor(std::vector<uint64_t>{~uint64_t{0}}), RuntimeError);
  EXPECT_THROW(tensor(~uint64_t{0}), RuntimeError);
}

}  // namespace
}  // namespace naru
