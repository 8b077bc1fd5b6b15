// Fourier transforms, windows and special functions from C++: known values, round trips, gradients, errors.
#include "naru/ops/fft.h"

#include <gtest/gtest.h>

#include <cmath>

#include "naru/ops/complex.h"
#include "naru/ops/functions.h"
#include "naru/ops/linalg.h"
#include "naru/ops/signal.h"
#include "naru/ops/special.h"
#include "ops/checks.h"

namespace naru {
namespace {

using testing::Doubles;
using testing::expect_gradient;
using testing::text_of;

Tensor numbers(const Doubles& values) { return tensor(values, DType::F64); }
void expect_equal(const Tensor& a, const Tensor& b) { EXPECT_TRUE(allclose(a, b, 1e-9, 1e-12)) << a.str() << " is not " << b.str(); }

TEST(Fourier, TransformsOfKnownSignalsAreKnownAndComeBack) {
  const Tensor x = numbers({1, 0, -1, 0, 2, 3}).view({2, 3});
  expect_equal(real(fft::fft(numbers({1, 0, -1, 0}))), numbers({0, 2, 0, 2}));
  expect_equal(fft::irfft(fft::rfft(x), 3), x);
  expect_equal(fft::hfft(fft::ihfft(x), 3), x);
  expect_equal(real(fft::ifft2(fft::fft2(x))), x);
  expect_equal(fft::irfftn(fft::rfftn(x, {}, {}, "ortho"), x.sizes(), {}, "ortho"), x);
  expect_equal(fft::fftfreq(4, 0.5, DType::F64), numbers({0, 0.5, -1, -0.5}));
  expect_equal(fft::ifftshift(fft::fftshift(x)), x);
}

TEST(Fourier, ShortTimeTransformsComeBack) {
  const Tensor x = numbers({1, 3, -2, 4, 0, 1, 5, -1, 2, 2, 7, 1}), w = hann_window(4, true, DType::F64);
  StftOptions there;
  there.return_complex = true;
  expect_equal(istft(stft(x, 4, w, there), 4, w, {}), x);
}

TEST(Fourier, GradientsAgreeWithDifferences) {
  const Tensor x = numbers({1, 0.5, -1, 0.25, 2, 3});
  expect_gradient([](const Tensor& t) { return square(abs(fft::rfft(t, 7))).sum(); }, x);
  expect_gradient([](const Tensor& t) { return (fft::irfft(t, 9) * arange(0, 9, 1, DType::F64)).square().sum(); }, x);
}

TEST(Fourier, WhatCannotBeTransformedIsAnError) {
  EXPECT_NE(text_of<RuntimeError>([] { (void)fft::fft(ones({3}), 0); }).find("Invalid number of data points (0) specified"),
            std::string::npos);
  EXPECT_NE(text_of<RuntimeError>([] { (void)fft::fft(ones({3}), {}, -1, "x"); }).find("Invalid normalization mode"), std::string::npos);
}

TEST(Fourier, WindowsAndSpecialFunctionsHaveKnownValues) {
  expect_equal(signal::windows::hann(5, true, DType::F64), numbers({0, 0.5, 1, 0.5, 0}));
  expect_equal(special::bessel_j0(numbers({1, 20})), numbers({0.7651976865579666, 0.1670246643405832}));
  expect_equal(igamma(numbers({1}), numbers({1})) + igammac(numbers({1}), numbers({1})), numbers({1}));
  expect_equal(diag_embed(numbers({1, 2})), numbers({1, 0, 0, 2}).view({2, 2}));
  const auto [w, v] = linalg::eig(numbers({0, 1, -1, 0}).view({2, 2}));
  expect_equal(real(w * w), numbers({-1, -1}));
}

}  // namespace
}  // namespace naru
