#include <cmath>

#include "ops/gradients.h"
#include "runtime/device/registry.h"

namespace naru {
namespace {

using test::expect_error;
using test::expect_gradients;
using test::numbers;
using Doubles = std::vector<double>;
using In = const std::vector<Tensor>&;

// a (m, k) times b (k, n) by plain loops.
Doubles naive(const Tensor& a, const Tensor& b) {
  const Doubles x = a.to_doubles(), y = b.to_doubles();
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  Doubles out(static_cast<size_t>(m * n), 0.0);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        out[static_cast<size_t>(i * n + j)] += x[static_cast<size_t>(i * k + p)] * y[static_cast<size_t>(p * n + j)];
  return out;
}

void expect_near(const Tensor& got, const Doubles& wanted, double tolerance) {
  const Doubles v = got.to_doubles();
  ASSERT_EQ(v.size(), wanted.size());
  for (size_t i = 0; i < v.size(); ++i) ASSERT_NEAR(v[i], wanted[i], tolerance) << "element " << i;
}

TEST(Matmul, OfEveryLayoutIsTheProductOfPlainLoops) {
  for (const auto [m, k, n] :
       {std::array<int64_t, 3>{1, 1, 1}, {3, 5, 7}, {64, 33, 10}, {130, 140, 150}, {1, 300, 5}, {40, 1, 9}, {5, 0, 4}}) {
    const Tensor a = numbers({m, k}), b = numbers({k, n});
    const Tensor as[] = {a, a.t().contiguous().t(), numbers({2 * m, 3 * k}).slice(0, 0, 2 * m, 2).slice(1, 0, 3 * k, 3),
                         a.narrow(0, 0, 1).expand({m, k})};
    const Tensor bs[] = {b, b.t().contiguous().t(), numbers({n, 2 * k}).slice(1, 0, 2 * k, 2).t()};
    for (const Tensor& x : as)
      for (const Tensor& y : bs) expect_near(matmul(x, y), naive(x, y), 1e-12 * static_cast<double>(k + 1));
  }
}

TEST(Matmul, OfTheOtherTypesIsRoundedFromAWiderOne) {
  const Tensor a = numbers({9, 20}), b = numbers({20, 11});
  expect_near(matmul(a.to(DType::F32), b.to(DType::F32)), naive(a, b), 1e-5);
  expect_near(matmul(a.to(DType::F16), b.to(DType::F16)), naive(a, b), 2e-2);
  const Tensor i = randint(-50, 50, {9, 20}), j = randint(-50, 50, {20, 11});
  expect_near(matmul(i, j), naive(i, j), 0);
  EXPECT_EQ(matmul(i, j).dtype(), DType::I64);
}

TEST(Matmul, TakesEveryPairOfRanks) {
  const auto shape = [](const Dims& a, const Dims& b) { return matmul(numbers(a), numbers(b)).sizes(); };
  EXPECT_EQ(shape({3}, {3}), Dims{});
  EXPECT_EQ(shape({2, 3}, {3}), Dims{2});
  EXPECT_EQ(shape({3}, {3, 4}), Dims{4});
  EXPECT_EQ(shape({2, 3}, {3, 4}), (Dims{2, 4}));
  EXPECT_EQ(shape({5, 2, 3}, {3, 4}), (Dims{5, 2, 4}));
  EXPECT_EQ(shape({5, 2, 3}, {3}), (Dims{5, 2}));
  EXPECT_EQ(shape({3}, {5, 3, 4}), (Dims{5, 4}));
  EXPECT_EQ(shape({2, 3}, {5, 3, 4}), (Dims{5, 2, 4}));
  EXPECT_EQ(shape({6, 1, 2, 3}, {5, 3, 4}), (Dims{6, 5, 2, 4}));
  EXPECT_EQ(shape({0, 3}, {3, 4}), (Dims{0, 4}));
  EXPECT_EQ(shape({7, 0, 3}, {3, 4}), (Dims{7, 0, 4}));
}

TEST(Matmul, OfBatchesMultipliesEachPair) {
  const Tensor a = numbers({6, 1, 2, 3}), b = numbers({5, 4, 3}).transpose(1, 2);
  const Tensor y = matmul(a, b);
  for (int64_t i = 0; i < 6; ++i)
    for (int64_t j = 0; j < 5; ++j) expect_near(y.select(0, i).select(0, j), naive(a.select(0, i).select(0, 0), b.select(0, j)), 1e-13);
}

TEST(Matmul, HasGradientsForEveryPairOfRanks) {
  const std::pair<Dims, Dims> pairs[] = {{{3}, {3}},          {{2, 3}, {3}},       {{3}, {3, 4}},    {{2, 3}, {3, 2}},
                                         {{2, 2, 3}, {3, 2}}, {{2, 3}, {2, 3, 2}}, {{3}, {2, 3, 2}}, {{2, 1, 2, 3}, {2, 3, 2}},
                                         {{2, 2, 3}, {3}}};
  for (const auto& [a, b] : pairs) {
    SCOPED_TRACE(a.str() + " @ " + b.str());
    expect_gradients([](In t) { return matmul(t[0], t[1]); }, {numbers(a), numbers(b, -1, 1, 2)});
  }
  expect_gradients([](In t) { return matmul(t[0].t(), t[1]); }, {numbers({3, 2}), numbers({3, 2}, -1, 1, 2)});
  expect_gradients([](In t) { return outer(t[0], t[1]); }, {numbers({3}), numbers({2}, -1, 1, 2)});
}

TEST(Matmul, OfShapesThatDoNotFitIsAnErrorWithPyTorchsText) {
  const Tensor f = ones({2, 3});
  expect_error<RuntimeError>([&] { matmul(f, ones({4, 5})); }, "mm: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)");
  expect_error<RuntimeError>([&] { matmul(ones({3}), ones({4, 5})); }, "mm: mat1 and mat2 shapes cannot be multiplied (1x3 and 4x5)");
  expect_error<RuntimeError>([&] { matmul(f, ones({4})); }, "size mismatch, got input (2), mat (2x3), vec (4)");
  expect_error<RuntimeError>([&] { matmul(ones({3}), ones({4})); },
                             "inconsistent tensor size, expected tensor [3] and src [4] to have the same number of elements, but got 3 and "
                             "4 elements respectively");
  expect_error<RuntimeError>(
      [&] {
        matmul(ones({2, 2, 3}), ones({2, 4, 5}));
      },
      "Expected size for first two dimensions of batch2 tensor to be: [2, 3] but got: [2, 4].");
  expect_error<RuntimeError>(
      [&] {
        matmul(ones({2, 2, 3}), ones({3, 3, 5}));
      },
      "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0");
  expect_error<RuntimeError>([&] { matmul(scalar_tensor(1.0), f); },
                             "both arguments to matmul need to be at least 1D, but they are 0D and 2D");
  expect_error<RuntimeError>(
      [&] {
        matmul(f, ones({3, 2}, Options(DType::F64)));
      },
      "expected m1 and m2 to have the same dtype, but got: float != double");
  const Tensor b = ones({2, 2}, Options(DType::Bool));
  expect_error<NotImplementedError>([&] { matmul(b, b); }, "\"addmm_impl_cpu_\" not implemented for 'Bool'");
}

TEST(Addmm, ScalesBothPartsAndIgnoresTheFirstForBetaZero) {
  const Tensor a = numbers({3, 4}), b = numbers({4, 2}), c = numbers({2}), d = numbers({3, 1});
  expect_near(addmm(c, a, b), (c + matmul(a, b)).to_doubles(), 1e-14);
  expect_near(addmm(d, a, b, 0.5, 2.0), (d * 0.5 + matmul(a, b) * 2).to_doubles(), 1e-14);
  const Tensor nan = full({2}, std::nan(""), Options(DType::F64));
  expect_near(addmm(nan, a, b, 0), matmul(a, b).to_doubles(), 1e-14);
  expect_gradients([](In t) { return addmm(t[0], t[1], t[2], 0.5, 2.0); }, {d, a, b});
  expect_gradients([](In t) { return addmm(t[0], t[1], t[2]); }, {c, a, b});
  expect_error<RuntimeError>(
      [&] {
        addmm(ones({4}), ones({2, 3}), ones({3, 5}));
      },
      "The expanded size of the tensor (5) must match the existing size (4) at non-singleton dimension 1.");
}

TEST(Linear, TakesAnyLeadingDimensions) {
  const Tensor w = numbers({5, 3}), bias = numbers({5});
  for (const Dims& shape : {Dims{3}, Dims{4, 3}, Dims{2, 4, 3}, Dims{2, 0, 3}, Dims{2, 1, 4, 3}}) {
    const Tensor x = numbers(shape);
    expect_near(linear(x, w, bias), (matmul(x, w.t()) + bias).to_doubles(), 1e-14);
    expect_near(linear(x, w), matmul(x, w.t()).to_doubles(), 1e-14);
    if (x.numel() == 0) continue;
    expect_gradients([](In t) { return linear(t[0], t[1], t[2]); }, {x, w, bias});
    expect_gradients([](In t) { return linear(t[0], t[1]); }, {x, w});
  }
}

TEST(Linear, ErrorsOpenWithPyTorchsText) {
  expect_error<RuntimeError>(
      [] {
        linear(ones({32, 100}), ones({256, 784}), ones({256}));
      },
      "addmm: mat1 and mat2 shapes cannot be multiplied (32x100 and 784x256)");
  expect_error<RuntimeError>(
      [] {
        linear(ones({2, 3}), ones({5, 3}), ones({4}));
      },
      "The expanded size of the tensor (5) must match the existing size (4)");
  expect_error<RuntimeError>(
      [] {
        linear(ones({2, 3}), ones({5, 3}, Options(DType::F64)));
      },
      "expected m1 and m2 to have the same dtype, but got: float != double");
}

TEST(Linear, GivesNoGradientToWhatNeedsNone) {
  const Tensor x = ones({4, 3});
  Tensor w = ones({2, 3}).requires_grad_();
  linear(x, w).sum().backward();
  EXPECT_EQ(w.grad().to_doubles(), Doubles(6, 4.0));
  EXPECT_FALSE(x.grad().defined());
}

TEST(Products, DeterministicOnesAreTheSameOnAVirtualDeviceBitForBit) {
  runtime::set_virtual_devices("cuda:2,mps:1");
  use_deterministic_algorithms(true);
  const Tensor a = numbers({70, 90}).to(DType::F32), b = numbers({90, 50}).to(DType::F32);
  EXPECT_EQ(matmul(a, b).to_doubles(), matmul(a.to("mps"), b.to("mps")).to_doubles());
  use_deterministic_algorithms(false);
  EXPECT_FALSE(deterministic_algorithms());
}

}  // namespace
}  // namespace naru
