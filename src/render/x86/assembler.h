// The assembler for x86-64.
#pragma once

#include <asmjit/x86.h>

#include "render/assembler.h"

namespace naru::render {

namespace x86 = asmjit::x86;

inline x86::Gp gp(const Register& r) { return r.as<x86::Gp>(); }
x86::Mem memory(const Address& address);

class X86Assembler final : public Assembler {
 public:
  // avx512: the functions use AVX-512 registers.
  X86Assembler(x86::Compiler& cc, bool avx512) : Assembler(cc), cc_(cc), avx512_(avx512) {}

  void set_frame(asmjit::FuncFrame& frame) const override;
  Register new_register() override { return cc_.newInt64(); }
  void zero(const Register& to) override;
  void move(const Register& to, const Register& from) override;
  void load(const Register& to, const Address& from) override;
  void add(const Register& to, int64_t n) override;
  void add(const Register& to, const Register& n) override;
  void add(const Register& to, const Address& n) override;
  void set_sum(const Register& to, const Register& a, int64_t b) override;
  void set_sum(const Register& to, const Register& a, const Register& b) override;
  void branch(const Register& a, Condition condition, const Register& b, const Label& label) override;
  void branch(const Register& a, Condition condition, const Label& label) override;
  void subtract_and_branch(const Register& to, int64_t n, Condition condition, const Label& label) override;
  void subtract_and_branch(const Register& to, const Register& n, Condition condition, const Label& label) override;
  asmjit::BaseMem new_stack(uint32_t bytes, uint32_t alignment) override;
  void load_address(const Register& to, const asmjit::BaseMem& stack) override;
  void end_function() override;

 private:
  x86::Compiler& cc_;
  bool avx512_;
};

}  // namespace naru::render
