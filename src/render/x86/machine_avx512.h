// The lane machine of AVX-512 (F, BW, DQ, VL): 16 lanes, Bool in mask registers, tails by masks.
#pragma once

#include "render/x86/lane_machine.h"

namespace naru::render {

class MachineAvx512 final : public X86LaneMachine {
 public:
  explicit MachineAvx512(x86::Compiler& cc) : X86LaneMachine(cc, 16, 32, kMasks) {}

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
  x86::Vec vec() override { return cc_.newZmm(); }
  asmjit::BaseReg bool_register() override { return cc_.newKw(); }
  Value broadcast_bool(x86::Gp zero_or_one) override;
  x86::Vec broadcast_narrow(DType dtype, x86::Mem at) override;
  void load_operand(VType type, x86::Vec to, x86::Mem from) override;
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
  static constexpr int kMasks = 7;  // k0 cannot be used as a mask
  Arg broadcast_memory(VType type, x86::Mem at);
  x86::Xmm bytes_of_mask(const Value& value);  // 1 or 0 for each lane
  x86::Vec low_half(const Value& v, int part) const { return v.part[part].as<x86::Vec>().ymm(); }
  Value join(x86::Vec low, x86::Vec high);

  x86::KReg mask_[2];  // of the tail: all lanes; the upper eight lanes, shifted down
};

}  // namespace naru::render
