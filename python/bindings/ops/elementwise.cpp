// The elementwise table in Python: every operator is a function, a method and a method that works in place.
#include <algorithm>
#include <array>
#include <cmath>

#include "ir/op_ids.h"
#include "naru/ops/functions.h"
#include "object/tensor_object.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/rules.h"
#include "ops/tensor/numbers.h"
#include "ops/tensor/type_names.h"

namespace naru::py {
namespace {

using ops::run_op;
using ops::run_op_in_place;

namespace op = ir::op;
using OptOperand = std::optional<Operand>;
using operators::Numbers;

// Rows with parameters of their own in PyTorch, defined below.
constexpr std::array kSpecial = {"add",  "sub",        "div",       "clamp",      "where",   "gelu",     "gelu_tanh",
                                 "pow",  "add_scaled", "div_trunc", "leaky_relu", "elu",     "softplus", "threshold",
                                 "lerp", "clamp_min",  "clamp_max", "round",      "positive"};

// The function and method of a row, and the method in place.
template <class A, class B>
void define_binary(unsigned where, const ops::TableEntry& r, ir::OpId id) {
  def(where, r.name, "input, other, *, out=None", r.doc, [id](const A& a, const B& b) {
    const Operand operands[] = {a, b};
    return run_op(id, operands);
  });
}
template <class B>
void define_binary_in_place(const char* name, const ops::TableEntry& r, ir::OpId id) {
  def(kMethod, name, "input, other", r.doc, [id](const Tensor& a, const B& b) {
    const Operand others[] = {b};
    run_op_in_place(id, a, others);
    return Self();
  });
}

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
      const Numbers numbers = ops::record_of(id).numbers;
      if (numbers == Numbers::None) {
        define_binary<Tensor, Tensor>(kBoth, r, id);
        define_binary_in_place<Tensor>(in_place, r, id);
        continue;
      }
      if (numbers == Numbers::Both)
        define_binary<Operand, Operand>(kBoth, r, id);
      else
        define_binary<Tensor, Operand>(kBoth, r, id);
      if (numbers == Numbers::One) define_binary<Scalar, Tensor>(kFunction, r, id);
      define_binary_in_place<Operand>(in_place, r, id);
    }
  }
}

Tensor run(ir::OpId id, std::initializer_list<Operand> operands) { return run_op(id, {operands.begin(), operands.size()}); }
void run_in_place(ir::OpId id, const Tensor& t, std::initializer_list<Operand> others) {
  run_op_in_place(id, t, {others.begin(), others.size()});
}

void define_arithmetic() {
  def(kBoth, "add", "input, other, *, alpha=1, out=None", "input + alpha * other.",
      [](const Operand& a, const Operand& b, const Scalar& alpha) { return add(a, b, alpha); });
  def(kBoth, "sub", "input, other, *, alpha=1, out=None", "input - alpha * other.",
      [](const Operand& a, const Operand& b, const Scalar& alpha) { return sub(a, b, alpha); });
  def(kMethod, "add_", "input, other, *, alpha=1", "input += alpha * other.", [](const Tensor& a, const Operand& b, const Scalar& alpha) {
    add_(a, b, alpha);
    return Self();
  });
  def(kMethod, "sub_", "input, other, *, alpha=1", "input -= alpha * other.", [](const Tensor& a, const Operand& b, const Scalar& alpha) {
    sub_(a, b, alpha);
    return Self();
  });
  def(kBoth, "rsub", "input, other, *, alpha=1", "other - alpha * input.",
      [](const Tensor& a, const Operand& b, const Scalar& alpha) { return rsub(a, b, alpha); });
  def(kBoth, "div", "input, other, *, rounding_mode=None, out=None",
      "input / other; rounding_mode 'trunc' rounds towards zero, 'floor' down.",
      [](const Operand& a, const Operand& b, OptText mode) { return div(a, b, mode); });
  def(kMethod, "div_", "input, other, *, rounding_mode=None", "Division in place.", [](const Tensor& a, const Operand& b, OptText mode) {
    div_(a, b, mode);
    return Self();
  });
  def(kBoth, "pow", "input, exponent, *, out=None", "input to the power exponent.", [](const Tensor& a, const Operand& b) {
    return run(op::pow, {a, b});
  });
  def(kFunction, "pow", "input, exponent, *, out=None", "The number input to the power exponent.", [](const Scalar& a, const Tensor& b) {
    return run(op::pow, {a, b});
  });
  def(kMethod, "pow_", "input, exponent", "A power in place.", [](const Tensor& a, const Operand& b) {
    run_in_place(op::pow, a, {b});
    return Self();
  });
  def(kMethod, "float_power_", "input, exponent", "The power, computed in float64; only for tensors of that type.",
      [](const Tensor& a, const Operand& b) {
        const bool complex = is_complex(a.dtype()) || (b.is_tensor() ? is_complex(b.tensor().dtype()) : b.scalar().is_complex());
        if (const DType wanted = complex ? kComplex128 : DType::F64; a.dtype() != wanted)
          throw RuntimeError("the base given to float_power_ has dtype {} but the operation's result requires dtype {}",
                             ops::torch_name(a.dtype()), ops::torch_name(wanted));
        const Operand others[] = {b};
        run_op_in_place(op::pow, a, others);
        return Self();
      });
  def(kBoth, "float_power", "input, exponent, *, out=None", "The power, computed in float64.",
      [](const Tensor& a, const Operand& b) { return float_power(a, b); });
  def(kFunction, "float_power", "input, exponent, *, out=None", "The number's power, computed in float64.",
      [](const Scalar& a, const Tensor& b) { return float_power(a, b); });
  def(kBoth, "positive", "input", "The input itself.", [](const Tensor& a) {
    if (a.dtype() == DType::Bool) throw NotImplementedError("The `+` operator, on a bool tensor is not supported.");
    return Self();
  });
  def(kBoth, "round", "input, *, decimals=0, out=None", "The nearest integer, the even one of two; with decimals, the nearest such number.",
      [](const Tensor& a, int64_t decimals) { return round(a, decimals); });
  def(kMethod, "round_", "input, *, decimals=0", "Rounding in place.", [](const Tensor& a, int64_t decimals) {
    round_(a, decimals);
    return Self();
  });
}

void define_scaled_sums() {
  def(kBoth, "lerp", "input, end, weight, *, out=None", "input + weight * (end - input).",
      [](const Tensor& a, const Tensor& b, const Operand& w) { return lerp(a, b, w); });
  def(kMethod, "lerp_", "input, end, weight", "Linear interpolation in place.", [](const Tensor& a, const Tensor& b, const Operand& w) {
    lerp_(a, b, w);
    return Self();
  });
  def(kBoth, "addcmul", "input, tensor1, tensor2, *, value=1, out=None", "input + value * tensor1 * tensor2.",
      [](const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& v) { return addcmul(a, b, c, v); });
  def(kBoth, "addcdiv", "input, tensor1, tensor2, *, value=1, out=None", "input + value * tensor1 / tensor2.",
      [](const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& v) { return addcdiv(a, b, c, v); });
  def(kMethod, "addcmul_", "input, tensor1, tensor2, *, value=1", "input += value * tensor1 * tensor2.",
      [](const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& v) {
        addcmul_(a, b, c, v);
        return Self();
      });
  def(kMethod, "addcdiv_", "input, tensor1, tensor2, *, value=1", "input += value * tensor1 / tensor2.",
      [](const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& v) {
        addcdiv_(a, b, c, v);
        return Self();
      });
  def(kBoth, "square_", "input", "The square, in place.", [](const Tensor& a) {
    run_in_place(op::square, a, {});
    return Self();
  });
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
  // A limit that is a tensor is another function in C++ than a number.
  const auto raised = [](const Tensor& a, const Operand& low) { return clamp(a, low, std::nullopt); };
  const auto lowered = [](const Tensor& a, const Operand& high) { return clamp(a, std::nullopt, high); };
  def(kBoth, "clamp", "input, min=None, max=None, *, out=None", "input limited to the range from min to max; either may be None.",
      [](const Tensor& a, const OptOperand& low, const OptOperand& high) { return clamp(a, low, high); });
  def(kBoth, "clamp_", "input, min=None, max=None", "Limits in place.", [](const Tensor& a, const OptOperand& low, const OptOperand& high) {
    clamp_(a, low, high);
    return Self();
  });
  def(kBoth, "clamp_min", "input, min, *, out=None", "The greater of input and min.", raised);
  def(kBoth, "clamp_max", "input, max, *, out=None", "The lesser of input and max.", lowered);
  def(kBoth, "clamp_min_", "input, min", "A lower limit, in place.", [](const Tensor& a, const Operand& b) {
    clamp_(a, b, std::nullopt);
    return Self();
  });
  def(kBoth, "clamp_max_", "input, max", "An upper limit, in place.", [](const Tensor& a, const Operand& b) {
    clamp_(a, std::nullopt, b);
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
      [](const Tensor& c) { return nonzero_numpy(c); });
}

void define_activations() {
  def(kFunction, "gelu", "input, *, approximate='none', out=None", "input times the standard normal distribution function of it.",
      [](const Tensor& a, std::string_view approximate) { return gelu(a, approximate); });
  def(kFunction, "gelu_tanh", "input", "gelu by its formula with tanh.", [](const Tensor& a) { return run(op::gelu_tanh, {a}); });
  def(kFunction, "leaky_relu", "input, negative_slope=0.01", "input where positive, else negative_slope * input.",
      [](const Tensor& a, const Scalar& slope) {
        return run(op::leaky_relu, {a, Operand(slope)});
      });
  def(kFunction, "elu", "input, alpha=1.0", "input where positive, else alpha * (exp(input) - 1).",
      [](const Tensor& a, const Scalar& alpha) {
        return run(op::elu, {a, Operand(alpha)});
      });
  def(kFunction, "softplus", "input, beta=1.0, threshold=20.0, *, out=None",
      "log(1 + exp(beta * input)) / beta; input itself where beta * input > threshold.",
      [](const Tensor& a, const Scalar& beta, const Scalar& limit) {
        return run(op::softplus, {a, Operand(beta.to_double()), Operand(limit.to_double())});
      });
  def(kFunction, "threshold", "input, threshold, value", "input where above the threshold, else value.",
      [](const Tensor& a, const Scalar& limit, const Scalar& value) {
        return run(op::threshold, {a, Operand(ops::converted(limit, a.dtype())), Operand(ops::converted(value, a.dtype()))});
      });
  def(kFunction, "leaky_relu_", "input, negative_slope=0.01", "In place: input where positive, else negative_slope * input.",
      [](const Tensor& a, const Scalar& slope) {
        run_in_place(op::leaky_relu, a, {Operand(slope)});
        return Self();
      });
  def(kFunction, "elu_", "input, alpha=1.0", "In place: input where positive, else alpha * (exp(input) - 1).",
      [](const Tensor& a, const Scalar& alpha) {
        run_in_place(op::elu, a, {Operand(alpha)});
        return Self();
      });
  def(kFunction, "threshold_", "input, threshold, value", "In place: input where above the threshold, else value.",
      [](const Tensor& a, const Scalar& limit, const Scalar& value) {
        run_in_place(op::threshold, a, {Operand(ops::converted(limit, a.dtype())), Operand(ops::converted(value, a.dtype()))});
        return Self();
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
  // Of the special ones, these are the operator itself while their other parameters have their defaults.
  constexpr std::array kWithDefaults = {"add", "sub", "div", "pow"};
  const auto rows = ops::table();
  for (size_t i = 0; i < rows.size(); ++i)
    if (std::ranges::find(kSpecial, std::string_view(rows[i].name)) == kSpecial.end() ||
        std::ranges::find(kWithDefaults, std::string_view(rows[i].name)) != kWithDefaults.end())
      mark_elementwise(rows[i].name, static_cast<ir::OpId>(i), rows[i].arity);
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
  def(kFunction, "_operator_records", "", "The names of the operators that have records (core/operators.h).", []() -> nb::object {
    nb::list names;
    for (const auto& row : operators::rows()) names.append(nb::str(row.name.data(), row.name.size()));
    return names;
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
