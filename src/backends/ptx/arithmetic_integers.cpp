// Handlers of integers: arithmetic and bits.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>

#include "backends/ptx/arithmetic.h"
#include "naru/error.h"

namespace naru::backends::ptx {
namespace {

using i128 = __int128;
using u128 = unsigned __int128;

// The unsigned type in which arithmetic of T wraps around.
template <class T>
using Wraps = std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>;
template <class T>
using Double = std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
                                  std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                                                     std::conditional_t<std::is_signed_v<T>, i128, u128>>>;

// f(T()) of an integer type; bits count as unsigned.
template <class F>
Handler by_integer(Type type, const F& f) {
  switch (type) {
    case Type::B16:
    case Type::U16:
      return f(uint16_t());
    case Type::S16:
      return f(int16_t());
    case Type::B32:
    case Type::U32:
      return f(uint32_t());
    case Type::S32:
      return f(int32_t());
    case Type::B64:
    case Type::U64:
      return f(uint64_t());
    case Type::S64:
      return f(int64_t());
    default:
      return nullptr;
  }
}

// a + b + c + carry, where the name says so: i.wide, bit 0: reads the carry, 1: writes it, 2: subtracts.
template <class T>
void with_carry(Warp& w, const Instruction& i, Mask m) {
  const Vec<T> a = get<T>(w, i.a), b = get<T>(w, i.b);
  Vec<T> d;
  Mask carry = 0;
  for (int l = 0; l < kLanes; ++l) {
    const unsigned in = i.wide & 1 ? w.carry >> l & 1 : i.wide & 4 ? 1 : 0;
    const T y = i.wide & 4 ? static_cast<T>(~b.v[l]) : b.v[l];
    const u128 sum = static_cast<u128>(a.v[l]) + y + in;
    d.v[l] = static_cast<T>(sum);
    carry |= static_cast<Mask>(sum >> (8 * sizeof(T)) & 1) << l;
  }
  put(w, i.d, d, m);
  if (i.wide & 2) w.carry = (w.carry & ~m) | (carry & m);
}
// The same of a * b (low half, or high: bit 3) + c.
template <class T>
void multiply_with_carry(Warp& w, const Instruction& i, Mask m) {
  const Vec<T> a = get<T>(w, i.a), b = get<T>(w, i.b), c = get<T>(w, i.c);
  Vec<T> d;
  Mask carry = 0;
  for (int l = 0; l < kLanes; ++l) {
    const auto product = static_cast<Double<T>>(a.v[l]) * b.v[l];
    const T part = static_cast<T>(i.wide & 8 ? product >> (8 * sizeof(T)) : product);
    const u128 sum = static_cast<u128>(static_cast<std::make_unsigned_t<T>>(part)) + static_cast<std::make_unsigned_t<T>>(c.v[l]) +
                     (i.wide & 1 ? w.carry >> l & 1 : 0);
    d.v[l] = static_cast<T>(sum);
    carry |= static_cast<Mask>(sum >> (8 * sizeof(T)) & 1) << l;
  }
  put(w, i.d, d, m);
  if (i.wide & 2) w.carry = (w.carry & ~m) | (carry & m);
}

template <class T>
void logic3(Warp& w, const Instruction& i, Mask m) {
  const Vec<T> a = get<T>(w, i.a), b = get<T>(w, i.b), c = get<T>(w, i.c);
  Vec<T> d{};
  for (int bit = 0; bit < 8; ++bit) {
    if (!(i.offset >> bit & 1)) continue;
    for (int l = 0; l < kLanes; ++l) d.v[l] |= (bit & 4 ? a.v[l] : ~a.v[l]) & (bit & 2 ? b.v[l] : ~b.v[l]) & (bit & 1 ? c.v[l] : ~c.v[l]);
  }
  put(w, i.d, d, m);
}

uint32_t permuted(uint32_t a, uint32_t b, uint32_t how) noexcept {
  const uint64_t both = uint64_t{b} << 32 | a;
  uint32_t d = 0;
  for (int k = 0; k < 4; ++k) {
    const uint32_t s = how >> 4 * k & 15;
    auto byte = static_cast<uint32_t>(both >> 8 * (s & 7) & 255);
    if (s & 8) byte = byte & 128 ? 255 : 0;
    d |= byte << 8 * k;
  }
  return d;
}

template <class T>
T field(T x, uint32_t at, uint32_t length) noexcept {
  constexpr uint32_t kBits = 8 * sizeof(T);
  at &= 255, length &= 255;
  if (length == 0) return 0;
  using U = std::make_unsigned_t<T>;
  const uint32_t top = std::min(at + length - 1, kBits - 1);
  const bool sign = std::is_signed_v<T> && (static_cast<U>(x) >> top & 1) != 0;
  U d = at >= kBits ? 0 : static_cast<U>(x) >> at;
  if (length < kBits) d = static_cast<U>(d & ((U{1} << length) - 1));
  const uint32_t kept = at >= kBits ? 0 : std::min(length, kBits - at);
  if (sign && kept < kBits) d = static_cast<U>(d | (kept == 0 ? ~U{0} : ~((U{1} << kept) - 1)));
  return static_cast<T>(d);
}

}  // namespace

bool Arithmetic::integers() {
  const bool writes = has(words, "cc"), reads = op == "addc" || op == "subc" || op == "madc";
  if (reads || (writes && (op == "add" || op == "sub" || op == "mad"))) return carries(reads, writes);
  return products() || short_products() || sums() || quotients() || extremes() || logic() || shifts() || counts() || fields() || bytes();
}

bool Arithmetic::carries(bool reads, bool writes) {
  const auto flags = (reads ? 1 : 0) | (writes ? 2 : 0);
  if (op != "mad" && op != "madc") {
    sources(2);
    i.wide = static_cast<uint8_t>(flags | (op.starts_with("sub") ? 4 : 0));
    if (bytes_of(type) < 4) return false;
    return done(bytes_of(type) == 4 ? with_carry<uint32_t> : with_carry<uint64_t>);
  }
  sources(3);
  i.wide = static_cast<uint8_t>(flags | (has(words, "hi") ? 8 : 0));
  return done(type == Type::S32   ? multiply_with_carry<int32_t>
              : type == Type::U32 ? multiply_with_carry<uint32_t>
              : type == Type::S64 ? multiply_with_carry<int64_t>
                                  : multiply_with_carry<uint64_t>);
}

bool Arithmetic::products() {
  if (op == "mul" || op == "mad") {
    const bool wide = has(words, "wide"), high = has(words, "hi"), adds = op == "mad";
    if (has(words, "sat")) throw NotImplementedError("saturation");
    if (wide) {
      const Type result = bytes_of(type) == 2 ? (type == Type::S16 ? Type::S32 : Type::U32) : (type == Type::S32 ? Type::S64 : Type::U64);
      arity(adds ? 4 : 3);
      i.d = names.destination(args[0], result), i.a = names.source(args[1], type), i.b = names.source(args[2], type);
      if (adds) i.c = names.source(args[3], result);
      return done(by_integer(type, [&]<class T>(T) -> Handler {
        if constexpr (sizeof(T) == 8)
          return nullptr;
        else if (adds)
          return of<T, T, Double<T>>([](T a, T b, Double<T> c) {
            using D = Double<T>;
            return static_cast<D>(static_cast<Wraps<D>>(static_cast<D>(a) * static_cast<D>(b)) + static_cast<Wraps<D>>(c));
          });
        else
          return of<T, T>([](T a, T b) { return static_cast<Double<T>>(static_cast<Double<T>>(a) * static_cast<Double<T>>(b)); });
      }));
    }
    sources(adds ? 3 : 2);
    if (high)
      return done(by_integer(type, [&]<class T>(T) -> Handler {
        if (adds)
          return of<T, T, T>([](T a, T b, T c) {
            return static_cast<T>(static_cast<Wraps<T>>((static_cast<Double<T>>(a) * static_cast<Double<T>>(b)) >> (8 * sizeof(T))) +
                                  static_cast<Wraps<T>>(c));
          });
        return of<T, T>(
            [](T a, T b) { return static_cast<T>((static_cast<Double<T>>(a) * static_cast<Double<T>>(b)) >> (8 * sizeof(T))); });
      }));
    return done(by_integer(type, [&]<class T>(T) -> Handler {
      if (adds)
        return of<T, T, T>(
            [](T a, T b, T c) { return static_cast<T>(static_cast<Wraps<T>>(a) * static_cast<Wraps<T>>(b) + static_cast<Wraps<T>>(c)); });
      return of<T, T>([](T a, T b) { return static_cast<T>(static_cast<Wraps<T>>(a) * static_cast<Wraps<T>>(b)); });
    }));
  }
  return false;
}

bool Arithmetic::short_products() {
  if (op == "mul24" || op == "mad24") {
    if (!has(words, "lo")) throw NotImplementedError("this variant");
    sources(op == "mul24" ? 2 : 3);
    if (op == "mad24") return false;
    if (type == Type::S32)
      return done(of<int32_t, int32_t>([](int32_t a, int32_t b) {
        const auto s = [](int32_t x) { return static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(x) << 8) >> 8); };
        return static_cast<int32_t>(s(a) * s(b));
      }));
    return done(
        of<uint32_t, uint32_t>([](uint32_t a, uint32_t b) { return static_cast<uint32_t>(uint64_t{a & 0xffffff} * (b & 0xffffff)); }));
  }
  return false;
}

bool Arithmetic::sums() {
  if (op == "add" || op == "sub") {
    sources(2);
    if (has(words, "sat")) {
      if (type != Type::S32) throw NotImplementedError("saturation of this type");
      const auto clamp = [](int64_t x) {
        return static_cast<int32_t>(x > 2147483647 ? 2147483647 : x < -2147483648LL ? -2147483648LL : x);
      };
      using Clamp = decltype(clamp);
      return done(op == "add" ? of<int32_t, int32_t>([](int32_t a, int32_t b) { return Clamp()(int64_t{a} + b); })
                              : of<int32_t, int32_t>([](int32_t a, int32_t b) { return Clamp()(int64_t{a} - b); }));
    }
    if (op == "add")
      return done(by_integer(type, []<class T>(T) {
        return of<T, T>([](T a, T b) { return static_cast<T>(static_cast<Wraps<T>>(a) + static_cast<Wraps<T>>(b)); });
      }));
    return done(by_integer(type, []<class T>(T) {
      return of<T, T>([](T a, T b) { return static_cast<T>(static_cast<Wraps<T>>(a) - static_cast<Wraps<T>>(b)); });
    }));
  }
  if (op == "neg") {
    sources(1);
    return done(
        by_integer(type, []<class T>(T) { return of<T>([](T a) { return static_cast<T>(Wraps<T>{0} - static_cast<Wraps<T>>(a)); }); }));
  }
  if (op == "sad") {
    sources(3);
    return done(by_integer(type, []<class T>(T) {
      return of<T, T, T>([](T a, T b, T c) {
        return static_cast<T>(static_cast<Wraps<T>>(c) + (a < b ? static_cast<Wraps<T>>(b) - static_cast<Wraps<T>>(a)
                                                                : static_cast<Wraps<T>>(a) - static_cast<Wraps<T>>(b)));
      });
    }));
  }
  return false;
}

bool Arithmetic::quotients() {
  if (op == "div" || op == "rem") {
    i.of = Class::Special;
    sources(2);
    if (op == "div")
      return done(by_integer(type, []<class T>(T) {
        return of<T, T>([](T a, T b) -> T {
          if (b == 0) return static_cast<T>(-1);
          if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(Wraps<T>{0} - static_cast<Wraps<T>>(a));
          return static_cast<T>(a / b);
        });
      }));
    return done(by_integer(type, []<class T>(T) {
      return of<T, T>([](T a, T b) -> T {
        if (b == 0) return a;
        if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
        return static_cast<T>(a % b);
      });
    }));
  }
  return false;
}

bool Arithmetic::extremes() {
  if (op == "min" || op == "max") {
    sources(2);
    if (op == "min") return done(by_integer(type, []<class T>(T) { return of<T, T>([](T a, T b) { return a < b ? a : b; }); }));
    return done(by_integer(type, []<class T>(T) { return of<T, T>([](T a, T b) { return a > b ? a : b; }); }));
  }
  if (op == "abs") {
    sources(1);
    return done(by_integer(
        type, []<class T>(T) { return of<T>([](T a) { return a < 0 ? static_cast<T>(Wraps<T>{0} - static_cast<Wraps<T>>(a)) : a; }); }));
  }
  return false;
}

bool Arithmetic::logic() {
  if (op == "and" || op == "or" || op == "xor") {
    sources(2);
    if (op == "and") return done(by_bits(type, []<class T>(T) { return of<T, T>([](T a, T b) { return static_cast<T>(a & b); }); }));
    if (op == "or") return done(by_bits(type, []<class T>(T) { return of<T, T>([](T a, T b) { return static_cast<T>(a | b); }); }));
    return done(by_bits(type, []<class T>(T) { return of<T, T>([](T a, T b) { return static_cast<T>(a ^ b); }); }));
  }
  if (op == "not" || op == "cnot") {
    sources(1);
    if (op == "cnot") return done(by_bits(type, []<class T>(T) { return of<T>([](T a) { return static_cast<T>(a == 0); }); }));
    return done(by_bits(type, []<class T>(T) { return of<T>([](T a) { return static_cast<T>(~a); }); }));
  }
  if (op == "lop3") {
    arity(5);
    if (has(words, "and") || has(words, "or")) throw NotImplementedError("a predicate as result");
    i.d = names.destination(args[0], type), i.a = names.source(args[1], type), i.b = names.source(args[2], type),
    i.c = names.source(args[3], type);
    i.offset = std::stoll(args[4].word, nullptr, 0);
    return done(logic3<uint32_t>);
  }
  return false;
}

bool Arithmetic::shifts() {
  if (op == "shl" || op == "shr") {
    arity(3);
    i.d = names.destination(args[0], type), i.a = names.source(args[1], type), i.b = names.source(args[2], Type::U32);
    if (op == "shl")
      return done(by_bits(type, []<class T>(T) {
        return of<T, uint32_t>([](T a, uint32_t n) { return n >= 8 * sizeof(T) ? T{0} : static_cast<T>(static_cast<Wraps<T>>(a) << n); });
      }));
    return done(by_integer(type, []<class T>(T) {
      return of<T, uint32_t>([](T a, uint32_t n) {
        constexpr uint32_t kBits = 8 * sizeof(T);
        if constexpr (std::is_signed_v<T>)
          return static_cast<T>(a >> (n >= kBits ? kBits - 1 : n));
        else
          return n >= kBits ? T{0} : static_cast<T>(a >> n);
      });
    }));
  }
  if (op == "shf") {
    sources(3);
    const bool left = words[1] == "l", clamps = has(words, "clamp");
    if (left)
      return done(clamps ? of<uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b, uint32_t c) {
        return static_cast<uint32_t>((uint64_t{b} << 32 | a) << std::min(c, 32u) >> 32);
      })
                         : of<uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b, uint32_t c) {
                             return static_cast<uint32_t>((uint64_t{b} << 32 | a) << (c & 31) >> 32);
                           }));
    return done(clamps ? of<uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b, uint32_t c) {
      return static_cast<uint32_t>((uint64_t{b} << 32 | a) >> std::min(c, 32u));
    })
                       : of<uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b, uint32_t c) {
                           return static_cast<uint32_t>((uint64_t{b} << 32 | a) >> (c & 31));
                         }));
  }
  return false;
}

bool Arithmetic::counts() {
  if (op == "popc" || op == "clz" || op == "bfind") {
    arity(2);
    i.d = names.destination(args[0], Type::U32), i.a = names.source(args[1], type);
    if (op == "popc")
      return done(by_bits(type, []<class T>(T) { return of<T>([](T a) { return static_cast<uint32_t>(std::popcount(a)); }); }));
    if (op == "clz")
      return done(by_bits(type, []<class T>(T) { return of<T>([](T a) { return static_cast<uint32_t>(std::countl_zero(a)); }); }));
    const bool amount = has(words, "shiftamt");
    return done(by_integer(type, [&]<class T>(T) -> Handler {
      using U = std::make_unsigned_t<T>;
      if (amount)
        return of<T>([](T a) {
          return a == 0 || a == static_cast<T>(-1) ? (std::is_signed_v<T> || a == 0 ? ~0u : 0u)
                                                   : static_cast<uint32_t>(std::countl_zero(static_cast<U>(a < 0 ? ~a : a)));
        });
      return of<T>([](T a) {
        const auto u = static_cast<U>(a < 0 ? ~a : a);
        return u == 0 ? ~0u : static_cast<uint32_t>(8 * sizeof(T) - 1) - static_cast<uint32_t>(std::countl_zero(u));
      });
    }));
  }
  if (op == "brev") {
    sources(1);
    return done(by_bits(type, []<class T>(T) {
      return of<T>([](T a) {
        T d = 0;
        for (unsigned k = 0; k < 8 * sizeof(T); ++k) d = static_cast<T>(d | static_cast<T>((a >> k & 1) << (8 * sizeof(T) - 1 - k)));
        return d;
      });
    }));
  }
  return false;
}

bool Arithmetic::fields() {
  if (op == "bfe") {
    arity(4);
    i.d = names.destination(args[0], type), i.a = names.source(args[1], type);
    i.b = names.source(args[2], Type::U32), i.c = names.source(args[3], Type::U32);
    return done(by_integer(
        type, []<class T>(T) { return of<T, uint32_t, uint32_t>([](T a, uint32_t at, uint32_t n) { return field(a, at, n); }); }));
  }
  if (op == "bfi") {
    arity(5);
    i.d = names.destination(args[0], type), i.a = names.source(args[1], type), i.b = names.source(args[2], type);
    i.c = names.source(args[3], Type::U32), i.e = names.source(args[4], Type::U32);
    const auto insert = []<class T>(T) -> Handler {
      return [](Warp& w, const Instruction& j, Mask m) {
        const Vec<T> a = get<T>(w, j.a), b = get<T>(w, j.b);
        const Vec<uint32_t> at = get<uint32_t>(w, j.c), n = get<uint32_t>(w, j.e);
        Vec<T> d;
        for (int l = 0; l < kLanes; ++l) {
          const uint32_t p = at.v[l] & 255, length = n.v[l] & 255;
          const T ones = length >= 8 * sizeof(T) ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << length) - 1);
          const T where = p >= 8 * sizeof(T) ? T{0} : static_cast<T>(ones << p);
          d.v[l] = static_cast<T>((b.v[l] & ~where) | ((p >= 8 * sizeof(T) ? T{0} : static_cast<T>(a.v[l] << p)) & where));
        }
        put(w, j.d, d, m);
      };
    };
    return done(bytes_of(type) == 4 ? insert(uint32_t()) : insert(uint64_t()));
  }
  return false;
}

bool Arithmetic::bytes() {
  if (op == "prmt") {
    if (words.size() != 2) throw NotImplementedError("a mode of prmt");
    sources(3);
    return done(of<uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b, uint32_t c) { return permuted(a, b, c); }));
  }
  if (op == "dp4a" && types.size() == 2) {
    arity(4);
    i.d = names.destination(args[0], Type::B32), i.a = names.source(args[1], Type::B32), i.b = names.source(args[2], Type::B32),
    i.c = names.source(args[3], Type::B32);
    i.mode = static_cast<uint8_t>((types[0] == Type::S32 ? 1 : 0) | (types[1] == Type::S32 ? 2 : 0));
    i.run = [](Warp& w, const Instruction& j, Mask m) {
      const Vec<uint32_t> a = get<uint32_t>(w, j.a), b = get<uint32_t>(w, j.b);
      Vec<uint32_t> d = get<uint32_t>(w, j.c);
      const auto byte = [](uint32_t x, int k, bool sign) {
        const uint32_t u = x >> 8 * k & 255;
        return sign ? static_cast<uint32_t>(static_cast<int8_t>(u)) : u;
      };
      for (int l = 0; l < kLanes; ++l)
        for (int k = 0; k < 4; ++k) d.v[l] += byte(a.v[l], k, j.mode & 1) * byte(b.v[l], k, j.mode & 2);
      put(w, j.d, d, m);
    };
    return true;
  }
  return false;
}

}  // namespace naru::backends::ptx
