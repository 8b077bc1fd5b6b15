#include <cmath>

#include "render/lane_machine.h"

namespace naru::render {
namespace {

template <class T, class F>
void for_lanes(void* scratch, int64_t lanes, F f) {
  T* a = static_cast<T*>(scratch);
  const T* b = reinterpret_cast<const T*>(static_cast<char*>(scratch) + kSecondOperand);
  for (int64_t i = 0; i < lanes; ++i) a[i] = f(a[i], b[i]);
}

// C's fmod, which is exact, and so is this where the quotient is small, many times as fast. Up to 2^28 a double holds the quotient of two floats so
// well that no integer lies between the two, and its product with b as well.
float fmod_of(float a, float b) {
  const double x = std::fabs(a), y = std::fabs(b), quotient = x / y;
  if (!(quotient < 0x1p28) || !(y < HUGE_VAL)) return std::fmod(a, b);  // NaN, too
  const double whole = static_cast<double>(static_cast<int64_t>(quotient));
  return std::copysign(static_cast<float>(x - whole * y), a);
}
// Of doubles, the quotient may have been rounded up to the integer above: what is left is then negative, and exact all the same.
double fmod_of(double a, double b) {
  const double x = std::fabs(a), y = std::fabs(b), quotient = x / y;
  if (!(quotient < 0x1p51) || !(y < 0x1p1000)) return std::fmod(a, b);
  const double rest = std::fma(-static_cast<double>(static_cast<int64_t>(quotient)), y, x);
  return std::copysign(rest < 0 ? rest + y : rest, a);
}

void rem_f32(void* s, int64_t lanes) {
  for_lanes<float>(s, lanes, [](float a, float b) { return fmod_of(a, b); });
}
void rem_f64(void* s, int64_t lanes) {
  for_lanes<double>(s, lanes, [](double a, double b) { return fmod_of(a, b); });
}
void div_i64(void* s, int64_t lanes) {
  for_lanes<int64_t>(s, lanes, [](int64_t a, int64_t b) -> int64_t {
    return b == 0 ? 0 : b == -1 ? static_cast<int64_t>(0 - static_cast<uint64_t>(a)) : a / b;
  });
}
void rem_i64(void* s, int64_t lanes) {
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
