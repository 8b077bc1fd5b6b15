// The arithmetic of optimizers that go parameter by parameter, for both languages: p, its gradient g (with its sign and weight decay in it), and the
// state, which is written in place. lr and its like are numbers. SGD and Adam, whose step is one kernel, are in naru/ops.h.
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
// v = alpha v + (1 - alpha) g²; p -= lr g / (sqrt(v) + eps). centered: the running mean of g, squared, is subtracted from v. momentum: steps are summed up
// first. momentum_buffer and grad_avg may be undefined where they are not used.
void rmsprop_step(Tensor p, const Tensor& g, Tensor square_avg, Tensor momentum_buffer, Tensor grad_avg, const RmspropOptions& o);

struct AdagradOptions {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;
};
// s += g²; p -= lr / (1 + (step - 1) lr_decay) g / (sqrt(s) + eps). Of a sparse gradient: where it has coordinates.
void adagrad_step(Tensor p, const Tensor& g, Tensor sum, int64_t step, const AdagradOptions& o);

struct SparseAdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool maximize = false;
};
// Adam of the rows that a sparse gradient has coordinates for; the moments of the others stay as they are. RuntimeError for a dense gradient.
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
// Adam with the largest decayed gradient in place of the root mean square.
void adamax_step(Tensor p, const Tensor& g, Tensor exp_avg, Tensor exp_inf, int64_t step, const AdamaxOptions& o);

struct NadamOptions {
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3;
  bool decoupled = false, maximize = false;
};
// Adam with Nesterov's momentum. mu_product: the product of all mu so far, this step's included; next_mu gives mu, which is made of `step`.
double nadam_mu(int64_t step, const NadamOptions& o);
void nadam_step(Tensor p, const Tensor& g, Tensor exp_avg, Tensor exp_avg_sq, double mu_product, int64_t step, const NadamOptions& o);

struct RadamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false, maximize = false;
};
// Adam whose steps are rectified by how many gradients v has seen, and plain momentum while these are too few.
void radam_step(Tensor p, const Tensor& g, Tensor exp_avg, Tensor exp_avg_sq, int64_t step, const RadamOptions& o);

struct RpropOptions {
  double lr = 1e-2, eta_minus = 0.5, eta_plus = 1.2, step_min = 1e-6, step_max = 50;
  bool maximize = false;
};
// A step size for each element, which grows (eta_plus) while the gradient keeps its sign and shrinks (eta_minus) where it turns; there the element rests once.
void rprop_step(Tensor p, const Tensor& g, Tensor prev, Tensor step_size, const RpropOptions& o);

struct AsgdOptions {
  double lr = 1e-2, lambd = 1e-4, alpha = 0.75, t0 = 1e6, weight_decay = 0;
  bool maximize = false;
};
// p = (1 - lambd eta) p - eta g, and ax the mean of p since step t0. eta and mu: those of this step; asgd_eta and asgd_mu give the next ones, after `step`.
void asgd_step(Tensor p, const Tensor& g, Tensor ax, double eta, double mu, const AsgdOptions& o);
double asgd_eta(int64_t step, const AsgdOptions& o);
double asgd_mu(int64_t step, const AsgdOptions& o);

struct AdafactorOptions {
  double lr = 1e-2, beta2_decay = -0.8, eps2 = 1e-3, d = 1, weight_decay = 0;
  std::optional<double> eps1 = {};  // the type's, unless given
  bool maximize = false;
};
// The mean square of gradients kept as a row and a column of each matrix (row_var (..., n, 1), col_var (..., 1, m)), of vectors as `variance`; steps relative to
// the size of p. What is not used may be undefined. The host reads norms.
void adafactor_step(Tensor p, const Tensor& g, Tensor row_var, Tensor col_var, Tensor variance, int64_t step, const AdafactorOptions& o);

struct MuonOptions {
  double lr = 1e-3, weight_decay = 0.1, momentum = 0.95, a = 3.4445, b = -4.7750, c = 2.0315, eps = 1e-7;
  int64_t ns_steps = 5;
  bool nesterov = true;
  std::string adjust_lr_fn = "original";  // or "match_rms_adamw", "spectral_unclamped": how lr goes with p's shape
};
// Momentum, orthogonalized by ns_steps of Newton and Schulz's iteration in bfloat16. ValueError unless g is a matrix, and for 100 steps and more.
void muon_step(Tensor p, const Tensor& g, Tensor buffer, const MuonOptions& o);

// --- L-BFGS, over all parameters as one vector

// What is remembered of past steps, the oldest first: how gradients changed (y), the steps (s), and 1 / (y · s); diagonal: y · s / (y · y) of the last.
struct LbfgsHistory {
  std::vector<Tensor> changes, steps;
  std::vector<double> inverse;
  double diagonal = 1;
  // Takes a step in, where the function curves upwards along it, and forgets the oldest where there are `most`.
  void add(const Tensor& change, const Tensor& step, size_t most);
  // Minus the inverse Hessian, as far as it is known, times the gradient.
  Tensor direction(const Tensor& grad) const;
};

// A step length t along d that meets Wolfe's conditions, and what the function was there. at(t): loss and gradient; f, g, slope: those at 0, slope = g · d.
struct LineSearch {
  double loss = 0;
  Tensor grad;
  double t = 0;
  int64_t evaluations = 0;
};
LineSearch strong_wolfe(const std::function<std::pair<double, Tensor>(double)>& at, double t, const Tensor& d, double f, const Tensor& g,
                        double slope, double tolerance_change = 1e-9, int64_t most = 25);

}  // namespace naru::optim
