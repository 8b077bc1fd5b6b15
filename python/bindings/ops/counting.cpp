// Running extremes, counting, and what is made of tensors side by side.
#include "naru/ops/aliases.h"
#include "naru/ops/functions.h"
#include "object/tensor_object.h"

namespace naru::py {
namespace {

void define_running() {
  def(kBoth, "cummax", "input, dim, *, out=None", "The greatest so far along a dimension: (values, indices).",
      [](const Tensor& t, int64_t dim) { return named("cummax", cummax(t, dim)); });
  def(kBoth, "cummin", "input, dim, *, out=None", "The least so far along a dimension: (values, indices).",
      [](const Tensor& t, int64_t dim) { return named("cummin", cummin(t, dim)); });
  def(kBoth, "logcumsumexp", "input, dim, *, out=None", "log of the sum of exp so far along a dimension.",
      [](const Tensor& t, int64_t dim) { return logcumsumexp(t, dim); });
  def(kBoth, "mode", "input, dim=-1, keepdim=False, *, out=None", "What occurs most often along a dimension: (values, indices).",
      [](const Tensor& t, int64_t dim, bool keepdim) { return named("mode", mode(t, dim, keepdim)); });
  def(kBoth, "unique_consecutive", "input, return_inverse=False, return_counts=False, dim=None", "The values of runs of equal neighbours.",
      [](const Tensor& t, bool inverse, bool counts, std::optional<int64_t> dim) -> PyObject* {
        const auto [values, places, lengths] = unique_consecutive(t, dim);
        if (!inverse && !counts) return wrap(values);
        nb::list all;
        all.append(nb::steal(wrap(values)));
        if (inverse) all.append(nb::steal(wrap(places)));
        if (counts) all.append(nb::steal(wrap(lengths)));
        return nb::tuple(all).release().ptr();
      });
  def(kFunction, "cumulative_trapezoid", "y, x, *, dim=-1", "The integral over places x so far.",
      [](const Tensor& y, const Tensor& x, int64_t dim) { return cumulative_trapezoid(y, x, dim); });
  def(kFunction, "cumulative_trapezoid", "y, *, dx=1, dim=-1", "The integral over steps of dx so far.",
      [](const Tensor& y, const Scalar& dx, int64_t dim) { return cumulative_trapezoid(y, Operand(dx), dim); });
}

void define_side_by_side() {
  def(kBoth, "cov", "input, *, correction=1, fweights=None, aweights=None", "The covariances of variables in rows.",
      [](const Tensor& t, int64_t correction, const std::optional<Tensor>& f, const std::optional<Tensor>& a) {
        return cov(t, correction, f.value_or(Tensor()), a.value_or(Tensor()));
      });
  def(kBoth, "corrcoef", "input", "The correlations of variables in rows.", [](const Tensor& t) { return corrcoef(t); });
  def(kFunction, "combinations", "input, r=2, with_replacement=False", "All choices of r elements of a vector, as rows.",
      [](const Tensor& t, int64_t r, bool again) { return combinations(t, r, again); });
  def(kFunction, "_cartesian_prod", "tensors", "All choices of one element of each vector, as rows.",
      [](const std::vector<Tensor>& list) { return cartesian_prod(list); });
  def(kFunction, "_block_diag", "tensors", "A matrix with these along its diagonal.",
      [](const std::vector<Tensor>& list) { return block_diag(list); });
  def(kFunction, "_einsum", "equation, operands", "Sums of products; the equation names the operands' dimensions by letters.",
      [](std::string_view equation, const std::vector<Tensor>& list) { return einsum(equation, list); });
  def(kFunction, "vander", "x, N=None, increasing=False", "The powers of a vector's elements as columns.",
      [](const Tensor& t, std::optional<int64_t> n, bool increasing) { return vander(t, n, increasing); });
  def(kBoth, "renorm", "input, p, dim, maxnorm, *, out=None", "Slices along a dimension scaled down to a p-norm of at most maxnorm.",
      [](const Tensor& t, double p, int64_t dim, double most) { return renorm(t, p, dim, most); });
  def(kBoth, "addr", "input, vec1, vec2, *, beta=1, alpha=1, out=None", "beta * input + alpha * (vec1 outer vec2).",
      [](const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
        return addr(c, a, b, beta, alpha);
      });
}

}  // namespace

void define_counting() {
  define_running();
  define_side_by_side();
  def(kBoth, "gcd", "input, other, *, out=None", "Greatest common divisors.", [](const Tensor& a, const Tensor& b) { return gcd(a, b); });
  def(kBoth, "lcm", "input, other, *, out=None", "Least common multiples.", [](const Tensor& a, const Tensor& b) { return lcm(a, b); });
  def(kBoth, "ldexp", "input, other, *, out=None", "input * 2 ** other.",
      [](const Tensor& t, const Tensor& exponent) { return ldexp(t, exponent); });
  def(kBoth, "logaddexp2", "input, other, *, out=None", "log2(2 ** input + 2 ** other).",
      [](const Tensor& a, const Tensor& b) { return logaddexp2(a, b); });
  def(kBoth, "sinc", "input, *, out=None", "sin(pi x) / (pi x).", [](const Tensor& t) { return sinc(t); });
}

}  // namespace naru::py
