// Handlers of loads, stores, atomic operations and fences.
#include <bit>
#include <cfenv>

#include "backends/ptx/decode.h"
#include "naru/error.h"

namespace naru::backends::ptx {
namespace {

// The addresses of all lanes. i.count: bytes of the register with the address; 0: there is none.
Vec<uint64_t> addresses_of(const Warp& w, const Instruction& i) noexcept {
  Vec<uint64_t> at;
  if (i.count == 8) {
    at = get<uint64_t>(w, i.a);
  } else if (i.count == 4) {
    const Vec<uint32_t> narrow = get<uint32_t>(w, i.a);
    for (int l = 0; l < kLanes; ++l) at.v[l] = narrow.v[l];
  } else {
    for (uint64_t& a : at.v) a = 0;
  }
  for (uint64_t& a : at.v) a += static_cast<uint64_t>(i.offset);
  return at;
}

std::byte* element(Warp& w, const Instruction& i, int k) noexcept {
  const auto at = static_cast<int32_t>(w.machine->program().lists[i.list + static_cast<uint32_t>(k)]);
  return at >= 0 ? w.registers + at : const_cast<std::byte*>(w.constants) + ~at;
}

// i.mode: 1: sign-extended into a wider register.
void load(Warp& w, const Instruction& i, Mask m) {
  Machine& machine = *w.machine;
  const Vec<uint64_t> at = addresses_of(w, i);
  machine.count_access(w, i, m, at.v, false);
  for (int l = 0; l < kLanes; ++l) {
    if (!(m >> l & 1)) continue;
    const std::byte* const from = machine.find(w, i, l, i.space, at.v[l], false);
    for (int k = 0; k < i.elements; ++k) {
      std::byte* const to = element(w, i, k) + l * i.wide;
      uint64_t x = 0;
      if (from) std::memcpy(&x, from + k * i.bytes, i.bytes);
      if (i.mode == 1 && i.bytes < 8) x = static_cast<uint64_t>(static_cast<int64_t>(x << (64 - 8 * i.bytes)) >> (64 - 8 * i.bytes));
      std::memcpy(to, &x, i.wide);
    }
    if (from) machine.order(w, i, l, from, i.bytes * unsigned{i.elements}, {}, false);
  }
}

void store(Warp& w, const Instruction& i, Mask m) {
  Machine& machine = *w.machine;
  const Vec<uint64_t> at = addresses_of(w, i);
  machine.count_access(w, i, m, at.v, true);
  if (i.releases) machine.fence(w);
  for (int l = 0; l < kLanes; ++l) {
    if (!(m >> l & 1)) continue;
    std::byte* const to = machine.find(w, i, l, i.space, at.v[l], true);
    if (!to) continue;
    bool same = true;
    for (int k = 0; k < i.elements; ++k) {
      const std::byte* const from = element(w, i, k) + l * i.wide;
      same &= std::memcmp(to + k * i.bytes, from, i.bytes) == 0;
    }
    machine.order(w, i, l, to, i.bytes * unsigned{i.elements}, {.writes = true}, same);
    for (int k = 0; k < i.elements; ++k) std::memcpy(to + k * i.bytes, element(w, i, k) + l * i.wide, i.bytes);
  }
}

enum Atomic : uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor, kExchange, kSwap, kIncrement, kDecrement };

template <class T>
T combined(uint8_t op, T old, T b, T c) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    if (op == kAdd) return old + b;
    if (op == kMin) return b < old ? b : old;
    if (op == kMax) return b > old ? b : old;
    return op == kSwap ? (old == b ? c : old) : b;
  } else {
    using U = std::make_unsigned_t<T>;
    switch (op) {
      case kAdd:
        return static_cast<T>(static_cast<U>(old) + static_cast<U>(b));
      case kMin:
        return b < old ? b : old;
      case kMax:
        return b > old ? b : old;
      case kAnd:
        return static_cast<T>(old & b);
      case kOr:
        return static_cast<T>(old | b);
      case kXor:
        return static_cast<T>(old ^ b);
      case kSwap:
        return old == b ? c : old;
      case kIncrement:
        return static_cast<U>(old) >= static_cast<U>(b) ? T{0} : static_cast<T>(old + 1);
      case kDecrement:
        return old == 0 || static_cast<U>(old) > static_cast<U>(b) ? b : static_cast<T>(old - 1);
      default:
        return b;
    }
  }
}

struct HalfSum {
  uint16_t bits;
};

template <class T>
void atomic(Warp& w, const Instruction& i, Mask m) {
  Machine& machine = *w.machine;
  const Vec<uint64_t> at = addresses_of(w, i);
  machine.count_access(w, i, m, at.v, true);
  machine.mutable_counts().atomics += static_cast<uint64_t>(std::popcount(m));
  if (i.releases) machine.fence(w);
  const Vec<T> b = get<T>(w, i.b), c = get<T>(w, i.c);
  Vec<T> d{};
  for (int l = 0; l < kLanes; ++l) {
    if (!(m >> l & 1)) continue;
    std::byte* const p = machine.find(w, i, l, i.space, at.v[l], true);
    if (!p) continue;
    machine.order(w, i, l, p, sizeof(T), {.writes = true, .atomic = true}, false);
    T old, next;
    std::memcpy(&old, p, sizeof old);
    if constexpr (std::is_same_v<T, HalfSum>)
      next = {half_of_number(number_of_half(old.bits) + number_of_half(b.v[l].bits), FE_TONEAREST)};
    else
      next = combined<T>(i.mode, old, b.v[l], c.v[l]);
    std::memcpy(p, &next, sizeof next);
    d.v[l] = old;
  }
  if (i.d.at >= 0) put(w, i.d, d, m);
}

void fence(Warp& w, const Instruction&, Mask) { w.machine->fence(w); }
void no_effect(Warp&, const Instruction&, Mask) {}

Handler atomic_of(Type type, uint8_t op) {
  switch (type) {
    case Type::B16:
      return atomic<uint16_t>;
    case Type::B32:
    case Type::U32:
      return atomic<uint32_t>;
    case Type::S32:
      return atomic<int32_t>;
    case Type::B64:
    case Type::U64:
      return atomic<uint64_t>;
    case Type::S64:
      return atomic<int64_t>;
    case Type::F32:
      return atomic<float>;
    case Type::F64:
      return atomic<double>;
    case Type::F16:
      if (op != kAdd) throw NotImplementedError("this operation");
      return atomic<HalfSum>;
    default:
      throw NotImplementedError("this type");
  }
}

// The rest of an atomic operation, and of a load or store, once decode_memory has read the name.
bool decode_atomic(Instruction& i, const Words& words, const std::vector<Arg>& args, Names& names, Type type) {
  const bool result = words[0] == "atom";
  constexpr std::pair<std::string_view, Atomic> kOps[] = {{"add", kAdd},       {"min", kMin},      {"max", kMax},       {"and", kAnd},
                                                          {"or", kOr},         {"xor", kXor},      {"exch", kExchange}, {"cas", kSwap},
                                                          {"inc", kIncrement}, {"dec", kDecrement}};
  bool known = false;
  for (const auto& [name, number] : kOps)
    if (has(words, name)) i.mode = number, known = true;
  const size_t from = result ? 2 : 1, n = i.mode == kSwap ? 2 : 1;
  if (!known || args.size() != from + n) throw NotImplementedError("this operation");
  i.d.at = -1;
  if (result && args[0].word != "_") i.d = names.destination(args[0], type);
  i.b = names.source(args[from], type), i.c = n == 2 ? names.source(args[from + 1], type) : i.b;
  i.run = atomic_of(type, i.mode);
  return true;
}
bool decode_transfer(Instruction& i, bool loads, const std::vector<Arg>& args, Names& names, Type type) {
  const Arg& data = args[loads ? 0 : 1];
  const size_t elements = data.kind == Arg::Kind::Vector ? data.parts.size() : 1;
  i.elements = static_cast<uint8_t>(elements);
  i.mode = type == Type::S8 || type == Type::S16 || type == Type::S32 ? 1 : 0;
  int wide = 0;
  for (size_t k = 0; k < elements; ++k) {
    const Arg& part = data.kind == Arg::Kind::Vector ? data.parts[k] : data;
    int bytes = i.bytes;
    const bool named = names.is_register(part.word);
    if (loads && !named && part.word != "_") throw RuntimeError("'{}' is no register", part.word);
    const Operand o = named ? names.any_register(part.word, bytes) : loads ? names.destination(part, type) : names.source(part, type);
    if (bytes < i.bytes) throw RuntimeError("a register is smaller than its type");
    if (wide != 0 && wide != bytes) throw NotImplementedError("a vector of registers of different sizes");
    wide = bytes;
    names.add_to_list(i, o);
  }
  i.wide = static_cast<uint8_t>(wide);
  i.run = loads ? load : store;
  return true;
}

}  // namespace

bool decode_memory(Instruction& i, const Words& words, const std::vector<Arg>& args, Names& names) {
  const std::string_view op = words[0];
  i.of = Class::Memory;
  if (op == "membar" || op == "fence") {
    i.of = Class::Synchronization, i.run = fence;
    if (has(words, "proxy")) throw NotImplementedError("fences between proxies");
    return true;
  }
  if (op == "prefetch" || op == "prefetchu" || op == "nanosleep" || op == "discard" || op == "applypriority" || op == "griddepcontrol") {
    i.run = no_effect;
    return true;
  }
  const bool loads = op == "ld" || op == "ldu", atoms = op == "atom" || op == "red";
  if (!loads && op != "st" && !atoms) return false;
  const std::vector<Type> types = types_of(words);
  if (types.empty()) throw RuntimeError("there is no type");
  const Type type = types.back();
  i.reads = loads || atoms;
  i.strong = atoms || has(words, "volatile") || has(words, "relaxed") || has(words, "acquire") || has(words, "release");
  i.releases = has(words, "release") || has(words, "acq_rel");
  i.bytes = static_cast<uint8_t>(bytes_of(type));
  if (has(words, "shared") && has(words, "cluster")) throw NotImplementedError("shared memory of clusters");
  return atoms ? decode_atomic(i, words, args, names, type) : decode_transfer(i, loads, args, names, type);
}

}  // namespace naru::backends::ptx
