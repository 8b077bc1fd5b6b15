// Arithmetic with factors, bounds and rounding modes, from C++.
#include <gtest/gtest.h>

#include "naru/ops.h"
#include "naru/ops/functions.h"
#include "ops/checks.h"

namespace naru {
namespace {

using testing::Doubles;
using testing::expect_starts;
using testing::text_of;

TEST(Arithmetic, AFactorScalesWhatIsAdded) {
  const Tensor a = tensor({1.0, 2.0}), b = tensor({10.0, 20.0});
  EXPECT_EQ(add(a, b, 2).to_doubles(), (Doubles{21, 42}));
  EXPECT_EQ(a.sub(b, 0.5).to_doubles(), (Doubles{-4, -8}));
  EXPECT_EQ(rsub(a, b, 3).to_doubles(), (Doubles{7, 14}));
  Tensor c = a.clone();
  c.add_(b, 2).sub_(b, 1);
  EXPECT_EQ(c.to_doubles(), (Doubles{11, 22}));
  EXPECT_EQ(add(tensor({1, 2}), tensor({3, 4}), 2).dtype(), DType::I64);
  expect_starts(text_of<RuntimeError>([] { add(tensor({1}), tensor({2}), 0.5); }),
                "For integral input tensors, argument alpha must not be a floating point number.");
  expect_starts(text_of<RuntimeError>([&] { add(a, b, true); }), "Boolean alpha only supported for Boolean results.");
}

TEST(Arithmetic, DivisionRoundsAsItsModeSays) {
  const Tensor a = tensor({-7.0, 7.0});
  EXPECT_EQ(div(a, 2, "trunc").to_doubles(), (Doubles{-3, 3}));
  EXPECT_EQ(a.div(2, "floor").to_doubles(), (Doubles{-4, 3}));
  Tensor b = a.clone();
  EXPECT_EQ(b.div_(2, std::nullopt).to_doubles(), (Doubles{-3.5, 3.5}));
  expect_starts(text_of<RuntimeError>([&] { div(a, 2, "up"); }), "div expected rounding_mode to be one of None, 'trunc', or 'floor'");
}

TEST(Arithmetic, ScaledProductsAndQuotientsAreComputedInTheTypeOfAllThree) {
  const Tensor t = tensor({1.0, 1.0}), a = tensor({3, 4}), b = tensor({2, 8});
  EXPECT_EQ(addcmul(t, a, b, 0.5).to_doubles(), (Doubles{4, 17}));
  EXPECT_EQ(t.addcdiv(a.to(DType::F32), b, 2).to_doubles(), (Doubles{4, 2}));
  Tensor c = t.clone();
  EXPECT_EQ(c.addcmul_(t, t).to_doubles(), (Doubles{2, 2}));
  expect_starts(text_of<RuntimeError>([&] { addcdiv(t, a, b); }), "Integer division with addcdiv is no longer supported");
}

TEST(Arithmetic, EitherLimitMayBeMissing) {
  const Tensor t = tensor({-2.0, 0.5, 2.0});
  EXPECT_EQ(clamp(t, -1, 1).to_doubles(), (Doubles{-1, 0.5, 1}));
  EXPECT_EQ(clamp(t, std::nullopt, 0).to_doubles(), (Doubles{-2, 0, 0}));
  EXPECT_EQ(clamp(t, tensor({0.0, 1.0, 0.0})).to_doubles(), (Doubles{0, 1, 2}));
  clamp_(t, 0, tensor({1.0, 0.0, 1.0}));
  EXPECT_EQ(t.to_doubles(), (Doubles{0, 0, 1}));
  expect_starts(text_of<RuntimeError>([&] { clamp(t, std::nullopt); }), "torch.clamp: At least one of 'min' or 'max' must not be None");
}

TEST(Arithmetic, ATensorSharesTheGradientWhereItIsTheLimit) {
  Tensor t = tensor({1.0, 2.0});
  t.requires_grad_();
  sum(clamp_min(t, tensor({1.0, 1.0}))).backward();
  EXPECT_EQ(t.grad().to_doubles(), (Doubles{0.5, 1}));
}

TEST(Arithmetic, LerpTakesNoMixtureOfTypes) {
  const Tensor a = tensor({0.0, 2.0}), b = tensor({4.0, 4.0});
  EXPECT_EQ(lerp(a, b, 0.25).to_doubles(), (Doubles{1, 2.5}));
  lerp_(a, b, tensor({1.0, 0.0}));
  EXPECT_EQ(a.to_doubles(), (Doubles{4, 2}));
  expect_starts(text_of<RuntimeError>([&] { lerp(a, b.to(DType::F64), 0.5); }), "expected dtype float for `end` but got dtype double");
}

TEST(Arithmetic, NumbersAloneCountAsATensorWithoutDimensions) {
  EXPECT_EQ(add(1, 2, 3).item<int64_t>(), 7);
  EXPECT_EQ(add(1, 2.5).dim(), 0);
}

}  // namespace
}  // namespace naru
