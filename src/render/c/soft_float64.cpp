// float64 in 64-bit integers, for devices without it: what the expressions of operators on other types compute in float64 has the same bits there.
// A number is its bits. All operations are exact by IEEE 754 (round to nearest even); NaNs are quiet and lose their payload.
#include "render/c/soft_float64.h"

namespace naru::render::c {

const char* const kSoftFloat64 = R"c(#undef fma_f64
#undef sqrt_f64
#undef fabs_f64
#undef floor_f64
#undef ceil_f64
#undef trunc_f64
#undef rint_f64
typedef u64 f64;
#define as_f64(x) ((u64)(x))
#define F64_TOP ((u64)1 << 63)
#define F64_INF ((u64)0x7ff << 52)
#define F64_NAN ((u64)0xfff << 51)
FUNCTION i32 zeros_u64(u64 x) {
  i32 n = 0;
  if (!(x >> 32)) n += 32, x <<= 32;
  if (!(x >> 48)) n += 16, x <<= 16;
  if (!(x >> 56)) n += 8, x <<= 8;
  if (!(x >> 60)) n += 4, x <<= 4;
  if (!(x >> 62)) n += 2, x <<= 2;
  return n + (x >> 63 ? 0 : 1);
}
FUNCTION u64 jam_u64(u64 x, i32 by) { return by > 63 ? (u64)(x != 0) : by == 0 ? x : x >> by | (u64)(x << (64 - by) != 0); }
FUNCTION u64 high_u64(u64 a, u64 b) {
  const u64 al = (u32)a, ah = a >> 32, bl = (u32)b, bh = b >> 32;
  const u64 left = al * bh, right = ah * bl, middle = (al * bl >> 32) + (u32)left + (u32)right;
  return ah * bh + (left >> 32) + (right >> 32) + (middle >> 32);
}
// m 2^(e - 1085), m < 2^63, rounded. Bits below the last place of a result may be one that says whether they were all zero.
FUNCTION f64 pack_f64(u64 sign, i32 e, u64 m) {
  if (m == 0) return sign;
  const i32 up = zeros_u64(m) - 1;
  m <<= up;
  e -= up;
  if (e >= 0x7ff) return sign | F64_INF;
  if (e <= 0) m = jam_u64(m, 1 - e);
  const u64 rounded = (m + 0x1ff + (m >> 10 & 1)) >> 10;
  return sign | ((e > 0 ? (u64)(e - 1) << 52 : 0) + rounded);
}
FUNCTION i32 exponent_f64(f64 x) {
  const i32 e = (i32)(x >> 52 & 0x7ff);
  return e ? e : 1;
}
FUNCTION u64 mantissa_f64(f64 x) { return (x & (((u64)1 << 52) - 1)) | (x >> 52 & 0x7ff ? (u64)1 << 52 : 0); }
FUNCTION bool isnan_f64(f64 x) { return (x & ~F64_TOP) > F64_INF; }
FUNCTION f64 fma_f64(f64 a, f64 b, f64 c) {
  const u64 sign = (a ^ b) & F64_TOP, x = a & ~F64_TOP, y = b & ~F64_TOP, z = c & ~F64_TOP;
  if (x > F64_INF || y > F64_INF || z > F64_INF) return F64_NAN;
  if (x == F64_INF || y == F64_INF) return x == 0 || y == 0 || (z == F64_INF && sign != (c & F64_TOP)) ? F64_NAN : sign | F64_INF;
  if (z == F64_INF) return c;
  // Both as 128 bits, the leading one of a normal number at bit 125 (a product: or 124) for an exponent e.
  const u64 ma = mantissa_f64(a) << 10, mb = mantissa_f64(b) << 11;
  u64 high = high_u64(ma, mb), low = ma * mb, other = mantissa_f64(c) << 9, more = 0;
  i32 e = exponent_f64(a) + exponent_f64(b) - 1022;
  low = low >> 1 | high << 63;
  high >>= 1;
  if (high == 0 && low == 0) return z ? c : sign == (c & F64_TOP) ? c : 0;
  const i32 by = z == 0 ? 0 : e - exponent_f64(c);
  if (by > 0) {
    more = by > 127 ? 0 : by > 63 ? jam_u64(other, by - 64) : other << (64 - by);
    if (by > 127) more = other != 0;
    other = by > 63 ? 0 : other >> by;
  } else if (by < 0) {
    const i32 n = -by;
    if (n > 63) {
      low = n > 127 ? 1 : n == 64 ? high | (u64)(low != 0) : jam_u64(high, n - 64) | (u64)(low != 0);
      high = 0;
    } else {
      low = high << (64 - n) | jam_u64(low, n);
      high >>= n;
    }
    e += n;
  }
  u64 of = sign;
  if (sign == (c & F64_TOP)) {
    low += more;
    high += other + (u64)(low < more);
  } else if (high > other || (high == other && low >= more)) {
    high = high - other - (u64)(low < more);
    low -= more;
  } else {
    high = other - high - (u64)(more < low);
    low = more - low;
    of ^= F64_TOP;
  }
  if (high == 0) {
    if (low == 0) return 0;
    high = low >> 1;
    low <<= 63;
    e -= 63;
  }
  const i32 up = zeros_u64(high) - 1;
  if (up > 0) {
    high = high << up | low >> (64 - up);
    low <<= up;
  }
  return pack_f64(of, e + 1 - up, high | (u64)(low != 0));
}
FUNCTION f64 add_f64(f64 a, f64 b) { return fma_f64((u64)0x3ff << 52, a, b); }
FUNCTION f64 sub_f64(f64 a, f64 b) { return add_f64(a, b ^ F64_TOP); }
FUNCTION f64 mul_f64(f64 a, f64 b) { return fma_f64(a, b, (a ^ b) & F64_TOP); }
FUNCTION f64 div_f64(f64 a, f64 b) {
  const u64 sign = (a ^ b) & F64_TOP, x = a & ~F64_TOP, y = b & ~F64_TOP;
  if (x > F64_INF || y > F64_INF || (x == F64_INF && y == F64_INF) || (x == 0 && y == 0)) return F64_NAN;
  if (x == F64_INF || y == 0) return sign | F64_INF;
  if (x == 0 || y == F64_INF) return sign;
  u64 r = mantissa_f64(a), m = mantissa_f64(b);
  const i32 ur = zeros_u64(r) - 11, um = zeros_u64(m) - 11;
  r <<= ur;
  m <<= um;
  i32 e = exponent_f64(a) - ur - (exponent_f64(b) - um) + 1023;
  if (r < m) r <<= 1, --e;
  u64 q = 1;
  r -= m;
  for (i32 k = 0; k < 5; ++k) {
    q = q << 11 | (r << 11) / m;
    r = (r << 11) % m;
  }
  return pack_f64(sign, e, q << 7 | (u64)(r != 0));
}
FUNCTION f64 sqrt_f64(f64 a) {
  if (a == F64_TOP || a == 0 || a == F64_INF) return a;
  if (isnan_f64(a) || a >> 63) return F64_NAN;
  u64 m = mantissa_f64(a);
  const i32 up = zeros_u64(m) - 11;
  m <<= up;
  i32 e = exponent_f64(a) - up - 1023;
  // Bit by bit.
  if (e & 1) m <<= 1, --e;
  u64 root = 0, rest = 0;
  m <<= 10;
  for (i32 k = 0; k < 56; ++k) {
    rest = rest << 2 | m >> 62;
    m <<= 2;
    const u64 trial = root << 2 | 1;
    root <<= 1;
    if (rest >= trial) rest -= trial, root |= 1;
  }
  return pack_f64(0, e / 2 + 1023, root << 7 | (u64)(rest != 0));
}
FUNCTION f64 neg_f64(f64 a) { return a ^ F64_TOP; }
FUNCTION f64 fabs_f64(f64 a) { return a & ~F64_TOP; }
FUNCTION i64 order_f64(f64 a) { return a >> 63 ? -(i64)(a & ~F64_TOP) : (i64)a; }
FUNCTION bool eq_f64(f64 a, f64 b) { return !isnan_f64(a) && !isnan_f64(b) && order_f64(a) == order_f64(b); }
FUNCTION bool lt_f64(f64 a, f64 b) { return !isnan_f64(a) && !isnan_f64(b) && order_f64(a) < order_f64(b); }
FUNCTION bool le_f64(f64 a, f64 b) { return !isnan_f64(a) && !isnan_f64(b) && order_f64(a) <= order_f64(b); }
FUNCTION f64 i64_to_f64(i64 a) {
  const u64 m = a < 0 ? (u64)0 - (u64)a : (u64)a;
  return pack_f64(a < 0 ? F64_TOP : 0, m >> 63 ? 1086 : 1085, m >> 63 ? m >> 1 | (m & 1) : m);
}
FUNCTION f64 f32_to_f64(f32 a) {
  const u32 bits = as_u32(a), rest = bits & 0x7fffffffu;
  const u64 sign = (u64)(bits >> 31) << 63, m = rest & 0x7fffffu;
  if (rest > 0x7f800000u) return F64_NAN;
  if (rest == 0x7f800000u) return sign | F64_INF;
  return rest < 0x800000u ? pack_f64(sign, 936, m) : sign | (u64)((rest >> 23) + 896) << 52 | m << 29;
}
FUNCTION f32 f64_to_f32(f64 a) {
  const u32 sign = (u32)(a >> 32) & 0x80000000u;
  if (isnan_f64(a)) return as_f32(0x7fc00000u);
  const i32 e = exponent_f64(a) - 896;
  u64 m = mantissa_f64(a) << 9;
  if (e >= 0xff) return as_f32(sign | 0x7f800000u);
  if (e <= 0) m = jam_u64(m, 1 - e);
  // The leading one is at bit 61; the last place is bit 38.
  const u32 rounded = (u32)((m + (((u64)1 << 37) - 1) + (m >> 38 & 1)) >> 38);
  return as_f32(sign | ((e > 0 ? (u32)(e - 1) << 23 : 0) + rounded));
}
FUNCTION f64 trunc_f64(f64 a) {
  const i32 e = exponent_f64(a) - 1023;
  return e < 0 ? a & F64_TOP : e > 51 ? a : a & ~((((u64)1 << 52) - 1) >> e);
}
FUNCTION f64 rint_f64(f64 a) {
  const i32 e = exponent_f64(a) - 1023;
  if (e > 51) return a;
  if (e < 0) return (a & F64_TOP) | ((a & ~F64_TOP) > ((u64)0x3fe << 52) ? (u64)0x3ff << 52 : 0);
  const u64 one = (u64)1 << (52 - e);
  return (a + ((one >> 1) - 1) + ((a | (e == 0 ? one : 0)) >> (52 - e) & 1)) & ~(one - 1);
}
FUNCTION f64 floor_f64(f64 a) {
  const f64 t = trunc_f64(a);
  return lt_f64(a, t) ? sub_f64(t, (u64)0x3ff << 52) : t;
}
FUNCTION f64 ceil_f64(f64 a) { return neg_f64(floor_f64(neg_f64(a))); }
FUNCTION i64 f64_to_i64(f64 a) {
  const i32 e = exponent_f64(a) - 1023;
  if (e < 0) return 0;
  if (e > 62) return (i64)F64_TOP;
  const u64 m = e > 52 ? mantissa_f64(a) << (e - 52) : mantissa_f64(a) >> (52 - e);
  return a >> 63 ? -(i64)m : (i64)m;
}
FUNCTION i32 f64_to_i32(f64 a) {
  const i64 x = exponent_f64(a) > 1023 + 40 ? (i64)1 << 40 : f64_to_i64(a);
  return x >= -((i64)1 << 31) && x < (i64)1 << 31 ? (i32)x : (i32)0x80000000u;
}
FUNCTION f64 scale_f64(f64 a, f64 b) {
  if ((a & ~F64_TOP) >= F64_INF) return a;
  return pack_f64(a & F64_TOP, exponent_f64(a) + f64_to_i32(b), mantissa_f64(a) << 10);
}
)c";

}  // namespace naru::render::c
