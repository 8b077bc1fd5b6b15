#if defined(__aarch64__)

#include "render/a64/assembler.h"

#include <algorithm>

namespace naru::render {
namespace {

using asmjit::imm;

constexpr asmjit::arm::CondCode kCondition[] = {asmjit::arm::CondCode::kLT, asmjit::arm::CondCode::kLE, asmjit::arm::CondCode::kGT};

bool fits_an_instruction(int64_t n) noexcept { return n >= 0 && n < 4096; }

}  // namespace

a64::Gp A64Assembler::sum_of(const Address& a) {
  const auto same = [&](const Sum& s) { return s.base == a.base && s.index == a.index && s.shift == a.shift; };
  if (const auto known = std::find_if(sums_.begin(), sums_.end(), same); known != sums_.end()) return known->value;
  const a64::Gp value = cc_.newInt64();
  if (a.shift == 0)
    cc_.add(value, gp(a.base), gp(a.index));
  else
    cc_.add(value, gp(a.base), gp(a.index), a64::lsl(a.shift));
  sums_.push_back({a.base, a.index, a.shift, value});
  return value;
}

a64::Mem A64Assembler::memory(const Address& a) { return a64::ptr(a.index.isValid() ? sum_of(a) : gp(a.base), a.offset); }

a64::Gp A64Assembler::pointer(const Address& a) {
  const a64::Gp start = a.index.isValid() ? sum_of(a) : gp(a.base);
  if (a.offset == 0) return start;
  const Register moved = new_register();
  set_sum(moved, start, a.offset);
  return gp(moved);
}

void A64Assembler::changed(const Register& r) {
  std::erase_if(sums_, [&](const Sum& s) { return s.base == r || s.index == r; });
}

// Code that branches to the label may have other sums in registers.
void A64Assembler::bind(const Label& label) {
  sums_.clear();
  Assembler::bind(label);
}

void A64Assembler::zero(const Register& to) {
  changed(to);
  cc_.mov(gp(to), imm(0));
}

void A64Assembler::move(const Register& to, const Register& from) {
  changed(to);
  cc_.mov(gp(to), gp(from));
}

void A64Assembler::load(const Register& to, const Address& from) {
  cc_.ldr(gp(to), memory(from));
  changed(to);
}

void A64Assembler::add(const Register& to, int64_t n) { set_sum(to, to, n); }

void A64Assembler::add(const Register& to, const Register& n) { set_sum(to, to, n); }

void A64Assembler::add(const Register& to, const Address& n) {
  const Register value = new_register();
  load(value, n);
  set_sum(to, to, value);
}

void A64Assembler::set_sum(const Register& to, const Register& a, int64_t b) {
  changed(to);
  if (fits_an_instruction(b)) {
    cc_.add(gp(to), gp(a), imm(b));
  } else if (fits_an_instruction(-b)) {
    cc_.sub(gp(to), gp(a), imm(-b));
  } else {
    const a64::Gp n = cc_.newInt64();
    cc_.mov(n, imm(b));
    cc_.add(gp(to), gp(a), n);
  }
}

void A64Assembler::set_sum(const Register& to, const Register& a, const Register& b) {
  changed(to);
  cc_.add(gp(to), gp(a), gp(b));
}

void A64Assembler::jump(Condition condition, const Label& label) { cc_.b(kCondition[static_cast<int>(condition)], label); }

void A64Assembler::branch(const Register& a, Condition condition, const Register& b, const Label& label) {
  cc_.cmp(gp(a), gp(b));
  jump(condition, label);
}

void A64Assembler::branch(const Register& a, Condition condition, const Label& label) {
  cc_.cmp(gp(a), imm(0));
  jump(condition, label);
}

void A64Assembler::subtract_and_branch(const Register& to, int64_t n, Condition condition, const Label& label) {
  changed(to);
  cc_.subs(gp(to), gp(to), imm(n));
  jump(condition, label);
}

void A64Assembler::subtract_and_branch(const Register& to, const Register& n, Condition condition, const Label& label) {
  changed(to);
  cc_.subs(gp(to), gp(to), gp(n));
  jump(condition, label);
}

// The stack is aligned to 16 bytes, which is all that instructions need.
asmjit::BaseMem A64Assembler::new_stack(uint32_t bytes, uint32_t alignment) { return cc_.newStack(bytes, std::min(alignment, 16u)); }

void A64Assembler::load_address(const Register& to, const asmjit::BaseMem& stack) {
  changed(to);
  cc_.loadAddressOf(gp(to), stack.as<a64::Mem>());
}

void A64Assembler::end_function() { cc_.ret(); }

}  // namespace naru::render

#endif
