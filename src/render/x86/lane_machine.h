// What the lane machines of AVX2 and AVX-512 share: instructions that both have, whose last operand may be memory.
#pragma once

#include <asmjit/x86.h>

#include "render/lane_machine.h"
#include "render/x86/assembler.h"

namespace naru::render {

using InstId = asmjit::x86::Inst::Id;

inline asmjit::x86::Vec vec_of(const asmjit::Operand& o) { return o.as<asmjit::x86::Vec>(); }

class X86LaneMachine : public LaneMachine {
 public:
  Value constant(VType type, uint64_t bits) final;
  Value broadcast(DType dtype, const Address& at) final;
  Arg load_arg(VType type, const Address& at) final;
  Value eval(const ir::Node& node, const Arg* args) final;
  bool asks_all_lanes() const noexcept final { return true; }
  void branch_where_all(std::span<const Value> conditions, const Label& label) final;
  Value in_registers(const Arg& arg) final;
  void move(VType type, const Value& to, const Value& from) final;
  Value copy(VType type, const Value& from) final;

 protected:
  X86LaneMachine(x86::Compiler& cc, int lanes, int registers, int masks) : LaneMachine(lanes, registers, masks), cc_(cc) {}

  virtual x86::Vec vec() = 0;                   // a new register
  virtual asmjit::BaseReg bool_register() = 0;  // a new register for a Bool
  virtual Value broadcast_bool(x86::Gp zero_or_one) = 0;
  // For an element of 8 or 16 bits.
  virtual x86::Vec broadcast_narrow(DType dtype, x86::Mem at) = 0;
  virtual void load_operand(VType type, x86::Vec to, x86::Mem from) = 0;
  virtual Value arithmetic64(const ir::Node& node, const Arg* args);  // what AVX2 lacks for I64
  virtual Value compare(Prim prim, const Arg& a, const Arg& b) = 0;   // of numbers
  virtual Value select(const Arg& condition, const Arg& yes, const Arg& no) = 0;
  virtual Value bool_logic(const ir::Node& node, const Arg* args) = 0;  // And, Or, Xor, Not, Eq, Ne, Select on Bool
  virtual Value scale(const Arg& a, const Arg& b) = 0;
  virtual Value mul_hi_unsigned(const Arg& a, const Arg& b) = 0;
  virtual Value change_width(VType from, VType to, const Arg& a) = 0;  // to and from 64-bit types
  virtual Value round_to_half(const Arg& a) = 0;                       // F32 -> F16 -> F32
  // The ids of the bitwise and rounding instructions, whose names differ between the two sets.
  virtual InstId bitwise(Prim prim, VType type) const noexcept = 0;
  virtual InstId rounding(VType type) const noexcept = 0;

  // An integer or bfloat16 of 8 or 16 bits, widened to the 32 bits that it is computed in.
  void load_narrow(DType dtype, x86::Gp to, x86::Mem at);
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
  Value call(LaneFunction function, VType type, const Arg& a, const Arg& b);
  // Stack memory for primitives without an instruction: two operands of a lane function.
  x86::Mem scratch(int offset);

  x86::Compiler& cc_;

 private:
  x86::Mem scratch_;
  bool has_scratch_ = false;
};

}  // namespace naru::render
