// The ids of the elementwise table's operators, of their derivatives and of the internal operators.
#pragma once

#include <initializer_list>

#include "ir/program.h"

namespace naru::ir::op {

enum : OpId {
#define NARU_OP1(name, ...) name,
#define NARU_OP2(name, ...) name,
#define NARU_OP3(name, ...) name,
#include "naru/elementwise.inc"
#undef NARU_OP1
#undef NARU_OP2
#undef NARU_OP3
  kTable
};

// The derivative of operator r with respect to operand i; its arguments are the operands, the result y and the gradient g.
constexpr OpId derivative(OpId r, int i) noexcept { return static_cast<OpId>(kTable + 3 * r + i); }

// Internal operators. `key` and `offset` are the I64 seed and offset of a random generator.
enum : OpId {
  copy = kTable * 4,  // (a) a
  // From here to exponential: operators that read an element's position.
  arange,        // (start, step): start + step * index
  linspace,      // (start, end, step, count): from both ends, so that both are exact
  uniform,       // (from, to, key, offset)
  normal,        // (mean, std, key, offset)
  normal_of,     // (mean, std, key, offset), mean and std tensors: the same formula
  random_int,    // (low, range, key, offset): I64
  bernoulli,     // (p, key, offset) -> Bool
  exponential,   // (rate, key, offset)
  masked_scale,  // (a, mask, scale): a * mask * scale (dropout)
  sub_exp,       // (a, b): exp(a - b)
  square_diff,   // (a, mean): (a - mean) squared
  mul_add,       // (a, b, c): a * b + c
  addcmul,       // (a, b, c, value): a + value * b * c
  addcdiv,       // (a, b, c, value): a + value * b / c
  smooth_l1,     // (a, b, beta)
  abs_power,     // (a, p): |a| to the power p
  power_1,
  power_2,
  power_3,  // (a, b): pow where b is 1, 2, 3
  power_2_a,
  power_3_a,  // (a, b, y, g): its derivative by a
  not_zero,   // (a): a != 0 -> Bool
  is_close,   // (a, b, rtol, atol, equal_nan) -> Bool
  kCount
};

constexpr bool is_one_of(OpId id, std::initializer_list<OpId> list) noexcept {
  for (const OpId one : list)
    if (one == id) return true;
  return false;
}

// A cheaper operator with the same operands and the same bits, for a scalar b as operand 1.
constexpr OpId with_number(OpId r, double b) noexcept {
  if (r == pow && b == 1) return power_1;
  if (r == pow && b == 2) return power_2;
  if (r == pow && b == 3) return power_3;
  if (r == derivative(pow, 0) && b == 2) return power_2_a;
  if (r == derivative(pow, 0) && b == 3) return power_3_a;
  return r;
}

}  // namespace naru::ir::op
