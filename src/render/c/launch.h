// Launches: an instruction becomes kernels that are started one after another, for every backend whose devices run kernels in the C of dialect.h.
// The backend resolves addresses, compiles new texts and starts the kernels.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/instruction.h"
#include "ir/space.h"
#include "naru/error.h"
#include "render/c/dialect.h"

namespace naru::render::c {

// Items of a group, unless a kernel needs another number.
inline constexpr int kGroup = 64;
// The least number of elements for a looping item.
inline constexpr int64_t kLeastOfItem = 4096;

enum class Kind : uint8_t {
  Map,
  MapEach,
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
  SortSelect,
  Nonzero,
  Rows,
  User
};

// Packs small numbers into a word of a key. The word is never decoded; a call site only has to give different words for different numbers.
class KeyBits {
 public:
  // Adds a number below 2^width.
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

// What determines a kernel's text, for one target.
struct Key {
  Kind kind;
  const ir::Program* program = nullptr;  // must outlive the call
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

// The last argument of a kernel, after its memory pointers: struct { i64 o[memory]; u64 p[params]; I d[rest]; }, with I = i32, or i64 if `wide`.
// o: byte offsets into each piece of memory, filled in by the backend. p: the program's parameters. d: integers, the "Numbers" of the kernels'
// comments.
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
  // The complete struct, padded to its alignment.
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
  std::vector<std::byte> many_;  // the whole struct, if it exceeds few_
};

struct Launch {
  Key key;
  // The complete source of a kernel called "k", whose parameters are GLOBAL u8* b0 ... and the struct.
  std::function<std::string()> text;
  std::span<void* const> memory;  // device addresses; null if the kernel does not use one
  std::span<std::byte> arguments;
  int64_t groups;
  int group;  // items per group, as in the text
  // The grid and group sizes of a user kernel in the device's own language, in three dimensions; otherwise 0.
  std::array<int64_t, 3> groups3{};
  std::array<int, 3> group3{};
  int shared = 0;  // bytes of dynamic shared memory
};

// A compiler's errors. Backends throw it; for user kernels, lines are those of the user's source.
class CompilerError : public RuntimeError {
 public:
  // compiler: "NVRTC 13.0".
  CompilerError(const std::string& text, std::string by, std::string words)
      : RuntimeError(text), compiler(std::move(by)), log(std::move(words)) {}
  std::string compiler, log;
};

// The error for what a kernel noted in a record (see Launcher::faults).
using FaultError = std::function<std::exception_ptr(int record, uint32_t found, int64_t value)>;

class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual const Target& target() const = 0;
  virtual void start(const Launch& launch) = 0;
  // Compiles the launch's kernel if needed.
  virtual void prepare(const Launch& launch) { static_cast<void>(launch); }
  // Scratch memory, valid until the instruction has run. 64-byte aligned.
  virtual void* scratch(size_t bytes) = 0;
  // Allocates `count` consecutive records (Fault) in which a kernel notes errors: `found` becomes the least index of a bad element (kNothing if
  // there is none), `value` is the bad value. `error` makes the error for the first one, raised at the next wait.
  virtual void* faults(int count, FaultError error) = 0;
};
struct Fault {
  static constexpr uint32_t kNothing = ~0u;
  uint32_t found = kNothing, unused = 0;
  int64_t value = 0;
};

// Starts the kernels of an instruction; the instruction is complete when the last one is.
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
void run(const ir::MapEach&, Launcher&);
void run(const ir::UserKernel&, Launcher&);
void run(const ir::Exchange&, Launcher&);
// The same of any instruction; nothing for copies of bytes, and for those without text (kHostOnly).
void run_any(const ir::Instruction& instruction, Launcher& launcher);
// Capabilities::longest_chosen_row of such devices.
int64_t longest_chosen_row(const Target& target);
// What devices with these kernels can do, without libraries and without kernels of the user's own language.
Capabilities capabilities_of(const Target& target);
// Compiles its kernel. Throws RuntimeError, with the lines of the user's source, if the compiler rejects it.
void prepare(const ir::UserKernel&, Launcher&);

// The beginning of a kernel's text: the argument struct and the parameters, up to the opening brace, and pointers m0, m1 ... of the given types.
// memory: "f32" for read-only memory, "=f32" for memory that is written.
struct Head {
  std::vector<std::string> memory;
  int params = 0, numbers = 0, group = 1;
  bool wide = false;
  std::string functions;  // before the kernel
};
std::string opening(const Head& head, const Target& target);
// The words of a kernel's parameters: device memory, a byte, the beginning of the pointers' names, the struct's type, its name, the name of its address,
// and what begins a line.
struct ParameterWords {
  const char *global, *byte, *pointer, *type, *name, *at, *line;
};
// The parameters of a kernel, up to the opening brace: pointers to bytes <pointer>0 ..., and the struct. apart: see in_memory().
std::string parameters(const ParameterWords& words, size_t memory, bool apart, const Dialect& dialect);
// True if the struct is too large for a parameter; then it is passed in memory.
bool in_memory(size_t memory, size_t argument_bytes, const Target& target) noexcept;

// The index of a space within the Numbers: its sizes, then each operand's strides.
struct Walk {
  int first, rank, count;
  int size(int d) const { return first + d; }
  int stride(int k, int d) const { return first + rank + k * rank + d; }
  int end() const { return first + rank * (1 + count); }
  // Defines constants I <name>0, <name>1 ...: the position whose row-major index is `from`, over the first `dims` dimensions.
  std::string position(const std::string& name, const std::string& from, int dims, const std::string& indent) const;
  std::string position(const std::string& name, const std::string& from, const std::string& indent) const {
    return position(name, from, rank, indent);
  }
  // The offset of operand k at that position, in elements; "0" without dimensions.
  std::string offset(int k, const std::string& name, int dims) const;
  std::string offset(int k, const std::string& name) const { return offset(k, name, rank); }
};
// Adds the Numbers that Walk describes: sizes, and strides in elements.
void add(Arguments& arguments, const ir::Space& space);

// Division of numbers below 2^31 by a divisor known at launch, as multiply and shift; two Numbers encode the divisor. FUNCTION u32 quotient(u32
// n, u32 multiplier, u32 shift).
extern const char* const kQuotient;
void add_divisor(Arguments& arguments, int64_t divisor);

// Code for an inclusive prefix sum of s[ITEM], of `type`, over the items of a group.
std::string sums_of_group(const std::string& s, const std::string& type, int group, const std::string& indent);

// How an operand's address moves along the last dimension: not at all, to the next element, or by its stride.
enum Step : uint64_t { kStays = 0, kNext = 1, kStrides = 2 };
Step last_step(const ir::Space& space, int k) noexcept;

// A parameter of the program as a value.
std::string param_text(uint64_t slot, ir::VType type);

// True if four neighbours from a multiple of four on can be read at once, whatever the position in the first `dims` dimensions.
bool starts_in_fours(const ir::Operand& operand, int dims) noexcept;

// True if positions in the space, or offsets of an operand, exceed 32 bits.
bool is_wide(const ir::Space& space) noexcept;

}  // namespace naru::render::c
