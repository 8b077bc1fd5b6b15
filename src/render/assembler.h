// The scalar part of a kernel's code: pointers and counters in 64-bit registers, addresses, branches. Each architecture implements it.
#pragma once

#include <asmjit/core.h>

#include <cstdint>

namespace naru::render {

// An operand in memory with these bytes, behind the function's code. asmjit (1.9) crashes where it has no memory for the patterns that a constant is
// made of, so they get theirs before it is asked; without memory the compiler has that error, and the function is not made.
template <class Compiler>
auto new_constant(Compiler& cc, const void* bytes, size_t size) {
  constexpr size_t kPatterns = 4096;
  using Operand = decltype(cc.newConst(asmjit::ConstPoolScope::kLocal, bytes, size));
  if (cc._codeZone.remainingSize() < kPatterns && !cc._codeZone.alloc(kPatterns)) {
    cc.reportError(asmjit::kErrorOutOfMemory);
    return Operand();
  }
  return cc.newConst(asmjit::ConstPoolScope::kLocal, bytes, size);
}

using Register = asmjit::BaseReg;  // a virtual 64-bit register
using asmjit::Label;

// The address of an element: base + (index << shift) + offset.
struct Address {
  Register base, index;  // `index` is optional
  uint32_t shift = 0;
  int offset = 0;

  Address moved(int bytes) const {
    Address a = *this;
    a.offset += bytes;
    return a;
  }
};
inline Address at(const Register& base, int offset = 0) { return {base, {}, 0, offset}; }

// For signed numbers.
enum class Condition : uint8_t { Less, LessOrEqual, Greater };

class Assembler {
 public:
  explicit Assembler(asmjit::BaseCompiler& compiler) : compiler_(compiler) {}
  virtual ~Assembler() = default;

  // Frame attributes that functions of this architecture need; call before the first instruction.
  virtual void set_frame(asmjit::FuncFrame& frame) const { static_cast<void>(frame); }

  virtual Register new_register() = 0;
  Label new_label() { return compiler_.newLabel(); }
  virtual void bind(const Label& label) { compiler_.bind(label); }
  // Call before a loop's first instruction.
  void align_loop() { compiler_.align(asmjit::AlignMode::kCode, 32); }

  virtual void zero(const Register& to) = 0;
  virtual void move(const Register& to, const Register& from) = 0;
  virtual void load(const Register& to, const Address& from) = 0;  // 64 bits
  virtual void add(const Register& to, int64_t n) = 0;
  virtual void add(const Register& to, const Register& n) = 0;
  virtual void add(const Register& to, const Address& n) = 0;  // adds 64 bits from memory
  // to = a + b.
  virtual void set_sum(const Register& to, const Register& a, int64_t b) = 0;
  virtual void set_sum(const Register& to, const Register& a, const Register& b) = 0;

  // Branches to the label if a <condition> b, or a <condition> 0.
  virtual void branch(const Register& a, Condition condition, const Register& b, const Label& label) = 0;
  virtual void branch(const Register& a, Condition condition, const Label& label) = 0;
  // to -= n, then branch(to, condition, label).
  virtual void subtract_and_branch(const Register& to, int64_t n, Condition condition, const Label& label) = 0;
  virtual void subtract_and_branch(const Register& to, const Register& n, Condition condition, const Label& label) = 0;

  // A stack slot of the function.
  virtual asmjit::BaseMem new_stack(uint32_t bytes, uint32_t alignment) = 0;
  virtual void load_address(const Register& to, const asmjit::BaseMem& stack) = 0;

  virtual void end_function() = 0;

 protected:
  asmjit::BaseCompiler& compiler_;
};

}  // namespace naru::render
