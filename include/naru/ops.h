// Functions on tensors that are not in the elementwise table (naru/elementwise.inc declares those). Semantics are PyTorch's. Every function
// throws a typed error (naru/error.h) for operands on different devices and for unsupported dtypes or shapes.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "naru/device/precision.h"
#include "naru/literal.h"
#include "naru/random.h"
#include "naru/tensor.h"

namespace naru {

// The device of new tensors if none is given: cpu unless set. Per thread.
Device default_device() noexcept;
void set_default_device(std::optional<Device> device);

// --- creating tensors -----------------------------------------------------------------------------------------------------------
Tensor empty(const Dims& sizes, const Options& options = {});
Tensor zeros(const Dims& sizes, const Options& options = {});
Tensor ones(const Dims& sizes, const Options& options = {});
Tensor full(const Dims& sizes, Scalar value, const Options& options = {});
// With the given strides, in elements. Throws RuntimeError for negative strides.
Tensor empty_strided(const Dims& sizes, const Dims& strides, const Options& options = {});
Tensor empty_like(const Tensor& t, const Options& options = {});
Tensor zeros_like(const Tensor& t, const Options& options = {});
Tensor ones_like(const Tensor& t, const Options& options = {});
Tensor full_like(const Tensor& t, Scalar value, const Options& options = {});
// zeros_like, as the elementwise table's derivatives spell it. A template, so that zeros({0}) means a shape.
template <std::same_as<Tensor> T>
Tensor zeros(const T& like) {
  return zeros_like(like);
}
// start, start + step ... below end. Throws RuntimeError if step is 0 or has the wrong sign.
Tensor arange(Scalar start, Scalar end, Scalar step = 1, const Options& options = {});
inline Tensor arange(Scalar end) { return arange(Scalar(0), end); }
template <class O>
requires(std::is_convertible_v<const O&, Options> && !std::is_convertible_v<const O&, Scalar>) Tensor arange(Scalar end, const O& options) {
  return arange(Scalar(0), end, Scalar(1), options);
}
template <class O>
requires(std::is_convertible_v<const O&, Options> && !std::is_convertible_v<const O&, Scalar>) Tensor
    arange(Scalar start, Scalar end, const O& options) {
  return arange(start, end, Scalar(1), options);
}
// Like arange, but including end (PyTorch's deprecated range). The default floating-point dtype unless one is given.
Tensor range(Scalar start, Scalar end, Scalar step = 1, const Options& options = {});
Tensor linspace(double start, double end, int64_t steps, const Options& options = {});
// For complex endpoints, the real and imaginary parts are interpolated separately and the dtype is complex.
Tensor linspace(Scalar start, Scalar end, int64_t steps, const Options& options = {});
// base to the powers of linspace(start, end, steps), computed in float64 or complex128.
Tensor logspace(Scalar start, Scalar end, int64_t steps, double base = 10, const Options& options = {});
Tensor eye(int64_t n, int64_t m = -1, const Options& options = {});
// A 0-d tensor with the value.
Tensor scalar_tensor(Scalar value, const Options& options = {});
// Copies `data`, host memory in row-major order.
Tensor from_data(const void* data, const Dims& sizes, DType dtype, const Options& options = {});
// tensor(3.5), tensor({{1, 2}, {3, 4}}), tensor(std::vector<float>{...}). The dtype can represent all elements (naru/literal.h), unless one
// is given.
Tensor tensor(const Literal& values, const Options& options = {});
// Wraps memory that the caller owns and must keep valid until `release` is called. cpu only; strides in elements. naru/interop/interop.h
// has more convenient functions.
Tensor from_blob(void* data, const Dims& sizes, const Dims& strides, DType dtype, std::function<void()> release);

// --- random numbers (naru/random.h has Generator, manual_seed) ---------------------------------------------------------------------
Tensor rand(const Dims& sizes, const Options& options = {}, Generator* generator = nullptr);
Tensor randn(const Dims& sizes, const Options& options = {}, Generator* generator = nullptr);
Tensor randint(int64_t low, int64_t high, const Dims& sizes, const Options& options = {}, Generator* generator = nullptr);
// t's shape; t's dtype and device unless given. The memory format is t's, or options.memory_format.
Tensor rand_like(const Tensor& t, const Options& options = {}, Generator* generator = nullptr);
Tensor randn_like(const Tensor& t, const Options& options = {}, Generator* generator = nullptr);
Tensor randint_like(const Tensor& t, int64_t low, int64_t high, const Options& options = {}, Generator* generator = nullptr);
Tensor randperm(int64_t n, const Options& options = {}, Generator* generator = nullptr);
// 1 with the probability given by the element, else 0.
Tensor bernoulli(const Tensor& probabilities, Generator* generator = nullptr);
// t's shape and dtype: 1 with probability p, else 0.
Tensor bernoulli(const Tensor& t, double p, Generator* generator = nullptr);
// Draws `samples` category indices (int64) per row; `weights` (1-D or 2-D) holds unnormalized probabilities.
Tensor multinomial(const Tensor& weights, int64_t samples, bool replacement = false, Generator* generator = nullptr);
Tensor normal(const Operand& mean, const Operand& std, const OptionalDims& sizes = {}, Generator* generator = nullptr);
Tensor normal(double mean, double std, const Dims& sizes, const Options& options, Generator* generator = nullptr);
void uniform_(const Tensor& t, double from, double to, Generator* generator = nullptr);
void normal_(const Tensor& t, double mean, double std, Generator* generator = nullptr);
void bernoulli_(const Tensor& t, double p, Generator* generator = nullptr);
void bernoulli_(const Tensor& t, const Tensor& p, Generator* generator = nullptr);  // p broadcasts
void random_(const Tensor& t, std::optional<int64_t> low, std::optional<int64_t> high, Generator* generator = nullptr);
void exponential_(const Tensor& t, double rate, Generator* generator = nullptr);
// Cauchy; log-normal (floating point only); geometric: the number of trials until the first success of probability p (not for bool).
void cauchy_(const Tensor& t, double median = 0, double sigma = 1, Generator* generator = nullptr);
void log_normal_(const Tensor& t, double mean = 1, double std = 2, Generator* generator = nullptr);
void geometric_(const Tensor& t, double p, Generator* generator = nullptr);
// Poisson counts with means `rates` (RuntimeError if negative); binomial counts: successes in `count` trials of probability `prob`. The
// dtype is the operands' floating-point dtype. Computed on the host. Gradients are 0.
Tensor poisson(const Tensor& rates, Generator* generator = nullptr);
Tensor binomial(const Tensor& count, const Tensor& prob, Generator* generator = nullptr);
// Gamma samples with these shape parameters and scale 1. Differentiable in the shape parameter by implicit reparameterization.
Tensor standard_gamma(const Tensor& shape, Generator* generator = nullptr);

// --- reductions. Without dims: over all dimensions -------------------------------------------------------------------------------
Tensor sum(const Tensor& t, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
Tensor mean(const Tensor& t, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
Tensor prod(const Tensor& t, std::optional<int64_t> dim = {}, bool keepdim = false, std::optional<DType> dtype = {});
Tensor amax(const Tensor& t, const OptionalDims& dims = {}, bool keepdim = false);
Tensor amin(const Tensor& t, const OptionalDims& dims = {}, bool keepdim = false);
Tensor max(const Tensor& t);
Tensor min(const Tensor& t);
// (values, indices)
std::pair<Tensor, Tensor> max(const Tensor& t, int64_t dim, bool keepdim = false);
std::pair<Tensor, Tensor> min(const Tensor& t, int64_t dim, bool keepdim = false);
Tensor argmax(const Tensor& t, std::optional<int64_t> dim = {}, bool keepdim = false);
Tensor argmin(const Tensor& t, std::optional<int64_t> dim = {}, bool keepdim = false);
Tensor any(const Tensor& t, const OptionalDims& dims = {}, bool keepdim = false);
Tensor all(const Tensor& t, const OptionalDims& dims = {}, bool keepdim = false);
// correction 1 divides by n - 1 (Bessel's correction).
Tensor var(const Tensor& t, const OptionalDims& dims = {}, double correction = 1, bool keepdim = false);
Tensor std(const Tensor& t, const OptionalDims& dims = {}, double correction = 1, bool keepdim = false);
std::pair<Tensor, Tensor> var_mean(const Tensor& t, const OptionalDims& dims = {}, double correction = 1, bool keepdim = false);
// The p-norm. With dtype, elements are converted first.
Tensor norm(const Tensor& t, double p = 2, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
Tensor logsumexp(const Tensor& t, const Dims& dims, bool keepdim = false);
Tensor cumsum(const Tensor& t, int64_t dim, std::optional<DType> dtype = {});
Tensor cumprod(const Tensor& t, int64_t dim, std::optional<DType> dtype = {});
Tensor count_nonzero(const Tensor& t, const OptionalDims& dims = {});
bool equal(const Tensor& a, const Tensor& b);  // same shape and elements
bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
Tensor isclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);

// --- products ----------------------------------------------------------------------------------------------------------------------
// Supports all ranks that torch.matmul does.
Tensor matmul(const Tensor& a, const Tensor& b);
Tensor mm(const Tensor& a, const Tensor& b);
Tensor bmm(const Tensor& a, const Tensor& b);
Tensor mv(const Tensor& a, const Tensor& v);
Tensor dot(const Tensor& a, const Tensor& b);
Tensor outer(const Tensor& a, const Tensor& b);
// beta * c + alpha * a b
Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
// x wᵀ + bias; x (..., in), w (out, in), bias (out) or undefined
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias = {});

// --- shapes -------------------------------------------------------------------------------------------------------------------------
Tensor cat(const std::vector<Tensor>& tensors, int64_t dim = 0);
Tensor stack(const std::vector<Tensor>& tensors, int64_t dim = 0);
std::vector<Tensor> split(const Tensor& t, int64_t size, int64_t dim = 0);
std::vector<Tensor> split(const Tensor& t, const Dims& sizes, int64_t dim = 0);
std::vector<Tensor> chunk(const Tensor& t, int64_t count, int64_t dim = 0);
std::vector<Tensor> unbind(const Tensor& t, int64_t dim = 0);
Tensor repeat(const Tensor& t, const Dims& times);
Tensor flip(const Tensor& t, const Dims& dims);
Tensor roll(const Tensor& t, const Dims& shifts, const Dims& dims = {});
Tensor tril(const Tensor& t, int64_t diagonal = 0);
Tensor triu(const Tensor& t, int64_t diagonal = 0);
Tensor broadcast_to(const Tensor& t, const Dims& shape);
std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors);
std::vector<Tensor> meshgrid(const std::vector<Tensor>& tensors, bool ij = true);

// --- indexing -----------------------------------------------------------------------------------------------------------------------
Tensor gather(const Tensor& t, int64_t dim, const Tensor& index);
Tensor scatter(const Tensor& t, int64_t dim, const Tensor& index, const Operand& value);
Tensor scatter_add(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& value);
void scatter_(const Tensor& t, int64_t dim, const Tensor& index, const Operand& value);
void scatter_add_(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& value);
// A copy of t whose positions named by `index` along `dim` hold a reduction of their sources: reduce is "sum", "prod", "mean", "amax" or
// "amin". With include_self, t's own value takes part. `source` has t's dtype and is at least as large as index in every dimension.
// Differentiable in t and source.
Tensor scatter_reduce(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                      bool include_self = true);
// The same for whole slices: slice index[i] of `dim` is reduced with slice i of source. reduce: "prod", "mean", "amax" or "amin".
Tensor index_reduce(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                    bool include_self = true);
// The n-th derivative of digamma (n >= 0).
Tensor polygamma(int64_t n, const Tensor& t);
Tensor index_select(const Tensor& t, int64_t dim, const Tensor& index);
void index_add_(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& value, Scalar alpha = 1);
Tensor masked_select(const Tensor& t, const Tensor& mask);
Tensor masked_fill(const Tensor& t, const Tensor& mask, const Operand& value);
void masked_fill_(const Tensor& t, const Tensor& mask, const Operand& value);
Tensor nonzero(const Tensor& t);  // (count, rank) int64
Tensor take(const Tensor& t, const Tensor& index);
Tensor where(const Tensor& condition);  // the same as nonzero(condition)
// (values, indices)
std::pair<Tensor, Tensor> sort(const Tensor& t, int64_t dim = -1, bool descending = false);
Tensor argsort(const Tensor& t, int64_t dim = -1, bool descending = false);
std::pair<Tensor, Tensor> topk(const Tensor& t, int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true);
Tensor one_hot(const Tensor& t, int64_t classes = -1);
Tensor bincount(const Tensor& t, int64_t minlength = 0);
// (unique values sorted, inverse, counts)
std::tuple<Tensor, Tensor, Tensor> unique(const Tensor& t);

// --- neural networks ------------------------------------------------------------------------------------------------------------------
Tensor softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype = {});
Tensor log_softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype = {});
// These enumerators are scoped; g++ 12 wrongly reports that they shadow naru::None.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class Reduction : uint8_t { None, Mean, Sum };
#pragma GCC diagnostic pop
Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean, double beta = 1);
Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target, const Tensor& weight = {}, Reduction reduction = Reduction::Mean,
                int64_t ignore_index = -100);
// input (N, C), (C) or (N, C, d1...); target: class indices (int64), or probabilities of input's shape
Tensor cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight = {}, Reduction reduction = Reduction::Mean,
                     int64_t ignore_index = -100, double label_smoothing = 0);
Tensor binary_cross_entropy(const Tensor& p, const Tensor& target, const Tensor& weight = {}, Reduction reduction = Reduction::Mean);
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, const Tensor& weight = {},
                                        Reduction reduction = Reduction::Mean, const Tensor& pos_weight = {});
Tensor embedding(const Tensor& weight, const Tensor& index, int64_t padding_idx = -1, bool scale_grad_by_freq = false, bool sparse = false);
Tensor layer_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);
// Zeroes each element with probability p and multiplies the others by 1 / (1 - p).
Tensor dropout(const Tensor& x, double p = 0.5, bool training = true, Generator* generator = nullptr);

// --- optimizer steps, each over all parameters; they update the state tensors in place ---------------------------------------------------
struct SgdOptions {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
};
// momenta[i] may be undefined at the first step, which then creates it.
void sgd_step(const std::vector<Tensor>& params, const std::vector<Tensor>& grads, std::vector<Tensor>& momenta, const SgdOptions& o);
struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false, amsgrad = false, maximize = false;  // decoupled: AdamW
  bool capturable = false;  // for optim::Adam: the step count is on the device, as graphs need (naru/device/graph.h)
};
void adam_step(const std::vector<Tensor>& params, const std::vector<Tensor>& grads, const std::vector<Tensor>& exp_avg,
               const std::vector<Tensor>& exp_avg_sq, const std::vector<Tensor>& max_exp_avg_sq, int64_t step, const AdamOptions& o);
// The same with the step count on the device: `step`, one float32 element, is incremented. lr is a scalar or a tensor like `step`; o.lr is
// ignored.
void adam_step(const std::vector<Tensor>& params, const std::vector<Tensor>& grads, const std::vector<Tensor>& exp_avg,
               const std::vector<Tensor>& exp_avg_sq, const std::vector<Tensor>& max_exp_avg_sq, Tensor& step, const Operand& lr,
               const AdamOptions& o);

}  // namespace naru
