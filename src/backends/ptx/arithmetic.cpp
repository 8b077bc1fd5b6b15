// Handlers of moves, comparisons and floats; those of integers are in arithmetic_integers.cpp. A handler computes all lanes, also those
// that do not take part, whose results it drops: such loops are vectorised.
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "backends/ptx/arithmetic.h"
#include "naru/error.h"

namespace naru::backends::ptx {
namespace {

// NVIDIA's float32 instructions give one NaN.
inline float settled(float x) noexcept { return x != x ? std::bit_cast<float>(0x7fffffffu) : x; }
inline float flushed(float x) noexcept { return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x; }

// Half types: their bits, computed as numbers.
template <bool Brain>
struct Half {
  uint16_t bits;
  static double number(uint16_t b) noexcept { return Brain ? number_of_bfloat(b) : number_of_half(b); }
  static uint16_t of(double x) noexcept { return Brain ? bfloat_of_number(x, FE_TONEAREST) : half_of_number(x, FE_TONEAREST); }
};

template <class T, size_t>
using Same = T;
// f of as many floats as there are indices; of halves it is computed in double.
template <class F, size_t... K>
Handler by_float(Type type, F, std::index_sequence<K...>) {
  const auto half = []<bool Brain>(std::bool_constant<Brain>) {
    using H = Half<Brain>;
    return of<Same<uint16_t, K>...>([](Same<uint16_t, K>... x) { return H::of(F()(H::number(x)...)); });
  };
  const auto two = []<bool Brain>(std::bool_constant<Brain>) {
    using H = Half<Brain>;
    return of<Same<uint32_t, K>...>([](Same<uint32_t, K>... x) {
      const uint32_t low = H::of(F()(H::number(static_cast<uint16_t>(x))...)),
                     high = H::of(F()(H::number(static_cast<uint16_t>(x >> 16))...));
      return high << 16 | low;
    });
  };
  switch (type) {
    case Type::F32:
      return of<Same<float, K>...>([](Same<float, K>... x) { return settled(F()(x...)); });
    case Type::F64:
      return of<Same<double, K>...>([](Same<double, K>... x) { return F()(x...); });
    case Type::F16:
      return half(std::false_type());
    case Type::BF16:
      return half(std::true_type());
    case Type::F16x2:
      return two(std::false_type());
    case Type::BF16x2:
      return two(std::true_type());
    default:
      return nullptr;
  }
}
template <class F>
Handler by_float2(Type type, F f) {
  return by_float(type, f, std::make_index_sequence<2>());
}
template <class F>
Handler by_float1(Type type, F) {
  if (type == Type::F32) return of<float>([](float a) { return settled(F()(a)); });
  if (type == Type::F64) return of<double>([](double a) { return F()(a); });
  return nullptr;
}
// The approximations of the special function unit, with denormals flushed if the name says so.
template <class F>
Handler approximate(bool flushes, F) {
  if (flushes) return of<float>([](float a) { return settled(flushed(F()(flushed(a)))); });
  return of<float>([](float a) { return settled(F()(a)); });
}

// The smaller of two floats: of one NaN and a number the number, and -0 before 0.
template <class T>
T least(T a, T b) noexcept {
  if (a != a) return b;
  if (b != b) return a;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <class T>
T most(T a, T b) noexcept {
  if (a != a) return b;
  if (b != b) return a;
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}
template <class T>
T least_or_nan(T a, T b) noexcept {
  return a != a ? a : b != b ? b : least(a, b);
}
template <class T>
T most_or_nan(T a, T b) noexcept {
  return a != a ? a : b != b ? b : most(a, b);
}

// Runs `inner` in another rounding mode (i.mode: FE_TOWARDZERO ...), and saturates float32 to [0, 1] (bit 7 of i.wide).
void wrapped(Warp& w, const Instruction& i, Mask m) {
  constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  if (i.mode) std::fesetround(kModes[i.mode]);
  i.inner(w, i, m);
  if (i.mode) std::fesetround(FE_TONEAREST);
  if (!(i.wide & 128)) return;
  Vec<float> d = get<float>(w, i.d);
  for (float& x : d.v) x = x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
  put(w, i.d, d, m);
}
uint8_t rounding(const Words& words) noexcept { return has(words, "rz") ? 1 : has(words, "rm") ? 2 : has(words, "rp") ? 3 : 0; }
void round_and_saturate(Instruction& i, const Words& words, Type type) {
  const uint8_t mode = rounding(words);
  const bool saturates = has(words, "sat");
  if (mode == 0 && !saturates) return;
  if (saturates && type != Type::F32) throw NotImplementedError("saturation of this type");
  if (type != Type::F32 && type != Type::F64) throw NotImplementedError("a rounding mode of this type");
  i.inner = i.run, i.run = wrapped, i.mode = mode, i.wide = saturates ? 128 : 0;
}

// Comparisons, by number in Instruction::mode.
enum Compare : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kEqu, kNeu, kLtu, kLeu, kGtu, kGeu, kNum, kNan };
int compare_of(const Words& words) noexcept {
  constexpr std::string_view kNames[] = {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
  constexpr std::pair<std::string_view, Compare> kUnsigned[] = {{"lo", kLt}, {"ls", kLe}, {"hi", kGt}, {"hs", kGe}};
  for (size_t n = 0; n < std::size(kNames); ++n)
    if (words.size() > 1 && words[1] == kNames[n]) return static_cast<int>(n);
  for (const auto& [name, n] : kUnsigned)
    if (words.size() > 1 && words[1] == name) return n;
  return -1;
}
template <class T, class F>
Mask each_pair(const Vec<T>& a, const Vec<T>& b, F f) noexcept {
  Mask found = 0;
  for (int l = 0; l < kLanes; ++l) found |= static_cast<Mask>(f(a.v[l], b.v[l])) << l;
  return found;
}
template <class T>
Mask compared(const Warp& w, const Instruction& i) noexcept {
  const Vec<T> a = get<T>(w, i.a), b = get<T>(w, i.b);
  switch (i.mode) {
    case kEq:
      return each_pair(a, b, [](T x, T y) { return x == y; });
    case kNe:  // of a NaN false
      return each_pair(a, b, [](T x, T y) { return x < y || x > y; });
    case kLt:
      return each_pair(a, b, [](T x, T y) { return x < y; });
    case kLe:
      return each_pair(a, b, [](T x, T y) { return x <= y; });
    case kGt:
      return each_pair(a, b, [](T x, T y) { return x > y; });
    case kGe:
      return each_pair(a, b, [](T x, T y) { return x >= y; });
    case kEqu:
      return each_pair(a, b, [](T x, T y) { return !(x < y || x > y); });
    case kNeu:
      return each_pair(a, b, [](T x, T y) { return x != y; });
    case kLtu:
      return each_pair(a, b, [](T x, T y) { return !(x >= y); });
    case kLeu:
      return each_pair(a, b, [](T x, T y) { return !(x > y); });
    case kGtu:
      return each_pair(a, b, [](T x, T y) { return !(x <= y); });
    case kGeu:
      return each_pair(a, b, [](T x, T y) { return !(x < y); });
    case kNum:
      return each_pair(a, b, [](T x, T y) { return x == x && y == y; });
    default:
      return each_pair(a, b, [](T x, T y) { return x != x || y != y; });
  }
}
// Halves compare as numbers.
template <bool Brain>
Mask compared_halves(const Warp& w, const Instruction& i) noexcept {
  Warp copy;
  Vec<uint16_t> h[2] = {get<uint16_t>(w, i.a), get<uint16_t>(w, i.b)};
  Vec<float> n[2];
  for (int k = 0; k < 2; ++k)
    for (int l = 0; l < kLanes; ++l) n[k].v[l] = static_cast<float>(Half<Brain>::number(h[k].v[l]));
  copy.registers = reinterpret_cast<std::byte*>(n);
  Instruction j;
  j.mode = i.mode, j.a.at = 0, j.b.at = sizeof(Vec<float>);
  return compared<float>(copy, j);
}
using Comparison = Mask (*)(const Warp&, const Instruction&);
// i.list: how the result is joined with the predicate (1: and, 2: or, 3: xor); i.d and i.e: predicates, i.e.at < 0: none.
template <Comparison C>
void set_predicates(Warp& w, const Instruction& i, Mask m) {
  const Mask found = C(w, i), with = i.predicate < 0 ? 0 : get_predicate(w, i.predicate, i.predicate_negated);
  const auto joined = [&](Mask x) { return i.list == 1 ? x & with : i.list == 2 ? x | with : i.list == 3 ? x ^ with : x; };
  put_predicate(w, static_cast<int16_t>(i.d.at), joined(found), m);
  if (i.e.at >= 0) put_predicate(w, static_cast<int16_t>(i.e.at), joined(~found), m);
}
// set: i.wide: 4 and 2: ones of an integer of so many bytes, 0: 1.0f.
template <Comparison C>
void set_numbers(Warp& w, const Instruction& i, Mask m) {
  const Mask found = C(w, i), with = i.predicate < 0 ? 0 : get_predicate(w, i.predicate, i.predicate_negated);
  const Mask all = i.list == 1 ? found & with : i.list == 2 ? found | with : i.list == 3 ? found ^ with : found;
  Vec<uint32_t> d;
  for (int l = 0; l < kLanes; ++l) d.v[l] = !(all >> l & 1) ? 0 : i.wide ? ~0u : std::bit_cast<uint32_t>(1.0f);
  put(w, i.d, d, m);
}
template <template <Comparison> class Made>
Handler by_comparison(Type type) {
  switch (type) {
    case Type::B16:
    case Type::U16:
      return Made<compared<uint16_t>>::run;
    case Type::S16:
      return Made<compared<int16_t>>::run;
    case Type::B32:
    case Type::U32:
      return Made<compared<uint32_t>>::run;
    case Type::S32:
      return Made<compared<int32_t>>::run;
    case Type::B64:
    case Type::U64:
      return Made<compared<uint64_t>>::run;
    case Type::S64:
      return Made<compared<int64_t>>::run;
    case Type::F32:
      return Made<compared<float>>::run;
    case Type::F64:
      return Made<compared<double>>::run;
    case Type::F16:
      return Made<compared_halves<false>>::run;
    case Type::BF16:
      return Made<compared_halves<true>>::run;
    default:
      return nullptr;
  }
}
template <Comparison C>
struct ToPredicates {
  static constexpr Handler run = set_predicates<C>;
};
template <Comparison C>
struct ToNumbers {
  static constexpr Handler run = set_numbers<C>;
};

// Moves between a register and its parts: i.list elements of i.wide bytes.
void split(Warp& w, const Instruction& i, Mask m) {
  const int parts = i.elements, bytes = i.wide, all = parts * bytes;
  const std::byte* const from = i.a.at >= 0 ? w.registers + i.a.at : w.constants + ~i.a.at;
  for (int p = 0; p < parts; ++p) {
    std::byte* const to = w.registers + static_cast<int32_t>(w.machine->program().lists[i.list + static_cast<uint32_t>(p)]);
    for (int l = 0; l < kLanes; ++l)
      if (m >> l & 1) std::memcpy(to + l * bytes, from + l * all + p * bytes, static_cast<size_t>(bytes));
  }
}
void join(Warp& w, const Instruction& i, Mask m) {
  const int parts = i.elements, bytes = i.wide, all = parts * bytes;
  for (int p = 0; p < parts; ++p) {
    const auto at = static_cast<int32_t>(w.machine->program().lists[i.list + static_cast<uint32_t>(p)]);
    const std::byte* const from = at >= 0 ? w.registers + at : w.constants + ~at;
    for (int l = 0; l < kLanes; ++l)
      if (m >> l & 1) std::memcpy(w.registers + i.d.at + l * all + p * bytes, from + l * bytes, static_cast<size_t>(bytes));
  }
}

template <class T>
void select(Warp& w, const Instruction& i, Mask m) {
  const Vec<T> a = get<T>(w, i.a), b = get<T>(w, i.b);
  const Mask p = get_predicate(w, i.predicate, i.predicate_negated);
  Vec<T> d;
  for (int l = 0; l < kLanes; ++l) d.v[l] = p >> l & 1 ? a.v[l] : b.v[l];
  put(w, i.d, d, m);
}

// i.wide: 1 and, 2 or, 3 xor, 4 not, 5 move. Sources are predicates: i.predicate and i.a.
void of_predicates(Warp& w, const Instruction& i, Mask m) {
  const Mask a = get_predicate(w, i.predicate, i.predicate_negated),
             b = i.a.at < 0 ? 0 : get_predicate(w, static_cast<int16_t>(i.a.at), i.b.at != 0);
  put_predicate(w, static_cast<int16_t>(i.d.at), i.wide == 1 ? a & b : i.wide == 2 ? a | b : i.wide == 3 ? a ^ b : i.wide == 4 ? ~a : a, m);
}

bool counts_as_float(Type t) noexcept {
  return t == Type::F32 || t == Type::F64 || t == Type::F16 || t == Type::BF16 || t == Type::F16x2 || t == Type::BF16x2;
}

}  // namespace

Arithmetic::Arithmetic(Instruction& instruction, const Words& its_words, const std::vector<Arg>& its_args, Names& its_names)
    : i(instruction),
      words(its_words),
      args(its_args),
      names(its_names),
      op(words[0]),
      types(types_of(words)),
      type(types.empty() ? Type::None : types.back()),
      floats(counts_as_float(type)),
      flushes(has(words, "ftz")) {}

void Arithmetic::arity(size_t n) const {
  if (args.size() != n) throw RuntimeError("{} operands, where {} are expected", args.size(), n);
}
void Arithmetic::sources(size_t n) {
  arity(n + 1);
  i.d = names.destination(args[0], type);
  Operand* const to[] = {&i.a, &i.b, &i.c};
  for (size_t k = 0; k < n; ++k) *to[k] = names.source(args[k + 1], type);
}
void Arithmetic::no_flush() const {
  if (flushes) throw NotImplementedError("denormals flushed to zero (.ftz)");
}
bool Arithmetic::done(Handler h) {
  if (!h) throw NotImplementedError("this type");
  i.run = h;
  return true;
}

bool Arithmetic::moves() {
  if (op == "mov" || op == "cvta") {
    if (type == Type::Pred) {
      arity(2);
      i.d.at = names.predicate_destination(args[0].word);
      i.predicate = names.predicate(args[1]), i.predicate_negated = args[1].negated, i.wide = 5, i.a.at = -1;
      return done(of_predicates);
    }
    if (op == "cvta") return false;
    arity(2);
    for (const size_t side : {size_t{0}, size_t{1}}) {
      if (args[side].kind != Arg::Kind::Vector) continue;
      const auto n = args[side].parts.size();
      i.elements = static_cast<uint8_t>(n), i.wide = static_cast<uint8_t>(bytes_of(type) / static_cast<int>(n));
      const Type part = i.wide == 1 ? Type::B8 : i.wide == 2 ? Type::B16 : i.wide == 4 ? Type::B32 : Type::B64;
      for (const Arg& a : args[side].parts) names.add_to_list(i, side == 0 ? names.destination(a, part) : names.source(a, part));
      if (side == 0)
        i.a = names.source(args[1], type);
      else
        i.d = names.destination(args[0], type);
      return done(side == 0 ? split : join);
    }
    sources(1);
    return done(by_bits(type, []<class T>(T) { return of<T>([](T a) { return a; }); }));
  }
  return false;
}

bool Arithmetic::logic_of_predicates() {
  if (type == Type::Pred && (op == "and" || op == "or" || op == "xor" || op == "not")) {
    arity(op == "not" ? 2 : 3);
    i.d.at = names.predicate_destination(args[0].word);
    i.predicate = names.predicate(args[1]), i.predicate_negated = args[1].negated;
    i.a.at = -1;
    if (op != "not") i.a.at = names.predicate(args[2]), i.b.at = args[2].negated;
    i.wide = op == "and" ? 1 : op == "or" ? 2 : op == "xor" ? 3 : 4;
    return done(of_predicates);
  }
  return false;
}

bool Arithmetic::comparisons() {
  if (op == "setp" || op == "set") {
    const int compare = compare_of(words);
    if (compare < 0) throw NotImplementedError("this comparison");
    no_flush();
    i.mode = static_cast<uint8_t>(compare);
    i.list = has(words, "and") ? 1 : has(words, "or") ? 2 : has(words, "xor") ? 3 : 0;
    arity(i.list ? 4 : 3);
    i.a = names.source(args[1], type), i.b = names.source(args[2], type);
    if (i.list) i.predicate = names.predicate(args[3]), i.predicate_negated = args[3].negated;
    if (op == "set") {
      const Type result = types.front();
      if (bytes_of(result) != 4 || types.size() != 2) throw NotImplementedError("this type of the result");
      i.d = names.destination(args[0], result), i.wide = result == Type::F32 ? 0 : 4;
      return done(by_comparison<ToNumbers>(type));
    }
    i.d.at = names.predicate_destination(args[0].word);
    i.e.at = args[0].second.empty() ? -1 : names.predicate_destination(args[0].second);
    return done(by_comparison<ToPredicates>(type));
  }
  return false;
}

bool Arithmetic::selections() {
  if (op == "selp") {
    arity(4);
    i.d = names.destination(args[0], type), i.a = names.source(args[1], type), i.b = names.source(args[2], type);
    i.predicate = names.predicate(args[3]), i.predicate_negated = args[3].negated;
    return done(by_bits(type, []<class T>(T) -> Handler { return select<T>; }));
  }
  if (op == "slct") {
    arity(4);
    if (types.size() != 2) return false;
    i.d = names.destination(args[0], types[0]), i.a = names.source(args[1], types[0]), i.b = names.source(args[2], types[0]);
    i.c = names.source(args[3], type);
    no_flush();
    if (type == Type::F32)
      return done(by_bits(types[0], []<class T>(T) { return of<T, T, float>([](T a, T b, float c) { return c >= 0 ? a : b; }); }));
    return done(by_bits(types[0], []<class T>(T) { return of<T, T, int32_t>([](T a, T b, int32_t c) { return c >= 0 ? a : b; }); }));
  }
  return false;
}

bool Arithmetic::float_sums() {
  if (op == "add" || op == "sub" || op == "mul") {
    no_flush();
    sources(2);
    done(op == "add"   ? by_float2(type, [](auto a, auto b) { return a + b; })
         : op == "sub" ? by_float2(type, [](auto a, auto b) { return a - b; })
                       : by_float2(type, [](auto a, auto b) { return a * b; }));
    return round_and_saturate(i, words, type), true;
  }
  if (op == "fma" || op == "mad") {
    no_flush();
    sources(3);
    if (has(words, "relu") || has(words, "oob")) throw NotImplementedError("this variant");
    done(by_float(
        type, [](auto a, auto b, auto c) { return std::fma(a, b, c); }, std::make_index_sequence<3>()));
    return round_and_saturate(i, words, type), true;
  }
  if (op == "div") {
    if (flushes && !has(words, "approx") && !has(words, "full")) no_flush();
    sources(2);
    done(type == Type::F32 || type == Type::F64 ? by_float2(type, [](auto a, auto b) { return a / b; }) : nullptr);
    return round_and_saturate(i, words, type), true;
  }
  return false;
}

bool Arithmetic::float_extremes() {
  if (op == "min" || op == "max") {
    no_flush();
    if (has(words, "xorsign") || args.size() != 3) throw NotImplementedError("this variant");
    sources(2);
    const bool nan = has(words, "NaN");
    if (op == "min")
      return done(nan ? by_float2(type, [](auto a, auto b) { return least_or_nan(a, b); })
                      : by_float2(type, [](auto a, auto b) { return least(a, b); }));
    return done(nan ? by_float2(type, [](auto a, auto b) { return most_or_nan(a, b); })
                    : by_float2(type, [](auto a, auto b) { return most(a, b); }));
  }
  return false;
}

bool Arithmetic::float_signs() {
  if (op == "neg" || op == "abs") {
    no_flush();
    sources(1);
    const bool neg = op == "neg";
    switch (type) {
      case Type::F64:
        return done(neg ? of<uint64_t>([](uint64_t a) { return a ^ uint64_t { 1 } << 63; })
                        : of<uint64_t>([](uint64_t a) { return a & ~uint64_t{} >> 1; }));
      case Type::F32:
        return done(neg ? of<uint32_t>([](uint32_t a) { return a ^ 0x80000000u; })
                        : of<uint32_t>([](uint32_t a) { return a & 0x7fffffffu; }));
      case Type::F16x2:
      case Type::BF16x2:
        return done(neg ? of<uint32_t>([](uint32_t a) { return a ^ 0x80008000u; })
                        : of<uint32_t>([](uint32_t a) { return a & 0x7fff7fffu; }));
      default:
        return done(neg ? of<uint16_t>([](uint16_t a) { return static_cast<uint16_t>(a ^ 0x8000u); })
                        : of<uint16_t>([](uint16_t a) { return static_cast<uint16_t>(a & 0x7fffu); }));
    }
  }
  if (op == "copysign") {
    sources(2);  // the sign is the first one's
    if (type == Type::F32) return done(of<float, float>([](float a, float b) { return std::copysign(b, a); }));
    if (type == Type::F64) return done(of<double, double>([](double a, double b) { return std::copysign(b, a); }));
  }
  return false;
}

bool Arithmetic::float_functions() {
  const bool approximates = has(words, "approx");
  if (op == "sqrt" || op == "rcp" || op == "rsqrt") {
    if (flushes && !approximates) no_flush();
    i.of = Class::Special;
    sources(1);
    if (op == "sqrt")
      done(flushes ? approximate(true, [](float a) { return std::sqrt(a); }) : by_float1(type, [](auto a) { return std::sqrt(a); }));
    if (op == "rcp" && type == Type::F32) done(approximate(flushes, [](float a) { return 1 / a; }));
    if (op == "rcp" && type == Type::F64) done(by_float1(type, [](auto a) { return 1 / a; }));
    if (op == "rsqrt" && type == Type::F32)
      done(approximate(flushes, [](float a) { return static_cast<float>(1 / std::sqrt(double{a})); }));
    if (op == "rsqrt" && type == Type::F64) done(by_float1(type, [](auto a) { return 1 / std::sqrt(a); }));
    if (!i.run) throw NotImplementedError("this type");
    return round_and_saturate(i, words, type), true;
  }
  if (op == "ex2" || op == "lg2" || op == "sin" || op == "cos" || op == "tanh") {
    if (type != Type::F32) throw NotImplementedError("this type");
    i.of = Class::Special;
    sources(1);
    return done(op == "ex2"   ? approximate(flushes, [](float a) { return static_cast<float>(std::exp2(double{a})); })
                : op == "lg2" ? approximate(flushes, [](float a) { return static_cast<float>(std::log2(double{a})); })
                : op == "sin" ? approximate(flushes, [](float a) { return static_cast<float>(std::sin(double{a})); })
                : op == "cos" ? approximate(flushes, [](float a) { return static_cast<float>(std::cos(double{a})); })
                              : approximate(flushes, [](float a) { return static_cast<float>(std::tanh(double{a})); }));
  }
  return false;
}

bool Arithmetic::float_tests() {
  if (op == "testp") {
    arity(2);
    i.a = names.source(args[1], type), i.b = i.a, i.d.at = names.predicate_destination(args[0].word), i.e.at = -1;
    if (has(words, "notanumber")) return i.mode = kNan, done(by_comparison<ToPredicates>(type));
    if (has(words, "number")) return i.mode = kNum, done(by_comparison<ToPredicates>(type));
  }
  return false;
}

bool Arithmetic::decode() {
  i.of = type == Type::F64 ? Class::Double : floats ? Class::Float : Class::Integer;
  if (moves() || logic_of_predicates() || comparisons() || selections()) return true;
  if (floats) return float_sums() || float_extremes() || float_signs() || float_functions() || float_tests();
  return integers();
}

bool decode_arithmetic(Instruction& i, const Words& words, const std::vector<Arg>& args, Names& names) {
  return Arithmetic(i, words, args, names).decode();
}

}  // namespace naru::backends::ptx
