#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <span>

#include "backends/cpu/exec/execute.h"
#include "backends/cpu/gemm/bfloat_product.h"
#include "cpu/switches.h"
#include "naru/error.h"
#include "support/arrays.h"

namespace naru::cpu {
namespace {

using testing::Array;
using testing::Layout;
using testing::Threads;

// Uses only the named libraries; restores all of them afterwards.
struct Using {
  explicit Using(const char* choice) { set_matmul_libraries(choice); }
  ~Using() { set_matmul_libraries(""); }
};

ir::MatMul product_of(Array& a, Array& b, Array& c, Array* bias = nullptr) {
  ir::MatMul q;
  q.dtype = a.dtype();
  q.batch = c.shape()[0], q.m = c.shape()[1], q.n = c.shape()[2], q.k = a.shape()[2];
  const auto matrix = [](Array& x) { return ir::MatMul::Matrix{x.at(0), x.strides()[0], x.strides()[1], x.strides()[2]}; };
  q.a = matrix(a), q.b = matrix(b), q.c = matrix(c);
  if (bias) q.bias = bias->at(0), q.bias_stride = bias->strides()[0];
  return q;
}

struct MatMulShape {
  int64_t batch, m, n, k;
};
const MatMulShape kMatMulShapes[] = {{1, 1, 1, 1},    {1, 8, 8, 8},       {1, 1, 50, 70},   {1, 50, 1, 70},  {3, 5, 7, 9},
                                     {1, 33, 65, 17}, {1, 130, 140, 150}, {2, 64, 48, 300}, {1, 3, 4, 0},    {0, 3, 4, 5},
                                     {1, 0, 4, 5},    {1, 300, 10, 64},   {1, 64, 96, 400}, {1, 1, 1, 1000}, {1, 7, 600, 1}};
constexpr Layout kPlainLayouts[] = {Layout::Contiguous, Layout::Transposed};
constexpr Layout kMatrixLayouts[] = {Layout::Contiguous, Layout::Transposed, Layout::Stepped, Layout::Repeated, Layout::Offset};

std::vector<double> values_of(Array& x) {
  std::vector<double> v(static_cast<size_t>(x.numel()));
  for (int64_t p = 0; p < x.numel(); ++p) v[static_cast<size_t>(p)] = x.value(p);
  return v;
}

// Checks against the error bound of a sum of k products in any order.
void expect_right(const ir::MatMul& q, Array& a, Array& b, Array& c, Array* bias, double epsilon) {
  const std::vector<double> x = values_of(a), y = values_of(b);
  for (int64_t p = 0; p < c.numel(); ++p) {
    const int64_t j = p % q.n, i = p / q.n % q.m, e = p / q.n / q.m;
    double sum = bias ? bias->value(j) : 0, size = std::abs(sum);
    for (int64_t k = 0; k < q.k; ++k) {
      const double t = x[static_cast<size_t>((e * q.m + i) * q.k + k)] * y[static_cast<size_t>((e * q.k + k) * q.n + j)];
      sum += t, size += std::abs(t);
    }
    ASSERT_NEAR(c.value(p), sum, epsilon * (size * 2 + 1e-30)) << q.m << "x" << q.n << "x" << q.k << " at " << p;
  }
}

void check_all_shapes(DType t, double epsilon, bool deterministic = false, std::span<const MatMulShape> shapes = kMatMulShapes,
                      std::span<const Layout> layouts = kMatrixLayouts) {
  for (const MatMulShape& s : shapes)
    for (Layout la : layouts)
      for (Layout lb : layouts)
        for (Layout lc : {Layout::Contiguous, Layout::Transposed, Layout::Stepped}) {
          Array a({s.batch, s.m, s.k}, t, la, 1), b({s.batch, s.k, s.n}, t, lb, 2), c({s.batch, s.m, s.n}, t, lc, 3),
              bias({s.n}, t, Layout::Stepped, 4);
          const bool with_bias = (s.m + s.k) % 2;
          ir::MatMul q = product_of(a, b, c, with_bias ? &bias : nullptr);
          q.precision.deterministic = deterministic;
          const std::vector<char> before = c.memory();
          execute(q);
          SCOPED_TRACE(std::string(naru::name_of(t)) + " " + name_of(la) + " " + name_of(lb) + " -> " + name_of(lc));
          expect_right(q, a, b, c, with_bias ? &bias : nullptr, epsilon * std::sqrt(static_cast<double>(s.k) + 1));
          if (::testing::Test::HasFatalFailure()) return;
          // Gaps between the elements must be unchanged.
          Array cleared = c;
          for (int64_t p = 0; p < c.numel(); ++p) {
            const size_t at = static_cast<size_t>(static_cast<char*>(c.at(p)) - c.memory().data());
            std::copy(before.begin() + static_cast<long>(at), before.begin() + static_cast<long>(at + size_of(t)),
                      static_cast<char*>(cleared.at(p)));
          }
          ASSERT_EQ(cleared.memory(), before);
        }
}

TEST(MatMul, float32_agrees_with_float64_whichever_library_computes_it) {
  for (const char* choice : {"", "own", "dnnl", "openblas"}) {
    const Using only(choice);
    SCOPED_TRACE(std::string("products: ") + choice + " (" + matmul_libraries() + ")");
    check_all_shapes(DType::F32, 6e-8);
    if (HasFatalFailure()) return;
  }
}

TEST(MatMul, float64_float16_and_bfloat16) {
  check_all_shapes(DType::F64, 2e-16);
  check_all_shapes(DType::F16, 1e-3);
  check_all_shapes(DType::BF16, 8e-3);
}

// Processors with a bfloat16 instruction, or tiles, use them here; includes tails in all three dimensions, and several blocks of each.
TEST(MatMul, bfloat16_large_enough_for_the_processors_own_instruction) {
  constexpr MatMulShape kLarge[] = {{1, 8, 8, 2048}, {1, 9, 17, 1027}, {2, 71, 63, 30}, {1, 130, 8, 127}, {3, 16, 200, 41}};
  check_all_shapes(DType::BF16, 8e-3, false, kLarge);
  check_all_shapes(DType::BF16, 8e-3, true, kLarge);
  constexpr MatMulShape kBlocks[] = {{1, 290, 270, 33}, {1, 33, 300, 530}, {1, 530, 31, 289}};
  check_all_shapes(DType::BF16, 8e-3, false, kBlocks, kPlainLayouts);
}

// Few rows or columns read the other matrix as it lies; tails of vectors in both dimensions, and several blocks of them.
TEST(MatMul, few_rows_and_few_columns) {
  constexpr MatMulShape kFew[] = {{1, 1, 300, 70},  {2, 2, 130, 41}, {1, 3, 64, 65},  {1, 4, 17, 513}, {3, 5, 33, 40},  {1, 6, 1, 1200},
                                  {1, 7, 500, 130}, {1, 40, 5, 300}, {3, 300, 1, 33}, {1, 33, 7, 64},  {1, 1, 1, 2000}, {2, 8, 3, 129}};
  constexpr MatMulShape kFewWide[] = {{1, 2, 400, 330}, {1, 3, 133, 1030}, {1, 7, 1100, 130}, {1, 700, 5, 200}, {2, 4, 410, 321}};
  check_all_shapes(DType::F32, 6e-8, false, kFewWide, kPlainLayouts);
  constexpr MatMulShape kHalves[] = {{1, 8, 65, 130}, {2, 13, 40, 129}, {1, 130, 15, 70}, {1, 16, 33, 100}, {1, 17, 33, 100}};
  check_all_shapes(DType::F16, 1e-3, false, kFew, kPlainLayouts);
  check_all_shapes(DType::F16, 1e-3, false, kHalves, kPlainLayouts);
  check_all_shapes(DType::BF16, 8e-3, false, kFew, kPlainLayouts);
}
TEST(MatMul, few_rows_have_the_same_bits_for_every_number_of_threads) {
  for (const DType type : {DType::F32, DType::F16, DType::BF16})
    for (const Layout layout : {Layout::Contiguous, Layout::Transposed}) {
      Array a({1, 3, 700}, type, Layout::Contiguous, 1), b({1, 700, 900}, type, layout, 2), c({1, 3, 900}, type);
      std::vector<char> first;
      for (const int threads : {1, 2, 5}) {
        const Threads some(threads);
        execute(product_of(a, b, c));
        if (threads == 1) first = c.memory();
        ASSERT_EQ(c.memory(), first);
      }
    }
}

// naru's own products that the processor has, also those that another one of them replaces.
TEST(MatMul, each_own_product_of_bfloat16_is_right_and_has_the_same_bits_for_every_number_of_threads) {
  if (!has_bfloat_products()) GTEST_SKIP() << "this processor has no instruction for bfloat16";
  constexpr MatMulShape kShapes[] = {{1, 64, 64, 64}, {2, 100, 70, 300}, {3, 37, 129, 257}, {1, 600, 40, 31}, {1, 17, 800, 65}};
  for (const MatMulShape& s : kShapes)
    for (const Layout layout : kMatrixLayouts) {
      Array a({s.batch, s.m, s.k}, DType::BF16, layout, 1), b({s.batch, s.k, s.n}, DType::BF16, layout, 2),
          bias({s.n}, DType::BF16, layout, 4);
      Array wide({s.batch, s.m, s.n}, DType::F32),
          narrow({s.batch, s.m, s.n}, DType::BF16, layout == Layout::Repeated ? Layout::Offset : layout);
      const ir::MatMul pairs = product_of(a, b, wide), tiles = product_of(a, b, narrow, &bias);
      std::vector<char> first[2];
      for (const int threads : {1, 2, 5}) {
        const Threads some(threads);
        bfloat_product(pairs);
        if (has_bfloat_tiles()) bfloat_tile_product(tiles);
        if (threads == 1) first[0] = wide.memory(), first[1] = narrow.memory();
        ASSERT_EQ(wide.memory(), first[0]);
        ASSERT_EQ(narrow.memory(), first[1]);
      }
      SCOPED_TRACE(name_of(layout));
      const double root = std::sqrt(static_cast<double>(s.k));
      expect_right(pairs, a, b, wide, nullptr, 6e-8 * root);
      if (has_bfloat_tiles()) expect_right(tiles, a, b, narrow, &bias, 8e-3);
      if (HasFatalFailure()) return;
    }
}

// More than tiles pack at a time (24 MiB of the right matrix).
TEST(MatMul, bfloat16_with_a_right_matrix_that_is_packed_in_parts) {
  constexpr int64_t kM = 8, kN = 1100, kK = 12000;
  Array a({1, kM, kK}, DType::BF16, Layout::Contiguous, 1), b({1, kK, kN}, DType::BF16, Layout::Contiguous, 2), c({1, kM, kN}, DType::BF16);
  execute(product_of(a, b, c));
  Array left({1, kM, kK}, DType::BF16, Layout::Contiguous, 1), right({1, kK, 1}, DType::BF16), one({1, kM, 1}, DType::BF16);
  for (const int64_t j : {int64_t{0}, int64_t{255}, int64_t{256}, int64_t{767}, int64_t{1023}, int64_t{1024}, kN - 1}) {
    for (int64_t k = 0; k < kK; ++k) std::memcpy(right.at(k), b.at(k * kN + j), 2);
    const ir::MatMul q = product_of(left, right, one);
    for (int64_t i = 0; i < kM; ++i) std::memcpy(one.at(i), c.at(i * kN + j), 2);
    expect_right(q, left, right, one, nullptr, 8e-3);
  }
}

TEST(MatMul, integers_wrap) {
  for (DType t : {DType::U8, DType::I8, DType::I16, DType::I32, DType::I64}) {
    Array a({2, 19, 40}, t, Layout::Transposed, 1), b({2, 40, 37}, t, Layout::Contiguous, 2), c({2, 19, 37}, t);
    execute(product_of(a, b, c));
    for (int64_t p = 0; p < c.numel(); ++p) {
      const int64_t j = p % 37, i = p / 37 % 19, e = p / 37 / 19;
      int64_t sum = 0;
      for (int64_t k = 0; k < 40; ++k)
        sum += static_cast<int64_t>(a.value((e * 19 + i) * 40 + k)) * static_cast<int64_t>(b.value((e * 40 + k) * 37 + j));
      alignas(8) char wrapped[8];
      testing::write(t, wrapped, static_cast<double>(sum));
      ASSERT_EQ(c.value(p), testing::read(t, wrapped)) << naru::name_of(t);
    }
  }
}

TEST(MatMul, bool_is_a_typed_error) {
  Array a({1, 2, 2}, DType::Bool), b = a, c = a;
  EXPECT_THROW(execute(product_of(a, b, c)), RuntimeError);
}

TEST(MatMul, deterministic_is_one_chain_of_fma_in_the_order_of_k) {
  for (const MatMulShape& s : kMatMulShapes) {
    Array a({s.batch, s.m, s.k}, DType::F32, Layout::Contiguous, 1), b({s.batch, s.k, s.n}, DType::F32, Layout::Transposed, 2),
        c({s.batch, s.m, s.n}, DType::F32), bias({s.n}, DType::F32);
    ir::MatMul q = product_of(a, b, c, &bias);
    q.precision.deterministic = true;
    execute(q);
    const std::vector<double> x = values_of(a), y = values_of(b);
    for (int64_t p = 0; p < c.numel(); ++p) {
      const int64_t j = p % s.n, i = p / s.n % s.m, e = p / s.n / s.m;
      float sum = 0;
      for (int64_t k = 0; k < s.k; ++k)
        sum = std::fma(static_cast<float>(x[static_cast<size_t>((e * s.m + i) * s.k + k)]),
                       static_cast<float>(y[static_cast<size_t>((e * s.k + k) * s.n + j)]), sum);
      sum += static_cast<float>(bias.value(j));
      ASSERT_EQ(c.value(p), sum) << s.m << "x" << s.n << "x" << s.k;
    }
  }
  check_all_shapes(DType::F64, 2e-16, true);
}

TEST(MatMul, bits_do_not_depend_on_threads) {
  for (bool deterministic : {false, true})
    for (const MatMulShape& s : {MatMulShape{1, 300, 200, 257}, MatMulShape{1, 1, 3000, 400}, MatMulShape{1, 2000, 1, 300},
                                 MatMulShape{1, 128, 128, 128}, MatMulShape{40, 16, 16, 16}}) {
      Array a({s.batch, s.m, s.k}, DType::F32, Layout::Contiguous, 1), b({s.batch, s.k, s.n}, DType::F32, Layout::Contiguous, 2),
          c({s.batch, s.m, s.n}, DType::F32), d = c;
      ir::MatMul q = product_of(a, b, c);
      q.precision.deterministic = deterministic;
      {
        const Threads one(1);
        execute(q);
      }
      for (int threads : {2, 3, 8}) {
        const Threads n(threads);
        q = product_of(a, b, d);
        q.precision.deterministic = deterministic;
        d.fill(0);
        execute(q);
        ASSERT_EQ(c.memory(), d.memory()) << s.m << "x" << s.n << "x" << s.k << " " << threads << " threads";
      }
    }
}

TEST(MatMul, no_elements_to_add_up_give_zeros_or_the_bias) {
  Array a({1, 3, 0}, DType::F32), b({1, 0, 4}, DType::F32), c({1, 3, 4}, DType::F32), bias({4}, DType::F32);
  execute(product_of(a, b, c));
  for (int64_t p = 0; p < 12; ++p) EXPECT_EQ(c.value(p), 0);
  execute(product_of(a, b, c, &bias));
  for (int64_t p = 0; p < 12; ++p) EXPECT_EQ(c.value(p), bias.value(p % 4));
}

TEST(Products, an_unknown_choice_is_an_error) { EXPECT_THROW(set_matmul_libraries("mkl"), RuntimeError); }

}  // namespace
}  // namespace naru::cpu
