// Places among sorted elements, counts of elements in bins, elements written by place, and floating-point numbers taken apart.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "naru/compositions.h"

namespace naru {

// As median and quantile (naru/compositions.h), of the elements that are not NaN; NaN where there is none.
Tensor nanmedian(const Tensor& t);
std::pair<Tensor, Tensor> nanmedian(const Tensor& t, int64_t dim, bool keepdim = false);
Tensor nanquantile(const Tensor& t, const Operand& q, std::optional<int64_t> dim = {}, bool keepdim = false,
                   std::string_view interpolation = "linear");

// A copy of t with source's elements at the places `index` (int64, negative ones from the end) of the flattened tensor; added, where accumulate.
// IndexError where the numbers of elements differ, and for a place outside.
Tensor put(const Tensor& t, const Tensor& index, const Tensor& source, bool accumulate = false);
void put_(const Tensor& t, const Tensor& index, const Tensor& source, bool accumulate = false);
// A copy, of the shape that t and mask broadcast to, with source's elements in order where the mask is true.
Tensor masked_scatter(const Tensor& t, const Tensor& mask, const Tensor& source);

// The next number of a's type in the direction of b. NotImplementedError for integers.
Tensor nextafter(const Tensor& a, const Tensor& b);
// (mantissa, exponent): t = mantissa * 2 ** exponent with 0.5 <= |mantissa| < 1; zeros, infinities and NaN are mantissas with exponent 0 (int32).
std::pair<Tensor, Tensor> frexp(const Tensor& t);

using Range = std::optional<std::pair<double, double>>;
// (counts, edges): how many elements, or how much of their weights, lie in each of equal parts of a range (that of the elements unless given), the last
// with its end; or between neighbouring edges. density: divided by the sum and the parts' lengths. RuntimeError for ranges that are not finite.
std::pair<Tensor, Tensor> histogram(const Tensor& t, int64_t bins, const Range& range = {}, const Tensor& weight = {},
                                    bool density = false);
std::pair<Tensor, Tensor> histogram(const Tensor& t, const Tensor& edges, const Tensor& weight = {}, bool density = false);
// The same of points (..., n) over n dimensions: counts of that rank, and edges for each.
std::pair<Tensor, std::vector<Tensor>> histogramdd(const Tensor& t, const std::vector<int64_t>& bins, const std::vector<Range>& ranges = {},
                                                   const Tensor& weight = {}, bool density = false);
std::pair<Tensor, std::vector<Tensor>> histogramdd(const Tensor& t, const std::vector<Tensor>& edges, const Tensor& weight = {},
                                                   bool density = false);

// "sum", "mean", "max", "min" or "prod" of consecutive pieces along a dimension, of these lengths or between these offsets, whose leading
// dimensions are data's. initial: what each begins with.
Tensor segment_reduce(const Tensor& data, std::string_view reduce, const Tensor& lengths, const Tensor& offsets = {}, int64_t axis = 0,
                      bool unsafe = false, std::optional<double> initial = {});

}  // namespace naru
