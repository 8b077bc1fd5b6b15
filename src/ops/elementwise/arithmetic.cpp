// Arithmetic with factors, limits and ways to round.
#include <complex>

#include "autograd/history/constant.h"
#include "ir/op_ids.h"
#include "naru/ops.h"
#include "naru/ops/functions.h"
#include "ops/batch/batch.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/half.h"
#include "ops/elementwise/rules.h"
#include "ops/tensor/numbers.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

namespace op = ir::op;

Tensor run(ir::OpId id, std::initializer_list<Operand> operands) { return ops::run_op(id, {operands.begin(), operands.size()}); }
void run_in_place(ir::OpId id, const Tensor& t, std::initializer_list<Operand> others) {
  ops::run_op_in_place(id, t, {others.begin(), others.size()});
}

// The factor of add and sub is of the result's kind. True: it is 1.
bool check_alpha(const Operand& a, const Operand& b, Scalar alpha) {
  if (alpha.kind() == Scalar::Kind::Int) return alpha.to_int() == 1;
  const Operand operands[] = {a, b};
  const DType type = ops::result_type(operands);
  ops::require_factor(type, alpha, "alpha");
  return alpha.is_complex() ? alpha.equals(1) : alpha.to_double() == 1;
}

Scalar negative(Scalar s) {
  if (s.is_complex()) return -s.to<std::complex<double>>();
  return s.is_float() ? Scalar(-s.to_double()) : Scalar(static_cast<int64_t>(0 - static_cast<uint64_t>(s.to_int())));
}

// A factor as a number of the type in which all of them are computed: integers cut fractions off.
Operand factor(Scalar value, std::initializer_list<Operand> operands) {
  const DType type = ops::result_type({operands.begin(), operands.size()});
  return is_inexact(type) ? Operand(value) : Operand(ops::converted(value, type));
}

// op(b, c) in the type that a result of all three has, so that nothing is rounded to a smaller one before a is added.
Tensor beside(ir::OpId id, const Tensor& a, const Tensor& b, const Tensor& c) {
  const Operand all[] = {a, b, c};
  return run(id, {b.to(ops::result_type(all)), c});
}

void require_true_division(const Tensor& b, const Tensor& c) {
  if (!is_inexact(b.dtype()) && !is_inexact(c.dtype()))
    throw RuntimeError(
        "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true division of tensor1 "
        "and tensor2. The historic addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / "
        "tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for float inputs. The future addcdiv "
        "behavior is just the latter implementation: (input + value * tensor1 / tensor2), for all dtypes.");
}

ir::OpId division(std::optional<std::string_view> mode) {
  if (!mode) return op::div;
  if (*mode == "trunc") return op::div_trunc;
  if (*mode == "floor") return op::floor_divide;
  throw RuntimeError("div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{}'", *mode);
}

Tensor tensor_of(const Operand& o) { return o.is_tensor() ? o.tensor() : Tensor(); }

// PyTorch's floor_divide has no derivative; that of its div that rounds down is zero.
Tensor with_zero_slope(const Tensor& quotient, const Tensor& a, const Tensor& b) {
  if (!ops::are_batched(quotient)) return autograd::record_constant(quotient, "DivBackward2", {&a, &b});
  const batching::Batch batch{&quotient, &a, &b};
  return batch.entry(with_zero_slope(batch.opened(quotient), batch.opened(a), batch.opened(b)));
}

// lerp takes no mixture of types.
void require_one_type(const Tensor& a, const Tensor& b, const Operand& w) {
  const auto require = [&](const char* name, DType type) {
    if (type != a.dtype())
      throw RuntimeError("expected dtype {} for `{}` but got dtype {} (lerp)", ops::c_name(a.dtype()), name, ops::c_name(type));
  };
  require("end", b.dtype());
  if (w.is_tensor()) require("weight", w.tensor().dtype());
}

ir::OpId lower(const Operand& limit) { return limit.is_tensor() ? op::maximum : op::clamp_min; }
ir::OpId upper(const Operand& limit) { return limit.is_tensor() ? op::minimum : op::clamp_max; }

void require_limit(const std::optional<Operand>& low, const std::optional<Operand>& high) {
  if (!low && !high) throw RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None");
}
bool are_numbers(const std::optional<Operand>& low, const std::optional<Operand>& high) {
  return low && high && !low->is_tensor() && !high->is_tensor();
}

// Of one type of half precision: such products and quotients are not rounded between.
bool all_half(const Tensor& t, const Tensor& a, const Tensor& b) {
  return t.defined() && a.defined() && b.defined() && ops::is_half(t.dtype()) && a.dtype() == t.dtype() && b.dtype() == t.dtype();
}

}  // namespace

Tensor add(const Operand& a, const Operand& b, Scalar alpha) {
  if (check_alpha(a, b, alpha)) return add(a, b);
  const Operand both[] = {a, b};
  const DType type = ops::result_type(both);
  if (type == DType::Bool) alpha = alpha.to_bool();
  alpha = ops::as_half(alpha, type);
  return alpha.is_bool() ? add(a, mul(b, Operand(alpha))) : run(op::add_scaled, {a, b, Operand(alpha)});
}
Tensor sub(const Operand& a, const Operand& b, Scalar alpha) {
  if (check_alpha(a, b, alpha)) return sub(a, b);
  const Operand both[] = {a, b};
  return run(op::add_scaled, {a, b, Operand(negative(ops::as_half(alpha, ops::result_type(both))))});
}
Tensor rsub(const Tensor& a, const Operand& b, Scalar alpha) {
  return check_alpha(a, b, alpha) ? sub(b, a) : sub(b, mul(a, factor(alpha, {a, b})));
}
void add_(const Tensor& t, const Operand& b, Scalar alpha) {
  if (check_alpha(t, b, alpha)) return run_in_place(op::add, t, {b});
  const Operand both[] = {t, b};
  const DType type = ops::result_type(both);
  if (type == DType::Bool) alpha = alpha.to_bool();
  alpha = ops::as_half(alpha, type);
  alpha.is_bool() ? run_in_place(op::add, t, {mul(b, Operand(alpha))}) : run_in_place(op::add_scaled, t, {b, Operand(alpha)});
}
void sub_(const Tensor& t, const Operand& b, Scalar alpha) {
  if (check_alpha(t, b, alpha)) return run_in_place(op::sub, t, {b});
  const Operand both[] = {t, b};
  run_in_place(op::add_scaled, t, {b, Operand(negative(ops::as_half(alpha, ops::result_type(both))))});
}

Tensor div(const Operand& a, const Operand& b, std::optional<std::string_view> mode) {
  const ir::OpId id = division(mode);
  if (id != op::floor_divide) return run(id, {a, b});
  Tensor quotient;
  {
    const NoGrad off;
    quotient = run(id, {a, b});
  }
  return with_zero_slope(quotient, tensor_of(a), tensor_of(b));
}
void div_(const Tensor& t, const Operand& b, std::optional<std::string_view> mode) {
  const ir::OpId id = division(mode);
  const Tensor divisor = tensor_of(b);
  if (id != op::floor_divide || !autograd::recording({&t, &divisor})) return run_in_place(id, t, {b});
  Tensor quotient;
  {
    const NoGrad off;
    quotient = t.detach().clone();
    run_in_place(id, quotient, {b});
  }
  t.copy_(with_zero_slope(quotient, t, divisor));
}

Tensor addcmul(const Tensor& t, const Tensor& a, const Tensor& b, Scalar value) {
  if (auto y = ops::wrapped("addcmul", addcmul, t, a, b, value)) return *std::move(y);
  if (all_half(t, a, b)) return addcmul(t.to(DType::F32), a.to(DType::F32), b.to(DType::F32), value).to(t.dtype());
  return run(op::add_scaled, {t, beside(op::mul, t, a, b), factor(value, {t, a, b})});
}
Tensor addcdiv(const Tensor& t, const Tensor& a, const Tensor& b, Scalar value) {
  if (auto y = ops::wrapped("addcdiv", addcdiv, t, a, b, value)) return *std::move(y);
  require_true_division(a, b);
  if (all_half(t, a, b)) return addcdiv(t.to(DType::F32), a.to(DType::F32), b.to(DType::F32), value).to(t.dtype());
  return run(op::add_scaled, {t, beside(op::div, t, a, b), Operand(value)});
}
// Of 16-bit types the product and the quotient are float32 here, too.
void addcmul_(const Tensor& t, const Tensor& a, const Tensor& b, Scalar value) {
  if (all_half(t, a, b)) return run_in_place(op::add_scaled, t, {a.to(DType::F32) * b.to(DType::F32), Operand(value)});
  run_in_place(op::add_scaled, t, {beside(op::mul, t, a, b), factor(value, {t, a, b})});
}
void addcdiv_(const Tensor& t, const Tensor& a, const Tensor& b, Scalar value) {
  require_true_division(a, b);
  if (all_half(t, a, b)) return run_in_place(op::add_scaled, t, {a.to(DType::F32) / b.to(DType::F32), Operand(value)});
  run_in_place(op::add_scaled, t, {beside(op::div, t, a, b), Operand(value)});
}

Tensor lerp(const Tensor& start, const Tensor& end, const Operand& weight) {
  require_one_type(start, end, weight);
  return run(op::lerp, {start, end, weight});
}
void lerp_(const Tensor& start, const Tensor& end, const Operand& weight) {
  require_one_type(start, end, weight);
  run_in_place(op::lerp, start, {end, weight});
}

Tensor clamp_min(const Tensor& t, const Tensor& low) { return maximum(t, low); }
Tensor clamp_max(const Tensor& t, const Tensor& high) { return minimum(t, high); }

Tensor clamp(const Tensor& t, const std::optional<Operand>& low, const std::optional<Operand>& high) {
  require_limit(low, high);
  if (are_numbers(low, high)) return run(op::clamp, {t, *low, *high});
  if (low && high) {  // the type is that of all three: those without dimensions count together
    const Operand all[] = {t, *low, *high};
    if (const DType type = ops::result_type(all); type != t.dtype() && (t.dim() > 0 || low->is_tensor() || high->is_tensor())) {
      const Tensor least = low->is_tensor() ? low->tensor().to(type) : Tensor(),
                   most = high->is_tensor() ? high->tensor().to(type) : Tensor();
      const Tensor x = t.to(type), raised = run(lower(*low), {x, low->is_tensor() ? Operand(least) : *low});
      return run(upper(*high), {raised, high->is_tensor() ? Operand(most) : *high});
    }
  }
  const Tensor raised = low ? run(lower(*low), {t, *low}) : t;
  return high ? run(upper(*high), {raised, *high}) : raised;
}

void clamp_(const Tensor& t, const std::optional<Operand>& low, const std::optional<Operand>& high) {
  require_limit(low, high);
  if (are_numbers(low, high)) return run_in_place(op::clamp, t, {*low, *high});
  // The tensor may be its own upper limit, as it was.
  const bool own = low && high && high->is_tensor() && high->tensor().impl()->storage.get() == t.impl()->storage.get();
  const Tensor most = own ? high->tensor().clone() : Tensor();
  if (low) run_in_place(lower(*low), t, {*low});
  if (high) run_in_place(upper(*high), t, {own ? Operand(most) : *high});
}

}  // namespace naru
