// The C++ parts of torch.nn.functional, nn.init, nn.utils and the simple optimizers.
#include "naru/nn/functional.h"

#include "naru/nn/init.h"
#include "naru/nn/utils.h"
#include "naru/optim/steps.h"
#include "object/function.h"
#include "object/tensor_object.h"
#include "ops/nn/update_batch.h"

namespace naru::py {
namespace {

namespace F = nn::functional;
namespace init = nn::init;
using List = std::vector<Tensor>;

void define_activation_functions() {
  def(kFunction, "_celu", "input, alpha", "x where positive, else alpha (exp(x / alpha) - 1).",
      [](const Tensor& x, double alpha) { return F::celu(x, alpha); });
  def(kFunction, "_selu", "input", "Scaled elu.", [](const Tensor& x) { return F::selu(x); });
  def(kFunction, "_hardtanh", "input, min_val, max_val", "x held between the limits.",
      [](const Tensor& x, double low, double high) { return F::hardtanh(x, low, high); });
  def(kFunction, "_hardshrink", "input, lambd, *, out=None", "x where |x| > lambd, else 0.",
      [](const Tensor& x, double lambd) { return F::hardshrink(x, lambd); });
  def(kFunction, "_softshrink", "input, lambd, *, out=None", "x moved towards 0 by lambd.",
      [](const Tensor& x, double lambd) { return F::softshrink(x, lambd); });
  def(kFunction, "_tanhshrink", "input", "x - tanh(x).", [](const Tensor& x) { return F::tanhshrink(x); });
  def(kFunction, "_glu", "input, dim", "The first half times the sigmoid of the second.",
      [](const Tensor& x, int64_t dim) { return F::glu(x, dim); });
  def(kFunction, "_gumbel_softmax", "logits, tau, hard, dim", "A sample of the Gumbel-softmax distribution.",
      [](const Tensor& x, double tau, bool hard, int64_t dim) { return F::gumbel_softmax(x, tau, hard, dim); });
  def(kFunction, "_feature_dropout", "input, p, training", "Zeroes whole channels.",
      [](const Tensor& x, double p, bool training) { return F::feature_dropout(x, p, training); });
  def(kFunction, "rrelu", "input, lower=0.125, upper=0.3333333333333333, training=False, generator=None",
      "Negative numbers times a slope, which is drawn for each in training, else the mean of the limits.",
      [](const Tensor& x, double lower, double upper, bool training, Generator* g) { return F::rrelu(x, lower, upper, training, g); });
  def(kFunction, "rrelu_", "input, lower=0.125, upper=0.3333333333333333, training=False, generator=None", "rrelu in place.",
      [](const Tensor& x, double lower, double upper, bool training, Generator* g) {
        F::rrelu_(x, lower, upper, training, g);
        return Self();
      });
  def(kFunction, "_feature_alpha_dropout", "input, p, training", "alpha_dropout of whole channels.",
      [](const Tensor& x, double p, bool training) { return F::feature_alpha_dropout(x, p, training); });
  def(kFunction, "_alpha_dropout", "input, p, training", "Dropout that keeps mean and variance of a SELU network.",
      [](const Tensor& x, double p, bool training) { return F::alpha_dropout(x, p, training); });
}

void define_functions() {
  def(kFunction, "_embedding", "input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse",
      "The rows of weight that the integers name.",
      [](const Tensor& index, const Tensor& weight, std::optional<int64_t> padding, std::optional<double> max_norm, double norm_type,
         bool by_frequency, bool sparse) { return F::embedding(index, weight, padding, max_norm, norm_type, by_frequency, sparse); });
  def(kFunction, "_embedding_bag",
      "input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode, per_sample_weights, include_last_offset, padding_idx, sparse",
      "Sums, means or maxima of rows of weight.",
      [](const Tensor& index, const Tensor& weight, const OptTensor& offsets, std::optional<double> max_norm, double norm_type,
         bool by_frequency, std::string_view mode, const OptTensor& weights, bool include_last, std::optional<int64_t> padding,
         bool sparse) {
        return F::embedding_bag(
            index, weight,
            {or_undefined(offsets), mode, or_undefined(weights), include_last, padding, max_norm, norm_type, by_frequency, sparse});
      });
  def(kFunction, "_grouped_mm", "mat_a, mat_b, offs", "Products of groups.",
      [](const Tensor& a, const Tensor& b, const OptTensor& offs) { return F::grouped_mm(a, b, or_undefined(offs)); });
  def(kFunction, "_rms_norm", "input, normalized_shape, weight, eps", "x / sqrt(mean(x²) + eps) * weight.",
      [](const Tensor& x, const Dims& shape, const OptTensor& w, std::optional<double> eps) {
        return F::rms_norm(x, shape, or_undefined(w), eps);
      });
  def(kFunction, "_normalize", "input, p, dim, eps", "x divided by its p-norm.",
      [](const Tensor& x, double p, int64_t dim, double eps) { return F::normalize(x, p, dim, eps); });
  def(kFunction, "_pairwise_distance", "x1, x2, p, eps, keepdim", "The p-norm of x1 - x2 + eps.",
      [](const Tensor& a, const Tensor& b, double p, double eps, bool keepdim) { return F::pairwise_distance(a, b, p, eps, keepdim); });
  def(kFunction, "_gaussian_nll_loss", "input, target, var, full, eps, reduction", "(log(var) + (input - target)² / var) / 2.",
      [](const Tensor& x, const Tensor& y, const Tensor& var, bool full, double eps, Reduction r) {
        return F::gaussian_nll_loss(x, y, var, full, eps, r);
      });
  def(kFunction, "_kl_div", "input, target, reduction, log_target", "target (log(target) - input).",
      [](const Tensor& x, const Tensor& y, std::string_view reduction, bool log_target) { return F::kl_div(x, y, reduction, log_target); });
}

void define_class_losses() {
  def(kFunction, "multi_margin_loss", "input, target, p=1, margin=1.0, weight=None, reduction='mean'",
      "The mean over other classes of max(0, margin - input[target] + input)^p.",
      [](const Tensor& x, const Tensor& y, int64_t p, double margin, const OptTensor& w, Reduction r) {
        return multi_margin_loss(x, y, p, margin, or_undefined(w), r);
      });
  def(kFunction, "multilabel_margin_loss", "input, target, reduction='mean'", "The same with several targets for each input.",
      [](const Tensor& x, const Tensor& y, Reduction r) { return multilabel_margin_loss(x, y, r); });
  def(kFunction, "_multilabel_soft_margin_loss", "input, target, weight, reduction",
      "Binary cross entropy of logits, the mean over classes.", [](const Tensor& x, const Tensor& y, const OptTensor& w, Reduction r) {
        return multilabel_soft_margin_loss(x, y, or_undefined(w), r);
      });
  def(kFunction, "_triplet_margin_of_distances", "positive, negative, between, margin, reduction", "max(0, positive - negative + margin).",
      [](const Tensor& near, const Tensor& far, const OptTensor& between, double margin, Reduction r) {
        return F::triplet_margin_of_distances(near, far, or_undefined(between), margin, r);
      });
  def(kFunction, "_ctc_loss", "log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity",
      "Minus the log probability of the targets in all their alignments.",
      [](const Tensor& x, const Tensor& y, const Tensor& inputs, const Tensor& targets, int64_t blank, Reduction r, bool zero_infinity) {
        return ctc_loss(x, y, inputs, targets, blank, r, zero_infinity);
      });
  def(kFunction, "_linear_cross_entropy", "input, linear_weight, target, linear_bias, weight, reduction, ignore_index, label_smoothing",
      "The cross entropy of what a linear layer gives.",
      [](const Tensor& x, const Tensor& w, const Tensor& y, const OptTensor& bias, const OptTensor& weight, Reduction r,
         std::optional<int64_t> ignore, double smoothing) {
        return F::linear_cross_entropy(x, w, y, {or_undefined(bias), or_undefined(weight), r, ignore, smoothing});
      });
  def(kFunction, "conv_tbc", "input, weight, bias, pad=0", "Convolution along time, which comes first: (T, N, C) with weight (k, C, O).",
      [](const Tensor& x, const Tensor& w, const Tensor& b, int64_t pad) { return conv_tbc(x, w, b, pad); });
}

void define_init() {
  def(kFunction, "_calculate_gain", "nonlinearity, param", "The factor of weights before a function.",
      [](std::string_view name, std::optional<double> param) { return init::calculate_gain(name, param); });
  def(kFunction, "_trunc_normal_", "tensor, mean, std, a, b, generator=None", "Normal numbers within [a, b].",
      [](const Tensor& t, double mean, double std, double a, double b, Generator* g) {
        init::trunc_normal_(t, mean, std, a, b, g);
        return Self();
      });
  def(kFunction, "_eye_", "tensor", "The identity.", [](const Tensor& t) {
    init::eye_(t);
    return Self();
  });
  def(kFunction, "_dirac_", "tensor, groups", "A convolution that passes its channels through.", [](const Tensor& t, int64_t groups) {
    init::dirac_(t, groups);
    return Self();
  });
  def(kFunction, "_orthogonal_", "tensor, gain, generator=None", "A (semi-)orthogonal matrix.",
      [](const Tensor& t, double gain, Generator* g) {
        init::orthogonal_(t, gain, g);
        return Self();
      });
  def(kFunction, "_sparse_", "tensor, sparsity, std, generator=None", "Normal numbers with a share of zeros.",
      [](const Tensor& t, double sparsity, double std, Generator* g) {
        init::sparse_(t, sparsity, std, g);
        return Self();
      });
}

void define_utils() {
  namespace U = nn::utils;
  def(kFunction, "_get_total_norm", "tensors, norm_type, error_if_nonfinite", "The norm of all tensors as one vector.",
      [](const List& list, double p, bool strict) { return U::get_total_norm(list, p, strict); });
  def(kFunction, "_multiply_each", "tensors, factor", "Multiplies each tensor in place by a tensor of one element, without recording it.",
      [](const List& list, const Tensor& factor) { ops::multiply_each(list, factor); });
  def(kFunction, "_parameters_to_vector", "parameters", "The elements of all, one after the other.",
      [](const List& list) { return U::parameters_to_vector(list); });
  def(kFunction, "_fuse_bn", "weight, bias, mean, variance, bn_weight, bn_bias, eps, transpose",
      "(weight, bias) of a layer with the batch norm behind it taken in.",
      [](const Tensor& w, const OptTensor& b, const Tensor& mean, const Tensor& variance, const OptTensor& bn_w, const OptTensor& bn_b,
         double eps, bool transpose) {
        return U::fuse_conv_bn_weights(w, or_undefined(b), {mean, variance, or_undefined(bn_w), or_undefined(bn_b), eps}, transpose);
      });
  def(kFunction, "_pad_sequence", "sequences, batch_first, padding_value, padding_side", "Sequences of several lengths in one tensor.",
      [](const List& list, bool batch_first, double value, std::string_view side) {
        return U::rnn::pad_sequence(list, batch_first, value, side);
      });
}

// Each updates one parameter; the gradient is already negated if maximizing, and includes weight decay.
void define_simple_steps() {
  def(kFunction, "_rmsprop_step", "param, grad, square_avg, momentum_buffer, grad_avg, lr, alpha, eps, momentum", "One step of RMSprop.",
      [](const Tensor& p, const Tensor& g, const Tensor& square, const OptTensor& buffer, const OptTensor& mean, double lr, double alpha,
         double eps, double momentum) {
        const bool centered = mean.has_value();
        optim::rmsprop_step(p, g, square, or_undefined(buffer), or_undefined(mean),
                            {.lr = lr, .alpha = alpha, .eps = eps, .momentum = momentum, .centered = centered});
      });
  def(kFunction, "_adagrad_step", "param, grad, sum, step, lr, lr_decay, eps", "One step of Adagrad.",
      [](const Tensor& p, const Tensor& g, const Tensor& sum, int64_t step, double lr, double lr_decay, double eps) {
        optim::adagrad_step(p, g, sum, step, {.lr = lr, .lr_decay = lr_decay, .eps = eps});
      });
  def(kFunction, "_adadelta_step", "param, grad, square_avg, acc_delta, lr, rho, eps", "One step of Adadelta.",
      [](const Tensor& p, const Tensor& g, const Tensor& square, const Tensor& delta, double lr, double rho, double eps) {
        optim::adadelta_step(p, g, square, delta, {.lr = lr, .rho = rho, .eps = eps});
      });
  def(kFunction, "_adamax_step", "param, grad, exp_avg, exp_inf, step, lr, beta1, beta2, eps", "One step of Adamax.",
      [](const Tensor& p, const Tensor& g, const Tensor& mean, const Tensor& largest, int64_t step, double lr, double beta1, double beta2,
         double eps) { optim::adamax_step(p, g, mean, largest, step, {.lr = lr, .beta1 = beta1, .beta2 = beta2, .eps = eps}); });
  def(kFunction, "_nadam_mu", "step, beta1, momentum_decay", "NAdam's momentum at a step.",
      [](int64_t step, double beta1, double decay) { return optim::nadam_mu(step, {.beta1 = beta1, .momentum_decay = decay}); });
  def(kFunction, "_nadam_step",
      "param, grad, exp_avg, exp_avg_sq, mu_product, step, lr, beta1, beta2, eps, weight_decay, momentum_decay, decoupled",
      "One step of NAdam.",
      [](const Tensor& p, const Tensor& g, const Tensor& mean, const Tensor& square, double product, int64_t step, double lr, double beta1,
         double beta2, double eps, double weight_decay, double decay, bool decoupled) {
        optim::nadam_step(p, g, mean, square, product, step, {lr, beta1, beta2, eps, weight_decay, decay, decoupled, false});
      });
}

}  // namespace

void define_functional() {
  define_activation_functions();
  define_functions();
  define_class_losses();
  define_init();
  define_utils();
  define_simple_steps();
}

}  // namespace naru::py
