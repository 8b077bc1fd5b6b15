// Linear algebra from C++: known values, gradients, errors.
#include "naru/ops/linalg.h"

#include <gtest/gtest.h>

#include <cmath>

#include "naru/autograd.h"
#include "ops/checks.h"

namespace naru {
namespace {

using testing::Doubles;
using testing::expect_gradient;
using testing::text_of;

Tensor matrix(const Doubles& values, int64_t rows) { return tensor(values, DType::F64).view({rows, -1}); }
const Doubles kMatrix{4, 1, 2, 1, 5, 3, 2, 3, 6};

void expect_equal(const Tensor& a, const Tensor& b) { EXPECT_TRUE(allclose(a, b, 1e-9, 1e-12)) << a.str() << " is not " << b.str(); }

TEST(Linalg, SystemsAreSolvedFromBothSidesAndForVectors) {
  const Tensor a = matrix(kMatrix, 3), b = matrix({1, 2, 3, 4, 5, 6}, 3);
  expect_equal(matmul(a, linalg::solve(a, b)), b);
  expect_equal(matmul(linalg::solve(a, b.t(), false), a), b.t());
  expect_equal(matmul(a, linalg::solve(a, b.select(1, 0))), b.select(1, 0));
  expect_equal(matmul(linalg::inv(a), a), eye(3, 3, DType::F64));
  expect_equal(matmul(tril(a), linalg::solve_triangular(a, b, false)), b);
  const auto [factors, pivots] = linalg::lu_factor(a);
  expect_equal(linalg::lu_solve(factors, pivots, b), linalg::solve(a, b));
  expect_equal(cholesky_solve(b, linalg::cholesky(a)), linalg::solve(a, b));
  const auto [ld, exchanges] = linalg::ldl_factor(a);
  expect_equal(linalg::ldl_solve(ld, exchanges, b), linalg::solve(a, b));
  EXPECT_NEAR(linalg::det(a).item<double>(), 70, 1e-9);
  EXPECT_NEAR(logdet(a).item<double>(), std::log(70), 1e-12);
}

TEST(Linalg, FactorsMultiplyToTheMatrix) {
  const Tensor a = matrix({1, 2, 3, 4, 5, 7, 8, 9, 11, 0, 1, 5}, 4);
  const auto [p, l, u] = linalg::lu(a);
  expect_equal(matmul(p, matmul(l, u)), a);
  const auto [q, r] = linalg::qr(a);
  expect_equal(matmul(q, r), a);
  const auto [left, s, right] = linalg::svd(a, false);
  expect_equal(matmul(left * s, right), a);
  expect_equal(linalg::svdvals(a), s);
  const Tensor square = matrix(kMatrix, 3);
  const auto [w, v] = linalg::eigh(square);
  expect_equal(matmul(v * w, v.t()), square);
  const Tensor root = linalg::matrix_sqrth(square);
  expect_equal(matmul(root, root), square);
  const auto [turn, stretch] = linalg::polar(a);
  expect_equal(matmul(turn, stretch), a);
  expect_equal(matmul(a, matmul(linalg::pinv(a), a)), a);
  EXPECT_EQ(linalg::matrix_rank(a).item<int64_t>(), 3);
}

TEST(Linalg, NormsAndPowersAreThoseOfTheirDefinitions) {
  const Tensor a = matrix({1, -2, 3, 4}, 2);
  EXPECT_EQ(linalg::matrix_norm(a, 1).item<double>(), 6);
  EXPECT_EQ(linalg::matrix_norm(a, INFINITY).item<double>(), 7);
  EXPECT_NEAR(linalg::matrix_norm(a).item<double>(), std::sqrt(30), 1e-12);
  EXPECT_NEAR(linalg::norm(a, 2).item<double>() * linalg::matrix_norm(a, -2).item<double>(), 10, 1e-9);
  EXPECT_NEAR(linalg::cond(a, 1).item<double>(), 4.2, 1e-12);
  EXPECT_EQ(linalg::vander(tensor({2.0, 3.0}), 3).to_doubles(), (Doubles{1, 2, 4, 1, 3, 9}));
  expect_equal(linalg::matrix_power(a, 3), matmul(a, matmul(a, a)));
  expect_equal(linalg::matrix_exp(zeros({2, 2}, DType::F64)), eye(2, 2, DType::F64));
  expect_equal(linalg::multi_dot({a, a, a}), linalg::matrix_power(a, 3));
  EXPECT_EQ(linalg::vecdot(a, a).to_doubles(), (Doubles{5, 25}));
}

TEST(Linalg, GradientsAgreeWithDifferences) {
  const Tensor a = matrix(kMatrix, 3);
  expect_gradient([](const Tensor& x) { return linalg::inv(x); }, a);
  expect_gradient([](const Tensor& x) { return linalg::det(x); }, a);
  expect_gradient([](const Tensor& x) { return linalg::cholesky(matmul(x, x.t())); }, a);
  expect_gradient([](const Tensor& x) { return linalg::qr(x).second; }, a);
  expect_gradient([](const Tensor& x) { return linalg::svdvals(x); }, a);
  expect_gradient([](const Tensor& x) { return linalg::eigh(x + x.t()).second.square(); }, a);
  expect_gradient([](const Tensor& x) { return linalg::matrix_exp(x * 0.1); }, a);
}

TEST(Linalg, WhatAMatrixCanNotBeIsALinAlgError) {
  EXPECT_EQ(text_of<LinAlgError>([] {
              linalg::solve(zeros({2, 3, 3}), ones({3, 1}));
            }),
            "torch.linalg.solve: (Batch element 0): The solver failed because the input matrix is singular.");
  EXPECT_EQ(text_of<RuntimeError>([] {
              linalg::inv(zeros({2, 3}));
            }),
            "linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices");
  EXPECT_EQ(linalg::inv_ex(zeros({2, 2})).second.item<int64_t>(), 1);
  EXPECT_EQ(text_of<NotImplementedError>([] {
              linalg::svd(ones({2, 2}, DType::I64));
            }),
            "linalg.svd: Expected a floating point or complex tensor as input. Got Long");
}

}  // namespace
}  // namespace naru
