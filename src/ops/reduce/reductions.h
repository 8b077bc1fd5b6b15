// Reductions that operators build on. But for record_choice none records anything for autograd.
#pragma once

#include <utility>

#include "ops/reduce/reduction.h"

namespace naru::ops {

// Sum over the dimensions of `set` divided by their count; computed in, and of, type `out` (16-bit types: in float32, rounded once).
Tensor reduce_mean(const Tensor& t, const DimSet& set, bool keepdim, DType out, const char* name);
// A mean of more deviations than this is great: rounding it to float32 shows in what is left when it is subtracted.
inline constexpr double kGreatMean = 32;
// Variance (of all there are, not of a sample) and mean over the dimensions of `set`, without a gradient. Of float32 and 16-bit types, where the
// device has float64, the variance is of that type, which its range asks for, and `rest` is what rounding left of means that are great beside their
// deviation, 0 for others; it is undefined where there are none.
struct PopulationMoments {
  Tensor variance, mean, rest;
};
PopulationMoments population_moments(const Tensor& t, const DimSet& set, const char* op);
// Greatest (least) element over the dimensions of `set`, of t's type; NaN wins.
Tensor reduce_extreme(const Tensor& t, bool greatest, const DimSet& set, bool keepdim, const char* name);
// The gradient of a choice of one element y of x over the dimensions of `set`, by g: in equal parts to all elements that equal y. As in PyTorch NaN equals NaN
// where it is all elements that were reduced without naming dimensions (nan_equals: max, min, median); else where a NaN was, all gradients are.
Tensor share_among_equals(const Tensor& g, const Tensor& x, const Tensor& y, const DimSet& set, bool keepdim, bool nan_equals);
// lerp of finite or infinite numbers a <= b: where the share is 0, or both are equal, b - a is not used.
Tensor between(const Tensor& a, const Tensor& b, const Tensor& share);
// Throws RuntimeError where the places of quantiles are of another type than the elements.
void require_quantile_type(const Tensor& t, const Operand& q);
// The median of an empty tensor.
Tensor median_of_none(const Tensor& t);
// `value` with the history of such a choice among all elements of t.
Tensor record_choice(Tensor value, const Tensor& t, const char* node);

}  // namespace naru::ops
