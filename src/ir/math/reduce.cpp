// Argument reduction for trigonometric functions: |x| as a number of quarter turns and a remainder, correct for every finite x.
//
// Cody and Waite's three-part pi/2 for usual numbers (F32: below 2^17, F64: below 2^27), and above that the method of M. Payne and R. Hanek,
// "Radian reduction for trigonometric functions", SIGNUM Newsletter 18 (1983), in integers of the type's width.
#include <algorithm>

#include "ir/math/detail.h"

namespace naru::ir::detail {
namespace {

constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;

// The bits of 2/pi; the first bit after the binary point is bit 30 of the first word.
constexpr uint64_t kBits[] = {0x00000000517cc1b7u, 0x27220a94fe13abe8u, 0xfa9a6ee06db14accu, 0x9e21c820ff28b1d5u, 0xef5de2b0db92371du,
                              0x2126e97003249775u, 0x04e8c90e7f0ef58eu, 0x5894d39f74411afau, 0x975da24274ce3813u, 0x5a2fbf209cc8eb1cu,
                              0xc1a99cfa4e422fc5u, 0xdefc941d8ffc4bffu, 0xef02cc07f79788c5u, 0xad05368fb69b3f67u, 0x93e584dba7a31fb3u,
                              0x4f2ff516ba93dd63u, 0xf5f2f8bd9e839cfbu, 0xc529497535fdafd8u, 0x8fc6ae842b019823u};

V low_half(V x) { return x & x.lit_bits(0xffffffffu); }
V high_half(V x) { return shr_unsigned(x, 32); }
V less_unsigned(V a, V b) {
  const V flip = a.lit_bits(a.type() == VType::I32 ? 0x80000000u : 0x8000000000000000u);
  return (a ^ flip) < (b ^ flip);
}

// High 64 bits of the product of two unsigned numbers.
V mul_high(V a, V b) {
  const V low = low_half(a) * low_half(b), left = low_half(a) * high_half(b), right = high_half(a) * low_half(b);
  const V middle = high_half(low) + low_half(left) + low_half(right);
  return high_half(a) * high_half(b) + high_half(left) + high_half(right) + high_half(middle);
}

// `bits` words of the table from word `word` on, whose number is below 2^`levels`: for each of its bits that is set, the words that remain move
// down by that many.
std::vector<V> words_from(std::vector<V> words, V word, int levels, size_t count) {
  for (size_t step = size_t{1} << (levels - 1); step > 0; step /= 2) {
    const V further = (word & word.lit_bits(step)) != word.lit(0);
    const size_t left = std::min(step + count - 1, words.size());
    for (size_t k = 0; k < left; ++k) words[k] = k + step < words.size() ? where(further, words[k + step], words[k]) : words[k];
  }
  return words;
}
// The `width` bits from bit `shift` of `high` on; `low` follows it.
V shifted(V high, V low, V shift) {
  const double most = static_cast<double>(size_of(high.type()) * 8 - 1);
  return make(Prim::Shl, high.type(), high, shift) | make(Prim::ShrU, high.type(), shr_unsigned(low, 1), shift.lit(most) - shift);
}

// Reduces from 128 bits of a 2/pi modulo 4.
Angle reduce_huge(V a) {
  const V i = bits(a);
  const V mantissa = (i & i.lit_bits(0xfffffffffffffu)) | i.lit_bits(0x10000000000000u);
  // a = mantissa 2^e. Bits of 2/pi worth more than 2^(1 - e) only add multiples of 4; the first bit that matters is at position e + 31.
  const V position = shr_unsigned(i, 52) - i.lit_bits(1075 - 31);
  const V word = shr_unsigned(position, 6), shift = position & position.lit_bits(63);
  std::vector<V> words;
  for (const uint64_t w : kBits) words.push_back(i.lit_bits(w));
  words = words_from(std::move(words), word, 4, 4);
  V part[3];
  for (size_t k = 0; k < 3; ++k) part[k] = shifted(words[k], words[k + 1], shift);
  // The product modulo 2^192, without its low 64 bits; its top two bits are the quadrant.
  const V carried = mul_high(mantissa, part[2]);
  const V low = mantissa * part[1] + carried;
  const V carry = convert(less_unsigned(low, carried), DType::I64);
  const V high = mantissa * part[0] + mul_high(mantissa, part[1]) + carry;
  const V quadrant = shr_unsigned(high + i.lit_bits(uint64_t{1} << 61), 62);
  const V rest = high - shl(quadrant, 62);  // in [-2^61, 2^61)
  const V top = convert(rest, DType::F64);
  const V bottom = convert(rest - convert(top, DType::I64), DType::F64) * 0x1p-62 + convert(shr_unsigned(low, 11), DType::F64) * 0x1p-115;
  // Convert to radians.
  const double pi2 = 0x1.921fb54442d18p+0;
  const V quarter = top * 0x1p-62;
  const V hi = quarter * pi2;
  const V lo = fma(quarter, pi2, -hi) + fma(quarter, 0x1.1a62633145c07p-54, bottom * pi2);
  const V sum = hi + lo;
  return {convert(quadrant, DType::I32), sum, (hi - sum) + lo};
}

Angle reduce_double(V x) {
  const V a = abs(x);
  const V n = round(at_most(a, 0x1p27) * kTwoOverPi);
  const V rest = fma(n, -0x1.921fb54442d18p+0, a);  // exact
  const V product = n * 0x1.1a62633145c07p-54, error = fma(n, 0x1.1a62633145c07p-54, -product);
  const V hi = rest - product, back = hi - rest;
  const V lo = (rest - (hi - back)) - (product + back) - fma(n, -0x1.f1976b7ed8fbcp-110, error);
  const Angle huge = reduce_huge(a);
  const V big = a >= 0x1p27;
  return {where(big, huge.quadrant, convert(n, DType::I32)), where(a < kInf, where(big, huge.hi, hi), nan(a)), where(big, huge.lo, lo)};
}

// As reduce_huge, for F32 from 2^17 on: 64 bits of a 2/pi modulo 4. One zero word comes before the first bit behind the binary point.
Angle reduce_huge_single(V a) {
  constexpr uint32_t kWords[] = {0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
  const V i = bits(a);
  const V mantissa = (i & i.lit_bits(0x7fffffu)) | i.lit_bits(0x800000u);
  // a = mantissa 2^e. Bits of 2/pi worth more than 2^(1 - e) only add multiples of 4; the first bit that matters is at position e + 30.
  const V position = shr_unsigned(i, 23) - i.lit_bits(150 - 30);
  const V word = shr_unsigned(position, 5), shift = position & position.lit_bits(31);
  std::vector<V> words;
  for (const uint32_t w : kWords) words.push_back(i.lit_bits(w));
  words = words_from(std::move(words), word, 3, 4);
  const V w1 = shifted(words[1], words[2], shift);
  // The product modulo 2^96, without its low 32 bits; its top two bits are the quadrant.
  const V carried = mul_hi_unsigned(mantissa, shifted(words[2], words[3], shift));
  const V low = mantissa * w1 + carried;
  const V carry = convert(less_unsigned(low, carried), DType::I32);
  const V high = mantissa * shifted(words[0], words[1], shift) + mul_hi_unsigned(mantissa, w1) + carry;
  const V quadrant = shr_unsigned(high + i.lit_bits(uint64_t{1} << 29), 30);
  const V rest = high - shl(quadrant, 30);  // in [-2^29, 2^29)
  const V top = convert(rest, DType::F32);
  const V bottom = fma(convert(rest - convert(top, DType::I32), DType::F32), 0x1p-30, convert(shr_unsigned(low, 8), DType::F32) * 0x1p-54);
  // Convert to radians.
  const Pair quarter = fast_sum(top * 0x1p-30, bottom);
  const Pair product = exact_product(quarter.hi, a.lit(kHalfPiF32.hi));
  const V error = product.lo + fma(quarter.hi, kHalfPiF32.lo, quarter.lo * kHalfPiF32.hi);
  const Pair angle = fast_sum(product.hi, error);
  return {quadrant, angle.hi, angle.lo};
}

Angle reduce_single(V x) {
  const V a = abs(x);
  // Adding 1.5 2^23 rounds to an integer, which is then in the low bits of the sum.
  const V sum = fma(a, kTwoOverPi, 0x1.8p23), n = sum - 0x1.8p23;
  const V rest = fma(n, -kHalfPiF32.hi, a);  // exact
  const Pair product = exact_product(n, a.lit(-kHalfPiF32.lo));
  const V hi = rest + product.hi, back = hi - rest;
  const V lo = (rest - (hi - back)) + (product.hi - back) + fma(n, 0x1.ee59dap-50, product.lo);
  const Angle huge = reduce_huge_single(a);
  const V usual = a < 0x1p17;
  return {where_usually(usual, bits(sum), huge.quadrant), where_usually(usual, hi, where(a < kInf, huge.hi, nan(a))),
          where_usually(usual, lo, huge.lo)};
}

}  // namespace

Angle reduce_angle(V x) { return is32(x) ? reduce_single(x) : reduce_double(x); }

}  // namespace naru::ir::detail
