// max, min, amax, amin, argmax, argmin.
#include "autograd/history/history.h"
#include "ops/call/wrapped.h"
#include "ops/reduce/reductions.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {

using autograd::record;
using ir::ReduceOp;
using ops::DimSet;
using ops::FusedProducer;
using Tensors = std::vector<Tensor>;

namespace ops {

// The maximum (minimum) over the dimensions of `set`, in t's dtype. Records nothing for autograd.
Tensor reduce_extreme(const Tensor& t, bool greatest, const DimSet& set, bool keepdim, const char* name) {
  const DType type = t.dtype();
  if (type == DType::Bool)
    return reduce(greatest ? ReduceOp::Any : ReduceOp::All, FusedProducer::copy(t, type, type), t.sizes(), set, keepdim, type, name);
  const DType acc = is_inexact(type) ? accumulator_of(type) : type;
  return reduce(greatest ? ReduceOp::Max : ReduceOp::Min, FusedProducer::copy(t, type, acc), t.sizes(), set, keepdim, type, name);
}

Tensor share_among_equals(const Tensor& g, const Tensor& x, const Tensor& y, const DimSet& set, bool keepdim, bool nan_equals) {
  const Tensor result = restore_dims(y, set, keepdim);
  const Tensor chosen = nan_equals ? (x == result) | (x.isnan() & result.isnan()) : x == result;
  Tensor count;
  const DType acc = accumulator_of(x.dtype());  // float16 cannot count to 70,000
  {
    NoGrad guard;
    count = reduce_sum(chosen, set, true, DType::I64, acc, "amax");
  }
  const Tensor part = (restore_dims(g, set, keepdim).to(acc) / count).to(g.dtype());
  return nan_equals ? where(chosen, part, 0.0) : part * chosen.to(part.dtype());
}

Tensor record_choice(Tensor value, const Tensor& t, const char* node) {
  return record(std::move(value), node, {&t}, {&t},
                reducing(dim_set({}, t.dim()), false,
                         [](const Tensors& g, const Tensors& saved) -> Tensors {
                           return {share_among_equals(g[0], saved[0], saved[1], dim_set({}, saved[0].dim()), false, true)};
                         }),
                true);
}

}  // namespace ops

namespace {

// Throws if the reduction is empty: there is no extreme then. `whole`: no dimension was named.
void require_elements(const Tensor& t, const DimSet& set, bool whole, const char* op) {
  if (t.numel() > 0) return;
  if (whole)
    throw RuntimeError(
        "{}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
        "argument.",
        op);
  for (int64_t d = 0; d < t.dim(); ++d)
    if (set[static_cast<size_t>(d)] && t.size(d) == 0)
      throw IndexError("{}(): Expected reduction dim {} to have non-zero size. Got an input of shape {}", op, d, t.sizes().str());
}

Tensor extreme(const Tensor& t, bool greatest, const OptionalDims& dims, bool keepdim, const char* op, const char* node) {
  if (auto y = ops::wrapped(ops::kNoCasts, extreme, t, greatest, ops::Over{dims}, keepdim, op, node)) return *std::move(y);
  ops::require_defined(t, op, "input");
  const DimSet set = ops::dim_set(dims, t.dim());
  require_elements(t, set, !dims || dims->empty(), op);
  return record(ops::reduce_extreme(t, greatest, set, keepdim, op), node, {&t}, {&t},
                ops::reducing(set, keepdim,
                              [set, keepdim, whole = std::string_view(op) == (greatest ? "max" : "min")](const Tensors& g,
                                                                                                         const Tensors& saved) -> Tensors {
                                return {ops::share_among_equals(g[0], saved[0], saved[1], set, keepdim, whole)};
                              }),
                true);
}

ir::ArgReduce arg_reduce(const Tensor& t, bool greatest, int64_t dim) {
  ir::ArgReduce a;
  a.greatest = greatest;
  a.in = ops::view_of(t, t.sizes());
  a.shape = t.sizes();
  // Move the reduced dimension to the end.
  if (!a.shape.empty()) {
    const auto d = static_cast<size_t>(dim);
    const int64_t size = a.shape[d], stride = a.in.strides[d];
    a.shape.erase(d), a.in.strides.erase(d);
    a.shape.push_back(size), a.in.strides.push_back(stride);
  } else {
    a.shape.push_back(1), a.in.strides.push_back(0);
  }
  return a;
}

ir::View kept_view(const Tensor& out) {
  ir::View v = ops::view_of(out, out.sizes());
  v.strides = contiguous_strides(out.sizes());
  return v;
}

std::pair<Tensor, Tensor> extreme_along(const Tensor& t, bool greatest, int64_t dim, bool keepdim, const char* op, const char* node) {
  if (auto y = ops::wrapped(ops::kNoCasts, extreme_along, t, greatest, ops::Dim{dim}, keepdim, op, node)) return *std::move(y);
  ops::require_defined(t, op, "input");
  const int64_t d = wrap_dim(dim, t.dim());
  const DimSet set = ops::dim_set(d, t.dim());
  require_elements(t, set, false, op);
  const Dims kept = ops::reduced_shape(t.sizes(), set, false);
  Tensor values = ops::make_result(kept, t.dtype(), t.device(), op), indices = ops::make_result(kept, DType::I64, t.device(), op);
  if (values.numel() > 0) {
    ir::ArgReduce a = arg_reduce(t, greatest, d);
    a.values = kept_view(values), a.indices = kept_view(indices);
    ops::submit(std::move(a), {&t}, {&values, &indices});
  }
  if (keepdim && t.dim() > 0) {
    // Insert the kept dimension in place: the results are fresh and need not become views.
    const auto at = static_cast<size_t>(d);
    for (Tensor* r : {&values, &indices}) {
      Dims sizes = kept;
      sizes.insert(at, 1);
      r->impl()->set_geometry(sizes, contiguous_strides(sizes), 0);
    }
  }
  values = record(std::move(values), node, {&t}, {&indices},
                  autograd::WithJvp(
                      [d, keepdim, sizes = t.sizes()](const Tensors& g, const Tensors& saved) -> Tensors {
                        if (sizes.empty()) return {g[0]};
                        const Tensor index = keepdim ? saved[0] : saved[0].unsqueeze(d), grad = keepdim ? g[0] : g[0].unsqueeze(d);
                        return {scatter(zeros(sizes, Options(grad.dtype(), grad.device())), d, index, grad)};
                      },
                      [d, keepdim](const Tensors& tangents, const Tensors& saved) {
                        if (tangents[0].dim() == 0) return tangents[0];
                        const Tensor chosen = gather(tangents[0], d, keepdim ? saved[0] : saved[0].unsqueeze(d));
                        return keepdim ? chosen : chosen.squeeze(d);
                      }));
  return {std::move(values), std::move(indices)};
}

Tensor arg_extreme(const Tensor& t, bool greatest, std::optional<int64_t> dim, bool keepdim, const char* op) {
  if (auto y = ops::wrapped(ops::kNoCasts, arg_extreme, t, greatest, ops::OneOrAll{dim, keepdim}, keepdim, op)) return *std::move(y);
  ops::require_defined(t, op, "input");
  if (t.dtype() == DType::Bool) throw NotImplementedError("{}(): does not support bool input. Convert it first: t.to(uint8)", op);
  if (!dim) {
    if (t.numel() == 0) throw IndexError("{}(): Expected reduction dim to be specified for input.numel() == 0.", op);
    Tensor flat;
    {
      NoGrad guard;
      flat = t.detach().reshape({-1});
    }
    Tensor out = arg_extreme(flat, greatest, 0, false, op);
    if (keepdim) out = out.reshape(Dims(static_cast<size_t>(t.dim()), 1));
    return out;
  }
  const int64_t d = wrap_dim(*dim, t.dim());
  const DimSet set = ops::dim_set(d, t.dim());
  require_elements(t, set, false, op);
  Tensor indices = ops::make_result(ops::reduced_shape(t.sizes(), set, keepdim), DType::I64, t.device(), op);
  if (indices.numel() == 0) return indices;
  ir::ArgReduce a = arg_reduce(t, greatest, d);
  const Dims kept = ops::reduced_shape(t.sizes(), set, false);
  a.indices = ops::view_of(indices, indices.sizes());
  a.indices.strides = contiguous_strides(kept);
  ops::submit(std::move(a), {&t}, {&indices});
  return indices;
}

}  // namespace

// Throws RuntimeError (no dim given) or IndexError for an empty reduction. NaN propagates.
Tensor amax(const Tensor& t, const OptionalDims& dims, bool keepdim) { return extreme(t, true, dims, keepdim, "amax", "AmaxBackward0"); }
Tensor amin(const Tensor& t, const OptionalDims& dims, bool keepdim) { return extreme(t, false, dims, keepdim, "amin", "AminBackward0"); }
Tensor max(const Tensor& t) { return extreme(t, true, {}, false, "max", "MaxBackward1"); }
Tensor min(const Tensor& t) { return extreme(t, false, {}, false, "min", "MinBackward1"); }
// The gradient goes to the selected element: the first of equal ones.
std::pair<Tensor, Tensor> max(const Tensor& t, int64_t dim, bool keepdim) {
  return extreme_along(t, true, dim, keepdim, "max", "MaxBackward0");
}
std::pair<Tensor, Tensor> min(const Tensor& t, int64_t dim, bool keepdim) {
  return extreme_along(t, false, dim, keepdim, "min", "MinBackward0");
}
// int64. Without dim: the flat row-major index.
Tensor argmax(const Tensor& t, std::optional<int64_t> dim, bool keepdim) { return arg_extreme(t, true, dim, keepdim, "argmax"); }
Tensor argmin(const Tensor& t, std::optional<int64_t> dim, bool keepdim) { return arg_extreme(t, false, dim, keepdim, "argmin"); }

}  // namespace naru
