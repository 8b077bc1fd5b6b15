// What the decoders of arithmetic share.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/ptx/decode.h"

namespace naru::backends::ptx {

// Decodes one instruction. Each family of opcodes returns true if the instruction is one of its own and has been decoded.
class Arithmetic {
 public:
  Arithmetic(Instruction& i, const Words& words, const std::vector<Arg>& args, Names& names);
  bool decode();

 private:
  void arity(size_t n) const;
  void sources(size_t n);  // the destination and n sources, all of `type`
  void no_flush() const;
  bool done(Handler h);

  bool moves();
  bool logic_of_predicates();
  bool comparisons();
  bool selections();

  bool float_sums();
  bool float_extremes();
  bool float_signs();
  bool float_functions();
  bool float_tests();

  bool integers();  // arithmetic_integers.cpp, as all below
  bool carries(bool reads, bool writes);
  bool products();
  bool short_products();
  bool sums();
  bool quotients();
  bool extremes();
  bool logic();
  bool shifts();
  bool counts();
  bool fields();
  bool bytes();

  Instruction& i;
  const Words& words;
  const std::vector<Arg>& args;
  Names& names;
  const std::string_view op;
  const std::vector<Type> types;
  const Type type;  // the last one
  const bool floats, flushes;
};

// A handler of a function of the lanes' operands. The functions are lambdas without state, so that each makes a handler of its own.
template <class... A, class F>
Handler of(F) {
  return [](Warp& w, const Instruction& i, Mask m) {
    [&]<size_t... K>(std::index_sequence<K...>) {
      const Operand operands[] = {i.a, i.b, i.c};
      const std::tuple<Vec<A>...> x(get<A>(w, operands[K])...);
      Vec<decltype(F()(A()...))> d;
      for (int l = 0; l < kLanes; ++l) d.v[l] = F()(std::get<K>(x).v[l]...);
      put(w, i.d, d, m);
    }
    (std::index_sequence_for<A...>());
  };
}

// f(T()) of an unsigned integer type of as many bytes.
template <class F>
Handler by_bits(Type type, const F& f) {
  switch (bytes_of(type)) {
    case 1:
      return f(uint8_t());
    case 2:
      return f(uint16_t());
    case 4:
      return f(uint32_t());
    case 8:
      return f(uint64_t());
    default:
      return nullptr;
  }
}

}  // namespace naru::backends::ptx
