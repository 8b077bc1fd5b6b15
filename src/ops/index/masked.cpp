// Masked reductions. Masked-out elements are replaced by the reduction's identity; then the functions without masks run.
#include "naru/ops/masked.h"

#include <cmath>
#include <limits>

#include "naru/ops/complex.h"
#include "naru/ops/functions.h"
#include "naru/ops/linalg.h"
#include "ops/tensor/common.h"

namespace naru::masked {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The mask, broadcast to the input's shape.
Tensor mask_of(const Tensor& t, const Tensor& mask) {
  if (!mask.defined()) return ones(t.sizes(), Options(DType::Bool, t.device()));
  if (mask.dim() > t.dim()) throw IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)");
  return mask.to(DType::Bool).expand(t.sizes());
}

// The input with `value` at masked-out elements.
Tensor filled(const Tensor& t, const Tensor& mask, Scalar value, const char* op) {
  ops::require_defined(t, op, "input");
  if (!mask.defined()) return t;
  return where(mask_of(t, mask), t, full({}, value, Options(t.dtype(), t.device())));
}

// The least and the greatest value of a dtype.
Scalar least(DType t) {
  if (is_inexact(t)) return -kInfinity;
  if (t == DType::Bool || !is_signed(t)) return 0;
  return std::numeric_limits<int64_t>::min() >> (63 - traits_of(t).digits);
}
Scalar greatest(DType t) {
  if (is_inexact(t)) return kInfinity;
  if (t == DType::Bool) return 1;
  return Scalar::of_unsigned(std::numeric_limits<uint64_t>::max() >> (64 - traits_of(t).digits));
}

// The reduced dimensions in ascending order, each once; all of them if none are given.
Dims reduced_dims(const Tensor& t, const OptionalDims& wanted) {
  const int64_t rank = t.dim();
  std::vector<bool> found(static_cast<size_t>(rank > 0 ? rank : 1), !wanted || wanted->empty());
  if (wanted)
    for (const int64_t d : *wanted) {
      const auto at = static_cast<size_t>(wrap_dim(d, rank));
      if (found[at]) throw RuntimeError("dim={} appears multiple times in the list of dims", d);
      found[at] = true;
    }
  Dims dims;
  for (int64_t d = 0; d < rank; ++d)
    if (found[static_cast<size_t>(d)]) dims.push_back(d);
  return dims;
}

DType summed_as(const Tensor& t, std::optional<DType> dtype) {
  if (dtype) return *dtype;
  const DType own = t.dtype();
  return category_of(own) <= Category::Integer && size_of(own) < 8 && !is_wide_unsigned(own) ? DType::I64 : own;
}

Tensor count(const Tensor& t, const Tensor& mask, const Dims& dims, bool keepdim) {
  return naru::sum(mask_of(t, mask), dims, keepdim, DType::I64);
}

Tensor as(const Tensor& result, const Tensor& t, std::optional<DType> dtype) { return result.to(dtype.value_or(t.dtype())); }

}  // namespace

Tensor sum(const Tensor& t, const Tensor& mask, const OptionalDims& dims, bool keepdim, std::optional<DType> dtype) {
  const Tensor x = filled(t, mask, 0, "masked.sum");
  return naru::sum(x, reduced_dims(t, dims), keepdim, summed_as(t, dtype));
}

Tensor prod(const Tensor& t, const Tensor& mask, const OptionalDims& dims, bool keepdim, std::optional<DType> dtype) {
  Tensor x = filled(t, mask, 1, "masked.prod").to(summed_as(t, dtype));
  const Dims all = reduced_dims(t, dims);
  for (size_t i = all.size(); i > 0; --i) x = naru::prod(x, all[i - 1], keepdim);
  return x;
}

Tensor cumsum(const Tensor& t, const Tensor& mask, int64_t dim, std::optional<DType> dtype) {
  const Tensor x = filled(t, mask, 0, "masked.cumsum");
  return naru::cumsum(x, dim, dtype.value_or(t.dtype()));
}
Tensor cumprod(const Tensor& t, const Tensor& mask, int64_t dim, std::optional<DType> dtype) {
  const Tensor x = filled(t, mask, 1, "masked.cumprod");
  return naru::cumprod(x, dim, dtype.value_or(t.dtype()));
}

Tensor amax(const Tensor& t, const Tensor& mask, const OptionalDims& dims, bool keepdim, std::optional<DType> dtype) {
  const Tensor x = filled(t, mask, least(t.dtype()), "masked.amax");
  return as(naru::amax(x, reduced_dims(t, dims), keepdim), t, dtype);
}
Tensor amin(const Tensor& t, const Tensor& mask, const OptionalDims& dims, bool keepdim, std::optional<DType> dtype) {
  const Tensor x = filled(t, mask, greatest(t.dtype()), "masked.amin");
  return as(naru::amin(x, reduced_dims(t, dims), keepdim), t, dtype);
}
Tensor argmax(const Tensor& t, const Tensor& mask, std::optional<int64_t> dim, bool keepdim, std::optional<DType> dtype) {
  return as(naru::argmax(filled(t, mask, least(t.dtype()), "masked.argmax"), dim, keepdim), t, dtype);
}
Tensor argmin(const Tensor& t, const Tensor& mask, std::optional<int64_t> dim, bool keepdim, std::optional<DType> dtype) {
  return as(naru::argmin(filled(t, mask, greatest(t.dtype()), "masked.argmin"), dim, keepdim), t, dtype);
}

Tensor mean(const Tensor& t, const Tensor& mask, const OptionalDims& dims, bool keepdim, std::optional<DType> dtype) {
  ops::require_defined(t, "masked.mean", "input");
  if (const DType type = dtype.value_or(t.dtype()); !is_inexact(type))
    throw ValueError("mean(): Could not infer output dtype. {} dtype must be either a floating point or complex dtype. Got: {}",
                     dtype ? "Optional" : "Input", name_of(type));
  const Tensor total = sum(t, mask, dims, keepdim, dtype.value_or(t.dtype()));
  return total / count(t, mask, reduced_dims(t, dims), keepdim);
}

Tensor median(const Tensor& t, const Tensor& mask, int64_t dim, bool keepdim, std::optional<DType> dtype) {
  ops::require_defined(t, "masked.median", "input");
  Tensor x = t;
  if (!is_floating(t.dtype())) {
    if (!naru::all(naru::any(mask_of(t, mask), Dims{dim})).item<bool>())
      throw ValueError("masked median expects no fully masked out rows if dtype is not floating point");
    x = t.to(DType::F64);
  }
  x = filled(x, mask, std::numeric_limits<double>::quiet_NaN(), "masked.median");
  const Tensor value = nanmedian(x, dim, keepdim).first;
  return is_floating(t.dtype()) ? value : as(value, t, dtype);  // as in PyTorch, dtype applies to integers only
}

Tensor logsumexp(const Tensor& t, const Tensor& mask, const OptionalDims& dims, bool keepdim, std::optional<DType> dtype) {
  const Tensor x = filled(t, mask, least(t.dtype()), "masked.logsumexp");
  return as(naru::logsumexp(x, reduced_dims(t, dims), keepdim), t, dtype);
}
Tensor logaddexp(const Tensor& a, const Tensor& b, const Tensor& a_mask, const Tensor& b_mask, std::optional<DType> dtype) {
  const Tensor x = filled(a, a_mask, -kInfinity, "masked.logaddexp");
  return as(naru::logaddexp(x, filled(b, b_mask, -kInfinity, "masked.logaddexp")), a, dtype);
}

Tensor norm(const Tensor& t, const Tensor& mask, double ord, const OptionalDims& dims, bool keepdim, std::optional<DType> dtype) {
  const Tensor x = filled(t, mask, ord == -kInfinity ? kInfinity : 0.0, "masked.norm");
  return linalg::vector_norm(x, ord, reduced_dims(t, dims), keepdim, dtype);
}

Tensor var(const Tensor& t, const Tensor& mask, const OptionalDims& dims, double correction, bool keepdim, std::optional<DType> dtype) {
  ops::require_defined(t, "masked.var", "input");
  const Dims all = reduced_dims(t, dims);
  const DType type = dtype.value_or(is_inexact(t.dtype()) ? t.dtype() : DType::F32);
  const DType wide = is_inexact(type) ? type : DType::F32;
  const Tensor x = t - sum(t, mask, all, true, type) / count(t, mask, all, true);
  const Tensor squares = sum(x * conj(x), mask, all, keepdim, wide);
  // Keep an integral correction as an integer scalar.
  const Scalar less = correction == std::floor(correction) ? Scalar(static_cast<int64_t>(correction)) : Scalar(correction);
  return (squares / clamp(count(t, mask, all, keepdim) - less, Operand(0))).to(type);
}
Tensor std(const Tensor& t, const Tensor& mask, const OptionalDims& dims, double correction, bool keepdim, std::optional<DType> dtype) {
  return sqrt(var(t, mask, dims, correction, keepdim, dtype));
}

Tensor softmax(const Tensor& t, const Tensor& mask, int64_t dim, std::optional<DType> dtype) {
  return naru::softmax(filled(t, mask, least(t.dtype()), "masked.softmax"), dim, dtype);
}
Tensor log_softmax(const Tensor& t, const Tensor& mask, int64_t dim, std::optional<DType> dtype) {
  return naru::log_softmax(filled(t, mask, least(t.dtype()), "masked.log_softmax"), dim, dtype);
}
Tensor softmin(const Tensor& t, const Tensor& mask, int64_t dim, std::optional<DType> dtype) {
  return naru::softmax(-filled(t, mask, kInfinity, "masked.softmin"), dim, dtype);
}
Tensor normalize(const Tensor& t, const Tensor& mask, double ord, int64_t dim, double eps, std::optional<DType> dtype) {
  const Tensor size = norm(t, mask, ord, Dims{dim}, true, dtype);
  return filled(t, mask, 0, "masked.normalize") / maximum(size, full({}, eps, Options(size.dtype(), size.device())));
}

}  // namespace naru::masked
