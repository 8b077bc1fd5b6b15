// What torch.nn.functional, nn.init, nn.utils and the simple optimizers have of C++'s namespaces of these names.
#include "naru/nn_functional.h"

#include "function.h"
#include "naru/nn_init.h"
#include "naru/nn_utils.h"
#include "naru/optim_steps.h"
#include "tensor_object.h"

namespace naru::py {
namespace {

namespace F = nn::functional;
namespace init = nn::init;
using List = std::vector<Tensor>;
using OptTensor = std::optional<Tensor>;

Tensor or_undefined(const OptTensor& t) { return t.value_or(Tensor()); }

void define_activations() {
  def(kFunction, "_celu", "input, alpha", "x where positive, else alpha (exp(x / alpha) - 1).",
      [](const Tensor& x, double alpha) { return F::celu(x, alpha); });
  def(kFunction, "_selu", "input", "Scaled elu.", [](const Tensor& x) { return F::selu(x); });
  def(kFunction, "_hardtanh", "input, min_val, max_val", "x held between the limits.",
      [](const Tensor& x, double low, double high) { return F::hardtanh(x, low, high); });
  def(kFunction, "_hardshrink", "input, lambd", "x where |x| > lambd, else 0.",
      [](const Tensor& x, double lambd) { return F::hardshrink(x, lambd); });
  def(kFunction, "_softshrink", "input, lambd", "x moved towards 0 by lambd.",
      [](const Tensor& x, double lambd) { return F::softshrink(x, lambd); });
  def(kFunction, "_tanhshrink", "input", "x - tanh(x).", [](const Tensor& x) { return F::tanhshrink(x); });
  def(kFunction, "_glu", "input, dim", "The first half times the sigmoid of the second.",
      [](const Tensor& x, int64_t dim) { return F::glu(x, dim); });
  def(kFunction, "_gumbel_softmax", "logits, tau, hard, dim", "A sample of the Gumbel-softmax distribution.",
      [](const Tensor& x, double tau, bool hard, int64_t dim) { return F::gumbel_softmax(x, tau, hard, dim); });
  def(kFunction, "_feature_dropout", "input, p, training", "Zeroes whole channels.",
      [](const Tensor& x, double p, bool training) { return F::feature_dropout(x, p, training); });
  def(kFunction, "_alpha_dropout", "input, p, training", "Dropout that keeps mean and variance of a SELU network.",
      [](const Tensor& x, double p, bool training) { return F::alpha_dropout(x, p, training); });
}

void define_functions() {
  def(kFunction, "_embedding", "input, weight, padding_idx, max_norm, norm_type", "The rows of weight that the integers name.",
      [](const Tensor& index, const Tensor& weight, std::optional<int64_t> padding, std::optional<double> max_norm, double norm_type) {
        return F::embedding(index, weight, padding, max_norm, norm_type);
      });
  def(kFunction, "_scaled_dot_product_attention", "query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa",
      "softmax(query keyᵀ scale + mask) value.",
      [](const Tensor& q, const Tensor& k, const Tensor& v, const OptTensor& mask, double p, bool causal, std::optional<double> scale,
         bool gqa) { return F::scaled_dot_product_attention(q, k, v, or_undefined(mask), p, causal, scale, gqa); });
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
  def(kFunction, "_parameters_to_vector", "parameters", "The elements of all, one after the other.",
      [](const List& list) { return U::parameters_to_vector(list); });
  def(kFunction, "_pad_sequence", "sequences, batch_first, padding_value, padding_side", "Sequences of several lengths in one tensor.",
      [](const List& list, bool batch_first, double value, std::string_view side) {
        return U::rnn::pad_sequence(list, batch_first, value, side);
      });
}

// Each for one parameter, whose gradient has its sign and weight decay.
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
  define_activations();
  define_functions();
  define_init();
  define_utils();
  define_simple_steps();
}

}  // namespace naru::py
