#include "ops/complex/complex.h"

#include <fmt/format.h>
#include <complex>

#include <algorithm>
#include <array>

#include "naru/autograd.h"
#include "naru/ops/complex.h"
#include "ops/complex/math.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linalg/matmul.h"
#include "ops/sparse/sparse.h"

namespace naru::ops {
namespace {

namespace o = ir::op;

// PyTorch's texts for operators whose error does not name a kernel. {0}: the operator.
struct Words {
  std::string_view op;
  bool type_error;
  const char* text;
};
constexpr Words kWords[] = {
    {"maximum", true, "maximum not implemented for complex tensors."},
    {"minimum", true, "minimum not implemented for complex tensors."},
    {"fmax", true, "fmax not implemented for complex tensors."},
    {"fmin", true, "fmin not implemented for complex tensors."},
    {"isposinf", true, "isposinf does not support complex inputs."},
    {"isneginf", true, "isneginf does not support complex inputs."},
    {"sign", false, "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."},
    {"signbit", false, "signbit is not implemented for complex tensors."},
    {"floor", false, "floor is not supported for complex inputs"},
    {"ceil", false, "ceil is not supported for complex inputs"},
    {"trunc", false, "trunc is not supported for complex inputs"},
    {"clamp", false, "clamp is not supported for complex types"},
    {"clamp_min", false, "clamp is not supported for complex types"},
    {"clamp_max", false, "clamp is not supported for complex types"},
    {"relu", false, "clamp is not supported for complex types"},
    {"rad2deg", false, "rad2deg is not supported for complex tensors."},
    {"deg2rad", false, "deg2rad is not supported for complex tensors."},
    {"nansum", false, "nansum on CPU does not support complex inputs"},
    {"heaviside", false, "heaviside is not yet implemented for complex tensors."},
    {"sort", true, " Sort does not support complex dtypes on CPU"},
    {"topk", true, " topk does not support complex dtypes on CPU"},
    {"argmax", true, "argmax(): does not support complex input"},
    {"argmin", true, "argmin(): does not support complex input"},
    {"relu6", false, "hardtanh is not supported for complex types"},
};
// PyTorch's kernels whose names are not the operator's followed by "_cpu".
constexpr std::pair<std::string_view, std::string_view> kKernels[] = {
    {"floor_divide", "div_floor_cpu"},
    {"round", "round_vml_cpu"},
    {"erf", "erf_vml_cpu"},
    {"erfc", "erfc_vml_cpu"},
    {"erfinv", "erfinv_vml_cpu"},
    {"lgamma", "lgamma_vml_cpu"},
    {"digamma", "digamma"},
    {"gelu", "GeluKernelImpl"},
    {"gelu_tanh", "GeluKernelImpl"},
    {"logsigmoid", "log_sigmoid_cpu"},
    {"exp", "exp_vml_cpu"},
    {"expm1", "expm1_vml_cpu"},
    {"log", "log_vml_cpu"},
    {"log2", "log2_vml_cpu"},
    {"log10", "log10_vml_cpu"},
    {"log1p", "log1p_vml_cpu"},
    {"sin", "sin_vml_cpu"},
    {"cos", "cos_vml_cpu"},
    {"tan", "tan_vml_cpu"},
    {"asin", "asin_vml_cpu"},
    {"acos", "acos_vml_cpu"},
    {"atan", "atan_vml_cpu"},
    {"tanh", "tanh_vml_cpu"},
    {"sqrt", "sqrt_vml_cpu"},
    {"max", "max_all"},
    {"min", "min_all"},
    {"amax", "max_values_cpu"},
    {"amin", "min_values_cpu"},
    {"exp2", "exp2"},
    {"pow", "pow"},
    {"square", "pow"},
    {"lerp", "lerp_kernel_tensor"},
    {"add_scaled", "addcmul_cpu_out"},
    {"add", "add_stub"},
    {"sub", "add_stub"},
    {"addcmul", "addcmul_cpu_out"},
    {"bitwise_left_shift", "lshift_cpu"},
    {"bitwise_right_shift", "rshift_cpu"},
    {"prod", "prod_out_cpu"},
    {"bmm", "bmm"},
    {"mm", "addmm_impl_cpu_"},
    {"addmm", "addmm_impl_cpu_"},
    {"matmul", "addmm_impl_cpu_"},
    {"mv", "addmv_impl_cpu"},
    {"dot", "dot"},
    {"count_nonzero", "nonzero_count_cpu"},
    {"tril", "tril"},
    {"triu", "triu"},
    {"trace", "trace"},
};

}  // namespace

void refuse(std::string_view op, DType type) {
  for (const Words& w : kWords)
    if (is_complex(type) && w.op == op) {
      if (w.type_error) throw TypeError("{}", w.text);
      throw NotImplementedError("{}", w.text);
    }
  for (const auto& [name, kernel] : kKernels)
    if (name == op) throw_not_implemented(kernel, type);
  throw_not_implemented(fmt::format("{}_cpu", op), type);
}

namespace {

// The operand as its two parts, real tensors of dtype `real`; a scalar becomes 0-d tensors. A real operand has no imaginary part.
Pair pair_of(const OpOperand& x, DType real) {
  if (!is_complex(x.as)) return {x.tensor ? x.tensor->detach() : scalar_tensor(x.scalar, x.as), {}};
  if (!x.tensor) {
    const std::complex<double> v = x.scalar.to<std::complex<double>>();
    return {scalar_tensor(v.real(), real), scalar_tensor(v.imag(), real)};
  }
  const Tensor& t = *x.tensor;
  if (!is_complex(t.dtype())) return {t.detach().to(real), scalar_tensor(0.0, real)};
  return {real_part(t).to(real), imaginary_part(t).to(real)};
}

// A complex operand that the operator sees as a real type. As bool: whether it is nonzero. For a copy to real elements: its real part.
Tensor as_seen(ir::OpId id, const OpOperand& x) {
  const Tensor re = real_part(*x.tensor), im = imaginary_part(*x.tensor);
  if (x.as == DType::Bool) return (re != 0.0) | (im != 0.0);
  if (id != o::copy) refuse(ir::op_table()[id].name, x.tensor->dtype());
  return re;
}

// Operators that do the same to both parts. They run on the memory viewed as real.
bool is_linear(ir::OpId id) { return id == o::copy || id == o::add || id == o::sub || id == o::neg || id == o::positive || id == o::where; }

bool apply_to_memory(ir::OpId id, std::span<const OpOperand> operands, const Tensor& out) {
  if (!is_linear(id) || !is_complex(out.dtype())) return false;
  std::array<Tensor, 3> held;
  std::array<OpOperand, 3> parts;
  for (size_t i = 0; i < operands.size(); ++i) {
    const OpOperand& x = operands[i];
    const bool condition = id == o::where && i == 0;
    if (!x.tensor || (!condition && !(is_complex(x.as) && is_complex(x.tensor->dtype())))) return false;
    held[i] = condition ? x.tensor->detach().unsqueeze(-1) : as_real(*x.tensor);
    parts[i] = {&held[i], {}, real_of(x.as)};
  }
  apply_into(id, {parts.data(), operands.size()}, as_real(out));
  return true;
}

void write(const Tensor& out, const Tensor& value) {
  const OpOperand from{&value, {}, out.dtype()};
  apply_into(o::copy, {&from, 1}, out);
}

// Exponents that have an operator of their own, which is exact where pow is not.
ir::OpId with_exponent(ir::OpId id, std::span<const OpOperand> operands) {
  if (id != o::pow || operands[1].tensor) return id;
  const std::complex<double> e = operands[1].scalar.to<std::complex<double>>();
  constexpr std::pair<double, ir::OpId> kKnown[] = {{2, o::square},      {3, o::power_3}, {1, o::copy},
                                                    {-1, o::reciprocal}, {0.5, o::sqrt},  {-0.5, o::rsqrt}};
  for (const auto& [exponent, own] : kKnown)
    if (e == exponent) return own;
  return id;
}

}  // namespace

void refuse_complex(const Tensor& t, std::string_view op) {
  if (t.defined() && is_complex(t.dtype())) refuse(op, t.dtype());
}

void refuse_unknown(const Tensor& t, std::string_view op) {
  refuse_parts(t, std::string(op).c_str());
  if (t.defined() && !in_programs(t.dtype())) refuse(op, t.dtype());
}

Types complex_types(Rule rule, DType t, const char* op) {
  if (rule == Rule::Where) return {t, t};
  if (rule == Rule::Logical) return {DType::Bool, DType::Bool};
  const PairFunction f = pair_function(id_of(op));
  if (!f || (t == kComplex32 && !f.half)) refuse(op, t);
  if (f.value) return {t, t};
  return {t, rule == Rule::Compare || rule == Rule::Predicate ? DType::Bool : real_of(t)};
}

void apply_complex(ir::OpId id, std::span<const OpOperand> operands, const Tensor& out) {
  if (out.numel() == 0) return;
  const NoGrad off;
  const ForceFusion fuse;
  if (apply_to_memory(id, operands, out)) return;
  std::array<Tensor, 3> held;
  std::array<OpOperand, 3> seen;
  if (operands.size() > seen.size()) refuse(ir::op_table()[id].name, out.dtype());
  DType compute = out.dtype();
  bool complex = is_complex(out.dtype());
  for (size_t i = 0; i < operands.size(); ++i) {
    seen[i] = operands[i];
    if (is_complex(seen[i].as)) {
      compute = seen[i].as, complex = true;
    } else if (seen[i].tensor && is_complex(seen[i].tensor->dtype())) {
      held[i] = as_seen(id, seen[i]);
      seen[i].tensor = &held[i];
    }
  }
  const std::span<const OpOperand> all(seen.data(), operands.size());
  if (!complex) return apply_into(id, all, out);
  // If all operands are seen as real (logical operators do this), the result is real: the imaginary part becomes 0.
  if (is_complex(out.dtype()) && std::none_of(all.begin(), all.end(), [](const OpOperand& x) { return is_complex(x.as); }) &&
      id < o::kTable) {
    const Tensor value = make_result(out.sizes(), real_of(out.dtype()), out.device(), "copy_", true);
    apply_into(id, all, value);
    write(real_part(out), value);
    return write(imaginary_part(out), scalar_tensor(0.0, real_of(out.dtype())));
  }
  const PairFunction f = pair_function(with_exponent(id, all));
  if (!f) refuse(ir::op_table()[id].name, is_complex(compute) ? compute : out.dtype());
  // complex32 is computed in float32 and rounded once.
  const DType real = compute == kComplex32 ? DType::F32 : real_of(compute);
  std::array<Pair, 3> pairs;
  for (size_t i = 0; i < all.size(); ++i) pairs[i] = pair_of(all[i], real);
  if (f.real_value) return write(out, f.real_value({pairs.data(), all.size()}));
  const Pair value = f.value({pairs.data(), all.size()});
  write(real_part(out), value.re);
  write(imaginary_part(out), value.im);
}

Tensor complex_derivative(ir::OpId id, int i, std::span<const Tensor> args) {
  if (id == o::abs) return args[2] * sgn(conj(args[0]));
  if (id == o::softsign) {
    // The derivative of a times 1 / (1 + |a|), whose second factor is real.
    const Tensor a = conj(args[0]), share = reciprocal(abs(a) + 1.0);
    return args[2] * share - sgn(a) * (square(share) * real(args[0] * args[2]));
  }
  // Not `+ 1.0`: that would turn an imaginary part of -0 into 0, on the other side of the branch cut.
  if (id == o::acosh) return args[2] / (sqrt(args[0] - (-1.0)) * sqrt(args[0] - 1.0));
  if (id == o::pow && i == 1) {
    const Tensor &a = args[0], &b = args[1], &y = args[2], &g = args[3];
    const Tensor logarithm = is_complex(a.dtype()) ? log(a) : conj(log(a.to(b.dtype())));  // of a negative number, too
    return masked_fill(g * y * logarithm, (a == 0.0) & (real(b) >= 0.0), 0.0);
  }
  return {};
}

// View a row of a as a real row of twice the length, (re, im) interleaved. Its product with interleaved rows (re, im) and (-im, re) is the
// interleaved parts of the complex product.
Tensor complex_matmul(const Tensor& a, const Tensor& b, const char* op) {
  refuse_complex(a.dtype() == kComplex32 ? a.dtype() : DType::F32, std::string_view(op) == "bmm" ? "bmm" : "addmm_impl_cpu_");
  const NoGrad off;
  const size_t rank = a.sizes().size();
  Dims left = a.sizes(), right = b.sizes(), shape = a.sizes();
  left[rank - 1] *= 2;
  Dims blocks = b.sizes();
  blocks.insert(rank - 1, 2), blocks.push_back(2);
  right[rank - 2] *= 2, right[rank - 1] *= 2;
  const Tensor x = as_real(a.is_contiguous() ? a : a.detach().contiguous()).view(left);
  const Tensor rows = make_result(blocks, real_of(b.dtype()), b.device(), op, true);
  const auto dim = static_cast<int64_t>(rank) - 1;
  write(rows.select(dim, 0), as_real(b));
  const Tensor below = rows.select(dim, 1);
  write(below.select(-1, 0), -imaginary_part(b));
  write(below.select(-1, 1), real_part(b));
  const Tensor product = product_of(x, rows.view(right), {}, false, op);
  shape[rank - 1] = b.size(-1);
  shape.push_back(2);
  return as_complex(product.view(shape));
}

}  // namespace naru::ops
