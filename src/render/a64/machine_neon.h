// The lane machine of NEON (Advanced SIMD, which every aarch64 processor has): 4 lanes. A Bool is a vector of 32-bit lanes, all ones or all
// zeros. Operands are registers: arithmetic has no memory operands, and constants are materialised where they are used.
#pragma once

#include "render/a64/assembler.h"
#include "render/lane_machine.h"

namespace naru::render {

inline a64::Vec vec_of(const asmjit::Operand& o) { return o.as<a64::Vec>(); }

class MachineNeon final : public LaneMachine {
 public:
  MachineNeon(a64::Compiler& cc, A64Assembler& assembler) : LaneMachine(4, 32, 0), cc_(cc), a_(assembler) {}

  Value load(DType dtype, const Address& at, bool tail) override;
  void store(DType dtype, const Value& value, const Address& at, StoreMode mode) override;
  void set_tail(const Register& count) override;
  Value blend_tail(VType type, const Value& yes, const Value& no) override;
  Value broadcast(DType dtype, const Address& at) override;
  Value constant(VType type, uint64_t bits) override;
  Arg broadcast_arg(VType type, const Address& at) override;
  Arg constant_arg(VType type, uint64_t bits) override;
  Arg load_arg(VType type, const Address& at) override;
  Value index(const Register& base, int offset) override;
  Value eval(const ir::Node& node, const Arg* args) override;
  Value in_registers(const Arg& arg) override;
  void move(VType type, const Value& to, const Value& from) override;
  Value copy(VType type, const Value& from) override;
  void spill(VType type, const Value& value, const Address& to) override;
  Value fill(VType type, const Address& from) override;
  Value shift_down(VType type, const Value& value, int by) override;
  void store_first(VType type, const Value& value, const Address& at) override;

 private:
  using InstId = asmjit::InstId;
  using Vec = a64::Vec;

  // An operand in registers; `free`: the result may overwrite them.
  struct Taken {
    Value value;
    bool free = false;
    Vec part(int p) const { return value.part[p].as<Vec>(); }
  };
  Taken take(const Arg& a);

  Vec vec() { return cc_.newVecQ(); }
  Vec zeros();
  Vec bits_everywhere(VType type, uint64_t bits);
  Vec copy_of(const Vec& from);
  Vec target(const Taken& a, int part) { return a.free ? a.part(part) : vec(); }
  Vec target(const Taken& a, const Taken& b, int part) { return a.free ? a.part(part) : target(b, part); }

  // machine_neon.cpp: memory
  void widen(DType dtype, const Vec& d, const a64::Mem& from);
  Value load_some(DType dtype, const Value& into, const a64::Gp& at);
  Vec narrowed(DType dtype, const Vec& v, bool whole);
  void store_some(DType dtype, const Value& value, const a64::Gp& at);
  a64::Mem some_at(const a64::Gp& at, int lane, int size) const;
  void broadcast_narrow(DType dtype, const Vec& d, const a64::Mem& at);

  // machine_neon_arithmetic.cpp
  Value unary(InstId id, VType type, const Taken& a);
  Value binary(InstId id, VType type, const Taken& a, const Taken& b);
  Value bitwise(InstId id, VType type, const Taken& a, const Taken& b);
  Value multiply_add(VType type, const Arg* args);
  Value invert(VType type, const Taken& a);
  Value extreme(Prim prim, VType type, const Taken& a, const Taken& b);
  Value multiply64(const Taken& a, const Taken& b);
  Value multiply_high(const Taken& a, const Taken& b);
  Value divide(VType type, const Taken& a, const Taken& b, bool remainder);
  Value shift(Prim prim, VType type, const Arg& a, const Arg& b);
  Value scale(VType type, const Taken& a, const Taken& b);
  Value scale32(const Taken& a, const Taken& b);
  Value compare(Prim prim, VType type, const Taken& a, const Taken& b);
  Value select(VType type, const Taken& condition, const Taken& yes, const Taken& no);
  Value bool_logic(Prim prim, const Arg* args);
  Value call(LaneFunction function, VType type, const Taken& a, const Taken& b);

  // machine_neon_convert.cpp
  Value convert(const Arg& a, DType to);
  Value to_bool(VType from, const Taken& a);
  Value from_bool(VType to, const Taken& a);
  Value change_type(VType from, VType to, const Taken& a);
  Value narrow_to(DType to, const Taken& a);
  Value round_to_bfloat(const Taken& a);
  Value lowest_where_too_large(VType from, VType to, const Value& converted, const Taken& a);
  Value longs_to_floats(const Taken& a);
  Vec wide_mask(const Vec& mask, int part);          // 32-bit lanes of a Bool -> the 64-bit lanes of one part
  Vec narrow_mask(const Vec& low, const Vec& high);  // the reverse; also the low words of 64-bit lanes

  a64::Compiler& cc_;
  A64Assembler& a_;
  // Of the tail: count_, its lanes, 1 to 4; second_ and last_, the element indices for lanes 1 and 2 of a tail shorter than 4; its lanes as a
  // Bool, and as 64-bit masks.
  a64::Gp count_, second_, last_;
  Vec mask_, wide_mask_[2];
  a64::Mem scratch_;
  bool has_scratch_ = false;
};

// v viewed as lanes of a type's width, for an instruction.
inline a64::VecV lanes_of(VType type, const a64::Vec& v) { return parts_of(type) == 2 ? v.d2() : v.s4(); }

}  // namespace naru::render
