// Decoding of instructions: which handler computes what a name says.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "backends/ptx/machine.h"
#include "backends/ptx/program.h"

namespace naru::backends::ptx {

// An operand as it is written.
struct Arg {
  enum class Kind : uint8_t { Word, Vector, Address, List } kind = Kind::Word;
  std::string word;        // of an address: its base, may be empty
  std::string second;      // p|q
  bool negated = false;    // !p
  int64_t offset = 0;      // of an address
  std::vector<Arg> parts;  // {a, b}, (a, b)
};

// What names stand for, where an instruction is.
class Names {
 public:
  virtual ~Names() = default;
  // A register or an immediate. Throws RuntimeError if a register has another size than the type.
  virtual Operand source(const Arg& arg, Type type) = 0;
  virtual Operand destination(const Arg& arg, Type type) = 0;
  // A register of any size, and its bytes.
  virtual Operand any_register(const std::string& word, int& bytes) = 0;
  virtual bool is_register(const std::string& word) const = 0;
  virtual int16_t predicate(const Arg& arg) = 0;  // a source: register, or a constant
  virtual int16_t predicate_destination(const std::string& word) = 0;
  virtual void add_to_list(Instruction& i, Operand element) = 0;
};

using Words = std::vector<std::string_view>;  // the parts of an instruction's name

// True if the instruction is one of arithmetic, conversions, moves, comparisons or of a warp (shuffles, votes), and has been decoded. Throws
// NotImplementedError without a place for one whose variant is not supported.
bool decode_arithmetic(Instruction& i, const Words& words, const std::vector<Arg>& args, Names& names);
bool decode_conversion(Instruction& i, const Words& words, const std::vector<Arg>& args, Names& names);
bool decode_warp(Instruction& i, const Words& words, const std::vector<Arg>& args, Names& names);
// The same of loads, stores, atomics and fences; the reader has set the space and the address in `a` and `offset`.
bool decode_memory(Instruction& i, const Words& words, const std::vector<Arg>& args, Names& names);

// --- for handlers ---

// The values of all lanes.
template <class T>
struct Vec {
  T v[kLanes];
};
template <class T>
Vec<T> get(const Warp& w, Operand o) noexcept {
  Vec<T> x;
  std::memcpy(x.v, o.at >= 0 ? w.registers + o.at : w.constants + ~o.at, sizeof x.v);
  return x;
}
template <class T>
void put(Warp& w, Operand o, const Vec<T>& x, Mask m) noexcept {
  std::byte* const p = w.registers + o.at;
  if (m == w.live) {  // the registers of threads that have ended are not read
    std::memcpy(p, x.v, sizeof x.v);
    return;
  }
  for (int l = 0; l < kLanes; ++l)
    if (m >> l & 1) std::memcpy(p + static_cast<size_t>(l) * sizeof(T), &x.v[l], sizeof(T));
}
inline void put_predicate(Warp& w, int16_t p, Mask value, Mask m) noexcept { w.predicates[p] = (w.predicates[p] & ~m) | (value & m); }
inline Mask get_predicate(const Warp& w, int16_t p, bool negated) noexcept { return negated ? ~w.predicates[p] : w.predicates[p]; }

inline bool has(const Words& words, std::string_view word) noexcept {
  for (const std::string_view w : words)
    if (w == word) return true;
  return false;
}
// The types among the words, in their order.
std::vector<Type> types_of(const Words& words);

// Bits of half and bfloat16 as numbers, and numbers rounded to them. mode: FE_TONEAREST and the like.
double number_of_half(uint16_t bits) noexcept;
double number_of_bfloat(uint16_t bits) noexcept;
uint16_t half_of_number(double x, int mode) noexcept;
uint16_t bfloat_of_number(double x, int mode) noexcept;

}  // namespace naru::backends::ptx
