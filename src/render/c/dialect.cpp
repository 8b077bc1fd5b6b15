#include "render/c/dialect.h"

#include "render/c/soft_float64.h"

namespace naru::render::c {
namespace {

// A helper function of our own. Helpers that it calls come before it.
struct Helper {
  const char *name, *text;
};

constexpr Helper kHelpers[] = {
    // Without denormal float32 numbers, which some devices take for zero.
    {"half_to_float", R"c(#if defined(__CUDA_ARCH__)
FUNCTION f32 half_to_float(u16 h) {
  f32 x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
}
#else
FUNCTION f32 half_to_float(u16 h) {
  const u32 sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
  const f32 finite = rest < 0x400u ? (f32)rest * as_f32(0x33800000u) : as_f32((rest << 13) + 0x38000000u);
  const u32 special = 0x7f800000u | rest << 13 | (rest > 0x7c00u ? 0x00400000u : 0u);
  return as_f32(sign | (rest >= 0x7c00u ? special : as_u32(finite)));
}
#endif
)c"},
    {"float_to_half", R"c(#if defined(__CUDA_ARCH__)
FUNCTION u16 float_to_half(f32 x) {
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}
#else
FUNCTION u16 float_to_half(f32 x) {
  const u32 bits = as_u32(x), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
  const u32 tiny = as_u32(as_f32(rest) + 0.5f) - 0x3f000000u;
  const u32 normal = (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13;
  const u32 huge = rest > 0x7f800000u ? 0x7e00u | (rest >> 13 & 0x3ffu) : 0x7c00u;
  return (u16)(sign | (rest >= 0x477ff000u ? huge : rest < 0x38800000u ? tiny : normal));
}
#endif
)c"},
    {"bfloat_to_float", R"c(FUNCTION f32 bfloat_to_float(u16 b) { return as_f32((u32)b << 16); }
)c"},
    {"float_to_bfloat", R"c(#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
FUNCTION u16 float_to_bfloat(f32 x) {
  u16 b;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b) : "f"(x));
  return b;
}
#else
FUNCTION u16 float_to_bfloat(f32 x) {
  const u32 bits = as_u32(x), rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return (u16)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded);
}
#endif
)c"},
    // a * 2^b, rounded once: by half of the exponent, which is exact, and then by the rest.
    {"scale_f32", R"c(FUNCTION f32 scale_f32(f32 a, f32 b) {
  const i32 e = (i32)b, first = e >> 1;
  return a * as_f32((u32)(first + 127) << 23) * as_f32((u32)(e - first + 127) << 23);
}
)c"},
    {"scale_f64", R"c(FUNCTION f64 scale_f64(f64 a, f64 b) {
  const i32 e = (i32)b, first = e >> 1;
  return a * as_f64((u64)(first + 1023) << 52) * as_f64((u64)(e - first + 1023) << 52);
}
)c"},
    // The exact remainder, by long division; 8 (11) bits of the quotient at a time.
    {"rem_f32", R"c(FUNCTION f32 rem_f32(f32 a, f32 b) {
  const u32 x = as_u32(a) & 0x7fffffffu, y = as_u32(b) & 0x7fffffffu, sign = as_u32(a) & 0x80000000u;
  if (y == 0 || x >= 0x7f800000u || y > 0x7f800000u) return (a * b) / (a * b);
  if (x < y) return a;
  i32 n = (i32)(x >> 23), e = (i32)(y >> 23);
  u32 r = n ? (x & 0x7fffffu) | 0x800000u : x;
  const u32 m = e ? (y & 0x7fffffu) | 0x800000u : y;
  e = e ? e : 1;
  n = (n ? n : 1) - e;
  for (r %= m; n > 0; n -= 8) r = (r << (n < 8 ? n : 8)) % m;
  for (; r != 0 && r < 0x800000u && e > 1; --e) r <<= 1;
  return as_f32(sign | (r >= 0x800000u ? ((u32)e << 23) + (r - 0x800000u) : r));
}
)c"},
    {"rem_f64", R"c(FUNCTION f64 rem_f64(f64 a, f64 b) {
  const u64 one = (u64)1 << 52, top = (u64)1 << 63, infinity = (u64)0x7ff << 52;
  const u64 x = as_u64(a) & ~top, y = as_u64(b) & ~top, sign = as_u64(a) & top;
  if (y == 0 || x >= infinity || y > infinity) return (a * b) / (a * b);
  if (x < y) return a;
  i32 n = (i32)(x >> 52), e = (i32)(y >> 52);
  u64 r = n ? (x & (one - 1)) | one : x;
  const u64 m = e ? (y & (one - 1)) | one : y;
  e = e ? e : 1;
  n = (n ? n : 1) - e;
  for (r %= m; n > 0; n -= 11) r = (r << (n < 11 ? n : 11)) % m;
  for (; r != 0 && r < one && e > 1; --e) r <<= 1;
  return as_f64(sign | (r >= one ? ((u64)e << 52) + (r - one) : r));
}
)c"},
    // Avoids dividing by 0 and -1, which trap on some processors.
    {"div_i32", R"c(FUNCTION i32 div_i32(i32 a, i32 b) {
  const i32 q = a / (b == 0 || b == -1 ? 1 : b);
  return b == 0 ? 0 : b == -1 ? (i32)(0u - (u32)a) : q;
}
)c"},
    {"div_i64", R"c(FUNCTION i64 div_i64(i64 a, i64 b) {
  const i64 q = a / (b == 0 || b == -1 ? 1 : b);
  return b == 0 ? 0 : b == -1 ? (i64)((u64)0 - (u64)a) : q;
}
)c"},
    {"rem_i32", R"c(FUNCTION i32 rem_i32(i32 a, i32 b) {
  const i32 r = a % (b == 0 || b == -1 ? 1 : b);
  return b == 0 || b == -1 ? 0 : r;
}
)c"},
    {"rem_i64", R"c(FUNCTION i64 rem_i64(i64 a, i64 b) {
  const i64 r = a % (b == 0 || b == -1 ? 1 : b);
  return b == 0 || b == -1 ? 0 : r;
}
)c"},
    {"f32_to_i32", R"c(FUNCTION i32 f32_to_i32(f32 x) {
  return x >= -0x1p31f && x < 0x1p31f ? (i32)x : (i32)0x80000000u;
}
)c"},
    {"f32_to_i64", R"c(FUNCTION i64 f32_to_i64(f32 x) {
  return x >= -0x1p63f && x < 0x1p63f ? (i64)x : (i64)((u64)1 << 63);
}
)c"},
    {"f64_to_f32", R"c(FUNCTION f32 f64_to_f32(f64 x) { return (f32)x; }
)c"},
    {"f64_to_i32", R"c(FUNCTION i32 f64_to_i32(f64 x) {
  return x >= -0x1p31 && x < 0x1p31 ? (i32)x : (i32)0x80000000u;
}
)c"},
    {"f64_to_i64", R"c(FUNCTION i64 f64_to_i64(f64 x) {
  return x >= -0x1p63 && x < 0x1p63 ? (i64)x : (i64)((u64)1 << 63);
}
)c"},
};

bool defines_softly(std::string_view name) {
  return std::string_view(kSoftFloat64).find(std::string(" ").append(name).append("(")) != std::string_view::npos;
}

}  // namespace

const char* const kPlace = R"c(typedef struct { unsigned short bits; } naru_half;
typedef struct { unsigned short bits; } naru_bfloat16;
struct naru_work_group;
typedef struct { naru_i global_[3], group_[3], local_[3], size_[3], whole_[3], groups_[3], items_[3]; NARU_WORK_GROUP } naru_place;
#define global_id(d) (naru_here.global_[d])
#define group_id(d) (naru_here.group_[d])
#define local_id(d) (naru_here.local_[d])
#define local_size(d) (naru_here.size_[d])
#define enqueued_local_size(d) (naru_here.whole_[d])
#define num_groups(d) (naru_here.groups_[d])
#define global_size(d) (naru_here.items_[d])
static inline float half_to_float(naru_half h) {
  const unsigned sign = (h.bits & 0x8000u) << 16, rest = h.bits & 0x7fffu;
  const float finite = rest < 0x400u ? (float)rest * naru_as_f32(0x33800000u) : naru_as_f32((rest << 13) + 0x38000000u);
  const unsigned special = 0x7f800000u | rest << 13 | (rest > 0x7c00u ? 0x00400000u : 0u);
  return naru_as_f32(sign | (rest >= 0x7c00u ? special : naru_as_u32(finite)));
}
static inline naru_half float_to_half(float x) {
  const unsigned bits = naru_as_u32(x), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
  const unsigned tiny = naru_as_u32(naru_as_f32(rest) + 0.5f) - 0x3f000000u;
  const unsigned normal = (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13;
  const unsigned huge = rest > 0x7f800000u ? 0x7e00u | (rest >> 13 & 0x3ffu) : 0x7c00u;
  naru_half h;
  h.bits = (unsigned short)(sign | (rest >= 0x477ff000u ? huge : rest < 0x38800000u ? tiny : normal));
  return h;
}
static inline float bfloat16_to_float(naru_bfloat16 b) { return naru_as_f32((unsigned)b.bits << 16); }
static inline naru_bfloat16 float_to_bfloat16(float x) {
  const unsigned bits = naru_as_u32(x), rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  naru_bfloat16 b;
  b.bits = (unsigned short)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded);
  return b;
}
)c";

bool mentions_float64(std::string_view text) noexcept {
  return text.find("f64 ") != std::string_view::npos || text.find("f64_") != std::string_view::npos;
}

std::string complete(const Target& target, std::string_view body) {
  const bool soft = !target.arithmetic.fp64 && mentions_float64(body);
  std::string text = target.dialect->prelude;
  if (target.arithmetic.fp64) text += target.dialect->doubles;
  text += target.dialect->functions[target.loops];
  const std::string own = text;
  if (soft) text += kSoftFloat64;
  for (const Helper& h : kHelpers)
    if (body.find(h.name) != std::string_view::npos && !(soft && defines_softly(h.name)) &&
        own.find(std::string(" ") + h.name + "(") == std::string::npos)
      text += h.text;
  return text.append(body);
}

}  // namespace naru::render::c
