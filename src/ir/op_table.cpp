// The scalar forms of the elementwise table, of its derivatives, and of the internal operators.
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "ir/math/math.h"
#include "ir/math/small_floats.h"
#include "ir/math/special.h"
#include "ir/special_ids.h"

namespace naru::ir {
namespace {

// Words of the table that the mathematics does not define.
V lit(V like, double value) { return like.lit(value); }
V zeros(V g) { return g.lit(0); }
V plus(V a, V b) { return a.type() == VType::Bool ? a | b : a + b; }
V times(V a, V b) { return a.type() == VType::Bool ? a & b : a * b; }
V square(V a) { return times(a, a); }
V absolute(V a) { return a.type() == VType::Bool ? a : abs(a); }
V less(V a, V b) { return a.type() == VType::Bool ? ~a & b : a < b; }
V div_trunc(V a, V b) { return is_float(a.type()) ? trunc(a / b) : a / b; }
// As PyTorch has them: small whole exponents are products.
V power(V a, V b) {
  if (!is_float(a.type())) return pow_int(a, b);
  return where(b == 1.0, a, where(b == 2.0, a * a, where(b == 3.0, a * a * a, pow(a, b))));
}
// -0 for -0, NaN for NaN.
V relu(V a) { return prim_max(a.lit(0), a); }
V fmax(V a, V b) { return is_float(a.type()) ? where(a == a, where(b == b, maximum(a, b), a), b) : maximum(a, b); }
V fmin(V a, V b) { return is_float(a.type()) ? where(a == a, where(b == b, minimum(a, b), a), b) : minimum(a, b); }
V is_inf(V a) { return is_float(a.type()) ? abs(a) == std::numeric_limits<double>::infinity() : a != a; }
V is_finite(V a) { return is_float(a.type()) ? abs(a) < std::numeric_limits<double>::infinity() : a == a; }
V int_bits(V a) { return bitcast(a, a.type() == VType::F32 ? VType::I32 : VType::I64); }
V sign_bit(V a) {
  if (a.type() == VType::Bool) return a != a;
  if (!is_float(a.type())) return a < 0.0;
  const V bits = int_bits(a);
  return bits < bits.lit(0);
}
V copysign(V a, V b) {
  const V bits = int_bits(abs(a)), other = int_bits(b);
  const V sign = other.lit_bits(a.type() == VType::F32 ? 0x80000000u : 0x8000000000000000u);
  return bitcast(bits | (other & sign), a.type());
}
V logaddexp(V a, V b) {
  const V m = maximum(a, b);
  const V sum = m + log1p(exp(-abs(a - b)));
  return where(abs(m) == std::numeric_limits<double>::infinity(), m, sum);
}
V shift(Prim prim, V a, V b) {
  const double width = a.type() == VType::I32 ? 32 : 64;
  const V inside = (b >= 0.0) & (b < width);
  const V out = prim == Prim::Shl ? a.lit(0) : where(a < 0.0, a.lit(-1), a.lit(0));
  return where(inside, make(prim, a.type(), a, where(inside, b, 0.0)), out);
}
V shift_left(V a, V b) { return shift(Prim::Shl, a, b); }
V shift_right(V a, V b) { return shift(Prim::Shr, a, b); }

struct Nothing {};
constexpr Nothing nothing;

template <class F, size_t... I>
V apply(F f, std::span<const V> args, std::index_sequence<I...>) {
  using Result = decltype(f(args[I]...));
  if constexpr (std::is_same_v<Result, Nothing>)
    throw std::logic_error("this operator has no such derivative");
  else
    return f(args[I]...);
}
template <int N, auto F>
V call(std::span<const V> args) {
  return apply(F, args, std::make_index_sequence<N>());
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
const ElementwiseOp kForward[] = {
#define NARU_OP1(name, rule, lo, hi, expr, da, doc) {#name, 1, &call<1, [](V a) { return expr; }>},
#define NARU_OP2(name, rule, lo, hi, expr, da, db, doc) {#name, 2, &call<2, [](V a, V b) { return expr; }>},
#define NARU_OP3(name, rule, lo, hi, expr, da, db, dc, doc) {#name, 3, &call<3, [](V a, V b, V c) { return expr; }>},
#include "naru/elementwise.inc"
#undef NARU_OP1
#undef NARU_OP2
#undef NARU_OP3
};

const ElementwiseOp kNoDerivative{"", 0, nullptr};
const ElementwiseOp kDerivatives[] = {
#define NARU_OP1(name, rule, lo, hi, expr, da, doc) \
  {#name "'a", 3, &call<3, [](V a, V y, V g) { return da; }>}, kNoDerivative, kNoDerivative,
#define NARU_OP2(name, rule, lo, hi, expr, da, db, doc)                                                                               \
  {#name "'a", 4, &call<4, [](V a, V b, V y, V g) { return da; }>}, {#name "'b", 4, &call<4, [](V a, V b, V y, V g) { return db; }>}, \
      kNoDerivative,
#define NARU_OP3(name, rule, lo, hi, expr, da, db, dc, doc)                  \
  {#name "'a", 5, &call<5, [](V a, V b, V c, V y, V g) { return da; }>},     \
      {#name "'b", 5, &call<5, [](V a, V b, V c, V y, V g) { return db; }>}, \
      {#name "'c", 5, &call<5, [](V a, V b, V c, V y, V g) { return dc; }>},
#include "naru/elementwise.inc"
#undef NARU_OP1
#undef NARU_OP2
#undef NARU_OP3
};
#pragma GCC diagnostic pop

using Args = std::span<const V>;
V index_as(V like) {
  return convert(index(like.graph()), like.type() == VType::F64 ? DType::F64 : like.type() == VType::F32 ? DType::F32 : DType::I64);
}
V unsigned_word(V w) { return convert(w, DType::I64) & convert(w, DType::I64).lit_bits(0xffffffffu); }

const ElementwiseOp kInternal[] = {
    {"copy", 1, [](Args a) { return a[0]; }},
    {"arange", 2, [](Args a) { return is_float(a[0].type()) ? fma(index_as(a[0]), a[1], a[0]) : a[0] + index_as(a[0]) * a[1]; }},
    {"linspace", 4,
     [](Args a) {
       const V i = index_as(a[0]), back = a[3] - 1.0 - i;
       return where(i < a[3] * 0.5, fma(i, a[2], a[0]), fma(-back, a[2], a[1]));
     }},
    {"uniform", 4,
     [](Args a) {
       const V u = uniform01(index(a[2].graph()), a[2], a[3], a[0].type());
       const V x = fma(u, a[1] - a[0], a[0]);
       return where((x >= a[1]) & (a[0] < a[1]), a[0], x);  // rounding may reach the upper end, which does not belong to the range
     }},
    {"normal", 4, [](Args a) { return fma(normal01(index(a[2].graph()), a[2], a[3], a[0].type()), a[1], a[0]); }},
    {"normal_of", 4, [](Args a) { return fma(normal01(index(a[2].graph()), a[2], a[3], a[0].type()), a[1], a[0]); }},
    {"random_int", 4,
     [](Args a) {
       // 63 random bits modulo the range: the bias is below 2^-31 for ranges below 2^32.
       const Words w = philox(index(a[2].graph()), a[3], a[2]);
       const V bits = (shl(unsigned_word(w.w[0]), 31) ^ unsigned_word(w.w[1]));
       const V positive = bits & bits.lit_bits(0x7fffffffffffffffu);
       return a[0] + rem(positive, a[1]);
     }},
    {"bernoulli", 3, [](Args a) { return uniform01(index(a[1].graph()), a[1], a[2], a[0].type()) < a[0]; }},
    {"exponential", 3,
     [](Args a) {
       const V u = uniform01(index(a[1].graph()), a[1], a[2], a[0].type());
       return where(u == 0.0, u.lit(a[0].type() == VType::F64 ? 0x1p-54 : 0x1p-25), exponential_of(u)) / a[0];  // above 0: half a step
     }},
    {"masked_scale", 3, [](Args a) { return a[0] * where(a[1], a[2], 0.0); }},
    {"sub_exp", 2, [](Args a) { return exp(a[0] - a[1]); }},
    {"square_diff", 2, [](Args a) { return square(a[0] - a[1]); }},
    {"mul_add", 3, [](Args a) { return a[0] * a[1] + a[2]; }},
    {"addcmul", 4, [](Args a) { return a[0] + a[3] * (a[1] * a[2]); }},
    {"addcdiv", 4, [](Args a) { return a[0] + a[3] * (a[1] / a[2]); }},
    {"smooth_l1", 3,
     [](Args a) {
       const V d = abs(a[0] - a[1]);
       return where(d < a[2], d * d * 0.5 / a[2], d - a[2] * 0.5);
     }},
    {"abs_power", 2, [](Args a) { return pow(abs(a[0]), a[1]); }},
    {"power_1", 2, [](Args a) { return a[0]; }},
    {"power_2", 2, [](Args a) { return a[0] * a[0]; }},
    {"power_3", 2, [](Args a) { return a[0] * a[0] * a[0]; }},
    {"power_2_a", 4, [](Args a) { return a[3] * a[1] * a[0]; }},
    {"power_3_a", 4, [](Args a) { return a[3] * a[1] * (a[0] * a[0]); }},
    {"not_zero", 1, [](Args a) { return a[0].type() == VType::Bool ? a[0] : a[0] != 0.0; }},
    {"is_close", 5,
     [](Args a) {
       const V finite = abs(a[1]) < std::numeric_limits<double>::infinity();
       const V close = (a[0] == a[1]) | (finite & (abs(a[0] - a[1]) <= a[3] + a[2] * abs(a[1])));
       return close | (a[4] & (a[0] != a[0]) & (a[1] != a[1]));
     }},
    {"erfcx", 1, [](Args a) { return erfcx(a[0]); }},
    {"log_ndtr", 1, [](Args a) { return log_ndtr(a[0]); }},
    {"ndtri", 1, [](Args a) { return ndtri(a[0]); }},
    {"ndtr", 1, [](Args a) { return ndtr(a[0]); }},
    {"entr", 1, [](Args a) { return entr(a[0]); }},
    {"log_odds", 1, [](Args a) { return log_odds(a[0]); }},
    {"bessel_i0", 1, [](Args a) { return bessel_i0(a[0]); }},
    {"bessel_i1", 1, [](Args a) { return bessel_i1(a[0]); }},
    {"bessel_i0e", 1, [](Args a) { return bessel_i0e(a[0]); }},
    {"bessel_i1e", 1, [](Args a) { return bessel_i1e(a[0]); }},
    {"nextafter", 2, [](Args a) { return next_after(a[0], a[1]); }},
    {"hardshrink", 2, [](Args a) { return where(abs(a[0]) <= a[1], 0.0, a[0]); }},
    {"softshrink", 2, [](Args a) { return where(abs(a[0]) <= a[1], 0.0, a[0] - minimum(maximum(a[0], -a[1]), a[1])); }},
};

template <size_t... K>
constexpr std::array<ElementwiseOp, 2 * sizeof...(K)> float8_ops(std::index_sequence<K...>) {
  return {{{"float8_to_float32", 1, [](Args a) { return decoded(kFloatFormats[K], a[0]); }}...,
           {"float32_to_float8", 1, [](Args a) { return encoded(kFloatFormats[K], a[0]); }}...}};
}
constexpr auto kFloat8 = float8_ops(std::make_index_sequence<kFloatFormats.size()>());

}  // namespace

std::span<const ElementwiseOp> op_table() {
  static const auto& all = *[] {
    auto* const made = new std::vector<ElementwiseOp>(std::begin(kForward), std::end(kForward));
    std::vector<ElementwiseOp>& v = *made;
    v.insert(v.end(), std::begin(kDerivatives), std::end(kDerivatives));
    v.insert(v.end(), std::begin(kInternal), std::end(kInternal));
    v.insert(v.end(), std::begin(kFloat8), std::end(kFloat8));
    return made;
  }();
  static_assert(std::size(kForward) == op::kTable && std::size(kDerivatives) == op::kTable * 3 &&
                op::copy + std::size(kInternal) == op::decode_float8 && op::decode_float8 + kFloat8.size() == op::kAll);
  return all;
}

}  // namespace naru::ir
