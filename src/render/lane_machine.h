// A lane machine emits the code of one primitive over a step of L lanes (AVX-512: 16, AVX2: 8). What is written once
// for both instruction sets stands in LaneMachine; loads, stores, compares, selections and changes of width are theirs.
#pragma once

#include <asmjit/x86.h>

#include <cstdint>
#include <memory>

#include "ir/expr.h"
#include "render/native.h"

namespace naru::render {

namespace x86 = asmjit::x86;
using ir::Prim;
using ir::VType;
using InstId = asmjit::x86::Inst::Id;

constexpr int parts_of(VType t) noexcept { return t == VType::I64 || t == VType::F64 ? 2 : 1; }

// A step of values in virtual registers. 32-bit types: one vector. 64-bit types: two, the lower lanes first.
// Bool: a mask register (AVX-512) or a vector of 32-bit lanes, all ones or all zeros (AVX2).
struct Value {
  asmjit::Operand part[2];
  // A broadcast 64-bit value: one register is both parts.
  bool shares_register() const noexcept { return part[1].isReg() && part[0] == part[1]; }
};

// An operand of a primitive: registers, or memory that an instruction can take as its last operand.
struct Arg {
  VType type = VType::F32;
  asmjit::Operand part[2];
  bool dying = false;  // nobody reads these registers afterwards: the result may take their place
  bool constant = false;
  uint64_t bits = 0;  // of a constant

  Arg() = default;
  // Registers as an operand. A register that is both parts is never overwritten: the result of the first part would be
  // read as the second.
  Arg(VType t, const Value& v, bool last_use) : type(t), part{v.part[0], v.part[1]}, dying(last_use && !v.shares_register()) {}
  // Memory, or registers that stay as they are.
  Arg(VType t, const asmjit::Operand& low, const asmjit::Operand& high) : type(t), part{low, high} {}
};

enum class StoreMode : uint8_t { Full, Streaming, Tail };

class LaneMachine {
 public:
  static std::unique_ptr<LaneMachine> make(Isa isa, x86::Compiler& cc);
  virtual ~LaneMachine() = default;

  int lanes() const noexcept { return lanes_; }
  int registers() const noexcept { return registers_; }
  x86::Compiler& cc() const noexcept { return cc_; }
  // Bytes of memory for a step of `type`, kept outside registers.
  int bytes_of(VType type) const noexcept { return lanes_ * 4 * parts_of(type); }

  // Consecutive elements. In the tail only the lanes named by set_tail exist; the others are zero.
  virtual Value load(DType dtype, x86::Mem at, bool tail) = 0;
  virtual void store(DType dtype, const Value& value, x86::Mem at, StoreMode mode) = 0;
  // The tail's step has min(count, lanes) lanes, count >= 1.
  virtual void set_tail(x86::Gp count) = 0;
  // `yes` in the lanes that the tail has, else `no`.
  virtual Value blend_tail(VType type, const Value& yes, const Value& no) = 0;

  // A value that is the same in every lane: of an element in memory, of a constant.
  virtual Value broadcast(DType dtype, x86::Mem at) = 0;
  virtual Value broadcast_bool(x86::Gp zero_or_one) = 0;
  Value constant(VType type, uint64_t bits);
  // The same as an operand that takes no register, where that is possible (not for Bool).
  virtual Arg constant_arg(VType type, uint64_t bits) = 0;
  virtual Arg broadcast_arg(VType type, x86::Mem at) = 0;
  // base + offset + lane, as I64.
  virtual Value index(x86::Gp base, int offset) = 0;

  Value eval(const ir::Node& node, const Arg* args);
  // The registers that hold an operand; loads it where it is in memory.
  Value in_registers(const Arg& arg);
  void move(VType type, const Value& to, const Value& from);
  Value copy(VType type, const Value& from);

  // Whole registers to and from memory of bytes_of(type) bytes.
  virtual void spill(VType type, const Value& value, x86::Mem to) = 0;
  virtual Value fill(VType type, x86::Mem from) = 0;
  // Lane l has the value of lane l + by for l < by (by: half the lanes, or a quarter ... 1); the rest is of no meaning.
  virtual Value shift_down(VType type, const Value& value, int by) = 0;
  // Writes lane 0 as an element of `type` (Bool as a byte).
  virtual void store_first(VType type, const Value& value, x86::Mem at) = 0;

 protected:
  LaneMachine(x86::Compiler& cc, int lanes, int registers) : cc_(cc), lanes_(lanes), registers_(registers) {}

  virtual x86::Vec vec() = 0;                   // a new register
  virtual asmjit::BaseReg bool_register() = 0;  // a new register for a Bool
  virtual void load_operand(VType type, x86::Vec to, x86::Mem from) = 0;
  virtual Value arithmetic64(const ir::Node& node, const Arg* args);  // what AVX2 lacks for I64
  virtual Value compare(Prim prim, const Arg& a, const Arg& b) = 0;   // of numbers
  virtual Value select(const Arg& condition, const Arg& yes, const Arg& no) = 0;
  virtual Value bool_logic(const ir::Node& node, const Arg* args) = 0;  // And, Or, Xor, Not, Eq, Ne, Select on Bool
  virtual Value scale(const Arg& a, const Arg& b) = 0;
  virtual Value mul_hi_unsigned(const Arg& a, const Arg& b) = 0;
  virtual Value change_width(VType from, VType to, const Arg& a) = 0;  // to and from 64-bit types
  virtual Value round_to_half(const Arg& a) = 0;                       // F32 -> F16 -> F32
  // Signs of the bitwise and rounding instructions, which the two sets name differently.
  virtual InstId bitwise(Prim prim, VType type) const noexcept = 0;
  virtual InstId rounding(VType type) const noexcept = 0;

  x86::Vec reg(const Arg& a, int part);
  x86::Vec target(const Arg& a, int part);
  static Arg temporary(VType type, const Value& value) { return Arg(type, value, true); }
  static Arg kept(VType type, const Value& value) { return Arg(type, value, false); }
  Value unary(InstId id, const Arg& a, VType result);
  Value unary(InstId id, const Arg& a, VType result, int immediate);
  Value binary(InstId id, const Arg& a, const Arg& b, bool commutes);
  Value multiply_add(const Arg& a, const Arg& b, const Arg& c);
  Value shift(Prim prim, const Arg& a, const Arg& b);
  Value divide_int32(const Arg& a, const Arg& b, bool remainder);
  Value convert(const Arg& a, DType to);
  Value round_to_bfloat(const Arg& a);
  // Lanes without an instruction go through memory to a function and back: scratch()+0 and +128 hold the operands, +0
  // the result.
  using Helper = void (*)(void* scratch, int64_t lanes);
  Value call(Helper helper, VType type, const Arg& a, const Arg& b);
  x86::Mem scratch(int offset);

  x86::Compiler& cc_;

 private:
  int lanes_;
  int registers_;
  x86::Mem scratch_;
  bool has_scratch_ = false;
};

// Whether a primitive has no vector code: its lanes go through a call, so that unrolling is of no use.
bool is_called(const ir::Node& node) noexcept;

}  // namespace naru::render
