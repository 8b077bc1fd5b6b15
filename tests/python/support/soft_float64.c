// Compares float64 in integers (SOFT: the text of src/render/c/soft_float64.cpp) with the processor's, operation by operation, on random and special
// bits. Prints the first differences of each operation, then the number of all.
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef int64_t i64; typedef uint64_t u64; typedef int32_t i32; typedef uint32_t u32; typedef float f32;
#define FUNCTION static
static f32 as_f32(u32 x) { f32 f; memcpy(&f, &x, 4); return f; }
static u32 as_u32(f32 x) { u32 u; memcpy(&u, &x, 4); return u; }
#include SOFT

static double real(u64 x) { double d; memcpy(&d, &x, 8); return d; }
static u64 bits(double x) { u64 u; memcpy(&u, &x, 8); return u; }
static u64 state = 1;
static u64 next(void) {
  u64 z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// Special numbers, any bits, numbers around 1, denormals, small integers, numbers with few bits.
static u64 number(void) {
  static const double kSpecial[] = {0, 1, 2, 0.5, 1.5, 3, INFINITY, NAN, 0x1p-1022, 0x1.fffffffffffffp-1023, 0x1p-1074, 0x1.fffffffffffffp1023,
                                    0x1p52, 0x1p53, 0x1p63, 0x1p31, 0x1p-149, 0x1p-126, 0x1.fffffep127, 0x1.ffffffp127};
  const u64 r = next(), mantissa = r & ~((u64)0x7ff << 52);
  switch (next() % 8) {
    case 0: return bits(kSpecial[next() % (sizeof kSpecial / 8)]) | next() << 63;
    case 1: return r;
    case 2: return mantissa | (1020 + next() % 7) << 52;
    case 3: return mantissa | next() % 60 << 52;
    case 4: return (mantissa & (u64)0xffffffff << 32) | (993 + next() % 61) << 52;
    case 5: return mantissa | (963 + next() % 121) << 52;
    case 6: return (r & (u64)1 << 63) | (r & (((u64)1 << 52) - 1)) >> next() % 52;
    default: return bits((double)(i64)(r >> next() % 64)) | next() << 63;
  }
}

static int wrong = 0;
static void check(const char* operation, u64 got, double want, u64 a, u64 b, u64 c) {
  if (isnan(want) ? isnan(real(got)) : got == bits(want)) return;
  if (wrong++ < 20) printf("%s of %a, %a, %a: %a, not %a\n", operation, real(a), real(b), real(c), real(got), want);
}

int main(int count, char** arguments) {
  (void)count;
  for (long n = atol(arguments[1]); n > 0; --n) {
    u64 a = number(), b = number(), c = number();
    // Sums that cancel, wholly or but for the last bits.
    if (n % 5 == 0) c = bits(-real(a) * real(b));
    if (n % 5 == 1) c = bits(-real(a) * real(b)) ^ next() % 4;
    if (n % 7 == 0) b = a ^ next() % 8 ^ next() << 63;
    const double x = real(a), y = real(b);
    check("fma", fma_f64(a, b, c), fma(x, y, real(c)), a, b, c);
    check("add", add_f64(a, b), x + y, a, b, 0);
    check("sub", sub_f64(a, b), x - y, a, b, 0);
    check("mul", mul_f64(a, b), x * y, a, b, 0);
    check("div", div_f64(a, b), x / y, a, b, 0);
    check("sqrt", sqrt_f64(a), sqrt(x), a, 0, 0);
    check("neg", neg_f64(a), -x, a, 0, 0);
    check("fabs", fabs_f64(a), fabs(x), a, 0, 0);
    check("trunc", trunc_f64(a), trunc(x), a, 0, 0);
    check("rint", rint_f64(a), rint(x), a, 0, 0);
    check("floor", floor_f64(a), floor(x), a, 0, 0);
    check("ceil", ceil_f64(a), ceil(x), a, 0, 0);
    check("lt", bits(lt_f64(a, b)), x < y, a, b, 0);
    check("le", bits(le_f64(a, b)), x <= y, a, b, 0);
    check("eq", bits(eq_f64(a, b)), x == y, a, b, 0);
    check("to float32", bits(f64_to_f32(a)), (float)x, a, 0, 0);
    check("of float32", f32_to_f64(as_f32((u32)c)), as_f32((u32)c), c, 0, 0);
    const i64 whole = (i64)a >> b % 64;
    check("of int64", i64_to_f64(whole), (double)whole, (u64)whole, 0, 0);
    check("to int64", (u64)f64_to_i64(a), real((u64)(x >= -0x1p63 && x < 0x1p63 ? (i64)x : INT64_MIN)), a, 0, 0);
    check("to int32", bits(f64_to_i32(a)), x >= -0x1p31 && x < 0x1p31 ? (i32)x : INT32_MIN, a, 0, 0);
    const i32 by = (i32)(next() % 4081) - 2040;
    const u64 scaled = (a & ~((u64)0x7ff << 52)) | (1021 + next() % 3) << 52;
    check("scale", scale_f64(scaled, bits(by)), ldexp(real(scaled), by), scaled, (u64)by, 0);
  }
  printf("%d differences\n", wrong);
  return wrong != 0;
}
