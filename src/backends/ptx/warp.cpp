// Handlers of what the threads of a warp do together: shuffles, votes, matches, reductions. The loop (machine.cpp) has brought together the threads that the
// instruction's mask names.
#include <bit>

#include "backends/ptx/decode.h"
#include "naru/error.h"

namespace naru::backends::ptx {
namespace {

enum Shuffle : uint8_t { kUp, kDown, kButterfly, kIndex };

void shuffle(Warp& w, const Instruction& i, Mask m) {
  const Vec<uint32_t> a = get<uint32_t>(w, i.a), b = get<uint32_t>(w, i.b), c = get<uint32_t>(w, i.c);
  Vec<uint32_t> d = a;
  Mask valid = 0;
  for (int l = 0; l < kLanes; ++l) {
    const int by = static_cast<int>(b.v[l] & 31), clamp = static_cast<int>(c.v[l] & 31), segment = static_cast<int>(c.v[l] >> 8 & 31);
    const int least = l & segment, most = (l & segment) | (clamp & ~segment);
    int from = 0;
    bool within = false;
    switch (i.mode) {
      case kUp:
        from = l - by, within = from >= most;
        break;
      case kDown:
        from = l + by, within = from <= most;
        break;
      case kButterfly:
        from = l ^ by, within = from <= most;
        break;
      default:
        from = least | (by & ~segment), within = from <= most;
    }
    if (within) d.v[l] = a.v[from & 31], valid |= Mask{1} << l;
  }
  put(w, i.d, d, m);
  if (i.predicate >= 0) put_predicate(w, i.predicate, valid, m);
}

// i.mode: 0 all, 1 any, 2 uni, 3 ballot.
void vote(Warp& w, const Instruction& i, Mask m) {
  const Mask yes = get_predicate(w, i.predicate, i.predicate_negated) & m;
  if (i.mode == 3) {
    Vec<uint32_t> d;
    for (uint32_t& x : d.v) x = yes;
    return put(w, i.d, d, m);
  }
  const bool found = i.mode == 0 ? yes == m : i.mode == 1 ? yes != 0 : yes == m || yes == 0;
  put_predicate(w, static_cast<int16_t>(i.d.at), found ? ~Mask{0} : 0, m);
}

void active(Warp& w, const Instruction& i, Mask m) {
  Vec<uint32_t> d;
  for (uint32_t& x : d.v) x = m;
  put(w, i.d, d, m);
}

template <class T>
void match(Warp& w, const Instruction& i, Mask m) {
  const Vec<T> a = get<T>(w, i.a);
  Vec<uint32_t> d;
  bool alike = true;
  const int first = std::countr_zero(m);
  for (int l = 0; l < kLanes; ++l) {
    d.v[l] = 0;
    for (int k = 0; k < kLanes; ++k)
      if (m >> k & 1 && a.v[k] == a.v[l]) d.v[l] |= Mask{1} << k;
    if (m >> l & 1) alike &= a.v[l] == a.v[first];
  }
  if (i.mode == 1)  // all
    for (uint32_t& x : d.v) x = alike ? m : 0;
  put(w, i.d, d, m);
  if (i.predicate >= 0) put_predicate(w, i.predicate, alike ? ~Mask{0} : 0, m);
}

template <class T>
void reduce(Warp& w, const Instruction& i, Mask m) {
  const Vec<T> a = get<T>(w, i.a);
  bool begun = false;
  T sum = 0;
  for (int l = 0; l < kLanes; ++l) {
    if (!(m >> l & 1)) continue;
    const T x = a.v[l];
    const auto u = [](T v) { return static_cast<uint32_t>(v); };
    sum = !begun        ? x
          : i.mode == 0 ? static_cast<T>(u(sum) + u(x))
          : i.mode == 1 ? std::min(sum, x)
          : i.mode == 2 ? std::max(sum, x)
          : i.mode == 3 ? static_cast<T>(u(sum) & u(x))
          : i.mode == 4 ? static_cast<T>(u(sum) | u(x))
                        : static_cast<T>(u(sum) ^ u(x));
    begun = true;
  }
  Vec<T> d;
  for (T& x : d.v) x = sum;
  put(w, i.d, d, m);
}

void elect(Warp& w, const Instruction& i, Mask m) {
  Vec<uint32_t> d;
  const auto first = static_cast<uint32_t>(std::countr_zero(m));
  for (uint32_t& x : d.v) x = first;
  if (i.d.at >= 0) put(w, i.d, d, m);
  put_predicate(w, i.predicate, Mask{1} << first, m);
}

void no_value(Warp&, const Instruction&, Mask) {}

}  // namespace

bool decode_warp(Instruction& i, const Words& words, const std::vector<Arg>& args, Names& names) {
  const std::string_view op = words[0];
  const auto arity = [&](size_t n) {
    if (args.size() != n) throw RuntimeError("{} operands, where {} are expected", args.size(), n);
  };
  const std::vector<Type> types = types_of(words);
  const Type type = types.empty() ? Type::None : types.back();
  i.of = Class::Synchronization;
  if (op == "activemask") {
    arity(1);
    i.d = names.destination(args[0], Type::B32), i.run = active;
    return true;
  }
  if (op == "bar" && words.size() > 2 && words[1] == "warp") {
    arity(1);
    i.control = Control::WarpWide, i.e = names.source(args[0], Type::B32), i.run = no_value, i.mode = 255;
    return true;
  }
  if (op != "shfl" && op != "vote" && op != "match" && op != "redux" && op != "elect") return false;
  if (!has(words, "sync")) throw NotImplementedError("the form without .sync, which GPUs since Volta lack");
  i.control = Control::WarpWide;
  if (op == "shfl") {
    arity(5);
    i.mode = has(words, "up") ? kUp : has(words, "down") ? kDown : has(words, "bfly") ? kButterfly : kIndex;
    i.d = names.destination(args[0], Type::B32), i.a = names.source(args[1], Type::B32);
    i.b = names.source(args[2], Type::B32), i.c = names.source(args[3], Type::B32), i.e = names.source(args[4], Type::B32);
    if (!args[0].second.empty()) i.predicate = names.predicate_destination(args[0].second);
    i.run = shuffle;
  } else if (op == "vote") {
    arity(3);
    i.mode = has(words, "all") ? 0 : has(words, "any") ? 1 : has(words, "uni") ? 2 : 3;
    i.predicate = names.predicate(args[1]), i.predicate_negated = args[1].negated;
    if (i.mode == 3)
      i.d = names.destination(args[0], Type::B32);
    else
      i.d.at = names.predicate_destination(args[0].word);
    i.e = names.source(args[2], Type::B32), i.run = vote;
  } else if (op == "match") {
    arity(3);
    i.mode = has(words, "all") ? 1 : 0;
    i.d = names.destination(args[0], Type::B32), i.a = names.source(args[1], type), i.e = names.source(args[2], Type::B32);
    if (!args[0].second.empty()) i.predicate = names.predicate_destination(args[0].second);
    i.run = bytes_of(type) == 8 ? match<uint64_t> : match<uint32_t>;
  } else if (op == "redux") {
    arity(3);
    constexpr std::string_view kOps[] = {"add", "min", "max", "and", "or", "xor"};
    i.mode = 255;
    for (size_t k = 0; k < std::size(kOps); ++k)
      if (has(words, kOps[k])) i.mode = static_cast<uint8_t>(k);
    if (i.mode == 255 || type == Type::F32) throw NotImplementedError("this operation");
    i.d = names.destination(args[0], type), i.a = names.source(args[1], type), i.e = names.source(args[2], Type::B32);
    i.run = type == Type::S32 ? reduce<int32_t> : reduce<uint32_t>;
  } else {
    arity(2);
    i.d.at = -1;
    if (args[0].word != "_") i.d = names.destination(args[0], Type::B32);
    i.predicate = names.predicate_destination(args[0].second), i.e = names.source(args[1], Type::B32), i.run = elect;
  }
  return true;
}

}  // namespace naru::backends::ptx
