// Argument reduction for trigonometric functions: |x| as a number of quarter turns and a remainder, correct for every finite x.
//
// F32 is reduced in F64: 2/pi is a sum of two doubles, without the bits that only add whole turns to x; which bits those are depends on the
// magnitude of x. F64 uses Cody and Waite's three-part pi/2 below 2^27, and above that the method of M. Payne and R. Hanek, "Radian reduction for
// trigonometric functions", SIGNUM Newsletter 18 (1983), in 64-bit integers.
#include "ir/math/detail.h"

namespace naru::ir::detail {
namespace {

constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;

// 2/pi in two parts, without the bits worth 2^(2 - e) or more, for |x| < 2^(e + 42) that are multiples of 2^e.
struct Tail {
  double from;  // used for |x| >= this
  double hi, lo;
};
constexpr Tail kTails[] = {
    {0, 0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55},        {0x1p28, 0x1.7cc1b727220a9p-7, 0x1.3f84eafa3ea6ap-61},
    {0x1p48, 0x1.6e4e441529fc2p-24, 0x1.d5f47d4d37703p-78},   {0x1p68, 0x1.054a7f09d5f48p-46, -0x1.596447e493ad5p-101},
    {0x1p88, 0x1.fc2757d1f534ep-64, -0x1.1f924eb53361ep-119}, {0x1p108, 0x1.7d1f534ddc0dbp-84, 0x1.8a5664f10e410p-138}};

// The bits of 2/pi; the first bit after the binary point is bit 30 of the first word.
constexpr uint64_t kBits[] = {0x00000000517cc1b7u, 0x27220a94fe13abe8u, 0xfa9a6ee06db14accu, 0x9e21c820ff28b1d5u, 0xef5de2b0db92371du,
                              0x2126e97003249775u, 0x04e8c90e7f0ef58eu, 0x5894d39f74411afau, 0x975da24274ce3813u, 0x5a2fbf209cc8eb1cu,
                              0xc1a99cfa4e422fc5u, 0xdefc941d8ffc4bffu, 0xef02cc07f79788c5u, 0xad05368fb69b3f67u, 0x93e584dba7a31fb3u,
                              0x4f2ff516ba93dd63u, 0xf5f2f8bd9e839cfbu, 0xc529497535fdafd8u, 0x8fc6ae842b019823u};

V low_half(V x) { return x & x.lit_bits(0xffffffffu); }
V high_half(V x) { return shr_unsigned(x, 32); }
V less_unsigned(V a, V b) {
  const V flip = a.lit_bits(0x8000000000000000u);
  return (a ^ flip) < (b ^ flip);
}

// High 64 bits of the product of two unsigned numbers.
V mul_high(V a, V b) {
  const V low = low_half(a) * low_half(b), left = low_half(a) * high_half(b), right = high_half(a) * low_half(b);
  const V middle = high_half(low) + low_half(left) + low_half(right);
  return high_half(a) * high_half(b) + high_half(left) + high_half(right) + high_half(middle);
}

// Reduces from 128 bits of a 2/pi modulo 4.
Angle reduce_huge(V a) {
  const V i = bits(a);
  const V mantissa = (i & i.lit_bits(0xfffffffffffffu)) | i.lit_bits(0x10000000000000u);
  // a = mantissa 2^e. Bits of 2/pi worth more than 2^(1 - e) only add multiples of 4; the first bit that matters is at position e + 31.
  const V position = shr_unsigned(i, 52) - i.lit_bits(1075 - 31);
  const V word = shr_unsigned(position, 6), shift = position & position.lit_bits(63);
  // Selects four words starting at index `word`, by halving: for each bit 8, 4, 2, 1 of `word` that is set, shift the remaining words by that
  // many.
  std::vector<V> words;
  for (const uint64_t w : kBits) words.push_back(i.lit_bits(w));
  for (size_t step = 8; step > 0; step /= 2) {
    const V further = (word & word.lit_bits(step)) != word.lit(0);
    const size_t left = step + 3;
    for (size_t k = 0; k < left; ++k) words[k] = where(further, words[k + step], words[k]);
  }
  V part[3];
  for (size_t k = 0; k < 3; ++k)
    part[k] =
        make(Prim::Shl, VType::I64, words[k], shift) | make(Prim::ShrU, VType::I64, shr_unsigned(words[k + 1], 1), i.lit_bits(63) - shift);
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

}  // namespace

Angle reduce_angle(V x) {
  if (!is32(x)) return reduce_double(x);
  const V a = convert(abs(x), DType::F64);
  V hi = a.lit(kTails[0].hi), lo = a.lit(kTails[0].lo);
  for (const Tail& tail : std::span(kTails).subspan(1)) {
    const V reached = a >= tail.from;
    hi = where(reached, tail.hi, hi);
    lo = where(reached, tail.lo, lo);
  }
  const V p = a * hi;  // quarter turns, less than 2^45
  // Adding 1.5 2^52 rounds to an integer, which is then in the low bits of the sum.
  const V sum = p + 0x1.8p52;
  const V n = sum - 0x1.8p52;
  const V quarter = (p - n) + fma(a, lo, fma(a, hi, -p));
  return {convert(bits(sum), DType::I32), quarter * 0x1.921fb54442d18p+0, {}};
}

}  // namespace naru::ir::detail
