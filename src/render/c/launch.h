// Launches: an instruction becomes kernels to be started one behind another, for any backend whose devices take kernels in the C of
// dialect.h. The backend resolves addresses, compiles text that it has not seen before, and starts it.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/instruction.h"
#include "ir/space.h"
#include "naru/error.h"
#include "render/c/dialect.h"

namespace naru::render::c {

// Items of a group, where a kernel has no reason for another number.
inline constexpr int kGroup = 64;
// Elements that a looping item takes at least.
inline constexpr int64_t kLeastOfItem = 4096;

enum class Kind : uint8_t {
  Map,
  ContiguousReduction,
  StridedReduction,
  Tree,
  ArgReduce,
  Scan,
  CheckIndex,
  Gather,
  Offsets,
  Scatter,
  MatMul,
  Convolution,
  Windows,
  SortKeys,
  SortGroup,
  SortStep,
  SortPut,
  SortCount,
  SortSums,
  SortMove,
  Nonzero,
  Rows,
  User
};

// Small numbers side by side in a word of a key. The reader of a key is nobody: only the same calls must give different words for different numbers.
class KeyBits {
 public:
  // A number below 2^width.
  KeyBits& add(uint64_t number, int width) noexcept {
    assert(number >> width == 0 && used_ + width <= 64);
    word_ |= number << used_;
    used_ += width;
    return *this;
  }
  KeyBits& add(bool b) noexcept { return add(b, 1); }
  KeyBits& add(DType t) noexcept { return add(static_cast<uint64_t>(t), kDTypeBits); }
  KeyBits& add(ir::VType t) noexcept { return add(static_cast<uint64_t>(t), 3); }
  KeyBits& add(ir::ReduceOp op) noexcept { return add(static_cast<uint64_t>(op), 4); }
  operator uint64_t() const noexcept { return word_; }

 private:
  uint64_t word_ = 0;
  int used_ = 0;
};

// What decides a kernel's text, for one target.
struct Key {
  Kind kind;
  const ir::Program* program = nullptr;  // lives as long as the call
  uint64_t bits = 0, more = 0;
  bool same(const Key& o) const noexcept {
    return kind == o.kind && bits == o.bits && more == o.more && !program == !o.program && (!program || program->same(*o.program));
  }
  uint64_t hash() const noexcept {
    uint64_t h = (program ? program->hash() : 0) ^ static_cast<uint64_t>(kind) << 56;
    h = (h ^ bits) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 32 ^ more) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
  }
};

// The one argument of a kernel behind its memory: struct { i64 o[memory]; u64 p[params]; I d[rest]; }, with I = i32, or i64 where `wide`.
// o: bytes from each piece of memory's start, filled in by the backend.
class Arguments {
 public:
  Arguments(int memory, bool wide) : wide_(wide) {
    for (int i = 0; i < memory; ++i) param(0);
  }
  void param(uint64_t bits) { put(&bits, 8); }
  void add(int64_t v) {
    const int32_t narrow = static_cast<int32_t>(v);
    wide_ ? put(&v, 8) : put(&narrow, 4);
  }
  // Whole, padded to its alignment.
  std::span<std::byte> bytes() {
    const uint64_t zero = 0;
    put(&zero, (8 - used_ % 8) % 8);
    return {data(), used_};
  }

 private:
  void put(const void* p, size_t n) {
    const auto* b = static_cast<const std::byte*>(p);
    if (many_.empty() && used_ + n > few_.size()) many_.assign(few_.begin(), few_.begin() + static_cast<std::ptrdiff_t>(used_));
    if (many_.empty())
      std::copy_n(b, n, few_.begin() + static_cast<std::ptrdiff_t>(used_));
    else
      many_.insert(many_.end(), b, b + n);
    used_ += n;
  }
  std::byte* data() noexcept { return many_.empty() ? few_.data() : many_.data(); }
  bool wide_;
  size_t used_ = 0;
  alignas(8) std::array<std::byte, 512> few_;
  std::vector<std::byte> many_;  // all of them, once they are more
};

struct Launch {
  Key key;
  // The whole text of a kernel called "k", whose parameters are GLOBAL u8* b0 ... and the struct.
  std::function<std::string()> text;
  std::span<void* const> memory;  // addresses of the device; null where the kernel does not touch it
  std::span<std::byte> arguments;
  int64_t groups;
  int group;  // items of each; the text says the same
  // Of a text in the device's own language, which counts both in three dimensions; else 0.
  std::array<int64_t, 3> groups3{};
  std::array<int, 3> group3{};
  int shared = 0;  // bytes of the array that it leaves open
};

// What a compiler has against a text. Backends throw it; for users' own kernels it is told in their lines.
class CompilerError : public RuntimeError {
 public:
  // compiler: "NVRTC 13.0".
  CompilerError(const std::string& text, std::string by, std::string words)
      : RuntimeError(text), compiler(std::move(by)), log(std::move(words)) {}
  std::string compiler, log;
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual const Target& target() const = 0;
  virtual void start(const Launch& launch) = 0;
  // Compiles the launch's kernel, if it has not been yet.
  virtual void prepare(const Launch& launch) { static_cast<void>(launch); }
  // Memory for intermediate values, of no further use once the instruction has run. 64-byte aligned.
  virtual void* scratch(size_t bytes) = 0;
  // `count` records, one behind another, for a kernel that may find something wrong: `found` becomes the least number of what is wrong,
  // kNothing as long as nothing is; `value` is what stood there. `text` makes an IndexError of the first one, when somebody waits.
  virtual void* faults(int count, std::function<std::string(int record, uint32_t found, int64_t value)> text) = 0;
};
struct Fault {
  static constexpr uint32_t kNothing = ~0u;
  uint32_t found = kNothing, unused = 0;
  int64_t value = 0;
};

// Start the kernels of an instruction; the last one started ends it.
void run(const ir::Map&, Launcher&);
void run(const ir::Reduce&, Launcher&);
void run(const ir::ArgReduce&, Launcher&);
void run(const ir::Scan&, Launcher&);
void run(const ir::Gather&, Launcher&);
void run(const ir::Scatter&, Launcher&);
void run(const ir::MatMul&, Launcher&);
void run(const ir::Convolution&, Launcher&);
void run(const ir::Windows&, Launcher&);
void run(const ir::Sort&, Launcher&);
void run(const ir::Nonzero&, Launcher&);
void run(const ir::RowFused&, Launcher&);
void run(const ir::UserKernel&, Launcher&);
// Compiles its kernels; throws RuntimeError with the user's lines that the compiler refuses.
void prepare(const ir::UserKernel&, Launcher&);

// The head of a kernel's text: the struct of its arguments and its parameters, up to the opening brace; and pointers m0, m1 ... of the
// types given. memory: "f32" for what is read, "=f32" for what is written too.
struct Head {
  std::vector<std::string> memory;
  int params = 0, numbers = 0, group = 1;
  bool wide = false;
  std::string functions;  // in front of the kernel
};
std::string opening(const Head& head, const Target& target);
// Whether the struct is too large for a parameter: then the parameter is memory that holds it.
bool in_memory(size_t memory, size_t argument_bytes, const Target& target) noexcept;

// Where a space stands among the numbers: its sizes, then each operand's strides.
struct Walk {
  int first, rank, count;
  int size(int d) const { return first + d; }
  int stride(int k, int d) const { return first + rank + k * rank + d; }
  int end() const { return first + rank * (1 + count); }
  // Constants I <name>0, <name>1 ...: the position with row-major number `from`, over the first `dims` dimensions.
  std::string position(const std::string& name, const std::string& from, int dims, const std::string& indent) const;
  std::string position(const std::string& name, const std::string& from, const std::string& indent) const {
    return position(name, from, rank, indent);
  }
  // Elements from operand k's first to the one at that position; "0" without dimensions.
  std::string offset(int k, const std::string& name, int dims) const;
  std::string offset(int k, const std::string& name) const { return offset(k, name, rank); }
};
// The same numbers: sizes, strides in elements.
void add(Arguments& arguments, const ir::Space& space);

// Division of numbers below 2^31 by one that is known when a kernel is started, without dividing: two numbers stand for it among the arguments.
// FUNCTION u32 quotient(u32 n, u32 multiplier, u32 shift).
extern const char* const kQuotient;
void add_divisor(Arguments& arguments, int64_t divisor);

// Lines by which s[ITEM] of all items of a group, of `type`, becomes the sum of those up to it.
std::string sums_of_group(const std::string& s, const std::string& type, int group, const std::string& indent);

// How an operand moves along the last dimension: not, to the next element, or by its stride.
enum Step : uint64_t { kStays = 0, kNext = 1, kStrides = 2 };
Step last_step(const ir::Space& space, int k) noexcept;

// A parameter of the program as a value.
std::string param_text(uint64_t slot, ir::VType type);

// Numbers beyond 32 bits: positions in the space, or elements between the first and the last of an operand.
bool is_wide(const ir::Space& space) noexcept;

}  // namespace naru::render::c
