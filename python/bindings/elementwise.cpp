// The elementwise table in Python: every operator is a function, a method and a method that works in place.
#include <algorithm>
#include <array>
#include <cmath>

#include "ir/op_ids.h"
#include "naru/compositions.h"
#include "ops/elementwise.h"
#include "ops/numbers.h"
#include "ops/rules.h"
#include "ops/type_names.h"
#include "tensor_object.h"

namespace naru::py {
namespace {

using ops::run_op_in_place;

// An operator of the table. Numbers alone, as in torch.add(1, 2), count as tensors without dimensions.
Tensor run_op(ir::OpId id, std::span<const Operand> operands) {
  for (const Operand& o : operands)
    if (o.is_tensor()) return ops::run_op(id, operands);
  const Tensor first = scalar_tensor(operands[0].scalar());
  std::vector<Operand> all(operands.begin(), operands.end());
  all[0] = Operand(first);
  return ops::run_op(id, all);
}

namespace op = ir::op;

// Rows with parameters of their own in PyTorch, defined below.
constexpr std::array kSpecial = {"add",  "sub",        "div",       "clamp",      "where",   "gelu",     "gelu_tanh",
                                 "pow",  "add_scaled", "div_trunc", "leaky_relu", "elu",     "softplus", "threshold",
                                 "lerp", "clamp_min",  "clamp_max", "round",      "positive"};

void define_table() {
  const auto rows = ops::table();
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto id = static_cast<ir::OpId>(i);
    const ops::TableEntry& r = rows[i];
    if (std::find(kSpecial.begin(), kSpecial.end(), std::string_view(r.name)) != kSpecial.end()) continue;
    const char* in_place = (new std::string(std::string(r.name) + "_"))->c_str();  // named as long as the module lives
    if (r.arity == 1) {
      def(kBoth, r.name, "input, *, out=None", r.doc, [id](const Tensor& a) {
        const Operand operands[] = {a};
        return run_op(id, operands);
      });
      def(kBoth, in_place, "input", r.doc, [id](const Tensor& a) {
        run_op_in_place(id, a, {});
        return Self();
      });
    } else if (r.arity == 2) {
      def(kBoth, r.name, "input, other, *, out=None", r.doc, [id](const Operand& a, const Operand& b) {
        const Operand operands[] = {a, b};
        return run_op(id, operands);
      });
      def(kMethod, in_place, "input, other", r.doc, [id](const Tensor& a, const Operand& b) {
        const Operand others[] = {b};
        run_op_in_place(id, a, others);
        return Self();
      });
    }
  }
}

Tensor run(ir::OpId id, std::initializer_list<Operand> operands) { return run_op(id, {operands.begin(), operands.size()}); }
void run_in_place(ir::OpId id, const Tensor& t, std::initializer_list<Operand> others) {
  run_op_in_place(id, t, {others.begin(), others.size()});
}

// row(b, c) in the type that a result of all three has, so that nothing is rounded to a smaller one before a is added.
Tensor beside(ir::OpId id, const Tensor& a, const Tensor& b, const Tensor& c) {
  const Operand all[] = {a, b, c};
  return run(id, {b.to(ops::result_type(all)), c});
}

bool is_one(const Scalar& s) { return s.to_double() == 1; }

// The factor of add and sub is of the result's kind. True: it is 1.
bool check_alpha(const Operand& a, const Operand& b, const Scalar& alpha) {
  if (alpha.kind() == Scalar::Kind::Int) return alpha.to_int() == 1;
  const Operand operands[] = {a, b};
  const DType type = ops::result_type(operands);
  if (alpha.is_bool() && type != DType::Bool)
    throw RuntimeError("Boolean alpha only supported for Boolean results. (got {})", name_of(type));
  if (alpha.is_float() && !is_floating(type))
    throw RuntimeError("For integral input tensors, argument alpha must not be a floating point number. (got {})", alpha.to_double());
  return is_one(alpha);
}

// A factor as a number of the type in which all of them are computed: integers cut fractions off.
Operand factor(const Scalar& value, std::initializer_list<Operand> operands) {
  const DType type = ops::result_type({operands.begin(), operands.size()});
  return is_floating(type) ? Operand(value) : Operand(ops::converted(value, type));
}

void require_true_division(const Tensor& b, const Tensor& c) {
  if (!is_floating(b.dtype()) && !is_floating(c.dtype()))
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

// lerp takes no mixture of types.
void require_one_type(const Tensor& a, const Tensor& b, const Operand& w) {
  const auto require = [&](const char* name, DType type) {
    if (type != a.dtype())
      throw RuntimeError("expected dtype {} for `{}` but got dtype {} (lerp)", ops::c_name(a.dtype()), name, ops::c_name(type));
  };
  require("end", b.dtype());
  if (w.is_tensor()) require("weight", w.tensor().dtype());
}

void define_arithmetic() {
  const auto scaled = [](ir::OpId id, double sign) {
    return [id, sign](const Operand& a, const Operand& b, const Scalar& alpha) {
      if (check_alpha(a, b, alpha)) {
        const Operand operands[] = {a, b};
        return run_op(id, operands);
      }
      return run(op::add_scaled, {a, b,
                                  sign > 0           ? Operand(alpha)
                                  : alpha.is_float() ? Operand(-alpha.to_double())
                                                     : Operand(-alpha.to_int())});
    };
  };
  const auto scaled_in_place = [](ir::OpId id, double sign) {
    return [id, sign](const Tensor& a, const Operand& b, const Scalar& alpha) {
      if (check_alpha(a, b, alpha)) {
        const Operand others[] = {b};
        run_op_in_place(id, a, others);
      } else {
        run_in_place(op::add_scaled, a,
                     {b, sign > 0           ? Operand(alpha)
                         : alpha.is_float() ? Operand(-alpha.to_double())
                                            : Operand(-alpha.to_int())});
      }
      return Self();
    };
  };
  def(kBoth, "add", "input, other, *, alpha=1, out=None", "input + alpha * other.", scaled(op::add, 1));
  def(kBoth, "sub", "input, other, *, alpha=1, out=None", "input - alpha * other.", scaled(op::sub, -1));
  def(kMethod, "add_", "input, other, *, alpha=1", "input += alpha * other.", scaled_in_place(op::add, 1));
  def(kMethod, "sub_", "input, other, *, alpha=1", "input -= alpha * other.", scaled_in_place(op::sub, -1));
  def(kBoth, "rsub", "input, other, *, alpha=1", "other - alpha * input.", [](const Tensor& a, const Operand& b, const Scalar& alpha) {
    return check_alpha(a, b, alpha) ? run(op::sub, {b, a}) : run(op::sub, {b, run(op::mul, {a, factor(alpha, {a, b})})});
  });
  def(kBoth, "div", "input, other, *, rounding_mode=None, out=None",
      "input / other; rounding_mode 'trunc' rounds towards zero, 'floor' down.",
      [](const Operand& a, const Operand& b, std::optional<std::string_view> mode) {
        return run(division(mode), {a, b});
      });
  def(kMethod, "div_", "input, other, *, rounding_mode=None", "Division in place.",
      [](const Tensor& a, const Operand& b, std::optional<std::string_view> mode) {
        run_in_place(division(mode), a, {b});
        return Self();
      });
  def(kBoth, "pow", "input, exponent, *, out=None", "input to the power exponent.", [](const Operand& a, const Operand& b) {
    return run(op::pow, {a, b});
  });
  def(kMethod, "pow_", "input, exponent", "A power in place.", [](const Tensor& a, const Operand& b) {
    run_in_place(op::pow, a, {b});
    return Self();
  });
  def(kBoth, "float_power", "input, exponent, *, out=None", "The power, computed in float64.",
      [](const Operand& a, const Operand& b) { return float_power(a, b); });
  def(kBoth, "positive", "input", "The input itself.", [](const Tensor& a) {
    if (a.dtype() == DType::Bool) throw NotImplementedError("The `+` operator, on a bool tensor is not supported.");
    return Self();
  });
  def(kBoth, "round", "input, *, decimals=0, out=None", "The nearest integer, the even one of two; with decimals, the nearest such number.",
      [](const Tensor& a, int64_t decimals) { return round(a, decimals); });
  def(kMethod, "round_", "input, *, decimals=0", "Rounding in place.", [](const Tensor& a, int64_t decimals) {
    if (decimals == 0)
      run_in_place(op::round, a, {});
    else
      Tensor(a).copy_(round(a, decimals));
    return Self();
  });
}

void define_scaled_sums() {
  def(kBoth, "lerp", "input, end, weight, *, out=None", "input + weight * (end - input).",
      [](const Tensor& a, const Tensor& b, const Operand& w) {
        require_one_type(a, b, w);
        return run(op::lerp, {a, b, w});
      });
  def(kMethod, "lerp_", "input, end, weight", "Linear interpolation in place.", [](const Tensor& a, const Tensor& b, const Operand& w) {
    require_one_type(a, b, w);
    run_in_place(op::lerp, a, {b, w});
    return Self();
  });
  def(kBoth, "addcmul", "input, tensor1, tensor2, *, value=1, out=None", "input + value * tensor1 * tensor2.",
      [](const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& v) {
        return run(op::add_scaled, {a, beside(op::mul, a, b, c), factor(v, {a, b, c})});
      });
  def(kBoth, "addcdiv", "input, tensor1, tensor2, *, value=1, out=None", "input + value * tensor1 / tensor2.",
      [](const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& v) {
        require_true_division(b, c);
        return run(op::add_scaled, {a, beside(op::div, a, b, c), Operand(v)});
      });
  def(kMethod, "addcmul_", "input, tensor1, tensor2, *, value=1", "input += value * tensor1 * tensor2.",
      [](const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& v) {
        run_in_place(op::add_scaled, a, {beside(op::mul, a, b, c), factor(v, {a, b, c})});
        return Self();
      });
  def(kMethod, "addcdiv_", "input, tensor1, tensor2, *, value=1", "input += value * tensor1 / tensor2.",
      [](const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& v) {
        require_true_division(b, c);
        run_in_place(op::add_scaled, a, {beside(op::div, a, b, c), Operand(v)});
        return Self();
      });
  def(kBoth, "square_", "input", "The square, in place.", [](const Tensor& a) {
    run_in_place(op::square, a, {});
    return Self();
  });
  def(kBoth, "sgn", "input, *, out=None", "-1, 0 or 1.", [](const Tensor& a) { return run(op::sign, {a}); });
  def(kBoth, "rad2deg", "input, *, out=None", "Radians to degrees.", [](const Tensor& a) { return rad2deg(a); });
  def(kBoth, "deg2rad", "input, *, out=None", "Degrees to radians.", [](const Tensor& a) { return deg2rad(a); });
  def(kBoth, "logit", "input, eps=None, *, out=None", "log(input / (1 - input)); input is limited to [eps, 1 - eps] first.",
      [](const Tensor& a, std::optional<double> eps) { return logit(a, eps); });
  def(kBoth, "nan_to_num", "input, nan=0.0, posinf=None, neginf=None, *, out=None", "NaN and infinities replaced by numbers.",
      [](const Tensor& a, std::optional<double> nan, std::optional<double> posinf, std::optional<double> neginf) {
        return nan_to_num(a, nan.value_or(0), posinf, neginf);
      });
}

void define_choices() {
  // A limit that is a tensor shares the gradient where it is met, as in maximum and minimum.
  const auto lower = [](const Operand& limit) { return limit.is_tensor() ? op::maximum : op::clamp_min; };
  const auto upper = [](const Operand& limit) { return limit.is_tensor() ? op::minimum : op::clamp_max; };
  const auto numbers = [](const Operand& low, const Operand& high) { return !low.is_tensor() && !high.is_tensor(); };
  constexpr const char* kNone = "torch.clamp: At least one of 'min' or 'max' must not be None";
  def(kBoth, "clamp", "input, min=None, max=None, *, out=None", "input limited to the range from min to max; either may be None.",
      [=](const Tensor& a, const std::optional<Operand>& low, const std::optional<Operand>& high) {
        if (!low && !high) throw RuntimeError("{}", kNone);
        if (low && high && numbers(*low, *high)) return run(op::clamp, {a, *low, *high});
        const Tensor raised = low ? run(lower(*low), {a, *low}) : a;
        return high ? run(upper(*high), {raised, *high}) : raised;
      });
  def(kBoth, "clamp_", "input, min=None, max=None", "Limits in place.",
      [=](const Tensor& a, const std::optional<Operand>& low, const std::optional<Operand>& high) {
        if (!low && !high) throw RuntimeError("{}", kNone);
        if (low && high && numbers(*low, *high)) {
          run_in_place(op::clamp, a, {*low, *high});
          return Self();
        }
        if (low) run_in_place(lower(*low), a, {*low});
        if (high) run_in_place(upper(*high), a, {*high});
        return Self();
      });
  def(kBoth, "clamp_min", "input, min, *, out=None", "The greater of input and min.", [=](const Tensor& a, const Operand& b) {
    return run(lower(b), {a, b});
  });
  def(kBoth, "clamp_max", "input, max, *, out=None", "The lesser of input and max.", [=](const Tensor& a, const Operand& b) {
    return run(upper(b), {a, b});
  });
  def(kBoth, "clamp_min_", "input, min", "A lower limit, in place.", [=](const Tensor& a, const Operand& b) {
    run_in_place(lower(b), a, {b});
    return Self();
  });
  def(kBoth, "clamp_max_", "input, max", "An upper limit, in place.", [=](const Tensor& a, const Operand& b) {
    run_in_place(upper(b), a, {b});
    return Self();
  });
  def(kFunction, "where", "condition, input, other, *, out=None", "input where condition is true, else other.",
      [](const Tensor& c, const Operand& a, const Operand& b) {
        return run(op::where, {c, a, b});
      });
  def(kMethod, "where", "input, condition, other", "This tensor where condition is true, else other.",
      [](const Tensor& self, const Tensor& c, const Operand& b) {
        return run(op::where, {c, self, b});
      });
  def(kFunction, "where", "condition", "The positions of true elements, one tensor for each dimension.",
      [](const Tensor& c) { return unbind(nonzero(c.dim() ? c : c.unsqueeze(0)), 1); });
}

void define_activations() {
  const auto gelu_op = [](std::string_view approximate) -> ir::OpId {
    if (approximate == "none") return op::gelu;
    if (approximate == "tanh") return op::gelu_tanh;
    throw RuntimeError("approximate argument must be either none or tanh.");
  };
  def(kFunction, "gelu", "input, *, approximate='none', out=None", "input times the standard normal distribution function of it.",
      [gelu_op](const Tensor& a, std::string_view approximate) { return run(gelu_op(approximate), {a}); });
  def(kFunction, "gelu_tanh", "input", "gelu by its formula with tanh.", [](const Tensor& a) { return run(op::gelu_tanh, {a}); });
  def(kFunction, "leaky_relu", "input, negative_slope=0.01", "input where positive, else negative_slope * input.",
      [](const Tensor& a, const Scalar& slope) {
        return run(op::leaky_relu, {a, Operand(slope)});
      });
  def(kFunction, "elu", "input, alpha=1.0", "input where positive, else alpha * (exp(input) - 1).",
      [](const Tensor& a, const Scalar& alpha) {
        return run(op::elu, {a, Operand(alpha)});
      });
  def(kFunction, "softplus", "input, beta=1.0, threshold=20.0",
      "log(1 + exp(beta * input)) / beta; input itself where beta * input > threshold.",
      [](const Tensor& a, const Scalar& beta, const Scalar& limit) {
        return run(op::softplus, {a, Operand(beta.to_double()), Operand(limit.to_double())});
      });
  def(kFunction, "threshold", "input, threshold, value", "input where above the threshold, else value.",
      [](const Tensor& a, const Scalar& limit, const Scalar& value) {
        return run(op::threshold, {a, Operand(limit), Operand(value)});
      });
}

constexpr std::pair<const char*, const char*> kAliases[] = {
    {"absolute", "abs"},   {"multiply", "mul"},   {"divide", "div"},       {"true_divide", "div"},   {"subtract", "sub"},
    {"negative", "neg"},   {"greater", "gt"},     {"greater_equal", "ge"}, {"less", "lt"},           {"less_equal", "le"},
    {"not_equal", "ne"},   {"arccos", "acos"},    {"arcsin", "asin"},      {"arctan", "atan"},       {"arctan2", "atan2"},
    {"arccosh", "acosh"},  {"arcsinh", "asinh"},  {"arctanh", "atanh"},    {"clip", "clamp"},        {"clip_", "clamp_"},
    {"fix", "trunc"},      {"multiply_", "mul_"}, {"divide_", "div_"},     {"true_divide_", "div_"}, {"subtract_", "sub_"},
    {"negative_", "neg_"}, {"absolute_", "abs_"}, {"expit", "sigmoid"}};

}  // namespace

void define_elementwise() {
  define_table();
  define_arithmetic();
  define_scaled_sums();
  define_choices();
  define_activations();
  for (auto [alias, name] : kAliases) add_alias(alias, name);
  def(kFunction, "_elementwise_table", "",
      "The operators: (name, arity, rule, low, high, differentiable operands, docstring); operands are drawn from low to "
      "high.",
      []() -> nb::object {
        nb::list list;
        for (const ops::TableEntry& r : ops::table()) {
          nb::list flows;
          for (int i = 0; i < r.arity; ++i) flows.append(r.differentiable[i]);
          list.append(nb::make_tuple(r.name, r.arity, ops::name_of(r.rule), r.lo, r.hi, nb::tuple(flows), r.doc));
        }
        return list;
      });
  // Under its own name an operator may have other parameters in Python (alpha, rounding_mode ...); here it has its operands.
  def(kFunction, "_elementwise", "name, a, b=None, c=None", "The id called `name`, of as many operands as it takes.",
      [](std::string_view name, const Operand& a, const std::optional<Operand>& b, const std::optional<Operand>& c) {
        const auto rows = ops::table();
        for (size_t i = 0; i < rows.size(); ++i) {
          if (rows[i].name != name) continue;
          const std::array operands = {a, b.value_or(Operand(0)), c.value_or(Operand(0))};
          return run_op(static_cast<ir::OpId>(i), {operands.data(), static_cast<size_t>(rows[i].arity)});
        }
        throw ValueError("_elementwise: there is no id called '{}'", name);
      });
}

}  // namespace naru::py
