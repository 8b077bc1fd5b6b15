// The assembler for aarch64.
#pragma once

#include <asmjit/arm/a64assembler.h>
#include <asmjit/arm/a64compiler.h>

#include <vector>

#include "render/assembler.h"

namespace naru::render {

namespace a64 = asmjit::a64;

inline a64::Gp gp(const Register& r) { return r.as<a64::Gp>(); }

class A64Assembler final : public Assembler {
 public:
  explicit A64Assembler(a64::Compiler& cc) : Assembler(cc), cc_(cc) {}

  // A memory operand for instructions, which accept a base with either an index or an offset: the sum of base and index is kept in a register for
  // the following straight-line code. The offset must be one that instructions can encode.
  a64::Mem memory(const Address& address);
  // The address itself, in a register.
  a64::Gp pointer(const Address& address);

  Register new_register() override { return cc_.newInt64(); }
  void bind(const Label& label) override;
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
  struct Sum {
    Register base, index;
    uint32_t shift;
    a64::Gp value;
  };
  a64::Gp sum_of(const Address& address);
  void changed(const Register& r);
  void jump(Condition condition, const Label& label);

  a64::Compiler& cc_;
  std::vector<Sum> sums_;  // valid at the current position
};

}  // namespace naru::render
