// sum, mean, prod, any, all, count_nonzero, equal, isclose, allclose.
#include "autograd/history/history.h"
#include "naru/ops/complex.h"
#include "naru/ops/functions.h"
#include "ops/call/wrapped.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/float8.h"
#include "ops/elementwise/unsigned.h"
#include "ops/reduce/reductions.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"
#include "ops/tensor/needs_elements.h"
#include "ops/tensor/type_names.h"

namespace naru {

using autograd::record;
using ir::ReduceOp;
using ops::DimSet;
using ops::FusedProducer;
using Tensors = std::vector<Tensor>;

namespace {

// Several operators share a name; PyTorch numbers their nodes: 0 without dims, 1 with them.
const char* node_name(const OptionalDims& dims, const char* without, const char* with) { return dims ? with : without; }

// What `t` looks like to an operator that computes in `as`: gradients for it are converted back to t's type.
Tensor back_to(const Tensor& g, DType dtype) { return ops::gradient_as(g, dtype); }

}  // namespace

namespace ops {

Tensor reduce_mean(const Tensor& t, const DimSet& set, bool keepdim, DType out, const char* name) {
  if (is_complex(t.dtype()) || is_complex(out)) [[unlikely]] {
    if (t.dim() == 0 && set.any()) return reduce_mean(t, {}, false, out, name);  // its parts are no dimension
    refuse_complex(out == kComplex32 ? out : DType::F32, "sum_cpu");
    const Tensor x = t.dtype() == out ? t : apply(ir::op::copy, {{&t, {}, out}}, out, name);
    if (!is_complex(out)) return reduce_mean(x, set, keepdim, out, name);
    return as_complex(reduce_mean(as_real(x), set, keepdim, real_of(out), name));
  }
  const DType acc = accumulator_of(out);
  Tensor s = reduce_sum(t, set, keepdim, out, acc, name);
  const double n = static_cast<double>(reduced_count(t.sizes(), set));
  if (acc != out) return apply(ir::op::div, {{&s, {}, acc}, {nullptr, n, acc}}, out, name);
  const OpOperand operands[] = {{&s, {}, acc}, {nullptr, n, acc}};
  apply_into(ir::op::div, operands, s);
  return s;
}

}  // namespace ops

// Formula: the sum of all elements over the reduced dimensions; its gradient is that of the result, repeated.
Tensor sum(const Tensor& t, const OptionalDims& dims, bool keepdim, std::optional<DType> dtype) {
  const auto sparse = [&] {
    const std::optional<DType> type =
        dtype || is_inexact(t.dtype()) ? dtype : std::optional(DType::I64);  // torch.sparse.sum keeps integers' type
    if (!dims && !keepdim) return ops::sparse_sum(t, type);
    return keepdim ? ops::sparse_sum_keeping(t, dims, type) : sparse::sum(t, dims, type);
  };
  if (auto y = ops::wrapped("sum", naru::sum, t, ops::Over{dims}, keepdim, dtype, ops::SparseRule{sparse})) return *std::move(y);
  ops::require_defined(t, "sum", "input");
  const DimSet set = ops::dim_set(dims, t.dim());
  const DType out = dtype.value_or(is_inexact(t.dtype()) ? t.dtype() : DType::I64);
  return record(ops::reduce_sum(t, set, keepdim, out, out, "sum"), node_name(dims, "SumBackward0", "SumBackward1"), {&t}, {},
                autograd::WithJvp([set, keepdim, sizes = t.sizes(), type = t.dtype()](const Tensors& g, const Tensors&)
                                      -> Tensors { return {back_to(ops::restore_dims(g[0], set, keepdim), type).expand(sizes)}; },
                                  [dims = OptionalDims(ops::dims_of(set)), keepdim, out](const Tensors& tangents, const Tensors&) {
                                    return sum(tangents[0], dims, keepdim, out);
                                  }));
}

// Formula: the sum divided by the count, each rounded once. Throws NotImplementedError unless the result's type is floating point.
Tensor mean(const Tensor& t, const OptionalDims& dims, bool keepdim, std::optional<DType> dtype) {
  if (auto y = ops::wrapped(ops::kNoCasts, mean, t, ops::Over{dims}, keepdim, dtype)) return *std::move(y);
  ops::require_defined(t, "mean", "input");
  const DType out = dtype.value_or(t.dtype());
  if (!is_inexact(out))
    throw NotImplementedError(
        "mean(): could not infer output dtype. {} dtype must be either a floating point or complex dtype. Got: {} "
        "(convert it first, t.float(), or name a type, dtype=float32)",
        dtype ? "Optional" : "Input", ops::torch_name(out));
  const DimSet set = ops::dim_set(dims, t.dim());
  return record(ops::reduce_mean(t, set, keepdim, out, "mean"), node_name(dims, "MeanBackward0", "MeanBackward1"), {&t}, {},
                autograd::WithJvp(
                    [set, keepdim, sizes = t.sizes(), type = t.dtype()](const Tensors& g, const Tensors&) -> Tensors {
                      const auto n = static_cast<double>(ops::reduced_count(sizes, set));
                      return {back_to(ops::restore_dims(g[0] / n, set, keepdim), type).expand(sizes)};
                    },
                    [dims = OptionalDims(ops::dims_of(set)), keepdim, out](const Tensors& tangents, const Tensors&) {
                      return mean(tangents[0], dims, keepdim, out);
                    }));
}

namespace {

// The product of all other elements along `dim`: what is before times what is behind. For elements of which some are zero.
Tensor product_of_others(const Tensor& t, int64_t dim) {
  const int64_t n = t.size(dim);
  Dims first = t.sizes();
  first[static_cast<size_t>(dim)] = 1;
  const Tensor one = ones(first, Options(t.dtype(), t.device()));
  if (n == 1) return one;
  const Tensor before = cat({one, cumprod(t.narrow(dim, 0, n - 1), dim)}, dim);
  const Tensor behind = cat({one, cumprod(flip(t.narrow(dim, 1, n - 1), {dim}), dim)}, dim);
  return before * flip(behind, {dim});
}

// Whether the others' product is not the product divided by the element: where an element is 0 or infinite, or a product too small or great.
bool is_0_or_infinite(const Tensor& product) {
  NoGrad guard;
  return ops::number_or(any(logical_or(product == 0, logical_not(isfinite(product)))), 0) != 0;
}

// Halves are multiplied until one element is left.
Tensor complex_prod(const Tensor& t, std::optional<int64_t> dim, bool keepdim) {
  ops::refuse_complex(t.dtype() == kComplex32 ? t.dtype() : DType::F32, "prod_out_cpu");
  if (!dim || t.dim() == 0) return complex_prod(t.reshape({-1}), 0, false);
  const int64_t d = wrap_dim(*dim, t.dim());
  // Of none it is 1, of one a copy; both have a history.
  Tensor x = t.size(d) == 0 ? sum(t, Dims{d}, true) + 1.0 : t.size(d) == 1 ? t.clone() : t;
  for (int64_t n = x.size(d); n > 1; n = x.size(d)) {
    const Tensor pairs = x.narrow(d, 0, n / 2) * x.narrow(d, n / 2, n / 2);
    if (n % 2) {  // not by ?:, see unique_on_device
      const Tensor last = x.narrow(d, n - 1, 1);
      x = cat({pairs, last}, d);
    } else {
      x = pairs;
    }
  }
  return keepdim ? x : x.squeeze(d);
}

}  // namespace

// Formula: the product of the elements; gradient: that of the result times the product of the others.
Tensor prod(const Tensor& t, std::optional<int64_t> dim, bool keepdim, std::optional<DType> dtype) {
  if (auto y = ops::wrapped("prod", prod, t, ops::OneOrAll{dim, keepdim}, keepdim, dtype)) return *std::move(y);
  ops::require_defined(t, "prod", "input");
  const DType out = dtype.value_or(is_inexact(t.dtype()) ? t.dtype() : DType::I64);
  if (is_complex(out)) return complex_prod(t.to(out), dim, keepdim);
  if (is_complex(t.dtype()) || (is_float8(t.dtype()) && !is_float8(out))) return prod(t.to(out), dim, keepdim, dtype);
  if (is_wide_unsigned(out)) ops::refuse("prod", out);
  if (is_wide_unsigned(t.dtype())) return prod(ops::as_computed(t, out), dim, keepdim, out);
  if (ops::is_half(out) && autograd::recording({&t}))
    return prod(t.to(out), dim, keepdim, DType::F32).to(out);  // 16 bits are too few for its gradient
  const DimSet set = dim ? ops::dim_set(*dim, t.dim()) : ops::dim_set(std::nullopt, t.dim());
  Tensor y = ops::reduce(ReduceOp::Prod, FusedProducer::copy(t, out, ops::accumulator_of(out)), t.sizes(), set, keepdim, out, "prod");
  return record(std::move(y), dim ? "ProdBackward1" : "ProdBackward0", {&t}, {&t},
                ops::reducing(set, keepdim, [set, keepdim, dim, out](const Tensors& g, const Tensors& saved) -> Tensors {
                  const Tensor& original = saved[0];
                  if (original.numel() == 0) return {zeros_like(original)};
                  const Tensor x = back_to(original, out);
                  const Tensor grad = ops::restore_dims(g[0], set, keepdim);
                  Tensor gx;
                  // Computed again, so that gradients of gradients reach x through it too.
                  const Tensor product = dim ? prod(x, dim, true) : prod(x);
                  if (!is_0_or_infinite(product)) {
                    gx = grad * product / x;
                  } else if (dim && x.dim() > 0) {
                    gx = grad * product_of_others(x, wrap_dim(*dim, x.dim()));
                  } else {
                    gx = grad * product_of_others(x.reshape({-1}), 0).reshape(x.sizes());
                  }
                  return {back_to(gx, original.dtype())};
                }));
}

namespace {

Tensor any_or_all(ReduceOp op, const Tensor& t, const OptionalDims& dims, bool keepdim, const char* name) {
  const auto sparse = [&] {
    if (op != ReduceOp::Any || dims || keepdim) ops::throw_no_sparse(name, t);
    return any_or_all(op, ops::values_of(is_compressed(t) ? t : coalesce(t)), dims, keepdim, name);
  };
  const auto again = [&](const Tensor& v, const OptionalDims& d) { return any_or_all(op, v, d, keepdim, name); };
  if (auto y = ops::wrapped(ops::kNoCasts, again, t, ops::Over{dims, true}, ops::SparseRule{sparse})) return *std::move(y);
  ops::require_defined(t, name, "input");
  if (!in_programs(t.dtype())) return any_or_all(op, ops::as_float32(t.detach()) != 0, dims, keepdim, name);
  const DimSet set = ops::dim_set(dims, t.dim(), true);
  // PyTorch keeps uint8, the type its masks once had.
  const DType out = t.dtype() == DType::U8 ? DType::U8 : DType::Bool;
  return ops::reduce(op, FusedProducer(ir::op::not_zero, DType::Bool, {FusedProducer::of(t, t.dtype())}), t.sizes(), set, keepdim, out,
                     name);
}

}  // namespace

// bool (uint8 for uint8). An empty list of dims reduces nothing, as in PyTorch.
Tensor any(const Tensor& t, const OptionalDims& dims, bool keepdim) { return any_or_all(ReduceOp::Any, t, dims, keepdim, "any"); }
Tensor all(const Tensor& t, const OptionalDims& dims, bool keepdim) { return any_or_all(ReduceOp::All, t, dims, keepdim, "all"); }

Tensor count_nonzero(const Tensor& t, const OptionalDims& dims) {
  if (auto y = ops::wrapped(ops::kNoCasts, count_nonzero, t, ops::Over{dims})) return *std::move(y);
  ops::require_defined(t, "count_nonzero", "input");
  if (!in_programs(t.dtype())) return count_nonzero(ops::as_float32(t.detach()) != 0, dims);
  const DimSet set = ops::dim_set(dims, t.dim());
  return ops::reduce(ReduceOp::Sum, FusedProducer(ir::op::not_zero, DType::I64, {FusedProducer::of(t, t.dtype())}), t.sizes(), set, false,
                     DType::I64, "count_nonzero");
}

namespace {

Device pair_device(const Tensor& a, const Tensor& b, const char* op) {
  ops::require_defined(a, op, "input");
  ops::require_defined(b, op, "other");
  const Tensor* tensors[] = {&a, &b};
  const char* roles[] = {"input", "other"};
  return ops::common_device(tensors, roles, op);
}

bool all_true(const FusedProducer& producer, const Dims& shape, const char* name) {
  return ops::reduce(ReduceOp::All, producer, shape, ops::dim_set(std::nullopt, static_cast<int64_t>(shape.size())), false, DType::Bool,
                     name)
      .item()
      .to_bool();
}

// The type isclose compares in.
DType closeness_type(const Tensor& a, const Tensor& b, double rtol, double atol, const char* op) {
  pair_device(a, b, op);
  if (a.dtype() != b.dtype())
    throw RuntimeError("{} did not match {} ({} wants both of one dtype: convert one with .to())", ops::torch_name(a.dtype()),
                       ops::torch_name(b.dtype()), op);
  if (!(rtol >= 0)) throw RuntimeError("rtol must be greater than or equal to zero, but got {}", rtol);
  if (!(atol >= 0)) throw RuntimeError("atol must be greater than or equal to zero, but got {}", atol);
  return is_inexact(a.dtype()) ? a.dtype() : DType::F64;
}

}  // namespace

bool equal(const Tensor& a, const Tensor& b) {
  pair_device(a, b, "equal");
  ops::require_elements(a, "equal");
  if (!(a.sizes() == b.sizes())) return false;
  const DType type = promote(a.dtype(), b.dtype());
  if (!in_programs(a.dtype()) || !in_programs(b.dtype())) return all(eq(a.detach(), b.detach())).item().to_bool();
  return all_true(FusedProducer(ir::op::eq, DType::Bool, {FusedProducer::of(a, type), FusedProducer::of(b, type)}), a.sizes(), "equal");
}

namespace {
Tensor complex_is_close(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  const NoGrad off;
  const Tensor distance = abs(a - b);
  Tensor close = eq(a, b);
  if (equal_nan) close = close | (isnan(a) & isnan(b));
  return close | (isfinite(distance) & (distance <= abs(b * rtol) + atol));
}
}  // namespace

// Formula: |a - b| <= atol + rtol * |b|, for finite b; equal infinities are close, NaNs only by equal_nan.
Tensor isclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  const DType type = closeness_type(a, b, rtol, atol, "isclose");
  if (is_complex(type)) return complex_is_close(a, b, rtol, atol, equal_nan);
  return ops::apply(ir::op::is_close,
                    {{&a, {}, type}, {&b, {}, type}, {nullptr, rtol, type}, {nullptr, atol, type}, {nullptr, equal_nan, DType::Bool}},
                    DType::Bool, "isclose");
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  const DType type = closeness_type(a, b, rtol, atol, "allclose");
  if (is_complex(type)) return all(complex_is_close(a, b, rtol, atol, equal_nan)).item().to_bool();
  if (is_wide_unsigned(a.dtype())) return all(isclose(a, b, rtol, atol, equal_nan)).item().to_bool();
  return all_true(FusedProducer(ir::op::is_close, DType::Bool,
                                {FusedProducer::of(a, type), FusedProducer::of(b, type), FusedProducer::of(rtol, type),
                                 FusedProducer::of(atol, type), FusedProducer::of(equal_nan, DType::Bool)}),
                  broadcast_shapes(a.sizes(), b.sizes()), "allclose");
}

Tensor sum_to_size(const Tensor& t, const Dims& sizes) {
  ops::require_defined(t, "sum_to_size", "input");
  const size_t extra = t.sizes().size() - std::min(sizes.size(), t.sizes().size());
  bool fits = sizes.size() <= t.sizes().size();
  Dims reduced;
  for (size_t d = 0; d < t.sizes().size(); ++d) {
    if (d >= extra && fits) fits = sizes[d - extra] == t.sizes()[d] || sizes[d - extra] == 1;
    if (d < extra || (fits && sizes[d - extra] != t.sizes()[d])) reduced.push_back(static_cast<int64_t>(d));
  }
  if (!fits) throw RuntimeError("size {{{}}} is not expandable to size {{{}}}.", sizes.str(), t.sizes().str());
  if (sizes.empty()) return sum(t);
  return (reduced.empty() ? t : sum(t, reduced, true)).view(sizes);
}

}  // namespace naru
