// Handlers of conversions between types.
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "backends/ptx/decode.h"
#include "naru/error.h"

namespace naru::backends::ptx {
namespace {

constexpr int kRoundings[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

// The nearest integer in a rounding mode.
double whole(double x, int mode) noexcept {
  switch (mode) {
    case FE_TOWARDZERO:
      return std::trunc(x);
    case FE_DOWNWARD:
      return std::floor(x);
    case FE_UPWARD:
      return std::ceil(x);
    default:
      return std::nearbyint(x);
  }
}

// A number in a format of 16 bits: `mantissa` bits behind the point, exponents from `least` on.
uint16_t small_of_number(double x, int mode, int mantissa, int least) noexcept {
  const auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
  const int bias = 1 - least, infinite = (1 << (15 - mantissa)) - 1;
  if (x != x) return 0x7fff;
  const double a = std::fabs(x);
  if (std::isinf(a)) return static_cast<uint16_t>(sign | infinite << mantissa);
  if (a == 0) return sign;
  const int e = std::max(std::ilogb(a), least);
  // Rounding of the magnitude: downward is away from zero for negative numbers.
  const int of_size = !sign ? mode : mode == FE_DOWNWARD ? FE_UPWARD : mode == FE_UPWARD ? FE_DOWNWARD : mode;
  const double scaled = whole(std::ldexp(a, mantissa - e), of_size);
  // A mantissa that overflows carries into the exponent; below the least normal number there is no hidden bit.
  const auto bits = static_cast<int64_t>(scaled) + (static_cast<int64_t>(e + bias - 1) << mantissa);
  if (bits >= int64_t{infinite} << mantissa) {
    const bool stays = of_size == FE_TOWARDZERO || of_size == FE_DOWNWARD;
    return static_cast<uint16_t>(sign | ((infinite << mantissa) - (stays ? 1 : 0)));
  }
  return static_cast<uint16_t>(sign | bits);
}
double number_of_small(uint16_t bits, int mantissa, int least) noexcept {
  const int e = (bits & 0x7fff) >> mantissa, f = bits & ((1 << mantissa) - 1), infinite = (1 << (15 - mantissa)) - 1;
  double x = 0;
  if (e == infinite)
    x = f ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else
    x = e == 0 ? std::ldexp(f, least - mantissa) : std::ldexp(f + (1 << mantissa), e - 1 + least - mantissa);
  return bits & 0x8000 ? -x : x;
}

struct HalfBits {
  uint16_t bits;
};
struct BrainBits {
  uint16_t bits;
};

template <class T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T> || std::is_same_v<T, HalfBits> || std::is_same_v<T, BrainBits>;

inline double number(HalfBits x) noexcept { return number_of_half(x.bits); }
inline double number(BrainBits x) noexcept { return number_of_bfloat(x.bits); }
inline double number(double x) noexcept { return x; }
inline double number(float x) noexcept { return static_cast<double>(x); }

// To an integer: saturated; of a NaN 0, or the greatest bit where either type has 64 bits.
template <class To, class From>
To integer_of(double x) noexcept {
  constexpr bool kLong = sizeof(To) == 8 || std::is_same_v<From, double>;
  if (x != x) return kLong ? static_cast<To>(std::make_unsigned_t<To>{1} << (8 * sizeof(To) - 1)) : To{0};
  constexpr double kBelow = std::is_signed_v<To> ? -static_cast<double>(uint64_t{1} << (8 * sizeof(To) - 1)) : 0;
  constexpr double kAbove = std::is_signed_v<To> ? -kBelow : 2 * static_cast<double>(uint64_t{1} << (8 * sizeof(To) - 1));
  if (x < kBelow) return std::numeric_limits<To>::min();
  if (x >= kAbove) return std::numeric_limits<To>::max();
  return static_cast<To>(x);
}

// i.mode: a rounding. i.e.at: bits: 1 saturates, 2 rounds to a whole number, 4: flushes.
template <class To, class From>
To converted(From x, const Instruction& i) noexcept {
  const int mode = kRoundings[i.mode];
  if constexpr (kIsFloat<From>) {
    double n = number(x);
    if constexpr (!kIsFloat<To>) {
      return integer_of<To, From>(whole(n, mode));
    } else {
      if (i.e.at & 2) n = whole(n, mode);
      if (i.e.at & 1) n = n > 0 ? (n < 1 ? n : 1) : 0;
      if constexpr (std::is_same_v<To, HalfBits>)
        return {half_of_number(n, mode)};
      else if constexpr (std::is_same_v<To, BrainBits>)
        return {bfloat_of_number(n, mode)};
      else if constexpr (std::is_same_v<To, float>) {
        if (n != n) return std::bit_cast<float>(0x7fffffffu);
        return static_cast<float>(n);
      } else {
        return n;
      }
    }
  } else if constexpr (kIsFloat<To>) {
    if constexpr (std::is_same_v<To, HalfBits>)
      return {half_of_number(static_cast<double>(x), mode)};
    else if constexpr (std::is_same_v<To, BrainBits>)
      return {bfloat_of_number(static_cast<double>(x), mode)};
    else
      return static_cast<To>(x);
  } else {
    if (i.e.at & 1) {
      if (std::cmp_less(x, std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
      if (std::cmp_greater(x, std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    }
    return static_cast<To>(x);
  }
}

// Registers may be wider than the types: the source's low bytes count, the result is extended. i.bytes and i.wide: bytes of the registers.
template <class To, class From>
void convert(Warp& w, const Instruction& i, Mask m) {
  const std::byte* const from = i.a.at >= 0 ? w.registers + i.a.at : w.constants + ~i.a.at;
  std::byte* const to = w.registers + i.d.at;
  // Whole numbers and halves are rounded by whole() alone, which needs the usual mode.
  const bool directed = i.mode != 0 && !(i.e.at & 2) && std::is_floating_point_v<To>;
  if (directed) std::fesetround(kRoundings[i.mode]);
  for (int l = 0; l < kLanes; ++l) {
    if (!(m >> l & 1)) continue;
    From x;
    std::memcpy(&x, from + l * i.bytes, sizeof x);
    const To y = converted<To, From>(x, i);
    if constexpr (kIsFloat<To>) {
      std::memcpy(to + l * i.wide, &y, sizeof y);
    } else {
      const auto extended = static_cast<int64_t>(y);
      std::memcpy(to + l * i.wide, &extended, i.wide);
    }
  }
  if (directed) std::fesetround(FE_TONEAREST);
}
// The frequent case: integers in registers of their size.
template <class To, class From>
void convert_integers(Warp& w, const Instruction& i, Mask m) {
  const Vec<From> a = get<From>(w, i.a);
  Vec<To> d;
  for (int l = 0; l < kLanes; ++l) d.v[l] = static_cast<To>(a.v[l]);
  put(w, i.d, d, m);
}

template <class F>
Handler by_type(Type t, const F& f) {
  switch (t) {
    case Type::U8:
      return f(uint8_t());
    case Type::S8:
      return f(int8_t());
    case Type::U16:
      return f(uint16_t());
    case Type::S16:
      return f(int16_t());
    case Type::U32:
      return f(uint32_t());
    case Type::S32:
      return f(int32_t());
    case Type::U64:
      return f(uint64_t());
    case Type::S64:
      return f(int64_t());
    case Type::F16:
      return f(HalfBits());
    case Type::BF16:
      return f(BrainBits());
    case Type::F32:
      return f(float());
    case Type::F64:
      return f(double());
    default:
      return nullptr;
  }
}

// cvt.rn.f16x2.f32 d, a, b: a is the upper half.
template <bool Brain>
void pair_of_floats(Warp& w, const Instruction& i, Mask m) {
  const Vec<float> a = get<float>(w, i.a), b = get<float>(w, i.b);
  Vec<uint32_t> d;
  for (int l = 0; l < kLanes; ++l) {
    const auto bits = [&](float x) {
      return uint32_t{Brain ? bfloat_of_number(x, kRoundings[i.mode]) : half_of_number(x, kRoundings[i.mode])};
    };
    d.v[l] = bits(a.v[l]) << 16 | bits(b.v[l]);
  }
  put(w, i.d, d, m);
}

}  // namespace

double number_of_half(uint16_t bits) noexcept { return number_of_small(bits, 10, -14); }
double number_of_bfloat(uint16_t bits) noexcept { return number_of_small(bits, 7, -126); }
uint16_t half_of_number(double x, int mode) noexcept { return small_of_number(x, mode, 10, -14); }
uint16_t bfloat_of_number(double x, int mode) noexcept { return small_of_number(x, mode, 7, -126); }

bool decode_conversion(Instruction& i, const Words& words, const std::vector<Arg>& args, Names& names) {
  if (words[0] != "cvt") return false;
  i.of = Class::Convert;
  const std::vector<Type> types = types_of(words);
  if (types.size() != 2) throw NotImplementedError("these types");
  const Type to = types[0], from = types[1];
  const auto any = [&](std::initializer_list<std::string_view> list) {
    for (const std::string_view word : list)
      if (has(words, word)) return true;
    return false;
  };
  if (any({"relu", "satfinite", "rna", "rs"})) throw NotImplementedError("this variant");
  if (has(words, "ftz")) throw NotImplementedError("denormals flushed to zero (.ftz)");
  const bool whole = any({"rni", "rzi", "rmi", "rpi"});
  i.mode = any({"rz", "rzi"}) ? 1 : any({"rm", "rmi"}) ? 2 : any({"rp", "rpi"}) ? 3 : 0;
  i.e.at = (has(words, "sat") ? 1 : 0) | (whole ? 2 : 0);
  if (to == Type::F16x2 || to == Type::BF16x2) {
    if (args.size() != 3 || from != Type::F32) throw NotImplementedError("these types");
    i.d = names.destination(args[0], Type::B32), i.a = names.source(args[1], Type::F32), i.b = names.source(args[2], Type::F32);
    i.run = to == Type::F16x2 ? pair_of_floats<false> : pair_of_floats<true>;
    return true;
  }
  if (args.size() != 2) throw RuntimeError("{} operands, where 2 are expected", args.size());
  int wide = 0, source = bytes_of(from);
  i.d = names.any_register(args[0].word, wide);
  i.a = names.is_register(args[1].word) ? names.any_register(args[1].word, source) : names.source(args[1], from);
  if (wide < bytes_of(to) || source < bytes_of(from)) throw RuntimeError("a register is smaller than its type");
  i.bytes = static_cast<uint8_t>(source), i.wide = static_cast<uint8_t>(wide);
  const bool exact = source == bytes_of(from) && wide == bytes_of(to) && i.e.at == 0;
  i.run = by_type(to, [&]<class To>(To) {
    return by_type(from, [&]<class From>(From) -> Handler {
      if constexpr (!kIsFloat<To> && !kIsFloat<From>)
        if (exact) return convert_integers<To, From>;
      return convert<To, From>;
    });
  });
  if (!i.run) throw NotImplementedError("these types");
  return true;
}

}  // namespace naru::backends::ptx
