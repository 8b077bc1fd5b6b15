#include <cmath>

#include "naru/compositions.h"
#include "naru/optim_steps.h"

namespace naru::optim {

void rmsprop_step(Tensor p, const Tensor& g, Tensor square_avg, Tensor momentum_buffer, Tensor grad_avg, const RmspropOptions& o) {
  square_avg.mul_(o.alpha).add_(g * g, 1 - o.alpha);
  Tensor scale;
  if (o.centered) {
    grad_avg.add_(g - grad_avg, 1 - o.alpha);
    scale = (square_avg - grad_avg * grad_avg).sqrt() + o.eps;
  } else {
    scale = square_avg.sqrt() + o.eps;
  }
  Tensor change = g / scale;
  if (o.momentum > 0) change = momentum_buffer.mul_(o.momentum).add_(change);
  p.add_(change, -o.lr);
}

void adagrad_step(Tensor p, const Tensor& g, Tensor sum, int64_t step, const AdagradOptions& o) {
  const double lr = o.lr / (1 + static_cast<double>(step - 1) * o.lr_decay);
  sum.add_(g * g);
  p.add_(g / (sum.sqrt() + o.eps), -lr);
}

void adadelta_step(Tensor p, const Tensor& g, Tensor square_avg, Tensor acc_delta, const AdadeltaOptions& o) {
  square_avg.mul_(o.rho).add_(g * g, 1 - o.rho);
  const Tensor delta = (acc_delta + o.eps).sqrt() / (square_avg + o.eps).sqrt() * g;
  acc_delta.mul_(o.rho).add_(delta * delta, 1 - o.rho);
  p.add_(delta, -o.lr);
}

void adamax_step(Tensor p, const Tensor& g, Tensor exp_avg, Tensor exp_inf, int64_t step, const AdamaxOptions& o) {
  exp_avg.add_(g - exp_avg, 1 - o.beta1);
  exp_inf.copy_(maximum(exp_inf * o.beta2, g.abs() + o.eps));
  p.sub_(exp_avg / exp_inf * (o.lr / (1 - std::pow(o.beta1, static_cast<double>(step)))));
}

double nadam_mu(int64_t step, const NadamOptions& o) {
  return o.beta1 * (1.0 - 0.5 * std::pow(0.96, static_cast<double>(step) * o.momentum_decay));
}

void nadam_step(Tensor p, const Tensor& g, Tensor exp_avg, Tensor exp_avg_sq, double mu_product, int64_t step, const NadamOptions& o) {
  if (o.decoupled && o.weight_decay != 0) p.mul_(1 - o.lr * o.weight_decay);
  const double mu = nadam_mu(step, o), mu_next = nadam_mu(step + 1, o);
  exp_avg.add_(g - exp_avg, 1 - o.beta1);
  exp_avg_sq.mul_(o.beta2).add_(g * g, 1 - o.beta2);
  const Tensor scale = (exp_avg_sq / (1 - std::pow(o.beta2, static_cast<double>(step)))).sqrt() + o.eps;
  p.add_(g / scale, -o.lr * (1.0 - mu) / (1.0 - mu_product));
  p.add_(exp_avg / scale, -o.lr * mu_next / (1.0 - mu_product * mu_next));
}

}  // namespace naru::optim
