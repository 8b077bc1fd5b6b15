#include "distributed/reduction.h"

#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <type_traits>

namespace naru::distributed {
namespace {

// Storage formats: the stored type, the type to compute in, and the conversions between them.
template <class T>
struct Plain {
  using Stored = T;
  static T load(T v) { return v; }
  static T store(T v) { return v; }
};

struct BFloat {
  using Stored = uint16_t;
  static float load(uint16_t v) { return std::bit_cast<float>(uint32_t{v} << 16); }
  // Rounds to nearest, ties to even.
  static uint16_t store(float v) {
    const auto bits = std::bit_cast<uint32_t>(v);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return static_cast<uint16_t>(v != v ? (bits >> 16) | 0x40 : rounded);
  }
};

struct Half {
  using Stored = uint16_t;
  static float load(uint16_t v) {
    // The exponent is shifted into place; multiplying by 2^112 corrects its bias, for denormals too.
    const float scaled = std::bit_cast<float>(uint32_t{v & 0x7fffu} << 13) * 0x1p112f;
    const uint32_t special = (v & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | special | (uint32_t{v & 0x8000u} << 16));
  }
  static uint16_t store(float v) {
    const auto bits = std::bit_cast<uint32_t>(v);
    const uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    // Denormals: adding 0.5 aligns the sum to float16's denormals, and the addition rounds. Normal numbers are rounded as integers.
    const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    const uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1) - (112u << 23)) >> 13;
    uint32_t half = magnitude < 0x38800000u ? small : normal;
    half = magnitude >= 0x477ff000u ? 0x7c00u : half;
    half = magnitude > 0x7f800000u ? 0x7e00u : half;
    return static_cast<uint16_t>(sign | half);
  }
};

// Complex numbers are pairs; half-precision ones are computed in float.
template <class Part>
struct Pair {
  using Real = decltype(Part::load({}));
  struct Stored {
    typename Part::Stored re, im;
  };
  static std::complex<Real> load(Stored v) { return {Part::load(v.re), Part::load(v.im)}; }
  static Stored store(std::complex<Real> v) { return {Part::store(v.real()), Part::store(v.imag())}; }
};

struct Add {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
    else
      return a + b;
  }
};
struct Times {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else if constexpr (std::is_floating_point_v<T>)
      return a * b;
    else
      return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
};
// NaN propagates, as everywhere in naru.
struct Least {
  template <class T>
  static T of(T a, T b) {
    return b < a || b != b ? b : a;
  }
};
struct Greatest {
  template <class T>
  static T of(T a, T b) {
    return a < b || b != b ? b : a;
  }
};
template <class Op>
struct KeepNaN {
  template <class T>
  static T of(T a, T b) {
    const T found = Op::of(a, b);
    return a != a ? a : found;
  }
};
struct And {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

template <class M, class Op>
void fold(char* out, const char* left, const char* right, size_t n) {
  using S = typename M::Stored;
  S* const to = reinterpret_cast<S*>(out);
  const S *const a = reinterpret_cast<const S*>(left), *const b = reinterpret_cast<const S*>(right);
  // Each element depends only on those at its own place, also if `out` is one of the operands.
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#elif defined(__GNUC__)
#pragma GCC ivdep
#endif
  for (size_t i = 0; i < n; ++i) to[i] = M::store(Op::of(M::load(a[i]), M::load(b[i])));
}

template <class M>
void divide(char* out, size_t n, int ranks) {
  auto* const a = reinterpret_cast<typename M::Stored*>(out);
  using T = decltype(M::load({}));
  for (size_t i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<T>)
      a[i] = M::store(static_cast<T>(a[i] / static_cast<T>(ranks)));
    else if constexpr (std::is_floating_point_v<T>)
      a[i] = M::store(M::load(a[i]) / static_cast<T>(ranks));
    else
      a[i] = M::store(M::load(a[i]) / static_cast<typename T::value_type>(ranks));
  }
}

using Row = std::array<Reduction, 8>;  // indexed by ReduceOp
template <class M>
constexpr Row integers() {
  return {{{fold<M, Add>},
           {fold<M, Add>, divide<M>},
           {fold<M, Times>},
           {fold<M, Least>},
           {fold<M, Greatest>},
           {fold<M, And>},
           {fold<M, Or>},
           {fold<M, Xor>}}};
}
template <class M>
constexpr Row floats() {
  return {
      {{fold<M, Add>}, {fold<M, Add>, divide<M>}, {fold<M, Times>}, {fold<M, KeepNaN<Least>>}, {fold<M, KeepNaN<Greatest>>}, {}, {}, {}}};
}
template <class M>
constexpr Row pairs() {
  return {{{fold<M, Add>}, {fold<M, Add>, divide<M>}, {fold<M, Times>}, {}, {}, {}, {}, {}}};
}
using Byte = Plain<uint8_t>;
constexpr Row kBools{
    {{fold<Byte, Or>}, {}, {fold<Byte, And>}, {fold<Byte, And>}, {fold<Byte, Or>}, {fold<Byte, And>}, {fold<Byte, Or>}, {fold<Byte, Xor>}}};

// One row per dtype, in the order of DType.
constexpr std::array<Row, 16> kRows{kBools,
                                    integers<Byte>(),
                                    integers<Plain<int8_t>>(),
                                    integers<Plain<int16_t>>(),
                                    integers<Plain<int32_t>>(),
                                    integers<Plain<int64_t>>(),
                                    floats<Half>(),
                                    floats<BFloat>(),
                                    floats<Plain<float>>(),
                                    floats<Plain<double>>(),
                                    pairs<Pair<Half>>(),
                                    pairs<Pair<Plain<float>>>(),
                                    pairs<Pair<Plain<double>>>(),
                                    integers<Plain<uint16_t>>(),
                                    integers<Plain<uint32_t>>(),
                                    integers<Plain<uint64_t>>()};

constexpr std::array<const char*, 8> kNames{"SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"};

}  // namespace

const char* name_of(ReduceOp op) noexcept { return kNames[static_cast<size_t>(op)]; }

Reduction reduction_of(ReduceOp op, DType type) {
  const auto row = static_cast<size_t>(type);
  if (row >= kRows.size())
    throw TypeError("Invalid scalar type: {} tensors can't be reduced between processes; convert them to float32", naru::name_of(type));
  const Reduction found = kRows[row][static_cast<size_t>(op)];
  if (!found.fold)
    throw RuntimeError("Cannot use ReduceOp.{} with {} tensors: {}", name_of(op), kDTypeTraits[row].name,
                       op == ReduceOp::Avg    ? "there is no average of bool; use SUM, or convert them"
                       : op >= ReduceOp::BAnd ? "it is for integers and bool (Cannot use bitwise operations with non-integral dtype)"
                                              : "complex numbers have no order");
  return found;
}

}  // namespace naru::distributed
