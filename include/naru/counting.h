// Running extremes, counting, and what is made of tensors side by side; gradients follow of themselves.
#pragma once

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "naru/compositions.h"

namespace naru {

// (values, indices): the greatest (least) so far along a dimension, and the last place where it stood. A NaN stays from where it is met.
std::pair<Tensor, Tensor> cummax(const Tensor& t, int64_t dim);
std::pair<Tensor, Tensor> cummin(const Tensor& t, int64_t dim);
// log of the sum of exp so far. NotImplementedError for types that are not floating point.
Tensor logcumsumexp(const Tensor& t, int64_t dim);
// (values, indices): what occurs most often along a dimension, the least where several do, and the last place where it stands.
std::pair<Tensor, Tensor> mode(const Tensor& t, int64_t dim = -1, bool keepdim = false);
// (values, places, counts) of runs of equal neighbours: of all elements in order, or of slices along a dimension.
std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& t, std::optional<int64_t> dim = {});
// Greatest common divisors and least common multiples of integers, never negative. NotImplementedError for other types.
Tensor gcd(const Tensor& a, const Tensor& b);
Tensor lcm(const Tensor& a, const Tensor& b);

// The covariances of variables in rows (one observation a column); fweights, aweights: how often, and how much, each observation counts.
Tensor cov(const Tensor& t, int64_t correction = 1, const Tensor& fweights = {}, const Tensor& aweights = {});
Tensor corrcoef(const Tensor& t);
// All choices of r elements of a vector, in order, as rows.
Tensor combinations(const Tensor& t, int64_t r = 2, bool with_replacement = false);
// All choices of one element of each vector, as rows; of one vector itself.
Tensor cartesian_prod(const std::vector<Tensor>& vectors);
// A matrix with these (of at most two dimensions) along its diagonal.
Tensor block_diag(const std::vector<Tensor>& matrices);
// The powers of a vector's elements as columns: n of them (of its length unless given), the highest first unless increasing.
Tensor vander(const Tensor& t, std::optional<int64_t> n = {}, bool increasing = false);
// Slices along a dimension scaled down to a p-norm of at most `most`.
Tensor renorm(const Tensor& t, double p, int64_t dim, double most);
// beta * c + alpha * (a outer b).
Tensor addr(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
// The integral so far, by the trapezoidal rule.
Tensor cumulative_trapezoid(const Tensor& y, const Operand& dx = 1, int64_t dim = -1);
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);

// t * 2 ** exponent; log2(2 ** a + 2 ** b); sin(pi t) / (pi t).
Tensor ldexp(const Tensor& t, const Operand& exponent);
Tensor logaddexp2(const Tensor& a, const Tensor& b);
Tensor sinc(const Tensor& t);

}  // namespace naru
