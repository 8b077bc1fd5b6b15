#include <cmath>
#include <cstdint>

#include "render/lane_machine.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace naru::render {
namespace {

constexpr int64_t kMost = 16;  // the most lanes; there are 4, 8 or 16

template <class T, class F>
void for_lanes(void* scratch, int64_t lanes, F f) {
  T* a = static_cast<T*>(scratch);
  const T* b = reinterpret_cast<const T*>(static_cast<char*>(scratch) + kSecondOperand);
  for (int64_t i = 0; i < lanes; ++i) a[i] = f(a[i], b[i]);
}

// C's fmod, which is exact; so is this for small quotients, and many times faster. Up to 2^28 a double holds the quotient of two floats so
// precisely that truncation is correct, and the quotient's product with b is exact.
float fmod_of(float a, float b) {
  const double x = std::fabs(a), y = std::fabs(b), quotient = x / y;
  if (!(quotient < 0x1p28) || !(y < HUGE_VAL)) return std::fmod(a, b);  // NaN, too
  const double whole = static_cast<double>(static_cast<int64_t>(quotient));
  return std::copysign(static_cast<float>(x - whole * y), a);
}
// For doubles, the quotient may have been rounded up to the next integer: then the remainder is negative, but still exact.
double fmod_of(double a, double b) {
  const double x = std::fabs(a), y = std::fabs(b), quotient = x / y;
  if (!(quotient < 0x1p51) || !(y < 0x1p1000)) return std::fmod(a, b);
  const double rest = std::fma(-static_cast<double>(static_cast<int64_t>(quotient)), y, x);
  return std::copysign(rest < 0 ? rest + y : rest, a);
}

#if defined(__x86_64__)
// The machine code that calls these runs only on processors with AVX2.
#define NARU_LANES __attribute__((target("avx2")))

// All lanes, eight at a time, if every quotient is below 2^22; otherwise returns false and leaves the lanes unchanged. The quotient may have been
// rounded up to the next integer: then the remainder is negative. It is exact in any case, because it has no more digits than b.
__attribute__((target("avx2,fma"))) bool smaller_rem(float* a, const float* b, int64_t lanes) {
  const __m256 sign = _mm256_set1_ps(-0.0f), most = _mm256_set1_ps(0x1p22f), infinity = _mm256_set1_ps(HUGE_VALF);
  __m256 rest[kMost / 8], good = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
  if (lanes % 8 != 0) return false;
  for (int64_t i = 0; i < lanes; i += 8) {
    const __m256 with_sign = _mm256_loadu_ps(a + i), x = _mm256_andnot_ps(sign, with_sign),
                 y = _mm256_andnot_ps(sign, _mm256_loadu_ps(b + i));
    const __m256 quotient = _mm256_div_ps(x, y);
    good = _mm256_and_ps(good, _mm256_and_ps(_mm256_cmp_ps(quotient, most, _CMP_LT_OQ), _mm256_cmp_ps(y, infinity, _CMP_LT_OQ)));
    const __m256 left = _mm256_fnmadd_ps(_mm256_round_ps(quotient, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC), y, x);
    const __m256 up = _mm256_and_ps(_mm256_cmp_ps(left, _mm256_setzero_ps(), _CMP_LT_OQ), y);
    rest[i / 8] = _mm256_or_ps(_mm256_andnot_ps(sign, _mm256_add_ps(left, up)), _mm256_and_ps(sign, with_sign));
  }
  if (_mm256_movemask_ps(good) != 255) return false;
  for (int64_t i = 0; i < lanes; i += 8) _mm256_storeu_ps(a + i, rest[i / 8]);
  return true;
}

// All lanes, four at a time, if every quotient is below 2^28; otherwise returns false and leaves the lanes unchanged.
NARU_LANES bool small_rem(float* a, const float* b, int64_t lanes) {
  const __m256d sign = _mm256_set1_pd(-0.0), most = _mm256_set1_pd(0x1p28), infinity = _mm256_set1_pd(HUGE_VAL);
  __m128 rest[kMost / 4];
  __m256d good = _mm256_castsi256_pd(_mm256_set1_epi64x(-1));
  for (int64_t i = 0; i < lanes; i += 4) {
    const __m256d with_sign = _mm256_cvtps_pd(_mm_loadu_ps(a + i)), x = _mm256_andnot_pd(sign, with_sign);
    const __m256d y = _mm256_andnot_pd(sign, _mm256_cvtps_pd(_mm_loadu_ps(b + i))), quotient = _mm256_div_pd(x, y);
    good = _mm256_and_pd(good, _mm256_and_pd(_mm256_cmp_pd(quotient, most, _CMP_LT_OQ), _mm256_cmp_pd(y, infinity, _CMP_LT_OQ)));
    const __m256d whole = _mm256_round_pd(quotient, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    const __m256d left = _mm256_sub_pd(x, _mm256_mul_pd(whole, y));
    rest[i / 4] = _mm256_cvtpd_ps(_mm256_or_pd(left, _mm256_and_pd(sign, with_sign)));
  }
  if (_mm256_movemask_pd(good) != 15) return false;
  for (int64_t i = 0; i < lanes; i += 4) _mm_storeu_ps(a + i, rest[i / 4]);
  return true;
}

// Integers below 2^51 are exact as doubles, and a quotient that is not an integer is far enough below the next integer that it does not round up
// to it. The last bits of a double around 2^52 + 2^51 are an integer's bits.
NARU_LANES bool small_division(int64_t* a, const int64_t* b, int64_t lanes, bool rest) {
  const __m256d shift = _mm256_set1_pd(0x1.8p52);
  const __m256i bits = _mm256_castpd_si256(shift), zero = _mm256_setzero_si256(), half = _mm256_set1_epi64x(int64_t{1} << 51);
  __m256i out[kMost / 4], good = _mm256_set1_epi64x(-1);
  for (int64_t i = 0; i < lanes; i += 4) {
    const __m256i p = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i));
    const __m256i q = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + i));
    // -2^51 < v < 2^51
    for (const __m256i v : {p, q})
      good = _mm256_and_si256(good, _mm256_and_si256(_mm256_cmpgt_epi64(half, v), _mm256_cmpgt_epi64(_mm256_add_epi64(v, half), zero)));
    const __m256d x = _mm256_sub_pd(_mm256_castsi256_pd(_mm256_add_epi64(p, bits)), shift);
    const __m256d y = _mm256_sub_pd(_mm256_castsi256_pd(_mm256_add_epi64(q, bits)), shift);
    const __m256d whole = _mm256_round_pd(_mm256_div_pd(x, y), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    const __m256d wanted = rest ? _mm256_sub_pd(x, _mm256_mul_pd(whole, y)) : whole;
    const __m256i value = _mm256_sub_epi64(_mm256_castpd_si256(_mm256_add_pd(wanted, shift)), bits);
    out[i / 4] = _mm256_andnot_si256(_mm256_cmpeq_epi64(q, zero), value);  // x / 0 = 0
  }
  if (_mm256_movemask_epi8(good) != -1) return false;
  for (int64_t i = 0; i < lanes; i += 4) _mm256_storeu_si256(reinterpret_cast<__m256i*>(a + i), out[i / 4]);
  return true;
}

// All lanes, if every divisor is a power of two and no dividend is negative; otherwise returns false and leaves the lanes unchanged.
NARU_LANES bool masked_rem(int64_t* a, const int64_t* b, int64_t lanes) {
  const __m256i zero = _mm256_setzero_si256(), minus_one = _mm256_set1_epi64x(-1);
  __m256i good = minus_one;
  for (int64_t i = 0; i < lanes; i += 4) {
    const __m256i p = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i));
    const __m256i q = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + i)), mask = _mm256_add_epi64(q, minus_one);
    good = _mm256_and_si256(good, _mm256_cmpeq_epi64(_mm256_and_si256(q, mask), zero));
    good = _mm256_and_si256(good, _mm256_and_si256(_mm256_cmpgt_epi64(q, zero), _mm256_cmpgt_epi64(p, minus_one)));
  }
  if (_mm256_movemask_epi8(good) != -1) return false;
  for (int64_t i = 0; i < lanes; i += 4) {
    const __m256i p = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i));
    const __m256i mask = _mm256_add_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + i)), minus_one);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(a + i), _mm256_and_si256(p, mask));
  }
  return true;
}
#undef NARU_LANES
#else
bool masked_rem(int64_t*, const int64_t*, int64_t) { return false; }
bool smaller_rem(float*, const float*, int64_t) { return false; }
bool small_rem(float*, const float*, int64_t) { return false; }
bool small_division(int64_t*, const int64_t*, int64_t, bool) { return false; }
#endif

template <class T>
const T* second(void* scratch) {
  return reinterpret_cast<const T*>(static_cast<char*>(scratch) + kSecondOperand);
}

void rem_f32(void* s, int64_t lanes) {
  if (smaller_rem(static_cast<float*>(s), second<float>(s), lanes)) return;
  if (small_rem(static_cast<float*>(s), second<float>(s), lanes)) return;
  for_lanes<float>(s, lanes, [](float a, float b) { return fmod_of(a, b); });
}
void rem_f64(void* s, int64_t lanes) {
  for_lanes<double>(s, lanes, [](double a, double b) { return fmod_of(a, b); });
}
void div_i64(void* s, int64_t lanes) {
  if (small_division(static_cast<int64_t*>(s), second<int64_t>(s), lanes, false)) return;
  for_lanes<int64_t>(s, lanes, [](int64_t a, int64_t b) -> int64_t {
    return b == 0 ? 0 : b == -1 ? static_cast<int64_t>(0 - static_cast<uint64_t>(a)) : a / b;
  });
}
void rem_i64(void* s, int64_t lanes) {
  if (masked_rem(static_cast<int64_t*>(s), second<int64_t>(s), lanes)) return;
  if (small_division(static_cast<int64_t*>(s), second<int64_t>(s), lanes, true)) return;
  for_lanes<int64_t>(s, lanes, [](int64_t a, int64_t b) -> int64_t { return b == 0 || b == -1 ? 0 : a % b; });
}

}  // namespace

LaneFunction lane_function(Prim prim, VType type) noexcept {
  if (prim == Prim::Div) return type == VType::I64 ? div_i64 : nullptr;
  if (prim != Prim::Rem) return nullptr;
  switch (type) {
    case VType::I64:
      return rem_i64;
    case VType::F32:
      return rem_f32;
    case VType::F64:
      return rem_f64;
    default:
      return nullptr;
  }
}

}  // namespace naru::render
