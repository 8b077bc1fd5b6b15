// Methods of x[mask] and x[{...}] (Indexed): each reads the elements and calls the tensor's method. backward() is one of them; the rest is
// in ops/index/index.cpp.
#include "naru/indexed.h"

#include "naru/ops.h"

namespace naru {

Indexed::Indexed(const Indexed&) = default;
Indexed::~Indexed() = default;

Indexed::operator Tensor() && {
  read();
  return std::move(read_);
}
const Indexed& Indexed::operator=(const Operand& value) && { return write(value); }
const Indexed& Indexed::operator=(const Indexed& value) && { return write(value.read()); }
const Indexed& Indexed::operator+=(const Operand& value) const { return update(&Tensor::add_, value); }
const Indexed& Indexed::operator-=(const Operand& value) const { return update(&Tensor::sub_, value); }
const Indexed& Indexed::operator*=(const Operand& value) const { return update(&Tensor::mul_, value); }
const Indexed& Indexed::operator/=(const Operand& value) const { return update(&Tensor::div_, value); }
Indexed Indexed::operator[](IndexList indices) const { return read()[indices]; }

#define NARU_OP1(name, rule, lo, hi, expr, da, doc)      \
  Tensor Indexed::name() const { return read().name(); } \
  Tensor Indexed::name##_() const { return read().name##_(); }
#define NARU_OP2(name, rule, lo, hi, expr, da, db, doc)                   \
  Tensor Indexed::name(const Operand& b) const { return read().name(b); } \
  Tensor Indexed::name##_(const Operand& b) const { return read().name##_(b); }
#define NARU_OP3(name, rule, lo, hi, expr, da, db, dc, doc)                                    \
  Tensor Indexed::name(const Operand& b, const Operand& c) const { return read().name(b, c); } \
  Tensor Indexed::name##_(const Operand& b, const Operand& c) const { return read().name##_(b, c); }
#include "naru/elementwise.inc"
#undef NARU_OP1
#undef NARU_OP2
#undef NARU_OP3
#include "autograd/engine/indexed_methods.inc"

}  // namespace naru
