// Code compiled for several instruction sets gives the same bits with each.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "backends/cpu/exec/simd.h"
#include "backends/cpu/exec/transpose.h"
#include "backends/cpu/gemm/builtin_gemm.h"
#include "backends/cpu/reduce/find_best.h"

namespace naru::cpu {
namespace {

template <class T>
std::vector<T> random_values(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> v(n);
  for (T& x : v) x = static_cast<T>(static_cast<double>(random() % 20001) / 1000 - 10);
  return v;
}

template <class T>
void products_agree() {
  for (int64_t m : {1, 5, 8, 19})
    for (int64_t n : {1, 7, 32, 75})
      for (int64_t k : {1, 3, 300})
        for (bool transposed : {false, true}) {
          const auto a = random_values<T>(static_cast<size_t>(m * k), 1), b = random_values<T>(static_cast<size_t>(k * n), 2);
          std::vector<T> c(static_cast<size_t>(m * n)), d = c, e = c;
          OwnMatMul<T> q{m, n, k, a.data(), k, 1, b.data(), transposed ? 1 : n, transposed ? k : 1, c.data(), n};
          plain::builtin_gemm(q);
#if defined(__x86_64__)
          if (wide_level() >= 1) {
            q.c = d.data();
            avx2::builtin_gemm(q);
            ASSERT_EQ(std::memcmp(c.data(), d.data(), c.size() * sizeof(T)), 0) << m << "x" << n << "x" << k;
          }
          if (wide_level() >= 2) {
            q.c = e.data();
            avx512::builtin_gemm(q);
            ASSERT_EQ(std::memcmp(c.data(), e.data(), c.size() * sizeof(T)), 0) << m << "x" << n << "x" << k;
          }
#endif
        }
}

TEST(OwnMatMul, is_the_same_on_every_processor) {
  products_agree<float>();
  products_agree<double>();
  products_agree<int32_t>();
  products_agree<int64_t>();
}

TEST(FindBest, is_the_same_on_every_processor) {
  for (size_t n : {1, 15, 64, 65, 1000})
    for (int special = 0; special < 4; ++special) {
      auto x = random_values<float>(n, n);
      if (special == 1) x[n / 2] = std::nanf("");
      if (special == 2) x[n / 3] = std::numeric_limits<float>::infinity();
      if (special == 3) x[0] = -std::numeric_limits<float>::infinity(), x[n - 1] = std::nanf("");
      for (bool greatest : {true, false}) {
        const int64_t wanted = plain::find_best(x.data(), static_cast<int64_t>(n), greatest);
#if defined(__x86_64__)
        if (wide_level() >= 1) {
          EXPECT_EQ(avx2::find_best(x.data(), static_cast<int64_t>(n), greatest), wanted);
        }
        if (wide_level() >= 2) {
          EXPECT_EQ(avx512::find_best(x.data(), static_cast<int64_t>(n), greatest), wanted);
        }
#endif
        EXPECT_LT(wanted, static_cast<int64_t>(n));
      }
    }
}

template <class T>
void transposes() {
  for (int64_t rows : {1, 15, 16, 33, 130})
    for (int64_t cols : {1, 8, 16, 70, 129}) {
      const auto x = random_values<T>(static_cast<size_t>(rows * cols), 3);
      std::vector<T> y(x.size());
      transpose(reinterpret_cast<const char*>(x.data()), rows * static_cast<int64_t>(sizeof(T)), sizeof(T), rows, cols,
                reinterpret_cast<char*>(y.data()), cols * static_cast<int64_t>(sizeof(T)));
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j)
          ASSERT_EQ(y[static_cast<size_t>(i * cols + j)], x[static_cast<size_t>(j * rows + i)]) << rows << "x" << cols;
    }
}

TEST(Transpose, moves_every_element_to_its_place) {
  transposes<uint8_t>();
  transposes<int16_t>();
  transposes<float>();
  transposes<double>();
}

TEST(Transpose, streamed_is_the_same) {
  constexpr int64_t kRows = 100, kCols = 96;
  const auto x = random_values<float>(kRows * kCols, 3);
  std::vector<float> memory(kRows * kCols + 16);
  float* y = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  transpose(reinterpret_cast<const char*>(x.data()), kRows * 4, 4, kRows, kCols, reinterpret_cast<char*>(y), kCols * 4, true);
  stream_fence();
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kCols; ++j) ASSERT_EQ(y[i * kCols + j], x[static_cast<size_t>(j * kRows + i)]);
}

}  // namespace
}  // namespace naru::cpu
