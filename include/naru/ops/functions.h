// Functions composed of those in naru/ops.h, with PyTorch's semantics, so autograd works without further code. Each throws what the
// functions it calls throw, and what is documented here. Most are also methods of Tensor. Functions whose names end in an underscore write
// to their first argument.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "naru/ops.h"

namespace naru {

// --- arithmetic -----------------------------------------------------------------------------------------------------------------------
// a + alpha * b, a - alpha * b, b - alpha * a. Throws RuntimeError if alpha is of a higher category than the result (a float for integers),
// or a bool for numbers.
Tensor add(const Operand& a, const Operand& b, Scalar alpha);
Tensor sub(const Operand& a, const Operand& b, Scalar alpha);
Tensor rsub(const Tensor& a, const Operand& b, Scalar alpha = 1);
void add_(const Tensor& t, const Operand& b, Scalar alpha = 1);
void sub_(const Tensor& t, const Operand& b, Scalar alpha = 1);
// a / b, rounded towards zero ("trunc") or down ("floor"). Throws RuntimeError for another mode.
Tensor div(const Operand& a, const Operand& b, std::optional<std::string_view> rounding_mode);
void div_(const Tensor& t, const Operand& b, std::optional<std::string_view> rounding_mode = {});
// t + value * a * b and t + value * a / b, in the promoted dtype of all three. Throws RuntimeError for integer division.
Tensor addcmul(const Tensor& t, const Tensor& a, const Tensor& b, Scalar value = 1);
Tensor addcdiv(const Tensor& t, const Tensor& a, const Tensor& b, Scalar value = 1);
void addcmul_(const Tensor& t, const Tensor& a, const Tensor& b, Scalar value = 1);
void addcdiv_(const Tensor& t, const Tensor& a, const Tensor& b, Scalar value = 1);
// start + weight * (end - start). Throws RuntimeError if the dtypes differ (a scalar weight fits any).
Tensor lerp(const Tensor& start, const Tensor& end, const Operand& weight);
void lerp_(const Tensor& start, const Tensor& end, const Operand& weight);
// Limits t to [low, high], either of which may be missing (RuntimeError if both are). Where t equals a tensor limit, both share the
// gradient, as in maximum and minimum.
Tensor clamp(const Tensor& t, const std::optional<Operand>& low, const std::optional<Operand>& high = {});
Tensor clamp_min(const Tensor& t, const Tensor& low);
Tensor clamp_max(const Tensor& t, const Tensor& high);
void clamp_(const Tensor& t, const std::optional<Operand>& low, const std::optional<Operand>& high = {});

// --- elementwise ----------------------------------------------------------------------------------------------------------------------
// Rounds to a number of decimals, ties to even. Negative: to tens, hundreds ...
Tensor round(const Tensor& t, int64_t decimals);
void round_(const Tensor& t, int64_t decimals);
// base to the power exponent, computed in float64.
Tensor float_power(const Operand& base, const Operand& exponent);
Tensor rad2deg(const Tensor& t);
Tensor deg2rad(const Tensor& t);
// log(t / (1 - t)); with eps, t is clamped to [eps, 1 - eps].
Tensor logit(const Tensor& t, std::optional<double> eps = {});
// Replaces NaN and infinities; infinities by default by the dtype's greatest and least finite value. Integers are copied.
Tensor nan_to_num(const Tensor& t, double nan = 0, std::optional<double> posinf = {}, std::optional<double> neginf = {});
// 0 where t < 0, 1 where t > 0, `at_zero` where t is 0. Throws RuntimeError if the dtypes differ.
Tensor heaviside(const Tensor& t, const Tensor& at_zero);
// approximate: "none" for the exact gelu, "tanh" for the tanh approximation. Throws RuntimeError for other values.
Tensor gelu(const Tensor& t, std::string_view approximate);

// --- reductions -----------------------------------------------------------------------------------------------------------------------
// The lower median of all elements. NaN if an element is NaN, or if t is floating point and empty.
Tensor median(const Tensor& t);
// (values, indices) along a dimension. Throws IndexError if the dimension is empty.
std::pair<Tensor, Tensor> median(const Tensor& t, int64_t dim, bool keepdim = false);
// Sum and mean of the elements that are not NaN.
Tensor nansum(const Tensor& t, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
Tensor nanmean(const Tensor& t, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
// (standard deviation, mean)
std::pair<Tensor, Tensor> std_mean(const Tensor& t, const OptionalDims& dims = {}, double correction = 1, bool keepdim = false);
// (minimum, maximum), over all elements or along a dimension.
std::pair<Tensor, Tensor> aminmax(const Tensor& t, std::optional<int64_t> dim = {}, bool keepdim = false);
// The sum of a matrix's diagonal.
Tensor trace(const Tensor& t);
// True if the only element is not 0. Throws RuntimeError unless numel() == 1.
bool is_nonzero(const Tensor& t);
// Quantiles q in [0, 1], over all elements or along a dimension. interpolation, between two elements: "linear", "lower", "higher",
// "midpoint" or "nearest". q: a scalar, or a 0-d or 1-D tensor, whose results are stacked along a new first dimension. Throws RuntimeError
// for integers, for no elements, for q outside [0, 1] and for other interpolations.
Tensor quantile(const Tensor& t, const Operand& q, std::optional<int64_t> dim = {}, bool keepdim = false,
                std::string_view interpolation = "linear");
// (values, indices) of the k-th smallest elements, k from 1. Throws RuntimeError if k is out of range.
std::pair<Tensor, Tensor> kthvalue(const Tensor& t, int64_t k, int64_t dim = -1, bool keepdim = false);
// The number of elements in each of `bins` equal bins of [low, high], or of the elements' own range if both are 0. Has t's dtype. Throws
// RuntimeError for a range that is not finite or descending, and for bins < 1.
Tensor histc(const Tensor& t, int64_t bins = 100, double low = 0, double high = 0);
// Sums of the weights of each integer in t (see bincount). float64, or float32 if the weights are.
Tensor bincount(const Tensor& t, const Tensor& weights, int64_t minlength = 0);
// (sorted unique slices along a dimension, inverse indices, counts).
std::tuple<Tensor, Tensor, Tensor> unique(const Tensor& t, int64_t dim);

// --- searching ------------------------------------------------------------------------------------------------------------------------
// The position at which each value would be inserted in the sorted last dimension of `sorted`: before equal elements, or after them with
// right (or side "right"). int64, or int32 with out_int32. sorter: indices that sort `sorted`, if it is not sorted. Throws RuntimeError for
// other sides.
Tensor searchsorted(const Tensor& sorted, const Operand& values, bool out_int32 = false, bool right = false,
                    std::optional<std::string_view> side = {}, const Tensor& sorter = {});
// The same with 1-D `boundaries`.
Tensor bucketize(const Tensor& values, const Tensor& boundaries, bool out_int32 = false, bool right = false);
// True where an element is in `tests` (with invert: is not). Throws TypeError if both are scalars.
Tensor isin(const Operand& elements, const Operand& tests, bool invert = false);

// --- vectors --------------------------------------------------------------------------------------------------------------------------
// The p-norm of a - b.
Tensor dist(const Tensor& a, const Tensor& b, double p = 2);
// (..., n, m): the p-norm distances between rows (..., n, d) and rows (..., m, d). compute_mode: whether p = 2 uses matrix products, with
// PyTorch's names: "use_mm_for_euclid_dist_if_necessary" (if one side has more than 25 rows), "use_mm_for_euclid_dist" or
// "donot_use_mm_for_euclid_dist" (ValueError for others).
Tensor cdist(const Tensor& a, const Tensor& b, double p = 2, std::string_view compute_mode = "use_mm_for_euclid_dist_if_necessary");
// (n (n - 1) / 2): the p-norm distances between all pairs of the rows (n, d), p >= 0, in the order (0, 1), (0, 2) ... (1, 2) ... Throws
// RuntimeError for other ranks and dtypes.
Tensor pdist(const Tensor& t, double p = 2);
// The cross product along a dimension of size 3; by default the first such one.
Tensor cross(const Tensor& a, const Tensor& b, std::optional<int64_t> dim = {});
// Sums of products over the last dimensions.
Tensor inner(const Tensor& a, const Tensor& b);
// The Kronecker product.
Tensor kron(const Tensor& a, const Tensor& b);
// n-th order differences of neighbours along a dimension; t is first extended by `prepend` and `append` if these are defined.
Tensor diff(const Tensor& t, int64_t n = 1, int64_t dim = -1, const Tensor& prepend = {}, const Tensor& append = {});
// The integral along a dimension by the trapezoidal rule, with spacing dx or at coordinates x.
Tensor trapezoid(const Tensor& y, const Operand& dx = 1, int64_t dim = -1);
Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);
// beta * c + alpha * (matrix times vector), and the same for batches of matrices (see addmm).
Tensor addmv(const Tensor& c, const Tensor& matrix, const Tensor& vector, Scalar beta = 1, Scalar alpha = 1);
Tensor baddbmm(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);

// --- shapes ---------------------------------------------------------------------------------------------------------------------------
// Concatenation along dimension 1 (vectors: 0), along dimension 0 (vectors become rows), along dimension 2, and of vectors as columns.
Tensor hstack(const std::vector<Tensor>& tensors);
Tensor vstack(const std::vector<Tensor>& tensors);
Tensor dstack(const std::vector<Tensor>& tensors);
Tensor column_stack(const std::vector<Tensor>& tensors);
// Splits into `sections` pieces, of which the first are larger by one if the size is not divisible, or at the given indices (negative ones
// count from the end). Throws RuntimeError for less than one section.
std::vector<Tensor> tensor_split(const Tensor& t, int64_t sections, int64_t dim = 0);
std::vector<Tensor> tensor_split(const Tensor& t, const Dims& ends, int64_t dim = 0);
// `ends`: a vector of int64 indices on cpu, or a 0-d tensor, the number of sections.
std::vector<Tensor> tensor_split(const Tensor& t, const Tensor& ends, int64_t dim = 0);
// Repeats t `times` along each dimension; missing leading counts are 1.
Tensor tile(const Tensor& t, const Dims& times);
// Repeats each element (each slice of a dimension); `repeats` as a tensor has one count, or one per slice. Throws RuntimeError for negative
// counts. output_size: the resulting size if known; RuntimeError if it is wrong.
Tensor repeat_interleave(const Tensor& t, int64_t repeats, std::optional<int64_t> dim = {}, std::optional<int64_t> output_size = {});
Tensor repeat_interleave(const Tensor& t, const Tensor& repeats, std::optional<int64_t> dim = {}, std::optional<int64_t> output_size = {});
// The indices 0, 1, ..., each repeated as often as its count.
Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> output_size = {});
// Removes those of the given dimensions that have size 1.
Tensor squeeze(const Tensor& t, const Dims& dims);
// Moves dimensions to new positions; the others keep their order. Throws RuntimeError if one is named twice.
Tensor movedim(const Tensor& t, const Dims& from, const Dims& to);
// numpy_T reverses the dimensions; mT swaps the last two; matrix_H (of a matrix) and mH (of batches) also conjugate. A 0-d tensor is
// returned as it is, with a warning except for numpy_T. Throws RuntimeError for other ranks.
Tensor numpy_T(const Tensor& t);
Tensor mT(const Tensor& t);
Tensor matrix_H(const Tensor& t);
Tensor mH(const Tensor& t);
// Rotates by 90 degrees k times, from the first of two dimensions towards the second.
Tensor rot90(const Tensor& t, int64_t k = 1, const Dims& dims = {0, 1});
// The diagonal of a matrix (a copy), or a matrix with the vector t as diagonal. Throws RuntimeError for other ranks.
Tensor diag(const Tensor& t, int64_t diagonal = 0);
// (2, n): row and column indices of a triangle's elements, in row-major order.
Tensor tril_indices(int64_t rows, int64_t columns, int64_t offset = 0, const Options& options = {});
Tensor triu_indices(int64_t rows, int64_t columns, int64_t offset = 0, const Options& options = {});

// --- changing a tensor's own geometry -------------------------------------------------------------------------------------------------
// These throw RuntimeError for a tensor that requires grad, because its history would be lost.
void t_(const Tensor& t);
void transpose_(const Tensor& t, int64_t a, int64_t b);
void unsqueeze_(const Tensor& t, int64_t dim);
void squeeze_(const Tensor& t);
void squeeze_(const Tensor& t, int64_t dim);
void as_strided_(const Tensor& t, const Dims& sizes, const Dims& strides, int64_t offset);
// Elements keep their position in the storage; new elements are 0.
void resize_(const Tensor& t, const Dims& sizes, std::optional<MemoryFormat> format = {});
// Resizes to the sizes of `model`. Preserve: also to its memory format.
void resize_as_(const Tensor& t, const Tensor& model, std::optional<MemoryFormat> format = {});

// Makes t refer to the storage, sizes and strides of `from`, which has the same dtype. Throws RuntimeError if t requires grad, except under
// NoGrad.
void set_(const Tensor& t, const Tensor& from);
// Moves the elements to memory that processes forked later share; device memory counts as shared. An external array that shared the
// previous memory (e.g. NumPy's) no longer sees later writes.
void share_memory_(const Tensor& t);
bool is_shared(const Tensor& t);
// The file descriptor of the memory made by share_memory_, through which another process can map it; -1 if there is none. The tensor owns
// it.
int shared_file(const Tensor& t);
// A uint8 tensor of `bytes` bytes of such a file; takes ownership of the descriptor.
Tensor tensor_of_shared_file(int file, int64_t bytes);

// --- indexing -------------------------------------------------------------------------------------------------------------------------
// gather with indices that may be negative and otherwise broadcast; without dim, on the flattened tensor. Throws RuntimeError if the ranks
// differ.
Tensor take_along_dim(const Tensor& t, const Tensor& indices, std::optional<int64_t> dim = {});
// Writes `value` at the indices `index` (int32 or int64, at most 1-D) of a dimension; in a copy, or in t.
Tensor index_fill(const Tensor& t, int64_t dim, const Tensor& index, const Operand& value);
void index_fill_(const Tensor& t, int64_t dim, const Tensor& index, const Operand& value);
// Writes the slices of `source` at the indices `index` (int64) of a dimension. The dtypes and the other sizes must be equal.
Tensor index_copy(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source);
void index_copy_(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source);
// A copy with alpha * source added at the indices `index` of a dimension.
Tensor index_add(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha = 1);
// A copy with t[indices] = value, or += value.
Tensor index_put(const Tensor& t, std::span<const Index> indices, const Operand& value, bool accumulate = false);
// Writes the elements of `source`, in order, where the mask is true. Throws RuntimeError if there are too few.
void masked_scatter_(const Tensor& t, const Tensor& mask, const Tensor& source);
// The indices of nonzero elements, one tensor per dimension (one tensor if t is 0-d).
std::vector<Tensor> nonzero_numpy(const Tensor& t);
// A copy in which every element is `value`.
Tensor fill(const Tensor& t, const Operand& value);
// Writes the value to the diagonal. With wrap, in a tall matrix, the diagonal starts again after each skipped row.
void fill_diagonal_(const Tensor& t, const Operand& value, bool wrap = false);
// Lower triangle, upper triangle, and cumulative sum, in place.
void tril_(const Tensor& t, int64_t diagonal = 0);
void triu_(const Tensor& t, int64_t diagonal = 0);
void cumsum_(const Tensor& t, int64_t dim);

// --- neural networks ------------------------------------------------------------------------------------------------------------------
// The cosine of the angle between a and b along a dimension; each norm is at least eps.
Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim = 1, double eps = 1e-8);
void dropout_(const Tensor& t, double p = 0.5, bool training = true);
// t where positive, else weight * t. weight: one element, or one per channel (dimension 1). Throws RuntimeError for other sizes.
Tensor prelu(const Tensor& t, const Tensor& weight);
// out[..., k] = a (..., I) times weight[k] (K, I, J) times b (..., J), plus bias (K) if defined. Throws RuntimeError for other shapes.
Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight, const Tensor& bias = {});
// Sums of products over paired dimensions of a and b, or over the last `dims` of a and the first `dims` of b. The free dimensions of a come
// first.
Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& dims_a, const Dims& dims_b);
Tensor tensordot(const Tensor& a, const Tensor& b, int64_t dims = 2);
// d² / 2 where d = |input - target| <= delta, else delta (d - delta / 2). Throws RuntimeError for delta <= 0.
Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean, double delta = 1);
// target (log(target) - input). input contains log-probabilities; so does target with log_target.
Tensor kl_div(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean, bool log_target = false);
// exp(input) - target input; with log_input false, input - target log(input + eps). full: adds Stirling's approximation of log(target!).
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input = true, bool full = false, double eps = 1e-8,
                        Reduction reduction = Reduction::Mean);
// 1 - cos where target is 1, max(0, cos - margin) where it is -1; cos over the last dimension of (N, D) or (D).
Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin = 0,
                             Reduction reduction = Reduction::Mean);
// input where target is 1, max(0, margin - input) where it is -1.
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin = 1, Reduction reduction = Reduction::Mean);
// max(0, -target (a - b) + margin)
Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin = 0,
                           Reduction reduction = Reduction::Mean);
// log(1 + exp(-target input))
Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
// max(0, |anchor - positive| - |anchor - negative| + margin), with p-norms over the last dimension. swap: uses |positive - negative| if
// that is smaller than |anchor - negative|. Throws ValueError for margin <= 0.
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin = 1, double p = 2,
                           double eps = 1e-6, bool swap = false, Reduction reduction = Reduction::Mean);

// --- cumulative extremes, counting, statistics ---------------------------------------------------------
// (values, indices): the cumulative maximum (minimum) along a dimension, and its last index. A NaN persists from where it occurs.
std::pair<Tensor, Tensor> cummax(const Tensor& t, int64_t dim);
std::pair<Tensor, Tensor> cummin(const Tensor& t, int64_t dim);
// The cumulative logsumexp. Throws NotImplementedError for dtypes that are not floating point.
Tensor logcumsumexp(const Tensor& t, int64_t dim);
// (values, indices): the most frequent value along a dimension (the smallest on ties) and its last index.
std::pair<Tensor, Tensor> mode(const Tensor& t, int64_t dim = -1, bool keepdim = false);
// (values, inverse indices, counts) of runs of equal neighbours: over all elements in order, or of slices along a dimension.
std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& t, std::optional<int64_t> dim = {});
// Greatest common divisor and least common multiple of integers, never negative. Throws NotImplementedError for other dtypes.
Tensor gcd(const Tensor& a, const Tensor& b);
Tensor lcm(const Tensor& a, const Tensor& b);

// The covariance matrix of variables in rows (observations in columns). fweights, aweights: frequency and importance of each observation.
Tensor cov(const Tensor& t, int64_t correction = 1, const Tensor& fweights = {}, const Tensor& aweights = {});
Tensor corrcoef(const Tensor& t);
// All combinations of r elements of a vector, in order, as rows.
Tensor combinations(const Tensor& t, int64_t r = 2, bool with_replacement = false);
// The Cartesian product of vectors, as rows; for one vector, itself.
Tensor cartesian_prod(const std::vector<Tensor>& vectors);
// A block-diagonal matrix of these (at most 2-D) tensors.
Tensor block_diag(const std::vector<Tensor>& matrices);
// The powers of a vector's elements as columns: n of them (default: the vector's length), the highest first unless increasing.
Tensor vander(const Tensor& t, std::optional<int64_t> n = {}, bool increasing = false);
// Scales down slices along a dimension so that their p-norm is at most `most`.
Tensor renorm(const Tensor& t, double p, int64_t dim, double most);
// beta * c + alpha * outer(a, b).
Tensor addr(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
// The cumulative integral by the trapezoidal rule.
Tensor cumulative_trapezoid(const Tensor& y, const Operand& dx = 1, int64_t dim = -1);
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);

// t * 2 ** exponent; log2(2 ** a + 2 ** b); sin(pi t) / (pi t).
Tensor ldexp(const Tensor& t, const Operand& exponent);
Tensor logaddexp2(const Tensor& a, const Tensor& b);
Tensor sinc(const Tensor& t);

// --- ignoring NaN, writing by position, floating-point decomposition -------------------------------------------------
// Like median and quantile over the elements that are not NaN; NaN if there are none.
Tensor nanmedian(const Tensor& t);
std::pair<Tensor, Tensor> nanmedian(const Tensor& t, int64_t dim, bool keepdim = false);
Tensor nanquantile(const Tensor& t, const Operand& q, std::optional<int64_t> dim = {}, bool keepdim = false,
                   std::string_view interpolation = "linear");

// A copy of t with source's elements at the positions `index` (int64, negative ones from the end) of the flattened tensor; added with
// accumulate. Throws IndexError if the numbers of elements differ or a position is out of range.
Tensor put(const Tensor& t, const Tensor& index, const Tensor& source, bool accumulate = false);
void put_(const Tensor& t, const Tensor& index, const Tensor& source, bool accumulate = false);
// A copy, of the broadcast shape of t and mask, with source's elements in order where the mask is true.
Tensor masked_scatter(const Tensor& t, const Tensor& mask, const Tensor& source);

// The next representable value of a's dtype towards b. Throws NotImplementedError for integers.
Tensor nextafter(const Tensor& a, const Tensor& b);
// (mantissa, exponent): t = mantissa * 2 ** exponent with 0.5 <= |mantissa| < 1. Zeros, infinities and NaN are mantissas with exponent 0
// (int32).
std::pair<Tensor, Tensor> frexp(const Tensor& t);

using Range = std::optional<std::pair<double, double>>;
// (counts, edges): the number of elements, or the sum of their weights, in each of `bins` equal bins of a range (default: the range of the
// elements), or between neighbouring edges. The last bin includes its right edge. density: divides by the sum and the bins' widths. Throws
// RuntimeError for ranges that are not finite.
std::pair<Tensor, Tensor> histogram(const Tensor& t, int64_t bins, const Range& range = {}, const Tensor& weight = {},
                                    bool density = false);
std::pair<Tensor, Tensor> histogram(const Tensor& t, const Tensor& edges, const Tensor& weight = {}, bool density = false);
// The same for points (..., n) in n dimensions: counts of rank n, and edges for each dimension.
std::pair<Tensor, std::vector<Tensor>> histogramdd(const Tensor& t, const std::vector<int64_t>& bins, const std::vector<Range>& ranges = {},
                                                   const Tensor& weight = {}, bool density = false);
std::pair<Tensor, std::vector<Tensor>> histogramdd(const Tensor& t, const std::vector<Tensor>& edges, const Tensor& weight = {},
                                                   bool density = false);

// Reduces consecutive segments along a dimension by "sum", "mean", "max", "min" or "prod". The segments have these lengths, or are between
// these offsets; their leading dimensions are data's. initial: the start value of each.
Tensor segment_reduce(const Tensor& data, std::string_view reduce, const Tensor& lengths, const Tensor& offsets = {}, int64_t axis = 0,
                      bool unsafe = false, std::optional<double> initial = {});

// --- writing through views, diagonals, splitting -----------------------------------------------------
// A copy of t in which the view (select, slice, diagonal or as_strided) holds source's elements. Throws RuntimeError unless source has the
// view's sizes.
Tensor select_scatter(const Tensor& t, const Tensor& source, int64_t dim, int64_t index);
Tensor slice_scatter(const Tensor& t, const Tensor& source, int64_t dim = 0, std::optional<int64_t> start = {},
                     std::optional<int64_t> end = {}, int64_t step = 1);
Tensor diagonal_scatter(const Tensor& t, const Tensor& source, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
Tensor as_strided_scatter(const Tensor& t, const Tensor& source, const Dims& sizes, const Dims& strides,
                          std::optional<int64_t> offset = {});
// diag_embed: matrices, in dimensions dim1 and dim2 of the result, with t's last dimension as diagonal and 0 elsewhere. diagflat: one
// matrix with all elements of t as diagonal.
Tensor diag_embed(const Tensor& t, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);
Tensor diagflat(const Tensor& t, int64_t offset = 0);

// tensor_split along dimension 1 (0 for vectors), 0 and 2. Throws RuntimeError if the dimension does not exist or `sections` does not
// divide it.
std::vector<Tensor> hsplit(const Tensor& t, int64_t sections);
std::vector<Tensor> hsplit(const Tensor& t, const Dims& ends);
std::vector<Tensor> vsplit(const Tensor& t, int64_t sections);
std::vector<Tensor> vsplit(const Tensor& t, const Dims& ends);
std::vector<Tensor> dsplit(const Tensor& t, int64_t sections);
std::vector<Tensor> dsplit(const Tensor& t, const Dims& ends);

// narrow_copy: a copy of narrow(). sum_to_size: sums over dimensions that `sizes` lacks or in which it is 1.
Tensor narrow_copy(const Tensor& t, int64_t dim, int64_t start, int64_t length);
Tensor sum_to_size(const Tensor& t, const Dims& sizes);
// The coordinates, in a tensor of this shape, of flat (row-major) indices: one tensor per dimension. Throws TypeError unless the indices
// are integers, ValueError for negative sizes.
std::vector<Tensor> unravel_index(const Tensor& indices, const Dims& shape);
// nonzero() truncated or padded to `size` rows.
Tensor nonzero_static(const Tensor& t, int64_t size, int64_t fill_value = -1);
// The p-norm over all dimensions except one, which is kept (the others have size 1); over all dimensions if dim is -1.
Tensor norm_except_dim(const Tensor& t, double p = 2, int64_t dim = 0);
// beta * c + alpha * (the sum over a batch of matrix products).
Tensor addbmm(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);

// The numerical gradient along dimensions (default: all) of a function sampled at regular steps or at coordinates. spacing: a scalar for
// all dimensions, or for each a scalar or a vector of coordinates. Central differences inside, one-sided ones of edge_order 1 or 2 at the
// ends. Throws RuntimeError if a dimension has no more than edge_order elements.
std::vector<Tensor> gradient(const Tensor& t, const Scalar& spacing = 1, const OptionalDims& dims = {}, int64_t edge_order = 1);
std::vector<Tensor> gradient(const Tensor& t, const std::vector<Operand>& spacing, const OptionalDims& dims = {}, int64_t edge_order = 1);

}  // namespace naru
