// Complex tensors: parts are views, gradients are pairs of reals, and no operator treats complex memory as real.
#include <gtest/gtest.h>

#include <complex>

#include "naru/autograd.h"
#include "naru/ops/complex.h"
#include "naru/ops/functions.h"

namespace naru {
namespace {

using C = std::complex<double>;
constexpr C kI(0, 1);

Tensor made(const std::vector<double>& re, const std::vector<double>& im, const Options& o = {}) {
  return complex(tensor(re, DType::F64), tensor(im, DType::F64)).to(o.device, o.dtype, false, false);
}

TEST(Complex, PartsAreViewsThatMayBeWrittenTo) {
  Tensor z = made({1, 2}, {3, 4});
  imag(z).fill_(9);
  real(z).mul_(10);
  EXPECT_EQ(view_as_real(z).to_doubles(), (std::vector<double>{10, 9, 20, 9}));
  view_as_real(z)[{1, 1}].fill_(-1);
  EXPECT_EQ(z[1].item().to<std::complex<double>>(), C(20, -1));
  EXPECT_TRUE(view_as_complex(view_as_real(z)).impl() != z.impl());
  EXPECT_EQ(view_as_complex(view_as_real(z)).data_ptr(), z.data_ptr());
}

TEST(Complex, NumbersOfCppMayBeComplex) {
  const Tensor z = tensor({1.0, 2.0}) * kI + C(1, 1);
  EXPECT_EQ(z.dtype(), kComplex64);
  EXPECT_EQ(view_as_real(z).to_doubles(), (std::vector<double>{1, 2, 1, 3}));
  EXPECT_EQ(full({2}, kI).dtype(), kComplex64);
}

TEST(Complex, TheGradientOfARealLossHasTheDerivativesByBothParts) {
  Tensor z = made({1, 2}, {3, 4});
  z.requires_grad_();
  sum(square(abs(z))).backward();
  EXPECT_EQ(view_as_real(z.grad()).to_doubles(), (std::vector<double>{2, 6, 4, 8}));
}

TEST(Complex, AWriteToAPartIsPartOfTheHistory) {
  Tensor x = tensor({2.0, 3.0}).requires_grad_();
  Tensor z = made({1, 1}, {5, 5}, kComplex64);
  imag(z).copy_(x);
  sum(real(z * conj(z))).backward();
  EXPECT_EQ(x.grad().to_doubles(), (std::vector<double>{4, 6}));

  Tensor w = made({1, 2}, {3, 4}).requires_grad_();
  Tensor y = w * 1;
  real(y).mul_(5);
  sum(real(y) + imag(y) * 2).backward();
  EXPECT_EQ(view_as_real(w.grad()).to_doubles(), (std::vector<double>{5, 2, 5, 2}));
}

TEST(Complex, WhatHasNoComplexFormRefusesInsteadOfReadingPairsAsNumbers) {
  const Tensor z = made({1, 2, 3}, {3, 4, 5});
  EXPECT_THROW(sort(z), Error);
  EXPECT_THROW(argmax(z), Error);
  EXPECT_THROW(amax(z), Error);
  EXPECT_THROW(topk(z, 1), Error);
  EXPECT_THROW(softmax(z, 0), Error);
  EXPECT_THROW(lt(z, z), NotImplementedError);
  EXPECT_THROW(floor(z), NotImplementedError);
  EXPECT_THROW(maximum(z, z), TypeError);
  EXPECT_THROW(z.to_doubles(), RuntimeError);
  EXPECT_THROW(unique(z), Error);
}

TEST(Complex, DropoutTakesOrLeavesWholeNumbers) {
  const Tensor z = full({64}, Scalar(std::complex<double>(1, 3))), kept = dropout(z, 0.5);
  EXPECT_TRUE(allclose(imag(kept), real(kept) * 3));
  EXPECT_GT(sum(real(kept)).item<double>(), 0);
  EXPECT_LT(sum(real(kept)).item<double>(), 128);
}

TEST(Complex, ProductsOfBatchesAndTransposesAreThoseOfTheParts) {
  const Tensor a = randn({2, 3, 4}, kComplex128), b = randn({2, 5, 4}, kComplex128).transpose(1, 2);
  const Tensor wanted = complex(real(a).matmul(real(b)) - imag(a).matmul(imag(b)), real(a).matmul(imag(b)) + imag(a).matmul(real(b)));
  EXPECT_TRUE(allclose(matmul(a, b), wanted));
  EXPECT_TRUE(allclose(vdot(a[0][0], a[1][0]), sum(conj(a[0][0]) * a[1][0])));
}

}  // namespace
}  // namespace naru
