#if defined(__x86_64__)

#include "render/x86/assembler.h"

namespace naru::render {
namespace {

using asmjit::imm;

using InstId = x86::Inst::Id;
// By Condition; after a comparison, or after an instruction that set the flags for a comparison with 0.
constexpr InstId kJump[] = {x86::Inst::kIdJl, x86::Inst::kIdJle, x86::Inst::kIdJg};

}  // namespace

x86::Mem memory(const Address& a) {
  return a.index.isValid() ? x86::ptr(gp(a.base), gp(a.index), a.shift, a.offset) : x86::ptr(gp(a.base), a.offset);
}

void X86Assembler::set_frame(asmjit::FuncFrame& frame) const {
  frame.setAvxEnabled();
  frame.setAvxCleanup();
  if (avx512_) frame.setAvx512Enabled();
}

void X86Assembler::zero(const Register& to) { cc_.xor_(gp(to), gp(to)); }
void X86Assembler::move(const Register& to, const Register& from) { cc_.mov(gp(to), gp(from)); }
void X86Assembler::load(const Register& to, const Address& from) { cc_.mov(gp(to), memory(from)); }
void X86Assembler::add(const Register& to, int64_t n) { cc_.add(gp(to), imm(n)); }
void X86Assembler::add(const Register& to, const Register& n) { cc_.add(gp(to), gp(n)); }
void X86Assembler::add(const Register& to, const Address& n) { cc_.add(gp(to), memory(n)); }
void X86Assembler::set_sum(const Register& to, const Register& a, int64_t b) { cc_.lea(gp(to), x86::ptr(gp(a), static_cast<int32_t>(b))); }
void X86Assembler::set_sum(const Register& to, const Register& a, const Register& b) { cc_.lea(gp(to), x86::ptr(gp(a), gp(b))); }

void X86Assembler::branch(const Register& a, Condition condition, const Register& b, const Label& label) {
  cc_.cmp(gp(a), gp(b));
  cc_.emit(kJump[static_cast<int>(condition)], label);
}

void X86Assembler::branch(const Register& a, Condition condition, const Label& label) {
  cc_.test(gp(a), gp(a));
  cc_.emit(kJump[static_cast<int>(condition)], label);
}

void X86Assembler::subtract_and_branch(const Register& to, int64_t n, Condition condition, const Label& label) {
  cc_.sub(gp(to), imm(n));
  cc_.emit(kJump[static_cast<int>(condition)], label);
}

void X86Assembler::subtract_and_branch(const Register& to, const Register& n, Condition condition, const Label& label) {
  cc_.sub(gp(to), gp(n));
  cc_.emit(kJump[static_cast<int>(condition)], label);
}

asmjit::BaseMem X86Assembler::new_stack(uint32_t bytes, uint32_t alignment) { return cc_.newStack(bytes, alignment); }
void X86Assembler::load_address(const Register& to, const asmjit::BaseMem& stack) { cc_.lea(gp(to), stack.as<x86::Mem>()); }
void X86Assembler::end_function() { cc_.ret(); }

}  // namespace naru::render

#endif
