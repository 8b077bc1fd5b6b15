// LAPACK instructions: batches, more columns than a thread processes at once, and empty matrices.
#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <vector>

#include "backends/cpu/exec/execute.h"
#include "backends/cpu/libraries/openblas.h"
#include "cpu/switches.h"

namespace naru::cpu {
namespace {

using ir::Lapack;
using Routine = Lapack::Routine;

Lapack::Array array(void* data, DType type, bool written, int64_t rows, int64_t cols) {
  return {data, type, written, rows, cols, rows, rows * cols};
}

// Column-major matrices: i + 2 on the diagonal, otherwise 1 / (1 + i + j); different for each matrix of the batch.
std::vector<double> matrices(int64_t batch, int64_t n) {
  std::vector<double> a;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < n; ++i) a.push_back(i == j ? static_cast<double>(i + 2 + b) : 1.0 / static_cast<double>(1 + i + j));
  return a;
}

class LapackRoutines : public ::testing::Test {
 protected:
  void SetUp() override {
    if (openblas_name().empty()) GTEST_SKIP() << "there is no OpenBLAS on this machine";
  }
};

TEST_F(LapackRoutines, what_pivots_that_are_no_rows_of_the_matrix_give_is_nan) {
  for (const Routine routine : {Routine::LuSolve, Routine::LdlSolve})
    for (const std::vector<int>& wrong : {std::vector<int>{1, 2, 4}, {0, 2, 3}, {1, 2, INT_MAX}, {INT_MIN, 2, 3}, {1, 2, -3}}) {
      const std::vector<double> a = matrices(1, 3);
      std::vector<double> factors = a, x(6, 1.0);
      std::vector<int> pivots = wrong, info(1, 7);
      Lapack solve{.routine = routine, .dtype = DType::F64, .batch = 1, .arrays = {}};
      solve.arrays = {array(factors.data(), DType::F64, false, 3, 3), array(pivots.data(), DType::I32, false, 3, 1),
                      array(x.data(), DType::F64, true, 3, 2), array(info.data(), DType::I32, true, 1, 1)};
      execute(solve);
      for (const double v : x) EXPECT_TRUE(std::isnan(v));
      EXPECT_LT(info[0], 0);
    }
}

TEST_F(LapackRoutines, every_matrix_of_a_batch_is_factored_and_every_column_solved_for) {
  constexpr int64_t kBatch = 3, kSize = 7, kColumns = 150;
  std::vector<double> results;
  for (const int threads : {1, 2, 3}) {
    const testing::Threads scope(threads);
    const std::vector<double> a = matrices(kBatch, kSize);
    std::vector<double> lu = a, x(kBatch * kSize * kColumns);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 11) - 5;
    const std::vector<double> b = x;
    std::vector<int> pivots(kBatch * kSize), info(kBatch, 7);
    Lapack factor{.routine = Routine::Lu, .dtype = DType::F64, .batch = kBatch, .arrays = {}};
    factor.arrays = {array(lu.data(), DType::F64, true, kSize, kSize), array(pivots.data(), DType::I32, true, kSize, 1),
                     array(info.data(), DType::I32, true, 1, 1)};
    execute(factor);
    EXPECT_EQ(info, std::vector<int>(kBatch, 0));
    Lapack solve = factor;
    solve.routine = Routine::LuSolve;
    solve.arrays = {array(lu.data(), DType::F64, false, kSize, kSize), array(pivots.data(), DType::I32, false, kSize, 1),
                    array(x.data(), DType::F64, true, kSize, kColumns), array(info.data(), DType::I32, true, 1, 1)};
    execute(solve);
    for (int64_t m = 0; m < kBatch; ++m)
      for (int64_t c = 0; c < kColumns; ++c)
        for (int64_t i = 0; i < kSize; ++i) {
          double sum = 0;
          for (int64_t j = 0; j < kSize; ++j)
            sum += a[static_cast<size_t>((m * kSize + j) * kSize + i)] * x[static_cast<size_t>((m * kColumns + c) * kSize + j)];
          EXPECT_NEAR(sum, b[static_cast<size_t>((m * kColumns + c) * kSize + i)], 1e-12);
        }
    if (results.empty()) results = x;
    EXPECT_EQ(results, x) << threads << " threads gave other bits than one";
  }
}

TEST_F(LapackRoutines, a_matrix_that_is_not_positive_says_so_and_the_others_are_done) {
  std::vector<float> a{4, 2, 2, 5, -1, 0, 0, 1, NAN, 0, 0, 1};
  std::vector<int> info(3, 7);
  Lapack factor{.routine = Routine::Cholesky, .dtype = DType::F32, .batch = 3, .arrays = {}};
  factor.arrays = {array(a.data(), DType::F32, true, 2, 2), array(info.data(), DType::I32, true, 1, 1)};
  execute(factor);
  EXPECT_EQ(info, (std::vector<int>{0, 1, 1}));
  EXPECT_EQ(std::vector<float>(a.begin(), a.begin() + 4), (std::vector<float>{2, 1, 0, 2}));
}

TEST_F(LapackRoutines, matrices_without_elements_are_factored_at_once) {
  int info[2] = {7, 7};
  Lapack factor{.routine = Routine::Eigh, .dtype = DType::F64, .batch = 2, .arrays = {}};
  factor.arrays = {array(nullptr, DType::F64, true, 0, 0), array(nullptr, DType::F64, true, 0, 1), array(info, DType::I32, true, 1, 1)};
  execute(factor);
  EXPECT_EQ(info[0], 0);
  EXPECT_EQ(info[1], 0);
}

}  // namespace
}  // namespace naru::cpu
