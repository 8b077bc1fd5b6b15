// The functions, methods and operators of the elementwise table.
#include "ir/op_ids.h"
#include "naru/ops.h"
#include "ops/elementwise/elementwise.h"

namespace naru {

#define NARU_OP1(name, ...)                                                    \
  Tensor name(const Operand& a) { return ops::run_op(ir::op::name, {&a, 1}); } \
  Tensor Tensor::name() const {                                                \
    const Operand a(*this);                                                    \
    return ops::run_op(ir::op::name, {&a, 1});                                 \
  }                                                                            \
  const Tensor& Tensor::name##_() const {                                      \
    ops::run_op_in_place(ir::op::name, *this, {});                             \
    return *this;                                                              \
  }
#define NARU_OP2(name, ...)                                                    \
  Tensor name(const Operand& a, const Operand& b) {                            \
    const Operand all[] = {a, b};                                              \
    return ops::run_op(ir::op::name, all);                                     \
  }                                                                            \
  Tensor Tensor::name(const Operand& b) const { return naru::name(*this, b); } \
  const Tensor& Tensor::name##_(const Operand& b) const {                      \
    ops::run_op_in_place(ir::op::name, *this, {&b, 1});                        \
    return *this;                                                              \
  }
#define NARU_OP3(name, ...)                                                 \
  Tensor name(const Operand& a, const Operand& b, const Operand& c) {       \
    const Operand all[] = {a, b, c};                                        \
    return ops::run_op(ir::op::name, all);                                  \
  }                                                                         \
  Tensor Tensor::name(const Operand& b, const Operand& c) const {           \
    const Operand all[] = {*this, b, c};                                    \
    return ops::run_op(ir::op::name, all);                                  \
  }                                                                         \
  const Tensor& Tensor::name##_(const Operand& b, const Operand& c) const { \
    const Operand others[] = {b, c};                                        \
    ops::run_op_in_place(ir::op::name, *this, others);                      \
    return *this;                                                           \
  }
#include "naru/elementwise.inc"
#undef NARU_OP1
#undef NARU_OP2
#undef NARU_OP3

#define NARU_OPERATOR(symbol, name) \
  Tensor operator symbol(const Tensor& a, const Operand& b) { return name(a, b); }
NARU_OPERATOR(+, add)
NARU_OPERATOR(-, sub)
NARU_OPERATOR(*, mul)
NARU_OPERATOR(/, div)
NARU_OPERATOR(<, lt)
NARU_OPERATOR(<=, le)
NARU_OPERATOR(>, gt)
NARU_OPERATOR(>=, ge)
NARU_OPERATOR(&, bitwise_and)
NARU_OPERATOR(|, bitwise_or)
NARU_OPERATOR(^, bitwise_xor)
#undef NARU_OPERATOR
#define NARU_OPERATOR(symbol, name) \
  Tensor operator symbol(Scalar a, const Tensor& b) { return name(a, b); }
NARU_OPERATOR(+, add)
NARU_OPERATOR(-, sub)
NARU_OPERATOR(*, mul)
NARU_OPERATOR(/, div)
#undef NARU_OPERATOR
Tensor operator-(const Tensor& a) { return neg(a); }
Tensor operator~(const Tensor& a) { return bitwise_not(a); }
const Tensor& Tensor::operator+=(const Operand& b) const { return add_(b); }
const Tensor& Tensor::operator-=(const Operand& b) const { return sub_(b); }
const Tensor& Tensor::operator*=(const Operand& b) const { return mul_(b); }
const Tensor& Tensor::operator/=(const Operand& b) const { return div_(b); }

}  // namespace naru
