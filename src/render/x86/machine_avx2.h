// The lane machine of AVX2 (with FMA, F16C, BMI2): 8 lanes; a Bool is a vector of 32-bit lanes, all ones or all zeros.
#pragma once

#include "render/x86/lane_machine.h"

namespace naru::render {

class MachineAvx2 final : public X86LaneMachine {
 public:
  explicit MachineAvx2(x86::Compiler& cc) : X86LaneMachine(cc, 8, 16, 0) {}

  Value load(DType dtype, const Address& at, bool tail) override;
  void store(DType dtype, const Value& value, const Address& at, StoreMode mode) override;
  void set_tail(const Register& count) override;
  Value blend_tail(VType type, const Value& yes, const Value& no) override;
  Arg constant_arg(VType type, uint64_t bits) override;
  Arg broadcast_arg(VType type, const Address& at) override;
  Value index(const Register& base, int offset) override;
  void spill(VType type, const Value& value, const Address& to) override;
  Value fill(VType type, const Address& from) override;
  Value shift_down(VType type, const Value& value, int by) override;
  void store_first(VType type, const Value& value, const Address& at) override;

 protected:
  x86::Vec vec() override { return cc_.newYmm(); }
  asmjit::BaseReg bool_register() override { return cc_.newYmm(); }
  Value broadcast_bool(x86::Gp zero_or_one) override;
  x86::Vec broadcast_narrow(DType dtype, x86::Mem at) override;
  void load_operand(VType type, x86::Vec to, x86::Mem from) override;
  Value arithmetic64(const ir::Node& node, const Arg* args) override;
  Value compare(Prim prim, const Arg& a, const Arg& b) override;
  Value select(const Arg& condition, const Arg& yes, const Arg& no) override;
  Value bool_logic(const ir::Node& node, const Arg* args) override;
  Value scale(const Arg& a, const Arg& b) override;
  Value mul_hi_unsigned(const Arg& a, const Arg& b) override;
  Value change_width(VType from, VType to, const Arg& a) override;
  Value round_to_half(const Arg& a) override;
  InstId bitwise(Prim prim, VType type) const noexcept override;
  InstId rounding(VType type) const noexcept override;

 private:
  enum class Direction : uint8_t { In, Out };
  // Copies the tail's elements between memory and the start of the scratch buffer, in pieces of 8, 4, 2 and 1.
  void copy_tail(Direction direction, x86::Mem at, int size);
  x86::Mem tail_scratch();
  x86::Vec wide_mask(x86::Vec mask, int part);   // 32-bit lanes of a Bool -> the 64-bit lanes of one part
  x86::Vec narrow(x86::Vec low, x86::Vec high);  // the low words of 64-bit lanes
  x86::Vec ones();
  x86::Vec zeros();
  Value scale32(const Arg& a, const Arg& b);
  Value scale64(const Arg& a, const Arg& b);
  Value convert_by_lane(VType from, VType to, const Value& s);

  x86::Gp count_;          // lanes of the tail, 1 to 8
  x86::Vec mask_;          // of the tail, 32-bit lanes
  x86::Vec wide_mask_[2];  // of the tail, 64-bit lanes
};

}  // namespace naru::render
