// The arithmetic of optimizers that go parameter by parameter, for both languages: p, its gradient g (with its sign and weight decay in it), and the
// state, which is written in place. lr and its like are numbers. SGD and Adam, whose step is one kernel, are in naru/ops.h.
#pragma once

#include "naru/tensor.h"

namespace naru::optim {

struct RmspropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
};
// v = alpha v + (1 - alpha) g²; p -= lr g / (sqrt(v) + eps). centered: the running mean of g, squared, is subtracted from v. momentum: steps are summed up
// first. momentum_buffer and grad_avg may be undefined where they are not used.
void rmsprop_step(Tensor p, const Tensor& g, Tensor square_avg, Tensor momentum_buffer, Tensor grad_avg, const RmspropOptions& o);

struct AdagradOptions {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;
};
// s += g²; p -= lr / (1 + (step - 1) lr_decay) g / (sqrt(s) + eps)
void adagrad_step(Tensor p, const Tensor& g, Tensor sum, int64_t step, const AdagradOptions& o);

struct AdadeltaOptions {
  double lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0;
  bool maximize = false;
};
// v = rho v + (1 - rho) g²; d = sqrt(u + eps) / sqrt(v + eps) g; u = rho u + (1 - rho) d²; p -= lr d
void adadelta_step(Tensor p, const Tensor& g, Tensor square_avg, Tensor acc_delta, const AdadeltaOptions& o);

struct AdamaxOptions {
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool maximize = false;
};
// Adam with the largest decayed gradient in place of the root mean square.
void adamax_step(Tensor p, const Tensor& g, Tensor exp_avg, Tensor exp_inf, int64_t step, const AdamaxOptions& o);

struct NadamOptions {
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3;
  bool decoupled = false, maximize = false;
};
// Adam with Nesterov's momentum. mu_product: the product of all mu so far, this step's included; next_mu gives mu, which is made of `step`.
double nadam_mu(int64_t step, const NadamOptions& o);
void nadam_step(Tensor p, const Tensor& g, Tensor exp_avg, Tensor exp_avg_sq, double mu_product, int64_t step, const NadamOptions& o);

}  // namespace naru::optim
