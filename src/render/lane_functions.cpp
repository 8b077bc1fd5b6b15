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

void rem_f32(void* s, int64_t lanes) {
  for_lanes<float>(s, lanes, [](float a, float b) { return std::fmod(a, b); });
}
void rem_f64(void* s, int64_t lanes) {
  for_lanes<double>(s, lanes, [](double a, double b) { return std::fmod(a, b); });
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
