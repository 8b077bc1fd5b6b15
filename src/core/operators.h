// What is known of an operator beyond its formula and its code: one row for each name, in the words of PyTorch's documentation. A row says only what
// differs from the default; a name without a row has all defaults.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace naru::operators {

// Types for which PyTorch's cpu has no kernel, so that the call is refused, with its name of the missing kernel.
enum Types : uint8_t { kBool = 1, kIntegers = 2, kFloats = 4 };
struct Lacks {
  const char* kernel = nullptr;
  uint8_t types = 0;
  bool by_first = false;  // the first operand's type decides, not the common type
};

// What autocast does with the tensors of a call.
enum class Cast : uint8_t {
  None,
  Lower,    // to the block's 16-bit type
  Float32,  // to float32
  Widest,   // to the widest type among them
  Refused,
};
struct Autocast {
  Cast cpu = Cast::None, others = Cast::None;
};

// How a function treats the dtype of out=.
enum class OutRule : uint8_t {
  Cast,      // any type that promotion can turn the result into
  Same,      // the result's own
  Floating,  // out's floating dtype, as if dtype= were given
  Own,       // out's dtype, as if dtype= were given
  Boolean,   // bool
  Mask,      // bool or uint8
  Made,      // a new tensor: made in out's dtype and on its device; dtype= must not differ
  Range,     // the same; an out of as many elements keeps its shape
};
struct Out {
  OutRule rule = OutRule::Cast;
  const char* message = nullptr;  // for a wrong dtype; {0}: the result's type, {1}: out's
};

// What a call may read of the memory that it writes: its out=, or the first argument of an in-place form.
enum class Sharing : uint8_t {
  Same,   // all of it, at the same positions: full overlap
  Apart,  // nothing: no overlap
  Fill,   // as Same; 0-d values may overlap anywhere
  Any,    // anything: PyTorch does not check, and the result is complete before it is written
};

// Which operands of a binary elementwise operator may be Python numbers. Both: either, not only one of them.
enum class Numbers : uint8_t { None, Second, One, Both };
// Which numbers are rounded to a 16-bit type before they are used with tensors of that type.
enum class Rounded : uint8_t { None, First, All };
// Operators on sparse tensors: KeepsZero: f(0) = 0, so elements that are not stored stay zero. Linear: also f(a + b) = f(a) + f(b), so the tensor
// need not be coalesced.
enum class Zero : uint8_t { Changes, KeepsZero, Linear };
// Operators on uint16, uint32 and uint64. SameBits: as those of signed integers. Unchanged: they change no integer. Ordered: by comparison.
enum class WideUnsigned : uint8_t { Refused, SameBits, Unchanged, Ordered };
// Operators on float8 types. SameBits: they copy codes. Float32: computed in float32.
enum class Float8 : uint8_t { Refused, SameBits, Float32 };

// The name of the autograd node, where it is not AddBackward0 for add. `numbers`: the set of operands that are numbers, as bits; kAnyNumbers: every set.
constexpr uint8_t kAnyNumbers = 0xff;
constexpr const char* kNotImplemented = "NotImplemented";  // of operators without a derivative: backward throws
struct NodeName {
  const char* name = nullptr;
  uint8_t numbers = kAnyNumbers;
};

// Second derivatives, where they are not those of the first's formula, with zeros by what it only compares. masked: none by that, as PyTorch's
// gradient is made with masks, which have no history. refused: none at all; PyTorch's name of the gradient function.
struct Second {
  bool masked = false;
  const char* refused = nullptr;
};

struct Record {
  Lacks lacks{};
  Autocast autocast{};
  Out out{};
  Sharing sharing = Sharing::Same, in_place = Sharing::Same;
  Numbers numbers = Numbers::None;
  Rounded rounded = Rounded::None;
  Zero zero = Zero::Changes;
  WideUnsigned wide_unsigned = WideUnsigned::Refused;
  Float8 float8 = Float8::Refused;
  Second second{};
  std::array<NodeName, 2> nodes{};
  std::array<std::string_view, 3> operands{"self", "other"};  // names of the operands, which attributes of nodes use
};

struct Row {
  std::string_view name;
  Record record;
};
// All rows, sorted by name.
std::span<const Row> rows() noexcept;
// The record of a name; one of defaults if there is no row.
const Record& record_of(std::string_view name) noexcept;

}  // namespace naru::operators
