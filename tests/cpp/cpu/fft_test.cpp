// Fourier transform instructions: every length against the defining sum, the same bits for any number of rows and threads, strides.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <vector>

#include "backends/cpu/exec/execute.h"
#include "backends/cpu/fft/fft_plan.h"
#include "cpu/switches.h"

namespace naru::cpu {
namespace {

using ir::Fft;
using Kind = Fft::Kind;
using Numbers = std::vector<std::complex<double>>;

constexpr double kTurn = 6.28318530717958647693;

Numbers numbers(int64_t count) {
  Numbers z;
  for (int64_t i = 0; i < count; ++i) z.emplace_back(std::sin(1.3 * static_cast<double>(i)), std::cos(0.7 * static_cast<double>(i) + 0.2));
  return z;
}

Numbers summed(const Numbers& z, bool inverse) {
  const auto n = static_cast<int64_t>(z.size());
  Numbers out;
  for (int64_t k = 0; k < n; ++k) {
    std::complex<double> sum = 0;
    for (int64_t j = 0; j < n; ++j)
      sum +=
          z[static_cast<size_t>(j)] * std::polar(1.0, (inverse ? kTurn : -kTurn) * static_cast<double>(j * k % n) / static_cast<double>(n));
    out.push_back(sum);
  }
  return out;
}

Fft rows_of(Kind kind, int64_t n, int64_t rows, const void* in, void* out, DType type = DType::F64) {
  Fft op;
  op.kind = kind, op.n = n, op.shape = {rows}, op.dtype = type;
  op.in = {const_cast<void*>(in), {op.given() * (op.complex_in() ? 2 : 1)}, op.complex_in() ? 2 : 1};
  op.out = {out, {op.made() * (op.complex_out() ? 2 : 1)}, op.complex_out() ? 2 : 1};
  return op;
}

TEST(Fft, complex_rows_of_every_length_are_the_sums_that_define_them_both_ways) {
  for (int64_t n = 1; n <= 140; ++n)
    for (const bool inverse : {false, true}) {
      const Numbers z = numbers(n), wanted = summed(z, inverse);
      Numbers got(z.size());
      Fft op = rows_of(Kind::Complex, n, 1, z.data(), got.data());
      op.inverse = inverse, op.scale = 0.5;
      execute(op);
      for (size_t k = 0; k < got.size(); ++k)
        ASSERT_LT(std::abs(got[k] - 0.5 * wanted[k]), 1e-13 * static_cast<double>(n + 10)) << n << " " << k;
    }
}

TEST(Fft, real_rows_become_half_a_spectrum_and_come_back) {
  for (int64_t n = 1; n <= 70; ++n)
    for (const bool inverse : {false, true}) {
      std::vector<double> x, back(static_cast<size_t>(n));
      for (const auto& z : numbers(n)) x.push_back(z.real());
      const Numbers wanted = summed(Numbers(x.begin(), x.end()), inverse);
      Numbers half(static_cast<size_t>(n / 2 + 1));
      Fft there = rows_of(Kind::RealToHalf, n, 1, x.data(), half.data());
      there.inverse = inverse;
      execute(there);
      for (size_t k = 0; k < half.size(); ++k)
        ASSERT_LT(std::abs(half[k] - wanted[k]), 1e-13 * static_cast<double>(n + 10)) << n << " " << k;
      Fft again = rows_of(Kind::HalfToReal, n, 1, half.data(), back.data());
      again.inverse = !inverse, again.scale = 1.0 / static_cast<double>(n);
      execute(again);
      for (size_t k = 0; k < back.size(); ++k) ASSERT_NEAR(back[k], x[k], 1e-14 * static_cast<double>(n + 10));
    }
}

TEST(Fft, a_row_has_the_same_bits_however_many_rows_and_threads_there_are_and_however_it_lies) {
  constexpr int64_t kRows = 53;
  for (const int64_t n : {12, 64, 77, 97, 1000}) {
    const Numbers z = numbers(kRows * n);
    Numbers all(z.size()), turned(z.size()), columns(z.size()), one(static_cast<size_t>(n));
    for (const int threads : {1, 3}) {
      const testing::Threads scope(threads);
      execute(rows_of(Kind::Complex, n, kRows, z.data(), all.data()));
      for (int64_t r : {int64_t{0}, int64_t{17}, kRows - 1}) {
        execute(rows_of(Kind::Complex, n, 1, z.data() + r * n, one.data()));
        for (int64_t k = 0; k < n; ++k) ASSERT_EQ(all[static_cast<size_t>(r * n + k)], one[static_cast<size_t>(k)]) << n;
      }
    }
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t k = 0; k < n; ++k) columns[static_cast<size_t>(k * kRows + r)] = z[static_cast<size_t>(r * n + k)];
    Fft op = rows_of(Kind::Complex, n, kRows, columns.data(), turned.data());
    op.in.strides = op.out.strides = {2};
    op.in.step = op.out.step = 2 * kRows;
    execute(op);
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t k = 0; k < n; ++k) ASSERT_EQ(turned[static_cast<size_t>(k * kRows + r)], all[static_cast<size_t>(r * n + k)]) << n;
  }
}

TEST(Fft, what_is_not_a_number_stays_in_its_row) {
  for (const int64_t n : {16, 97}) {
    Numbers z = numbers(3 * n), got(z.size()), wanted(z.size());
    execute(rows_of(Kind::Complex, n, 3, z.data(), wanted.data()));
    z[static_cast<size_t>(n + 3)] = std::nan("");
    execute(rows_of(Kind::Complex, n, 3, z.data(), got.data()));
    for (size_t k = 0; k < static_cast<size_t>(n); ++k) {
      EXPECT_EQ(got[k], wanted[k]);
      EXPECT_TRUE(std::isnan(got[k + static_cast<size_t>(n)].real()));
      EXPECT_EQ(got[k + static_cast<size_t>(2 * n)], wanted[k + static_cast<size_t>(2 * n)]);
    }
  }
}

TEST(Fft, roots_of_unity_are_exact_to_the_last_bit_or_so) {
  for (const int64_t n : {1, 3, 8, 1000, 1009, 1 << 20})
    for (int64_t k = 0; k < n; k += n / 37 + 1) {
      const long double angle = 6.28318530717958647692528676655900577L * static_cast<long double>(k) / static_cast<long double>(n);
      const Unit u = unit_root(k, n);
      EXPECT_NEAR(static_cast<double>(u.cosine - std::cos(angle)), 0, 2e-16);
      EXPECT_NEAR(static_cast<double>(u.sine - std::sin(angle)), 0, 2e-16);
    }
}

}  // namespace
}  // namespace naru::cpu
