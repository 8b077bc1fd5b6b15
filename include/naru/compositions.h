// Functions that are a few others of naru/ops.h, as PyTorch has them; gradients follow of themselves. Each throws what the functions it is made
// of throw, and what is said here. Most are methods of Tensor, too; those whose names end in an underscore write to their first tensor.
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
// a + alpha * b, a - alpha * b, b - alpha * a. RuntimeError where alpha is of a higher category than the result: a fraction for integers, a
// bool for numbers.
Tensor add(const Operand& a, const Operand& b, Scalar alpha);
Tensor sub(const Operand& a, const Operand& b, Scalar alpha);
Tensor rsub(const Tensor& a, const Operand& b, Scalar alpha = 1);
void add_(const Tensor& t, const Operand& b, Scalar alpha = 1);
void sub_(const Tensor& t, const Operand& b, Scalar alpha = 1);
// a / b, rounded towards zero ("trunc") or down ("floor"). RuntimeError for another mode.
Tensor div(const Operand& a, const Operand& b, std::optional<std::string_view> rounding_mode);
void div_(const Tensor& t, const Operand& b, std::optional<std::string_view> rounding_mode = {});
// t + value * a * b and t + value * a / b, in the type that all three promote to. RuntimeError for a division of integers.
Tensor addcmul(const Tensor& t, const Tensor& a, const Tensor& b, Scalar value = 1);
Tensor addcdiv(const Tensor& t, const Tensor& a, const Tensor& b, Scalar value = 1);
void addcmul_(const Tensor& t, const Tensor& a, const Tensor& b, Scalar value = 1);
void addcdiv_(const Tensor& t, const Tensor& a, const Tensor& b, Scalar value = 1);
// start + weight * (end - start). RuntimeError where their types differ (a number counts as of any).
Tensor lerp(const Tensor& start, const Tensor& end, const Operand& weight);
void lerp_(const Tensor& start, const Tensor& end, const Operand& weight);
// t limited to [low, high], either of which may be missing (RuntimeError where both are). A limit that is a tensor shares the gradient where
// it is met, as in maximum and minimum.
Tensor clamp(const Tensor& t, const std::optional<Operand>& low, const std::optional<Operand>& high = {});
Tensor clamp_min(const Tensor& t, const Tensor& low);
Tensor clamp_max(const Tensor& t, const Tensor& high);
void clamp_(const Tensor& t, const std::optional<Operand>& low, const std::optional<Operand>& high = {});

// --- elementwise ----------------------------------------------------------------------------------------------------------------------
// The nearest number with so many decimals; of two, the one whose last digit is even. Negative: tens, hundreds ...
Tensor round(const Tensor& t, int64_t decimals);
void round_(const Tensor& t, int64_t decimals);
// The power, computed in float64.
Tensor float_power(const Operand& base, const Operand& exponent);
Tensor rad2deg(const Tensor& t);
Tensor deg2rad(const Tensor& t);
// log(t / (1 - t)), of t limited to [eps, 1 - eps] where eps is given.
Tensor logit(const Tensor& t, std::optional<double> eps = {});
// NaN and infinities replaced; infinities by the type's greatest and least number unless others are given. Integers are copied.
Tensor nan_to_num(const Tensor& t, double nan = 0, std::optional<double> posinf = {}, std::optional<double> neginf = {});
// 0 below 0, 1 above, and `at_zero` at 0. RuntimeError where the types differ.
Tensor heaviside(const Tensor& t, const Tensor& at_zero);
// gelu by its own formula ("none") or by that with tanh ("tanh"). RuntimeError for other words.
Tensor gelu(const Tensor& t, std::string_view approximate);

// --- reducing -------------------------------------------------------------------------------------------------------------------------
// The lower median of all elements; NaN where one is NaN, and of no elements of a floating-point type.
Tensor median(const Tensor& t);
// (values, indices) along a dimension, which must not be empty (IndexError).
std::pair<Tensor, Tensor> median(const Tensor& t, int64_t dim, bool keepdim = false);
// Sum and mean of those elements that are not NaN.
Tensor nansum(const Tensor& t, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
Tensor nanmean(const Tensor& t, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
// (standard deviation, mean)
std::pair<Tensor, Tensor> std_mean(const Tensor& t, const OptionalDims& dims = {}, double correction = 1, bool keepdim = false);
// (least, greatest), of all elements or along a dimension.
std::pair<Tensor, Tensor> aminmax(const Tensor& t, std::optional<int64_t> dim = {}, bool keepdim = false);
// The sum of a matrix's diagonal.
Tensor trace(const Tensor& t);
// Whether the one element is not 0. RuntimeError unless there is exactly one.
bool is_nonzero(const Tensor& t);
// The elements at shares q of the way through the sorted ones: of all of them, or along a dimension. interpolation, for places between two
// elements: "linear", "lower", "higher", "midpoint" or "nearest". q: a number, or a tensor of one dimension at most, whose results are stacked in
// front. RuntimeError for integers, for no elements, for q outside [0, 1] and for other words.
Tensor quantile(const Tensor& t, const Operand& q, std::optional<int64_t> dim = {}, bool keepdim = false,
                std::string_view interpolation = "linear");
// (values, indices) of the k-th least elements, k from 1. RuntimeError where k is out of range.
std::pair<Tensor, Tensor> kthvalue(const Tensor& t, int64_t k, int64_t dim = -1, bool keepdim = false);
// How many elements lie in each of `bins` equal parts of [low, high]; of the elements' own range where both are 0. Of t's type. RuntimeError for
// a range that is not finite or runs backwards, and for bins < 1.
Tensor histc(const Tensor& t, int64_t bins = 100, double low = 0, double high = 0);
// The sums of the weights of each number in t (see bincount); float64 unless the weights are float32.
Tensor bincount(const Tensor& t, const Tensor& weights, int64_t minlength = 0);
// The distinct slices along a dimension in order, each slice's place among them, how often each occurs.
std::tuple<Tensor, Tensor, Tensor> unique(const Tensor& t, int64_t dim);

// --- searching ------------------------------------------------------------------------------------------------------------------------
// Where each value belongs in the sorted last dimension of `sorted`: before equal ones, or behind them with right (or side "right"). int64, or
// int32. sorter: the order that sorts `sorted`, where it is not. RuntimeError for other sides.
Tensor searchsorted(const Tensor& sorted, const Operand& values, bool out_int32 = false, bool right = false,
                    std::optional<std::string_view> side = {}, const Tensor& sorter = {});
// The same among `boundaries`, of one dimension.
Tensor bucketize(const Tensor& values, const Tensor& boundaries, bool out_int32 = false, bool right = false);
// Whether each element is one of `tests` (is none, with invert). TypeError for numbers alone.
Tensor isin(const Operand& elements, const Operand& tests, bool invert = false);

// --- vectors --------------------------------------------------------------------------------------------------------------------------
// The p-norm of a - b.
Tensor dist(const Tensor& a, const Tensor& b, double p = 2);
// (..., n, m): the p-norm distances of the rows (..., n, d) to the rows (..., m, d).
// compute_mode: of p = 2, by products (where one side has more than 25 rows), as PyTorch names it: "use_mm_for_euclid_dist_if_necessary",
// "use_mm_for_euclid_dist" or "donot_use_mm_for_euclid_dist" (ValueError for others).
Tensor cdist(const Tensor& a, const Tensor& b, double p = 2, std::string_view compute_mode = "use_mm_for_euclid_dist_if_necessary");
// (n (n - 1) / 2): the p-norm distances of each two of the rows (n, d), p >= 0, in the order (0, 1), (0, 2) ... (1, 2) ... RuntimeError for other ranks
// and types.
Tensor pdist(const Tensor& t, double p = 2);
// The cross product along a dimension of size 3: the first such one unless named.
Tensor cross(const Tensor& a, const Tensor& b, std::optional<int64_t> dim = {});
// Sums of products along the last dimension.
Tensor inner(const Tensor& a, const Tensor& b);
// The Kronecker product.
Tensor kron(const Tensor& a, const Tensor& b);
// Differences of neighbours along a dimension, n times over, of t between `prepend` and `append` where these are defined.
Tensor diff(const Tensor& t, int64_t n = 1, int64_t dim = -1, const Tensor& prepend = {}, const Tensor& append = {});
// The integral along a dimension by the trapezoidal rule, over steps of dx or over places x.
Tensor trapezoid(const Tensor& y, const Operand& dx = 1, int64_t dim = -1);
Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1);
// beta * c + alpha * (matrix times vector), and the same for batches of matrices (see addmm).
Tensor addmv(const Tensor& c, const Tensor& matrix, const Tensor& vector, Scalar beta = 1, Scalar alpha = 1);
Tensor baddbmm(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);

// --- shapes ---------------------------------------------------------------------------------------------------------------------------
// Tensors side by side: along dimension 1 (vectors along 0); above each other (vectors count as rows); behind each other, along dimension 2;
// vectors as columns.
Tensor hstack(const std::vector<Tensor>& tensors);
Tensor vstack(const std::vector<Tensor>& tensors);
Tensor dstack(const std::vector<Tensor>& tensors);
Tensor column_stack(const std::vector<Tensor>& tensors);
// So many pieces along a dimension, the first ones larger by one where it does not divide; or pieces that end at the given places, negative ones
// counted from the end. RuntimeError for less than one piece.
std::vector<Tensor> tensor_split(const Tensor& t, int64_t sections, int64_t dim = 0);
std::vector<Tensor> tensor_split(const Tensor& t, const Dims& ends, int64_t dim = 0);
// `ends`: a vector of int64 on cpu, or a number of pieces without dimensions.
std::vector<Tensor> tensor_split(const Tensor& t, const Tensor& ends, int64_t dim = 0);
// Copies one behind the other, `times` along each dimension; missing leading counts are 1.
Tensor tile(const Tensor& t, const Dims& times);
// Each element (place of a dimension) that many times in a row; a tensor has one count for all or one for each. RuntimeError for negative counts.
// output_size: the size that the dimension gets, where it is known; RuntimeError where it is another.
Tensor repeat_interleave(const Tensor& t, int64_t repeats, std::optional<int64_t> dim = {}, std::optional<int64_t> output_size = {});
Tensor repeat_interleave(const Tensor& t, const Tensor& repeats, std::optional<int64_t> dim = {}, std::optional<int64_t> output_size = {});
// The numbers of the places, each as often as `repeats` says.
Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> output_size = {});
// Without those of the dimensions that are of size 1.
Tensor squeeze(const Tensor& t, const Dims& dims);
// Dimensions moved to other places; the others keep their order. RuntimeError where one is named twice.
Tensor movedim(const Tensor& t, const Dims& from, const Dims& to);
// The dimensions in reverse order; the last two exchanged; the same two with the elements conjugated: of a matrix,
// and of matrices. A tensor without dimensions is itself, with a warning (but
// for numpy_T); RuntimeError for other ranks.
Tensor numpy_T(const Tensor& t);
Tensor mT(const Tensor& t);
Tensor matrix_H(const Tensor& t);
Tensor mH(const Tensor& t);
// Turned by 90 degrees k times, from the first of two dimensions towards the second.
Tensor rot90(const Tensor& t, int64_t k = 1, const Dims& dims = {0, 1});
// The diagonal of a matrix (a copy), or a matrix with this diagonal. RuntimeError for other ranks.
Tensor diag(const Tensor& t, int64_t diagonal = 0);
// (2, n), rows and columns of a triangle's elements in row-major order.
Tensor tril_indices(int64_t rows, int64_t columns, int64_t offset = 0, const Options& options = {});
Tensor triu_indices(int64_t rows, int64_t columns, int64_t offset = 0, const Options& options = {});

// --- the tensor itself takes another geometry -----------------------------------------------------------------------------------------
// RuntimeError for a tensor that requires grad: its history would be lost.
void t_(const Tensor& t);
void transpose_(const Tensor& t, int64_t a, int64_t b);
void unsqueeze_(const Tensor& t, int64_t dim);
void squeeze_(const Tensor& t);
void squeeze_(const Tensor& t, int64_t dim);
void as_strided_(const Tensor& t, const Dims& sizes, const Dims& strides, int64_t offset);
// The elements of the storage stay where they are; what is added is 0.
void resize_(const Tensor& t, const Dims& sizes, std::optional<MemoryFormat> format = {});
// To the model's sizes; Preserve: in its format.
void resize_as_(const Tensor& t, const Tensor& model, std::optional<MemoryFormat> format = {});

// t takes over the elements of `from`, of its type: their memory, sizes and strides. RuntimeError where t requires grad, but under NoGrad.
void set_(const Tensor& t, const Tensor& from);
// Moves the elements into memory that processes forked from here on share; memory of devices counts as shared. An array that had the memory too
// keeps it as it was: what is written from then on it does not see.
void share_memory_(const Tensor& t);
bool is_shared(const Tensor& t);
// The open file behind memory that share_memory_ made, by which another process can map it; -1 where there is none. The tensor owns it.
int shared_file(const Tensor& t);
// A uint8 tensor over so many bytes of such a file, which it owns from now on.
Tensor tensor_of_shared_file(int file, int64_t bytes);

// --- indexing -------------------------------------------------------------------------------------------------------------------------
// gather, where negative positions count from the end and the other dimensions broadcast; without dim in the flattened tensor. RuntimeError where
// the numbers of dimensions differ.
Tensor take_along_dim(const Tensor& t, const Tensor& indices, std::optional<int64_t> dim = {});
// The value at the places `index` (int32 or int64, one dimension at most) of a dimension; in a copy, or in t.
Tensor index_fill(const Tensor& t, int64_t dim, const Tensor& index, const Operand& value);
void index_fill_(const Tensor& t, int64_t dim, const Tensor& index, const Operand& value);
// The slices of `source` at the places `index` (int64) of a dimension. Types are equal, and so are the other sizes.
Tensor index_copy(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source);
void index_copy_(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source);
// A copy with alpha * source added at the places `index` of a dimension.
Tensor index_add(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha = 1);
// A copy with t[indices] = value, or += value.
Tensor index_put(const Tensor& t, std::span<const Index> indices, const Operand& value, bool accumulate = false);
// The elements of `source`, in order, where the mask is true. RuntimeError where there are too few.
void masked_scatter_(const Tensor& t, const Tensor& mask, const Tensor& source);
// The positions of elements that are not 0, one tensor for each dimension (one for a tensor without dimensions).
std::vector<Tensor> nonzero_numpy(const Tensor& t);
// A copy with one value everywhere.
Tensor fill(const Tensor& t, const Operand& value);
// Writes the value to the diagonal; with wrap, of a tall matrix, again behind each row without one.
void fill_diagonal_(const Tensor& t, const Operand& value, bool wrap = false);
// The lower and upper triangles, and the cumulative sums, in place.
void tril_(const Tensor& t, int64_t diagonal = 0);
void triu_(const Tensor& t, int64_t diagonal = 0);
void cumsum_(const Tensor& t, int64_t dim);

// --- neural networks ------------------------------------------------------------------------------------------------------------------
// The cosine of the angle between a and b along a dimension; each of their lengths counts as at least eps.
Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim = 1, double eps = 1e-8);
void dropout_(const Tensor& t, double p = 0.5, bool training = true);
// t where it is positive, else weight * t. weight: one element, or one for each channel (dimension 1; RuntimeError for another number).
Tensor prelu(const Tensor& t, const Tensor& weight);
// out[..., k] = a (..., I) times weight[k] (K, I, J) times b (..., J), plus bias (K) where it is defined. RuntimeError for other shapes.
Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight, const Tensor& bias = {});
// Sums of products over dimensions of a and b named in pairs; over the last of a and the first of b. Free dimensions of a come first.
Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& dims_a, const Dims& dims_b);
Tensor tensordot(const Tensor& a, const Tensor& b, int64_t dims = 2);
// d² / 2 where d = |input - target| <= delta, else delta (d - delta / 2). RuntimeError for delta <= 0.
Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean, double delta = 1);
// target (log(target) - input), of logarithms of probabilities (the target's, too, with log_target).
Tensor kl_div(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean, bool log_target = false);
// exp(input) - target input; with log_input false input - target log(input + eps). full adds Stirling's formula for log(target!).
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
// max(0, |anchor - positive| - |anchor - negative| + margin), p-norms over the last dimension; swap takes |positive - negative| where that is
// less. ValueError for margin <= 0.
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin = 1, double p = 2,
                           double eps = 1e-6, bool swap = false, Reduction reduction = Reduction::Mean);

}  // namespace naru
