// Functions that need no approximation.
#include "ir/math/detail.h"
#include "ir/math/special.h"

namespace naru::ir {

using namespace detail;

V rsqrt(V x) { return x.lit(1) / sqrt(x); }

V pow_int(V x, V n) {
  // All bits of n matter: powers of an odd number repeat only after 2^(width - 2).
  const int width = static_cast<int>(size_of(x.type())) * 8;
  V power = x.lit(1), base = x;
  for (int bit = 0; bit < width - 1; ++bit) {
    power = where((n & n.lit_bits(uint64_t{1} << bit)) != n.lit(0), power * base, power);
    base = base * base;
  }
  const V odd = (n & n.lit(1)) != n.lit(0);
  const V reciprocal = where(x == 1.0, x, where(x == -1.0, where(odd, x, 1.0), 0.0));
  return where(n < 0.0, reciprocal, power);
}

V maximum(V a, V b) {
  if (a.type() == VType::Bool) return a | b;
  return is_float(a.type()) ? where(isnan(a), a, prim_max(a, b)) : prim_max(a, b);
}

V minimum(V a, V b) {
  if (a.type() == VType::Bool) return a & b;
  return is_float(a.type()) ? where(isnan(a), a, prim_min(a, b)) : prim_min(a, b);
}

V sign(V x) {
  if (x.type() == VType::Bool) return x;
  return where(x > 0.0, x.lit(1), where(x < 0.0, x.lit(-1), 0.0));
}

V floor_divide(V a, V b) {
  const V zero = a.lit(0);
  if (!is_float(a.type())) {
    // For b = 0, the rest is 0, like the quotient.
    const V quotient = a / b, rest = where(b == zero, zero, a - quotient * b);
    return where(rest != zero, where((rest < zero) != (b < zero), quotient - 1, quotient), quotient);
  }
  // (a - fmod(a, b)) / b is an integer up to rounding; lower it by one if fmod has the other sign.
  const V rest = rem(a, b);
  const V whole = (a - rest) / b;
  const V lower = where((rest != zero) & ((rest < zero) != (b < zero)), whole - 1, whole);
  const V down = floor(lower);
  const V nearest = where(lower - down > 0.5, down + 1, down);
  const V quotient = a / b;
  return where(b == zero, quotient, where(lower != zero, nearest, with_sign(zero, sign_of(quotient))));
}

V hypot(V a, V b) {
  const double large = pick(a, 0x1p62, 0x1p510), small = pick(a, 0x1p-62, 0x1p-510);
  const double down = pick(a, 0x1p-66, 0x1p-530), up = pick(a, 0x1p86, 0x1p600);
  const V most = prim_max(abs(a), abs(b));
  const auto by = [&](double low, double high) { return where(most > large, a.lit(low), where(most < small, a.lit(high), a.lit(1))); };
  const V factor = by(down, up), x = a * factor, y = b * factor;
  return where((abs(a) == kInf) | (abs(b) == kInf), inf(a), sqrt(x * x + y * y) * by(1 / down, 1 / up));
}

// Floats of one sign are ordered like their bits.
V next_after(V a, V b) {
  const V i = bits(a), stepped = from_bits(where((b > a) == (a > 0.0), i + 1.0, i - 1.0));
  const V moved = where(a == 0.0, with_sign(a.lit_bits(1), sign_of(b)), stepped);
  return where(isnan(a) | isnan(b), a + b, where(a == b, b, moved));
}

V remainder(V a, V b) {
  const V zero = a.lit(0), rest = rem(a, b);
  return where((rest != zero) & ((rest < zero) != (b < zero)), rest + b, rest);
}

}  // namespace naru::ir
