// PTX in a decoded form: what NVRTC makes of a kernel, read once and then interpreted (machine.h) without a GPU. The language is that of NVIDIA's
// "PTX ISA"; instructions that naru's and users' kernels do not need are refused by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace naru::backends::ptx {

inline constexpr int kLanes = 32;  // threads of a warp
using Mask = uint32_t;             // one bit a lane

struct Warp;
struct Instruction;
using Handler = void (*)(Warp&, const Instruction&, Mask);

// A value of each lane: registers of the warp at byte `at`, or constants of the program at byte ~at.
struct Operand {
  int32_t at = 0;
};

enum class Space : uint8_t { Generic, Global, Shared, Local, Constant, Parameter, Argument };  // Argument: of a call, one of each lane

// What the interpreter's loop does itself; all else is a handler's.
enum class Control : uint8_t { None, Branch, Table, Call, Return, Exit, Trap, BlockBarrier, BlockArrive, WarpWide };

// Groups in which instructions are counted.
enum class Class : uint8_t { Integer, Float, Double, Special, Convert, Memory, Control, Synchronization };
inline constexpr size_t kClasses = 8;

struct Instruction {
  Handler run = nullptr;
  Control control = Control::None;
  Class of = Class::Integer;
  Space space = Space::Generic;
  int16_t guard = -1;  // a predicate register
  bool negated = false;
  bool reads = false;      // of memory: loads and atomic operations
  bool strong = false;     // of memory: volatile, relaxed and stronger
  bool releases = false;   // of memory: orders earlier accesses of the thread before it (release, acq_rel)
  uint8_t bytes = 0;       // of memory: of one element
  uint8_t elements = 1;    // of memory: of a vector
  uint8_t wide = 0;        // of memory: bytes of the register
  uint8_t mode = 0;        // what a handler wants to know: a rounding, a comparison
  int16_t predicate = -1;  // a second result, or a source that is a predicate
  bool predicate_negated = false;
  Operand d, a, b, c, e;
  int64_t offset = 0;          // of memory: added to the address; of barriers: the number
  uint32_t list = 0;           // into Program::lists: elements of vectors, targets of tables, copies of a call's arguments
  uint32_t count = 0;          // entries there
  uint32_t target = 0;         // of branches and calls
  uint32_t line = 0;           // 0: unknown
  uint32_t file = 0;           // into Program::files
  const char* name = nullptr;  // "ld.global.f32"
  Handler inner = nullptr;     // what a handler wraps
};

enum class Special : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  Lane,
  Warp,
  Warps,
  Processor,
  Processors,
  Grid,
  LanesEqual,
  LanesLess,
  LanesLessEqual,
  LanesGreater,
  LanesGreaterEqual,
  WarpSize,
  DynamicShared,
  TotalShared
};

struct Variable {
  std::string name;
  Space space;
  uint64_t at = 0;  // shared: the offset; global and constant: into Program::memory
  uint64_t bytes = 0, align = 1;
};

struct Parameter {
  uint32_t at = 0, bytes = 0;
};

// A kernel of a module, with the functions that it calls.
struct Program {
  std::string name;
  std::vector<Instruction> code;
  std::vector<uint32_t> lists;
  std::vector<std::byte> constants;  // vectors of kLanes
  std::vector<std::string> files;    // by number
  std::vector<std::unique_ptr<std::string>> names;
  std::vector<std::pair<Special, Operand>> specials;
  std::vector<Parameter> parameters;
  std::vector<Variable> variables;  // shared, global, constant
  std::vector<std::byte> memory;    // the first contents of global and constant variables
  uint32_t start = 0;
  uint32_t register_bytes = 0, predicates = 0, local_bytes = 0, argument_bytes = 0, parameter_bytes = 0;
  // Offsets of the static shared variables have gaps between them, which no access may touch. shared_bytes: without the gaps.
  uint32_t shared_end = 0, shared_bytes = 0;
  uint32_t dynamic_at = 0;  // where dynamic shared memory begins
  bool dynamic = false;
  int most_threads = 0;  // .maxntid, 0: not said
};

// Reads the kernel `name` of a module. Throws NotImplementedError that names an instruction or a word that is not supported, and RuntimeError for text that
// is no PTX; both with the line of the text.
std::unique_ptr<Program> read_program(std::string_view text, std::string_view name);

// Decodes an instruction: `words` are the parts of its name ("ld", "global", "f32"). See decode.cpp.
enum class Type : uint8_t { None, B8, B16, B32, B64, U8, U16, U32, U64, S8, S16, S32, S64, F16, BF16, F16x2, BF16x2, F32, F64, Pred };
Type type_of(std::string_view word) noexcept;
int bytes_of(Type type) noexcept;

}  // namespace naru::backends::ptx
