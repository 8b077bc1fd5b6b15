// torch.nn.functional: layers and losses as functions, composed of functions of naru/ops.h and similar headers; using-declarations make
// those available here too. Each throws what the functions it calls throw, and what is documented here.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "naru/ops.h"
#include "naru/ops/convolution.h"
#include "naru/ops/functions.h"
#include "naru/ops/losses.h"
#include "naru/ops/norms.h"
#include "naru/ops/pooling.h"
#include "naru/ops/resampling.h"
#include "naru/random.h"
#include "naru/standard.h"

namespace naru::nn::functional {

// --- activations
using naru::gelu;
using naru::hardsigmoid;
using naru::hardswish;
using naru::log_softmax;
using naru::logsigmoid;
using naru::mish;
using naru::prelu;
using naru::relu;
using naru::relu6;
using naru::sigmoid;
using naru::silu;
using naru::softmax;
using naru::softsign;
using naru::tanh;

inline Tensor elu(const Tensor& x, double alpha = 1) { return naru::elu(x, alpha); }
inline Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01) { return naru::leaky_relu(x, negative_slope); }
inline Tensor threshold(const Tensor& x, double threshold, double value) { return naru::threshold(x, threshold, value); }
inline Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20) { return naru::softplus(x, beta, threshold); }
// x where positive, else alpha (exp(x / alpha) - 1). Throws RuntimeError for alpha = 0.
Tensor celu(const Tensor& x, double alpha = 1);
// elu with the constants that preserve mean 0 and variance 1.
Tensor selu(const Tensor& x);
// x clamped to the limits. Throws ValueError if min_val > max_val, NotImplementedError for bool.
Tensor hardtanh(const Tensor& x, double min_val = -1, double max_val = 1);
// hardshrink: x, or 0 where |x| <= lambd. softshrink: x moved towards 0 by lambd; throws RuntimeError if lambd is negative.
Tensor hardshrink(const Tensor& x, double lambd = 0.5);
Tensor softshrink(const Tensor& x, double lambd = 0.5);
// x - tanh(x)
Tensor tanhshrink(const Tensor& x);
// The first half along dim times the sigmoid of the second half. Throws RuntimeError for an odd size.
Tensor glu(const Tensor& x, int64_t dim = -1);
// softmax(-x)
Tensor softmin(const Tensor& x, int64_t dim, std::optional<DType> dtype = {});
// A sample of the Gumbel-softmax distribution. hard: one-hot values with the gradient of the soft ones.
Tensor gumbel_softmax(const Tensor& logits, double tau = 1, bool hard = false, int64_t dim = -1, Generator* generator = nullptr);
// x where positive, else x times a slope between lower and upper: drawn for each element in training, else their mean. Throws RuntimeError
// if lower > upper or a limit is infinite.
Tensor rrelu(const Tensor& x, double lower = 1.0 / 8, double upper = 1.0 / 3, bool training = false, Generator* generator = nullptr);
// The same in place; they return x.
Tensor rrelu_(Tensor x, double lower = 1.0 / 8, double upper = 1.0 / 3, bool training = false, Generator* generator = nullptr);
Tensor relu_(Tensor x);
Tensor elu_(Tensor x, double alpha = 1);
Tensor celu_(Tensor x, double alpha = 1);
Tensor selu_(Tensor x);
Tensor hardtanh_(Tensor x, double min_val = -1, double max_val = 1);
Tensor leaky_relu_(Tensor x, double negative_slope = 0.01);
Tensor threshold_(Tensor x, double threshold, double value);

// --- dropout. Throws ValueError for a probability outside [0, 1]
using naru::dropout;
// Zeroes whole channels: dimension 1 of (N, C, ...); for dropout1d also dimension 0 of (C, L).
Tensor dropout1d(const Tensor& x, double p = 0.5, bool training = true);
Tensor dropout2d(const Tensor& x, double p = 0.5, bool training = true);
Tensor dropout3d(const Tensor& x, double p = 0.5, bool training = true);
Tensor feature_dropout(const Tensor& x, double p = 0.5, bool training = true);
// Preserves the mean and variance of a SELU network's activations; feature_alpha_dropout drops whole channels (RuntimeError below 2
// dimensions).
Tensor alpha_dropout(const Tensor& x, double p = 0.5, bool training = false);
Tensor feature_alpha_dropout(const Tensor& x, double p = 0.5, bool training = false);

// --- linear maps, embeddings
using naru::bilinear;
using naru::conv1d;
using naru::conv2d;
using naru::conv3d;
using naru::conv_tbc;
using naru::conv_transpose1d;
using naru::conv_transpose2d;
using naru::conv_transpose3d;
using naru::linear;
using naru::one_hot;
// Looks up rows of weight (V, D) by integer indices (...). The row padding_idx gets no gradient. max_norm: rows that are looked up and
// whose p-norm is greater are first rescaled in place. scale_grad_by_freq: divides gradients by the number of times the row occurs in
// index. Throws ValueError for a padding_idx out of range.
Tensor embedding(const Tensor& index, const Tensor& weight, std::optional<int64_t> padding_idx = {}, std::optional<double> max_norm = {},
                 double norm_type = 2, bool scale_grad_by_freq = false, bool sparse = false);
struct EmbeddingBagOptions {
  Tensor offsets = {};                      // for a 1-D index: where each bag begins
  std::string_view mode = "mean";           // or "sum", "max"
  Tensor per_sample_weights = {};           // of the index's shape; for "sum" only
  bool include_last_offset = false;         // the last offset is the last bag's end
  std::optional<int64_t> padding_idx = {};  // index to ignore; its row gets no gradient
  std::optional<double> max_norm = {};      // this and the following as in embedding
  double norm_type = 2;
  bool scale_grad_by_freq = false;
  bool sparse = false;  // not for "max"
};
// The sum, mean or maximum of the rows of weight (V, D) in each bag of indices: (bags, D). A bag is a row of index (N, L), or a range of a
// 1-D index between offsets; an empty bag gives 0. Throws ValueError, RuntimeError and NotImplementedError as PyTorch does. "max" with a
// 1-D index: the host reads the length of the longest bag.
Tensor embedding_bag(const Tensor& index, const Tensor& weight, const EmbeddingBagOptions& options = {});
// Matrix products of groups, for any floating-point dtype. Without offs: a (G, M, K), b (G, K, N) -> (G, M, N). Otherwise offs (int32)
// holds the end of each group: among the rows of a (M, K), with b (G, K, N) -> (M, N); among the columns of b (K, N), with a (G, M, K) ->
// (M, N); or along the inner dimension of a (M, K) and b (K, N) -> (G, M, N). Elements past the end of the last group are 0. The host reads
// offs. Throws RuntimeError for other ranks, sizes and dtypes.
Tensor grouped_mm(const Tensor& a, const Tensor& b, const Tensor& offs = {});
// softmax(query keyᵀ scale + mask) value. query (..., L, E), key (..., S, E), value (..., S, Ev). mask: bool (true: attend), or added to
// the scores; a fully masked row gives 0. is_causal: position i attends to positions up to i; can't be combined with a mask (RuntimeError).
// scale: default 1 / sqrt(E). enable_gqa: repeats the heads (dimension -3) of key and value to those of query. Memory is linear in L and S,
// in backward too.
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask = {},
                                    double dropout_p = 0, bool is_causal = false, std::optional<double> scale = {},
                                    bool enable_gqa = false);

// --- normalization
using naru::batch_norm;
using naru::cosine_similarity;
using naru::group_norm;
using naru::instance_norm;
using naru::layer_norm;
using naru::local_response_norm;
using naru::pdist;
using naru::rms_norm;
// x divided by its p-norm along dim; the norm is at least eps.
Tensor normalize(const Tensor& x, double p = 2, int64_t dim = 1, double eps = 1e-12);
// The p-norm of a - b + eps over the last dimension.
Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p = 2, double eps = 1e-6, bool keepdim = false);

// --- pooling
using naru::adaptive_avg_pool1d;
using naru::adaptive_avg_pool2d;
using naru::adaptive_avg_pool3d;
using naru::avg_pool1d;
using naru::avg_pool2d;
using naru::avg_pool3d;
using naru::max_pool1d;
using naru::max_pool2d;
using naru::max_pool3d;
// (values, indices)
using Pair = std::pair<Tensor, Tensor>;
Pair max_pool1d_with_indices(const Tensor& x, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0},
                             const Dims& dilation = {1}, bool ceil_mode = false);
Pair max_pool2d_with_indices(const Tensor& x, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0},
                             const Dims& dilation = {1}, bool ceil_mode = false);
Pair max_pool3d_with_indices(const Tensor& x, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0},
                             const Dims& dilation = {1}, bool ceil_mode = false);
Tensor adaptive_max_pool1d(const Tensor& x, const Dims& output_size);
Tensor adaptive_max_pool2d(const Tensor& x, const Dims& output_size);
Tensor adaptive_max_pool3d(const Tensor& x, const Dims& output_size);
Pair adaptive_max_pool1d_with_indices(const Tensor& x, const Dims& output_size);
Pair adaptive_max_pool2d_with_indices(const Tensor& x, const Dims& output_size);
Pair adaptive_max_pool3d_with_indices(const Tensor& x, const Dims& output_size);
Tensor lp_pool1d(const Tensor& x, double p, const Dims& kernel, const Dims& stride = {}, bool ceil_mode = false);
Tensor lp_pool2d(const Tensor& x, double p, const Dims& kernel, const Dims& stride = {}, bool ceil_mode = false);
Tensor lp_pool3d(const Tensor& x, double p, const Dims& kernel, const Dims& stride = {}, bool ceil_mode = false);
// The output's sizes, or their ratio to the input's. samples (N, C, dimensions) in [0, 1) determine the window positions; drawn if
// undefined.
struct FractionalOptions {
  Dims output_size = {};
  std::vector<double> output_ratio = {};
  Tensor samples = {};
};
Tensor fractional_max_pool2d(const Tensor& x, const Dims& kernel, const FractionalOptions& options);
Tensor fractional_max_pool3d(const Tensor& x, const Dims& kernel, const FractionalOptions& options);
Pair fractional_max_pool2d_with_indices(const Tensor& x, const Dims& kernel, const FractionalOptions& options);
Pair fractional_max_pool3d_with_indices(const Tensor& x, const Dims& kernel, const FractionalOptions& options);
// Zeros, with each element at the index where max pooling found it. output_size: the sizes before pooling, if ambiguous (ValueError if
// impossible).
Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0},
                    const Dims& output_size = {});
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0},
                    const Dims& output_size = {});
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const Dims& kernel, const Dims& stride = {}, const Dims& padding = {0},
                    const Dims& output_size = {});

// --- images
using naru::affine_grid;
using naru::channel_shuffle;
using naru::fold;
using naru::grid_sample;
using naru::pad;
using naru::pixel_shuffle;
using naru::pixel_unshuffle;
using naru::unfold;
struct InterpolateOptions {
  Dims size = {};                         // either this or scale_factor
  std::vector<double> scale_factor = {};  // one for all dimensions, or one per dimension
  std::string_view mode = "nearest";
  std::optional<bool> align_corners = {};
  bool recompute_scale_factor = false;  // use the quotient of the sizes as scale, not the given factor
  bool antialias = false;
};
// Resamples (N, C, d1...): see naru/ops/resampling.h. Throws ValueError unless exactly one of size and scale_factor is given, and for
// options that the mode does not support.
Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

// --- losses
using naru::binary_cross_entropy;
using naru::binary_cross_entropy_with_logits;
using naru::cosine_embedding_loss;
using naru::cross_entropy;
using naru::ctc_loss;
using naru::hinge_embedding_loss;
using naru::huber_loss;
using naru::kl_div;
using naru::l1_loss;
using naru::margin_ranking_loss;
using naru::mse_loss;
using naru::multi_margin_loss;
using naru::multilabel_margin_loss;
using naru::multilabel_soft_margin_loss;
using naru::nll_loss;
using naru::poisson_nll_loss;
using naru::soft_margin_loss;
using naru::triplet_margin_loss;
// reduction: "mean", "sum", "none", or "batchmean", the sum divided by the first size. Throws ValueError for other values.
Tensor kl_div(const Tensor& input, const Tensor& target, std::string_view reduction, bool log_target = false);
// d² / (2 beta) where d = |input - target| < beta, else d - beta / 2; l1_loss for beta = 0. Throws RuntimeError for a negative beta.
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean, double beta = 1);
// (log(var) + (input - target)² / var) / 2. var has input's shape or one value per row, and is at least eps. full: adds log(2π) / 2. Throws
// ValueError for other shapes and negative variances.
Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var, bool full = false, double eps = 1e-6,
                         Reduction reduction = Reduction::Mean);
// max(0, d(anchor, positive) - d(anchor, negative) + margin); d is pairwise_distance by default. swap: uses d(positive, negative) if that
// is smaller than d(anchor, negative). Throws ValueError for margin <= 0, RuntimeError for different ranks.
using Distance = std::function<Tensor(const Tensor&, const Tensor&)>;
Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const Distance& distance = {}, double margin = 1, bool swap = false,
                                         Reduction reduction = Reduction::Mean);
// The same from precomputed distances; an undefined `between` (positive to negative) means no swap.
Tensor triplet_margin_of_distances(const Tensor& positive, const Tensor& negative, const Tensor& between, double margin,
                                   Reduction reduction);
struct LinearCrossEntropyOptions {
  Tensor bias = {};    // (C, d1...)
  Tensor weight = {};  // per class (C)
  Reduction reduction = Reduction::Mean;
  std::optional<int64_t> ignore_index = {};  // default -100; RuntimeError if the target contains probabilities
  double label_smoothing = 0;
};
// cross_entropy of the output of a linear layer: x (N, in) or (in), linear_weight (C, d1..., in), target as in cross_entropy. Throws
// RuntimeError for shapes that do not fit.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& linear_weight, const Tensor& target,
                            const LinearCrossEntropyOptions& options = {});

}  // namespace naru::nn::functional
