// The update formulas of optimizers that update parameter by parameter, used by C++ and Python. g is the gradient of parameter p, negated
// if maximize, with weight decay included; the state tensors are updated in place. lr and other settings are host scalars. SGD and Adam,
// whose step is one kernel, are in naru/ops.h.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "naru/standard.h"
#include "naru/tensor.h"

namespace naru::optim {

struct RmspropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
};
// v = alpha v + (1 - alpha) g²; p -= lr g / (sqrt(v) + eps). centered: subtracts the square of g's running mean from v. momentum:
// accumulates the steps first. momentum_buffer and grad_avg may be undefined if unused.
void rmsprop_step(Tensor p, const Tensor& g, Tensor square_avg, Tensor momentum_buffer, Tensor grad_avg, const RmspropOptions& o);

struct AdagradOptions {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;
};
// s += g²; p -= lr / (1 + (step - 1) lr_decay) g / (sqrt(s) + eps). A sparse gradient updates only where it has indices.
void adagrad_step(Tensor p, const Tensor& g, Tensor sum, int64_t step, const AdagradOptions& o);

struct SparseAdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool maximize = false;
};
// Adam on the rows for which the sparse gradient has indices; the other rows' moments stay unchanged. Throws RuntimeError for a dense
// gradient.
void sparse_adam_step(Tensor p, const Tensor& g, Tensor exp_avg, Tensor exp_avg_sq, int64_t step, const SparseAdamOptions& o);

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
// Adam with the maximum of decayed gradients instead of the root mean square.
void adamax_step(Tensor p, const Tensor& g, Tensor exp_avg, Tensor exp_inf, int64_t step, const AdamaxOptions& o);

struct NadamOptions {
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3;
  bool decoupled = false, maximize = false;
};
// Adam with Nesterov momentum. mu_product: the product of all mu, including this step's; nadam_mu(step) computes mu.
double nadam_mu(int64_t step, const NadamOptions& o);
void nadam_step(Tensor p, const Tensor& g, Tensor exp_avg, Tensor exp_avg_sq, double mu_product, int64_t step, const NadamOptions& o);

struct RadamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false, maximize = false;
};
// Adam with steps rectified by the number of gradients that v has seen; plain momentum while there are too few.
void radam_step(Tensor p, const Tensor& g, Tensor exp_avg, Tensor exp_avg_sq, int64_t step, const RadamOptions& o);

struct RpropOptions {
  double lr = 1e-2, eta_minus = 0.5, eta_plus = 1.2, step_min = 1e-6, step_max = 50;
  bool maximize = false;
};
// A step size per element, which grows by eta_plus while the gradient keeps its sign and shrinks by eta_minus when the sign flips; then the
// element skips one step.
void rprop_step(Tensor p, const Tensor& g, Tensor prev, Tensor step_size, const RpropOptions& o);

struct AsgdOptions {
  double lr = 1e-2, lambd = 1e-4, alpha = 0.75, t0 = 1e6, weight_decay = 0;
  bool maximize = false;
};
// p = (1 - lambd eta) p - eta g; ax is the mean of p since step t0. eta and mu are this step's values; asgd_eta and asgd_mu compute those
// for the step after `step`.
void asgd_step(Tensor p, const Tensor& g, Tensor ax, double eta, double mu, const AsgdOptions& o);
double asgd_eta(int64_t step, const AsgdOptions& o);
double asgd_mu(int64_t step, const AsgdOptions& o);

struct AdafactorOptions {
  double lr = 1e-2, beta2_decay = -0.8, eps2 = 1e-3, d = 1, weight_decay = 0;
  std::optional<double> eps1 = {};  // default: the dtype's epsilon
  bool maximize = false;
};
// The mean square of gradients is factored into a row and a column per matrix (row_var (..., n, 1), col_var (..., 1, m)); for vectors it is
// `variance`. Steps are relative to the magnitude of p. Unused state may be undefined. The host reads norms.
void adafactor_step(Tensor p, const Tensor& g, Tensor row_var, Tensor col_var, Tensor variance, int64_t step, const AdafactorOptions& o);

struct MuonOptions {
  double lr = 1e-3, weight_decay = 0.1, momentum = 0.95, a = 3.4445, b = -4.7750, c = 2.0315, eps = 1e-7;
  int64_t ns_steps = 5;
  bool nesterov = true;
  std::string adjust_lr_fn = "original";  // or "match_rms_adamw", "spectral_unclamped": how lr depends on p's shape
};
// Momentum, orthogonalized by ns_steps Newton-Schulz iterations in bfloat16. Throws ValueError unless g is a matrix and ns_steps is below
// 100.
void muon_step(Tensor p, const Tensor& g, Tensor buffer, const MuonOptions& o);

// --- L-BFGS, over all parameters as one vector

// The past steps, oldest first: differences of gradients (y), steps (s), and 1 / (y · s). diagonal: y · s / (y · y) of the last step.
struct LbfgsHistory {
  std::vector<Tensor> changes, steps;
  std::vector<double> inverse;
  double diagonal = 1;
  // Adds a step if the curvature along it is positive; drops the oldest if there are `most`.
  void add(const Tensor& change, const Tensor& step, size_t most);
  // Minus the approximate inverse Hessian times the gradient.
  Tensor direction(const Tensor& grad) const;
};

// A step length t along d that satisfies the strong Wolfe conditions, with loss and gradient there. at(t) computes loss and gradient; f, g
// and slope = g · d are the values at t = 0.
struct LineSearch {
  double loss = 0;
  Tensor grad;
  double t = 0;
  int64_t evaluations = 0;
};
LineSearch strong_wolfe(const std::function<std::pair<double, Tensor>(double)>& at, double t, const Tensor& d, double f, const Tensor& g,
                        double slope, double tolerance_change = 1e-9, int64_t most = 25);

}  // namespace naru::optim
