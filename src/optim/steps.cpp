#include <cmath>

#include "naru/ops/functions.h"
#include "naru/ops/sparse.h"
#include "naru/optim/steps.h"
#include "ops/elementwise/half.h"
#include "optim/gradient.h"

namespace naru::optim {
namespace {

void refuse_sparse(const Tensor& g, const char* name) {
  if (layout(g) != Layout::Strided) throw RuntimeError("{} does not support sparse gradients", name);
}

// A sparse tensor with the coordinates of a coalesced one.
Tensor beside(const Tensor& at, const Tensor& values) { return sparse_coo_tensor(raw_indices(at), values, at.sizes(), true); }

void adagrad_sparse(Tensor p, const Tensor& g, Tensor sum, double lr, double eps) {
  const Tensor at = coalesce(g), values = raw_values(at);
  sum.add_(beside(at, values * values));
  const Tensor root = raw_values(sparse_mask(sum, at)).sqrt() + eps;
  p.add_(beside(at, values / root), -lr);
}

}  // namespace

void rmsprop_step(Tensor p, const Tensor& gradient, Tensor square_avg, Tensor momentum_buffer, Tensor grad_avg, const RmspropOptions& o) {
  refuse_sparse(gradient, "RMSprop");
  Widened wide({&p, &square_avg, &momentum_buffer, &grad_avg});
  const Tensor g = widened(gradient);
  square_avg.mul_(o.alpha).add_(g * g, 1 - o.alpha);
  Tensor scale;
  if (o.centered) {
    grad_avg.add_(g - grad_avg, 1 - o.alpha);
    scale = clamp(square_avg - grad_avg * grad_avg, Operand(0.0)).sqrt() + o.eps;  // rounded states may give less than no variance
  } else {
    scale = square_avg.sqrt() + o.eps;
  }
  Tensor change = g / scale;
  if (o.momentum > 0) change = momentum_buffer.mul_(o.momentum).add_(change);
  p.add_(change, -o.lr);
  wide.store();
}

void adagrad_step(Tensor p, const Tensor& gradient, Tensor sum, int64_t step, const AdagradOptions& o) {
  const double lr = o.lr / (1 + static_cast<double>(step - 1) * o.lr_decay);
  if (layout(gradient) != Layout::Strided) return adagrad_sparse(p, gradient, sum, lr, o.eps);
  Widened wide({&p, &sum});
  const Tensor g = widened(gradient);
  sum.add_(g * g);
  p.add_(g / (sum.sqrt() + o.eps), -lr);
  wide.store();
}

void adadelta_step(Tensor p, const Tensor& gradient, Tensor square_avg, Tensor acc_delta, const AdadeltaOptions& o) {
  refuse_sparse(gradient, "Adadelta");
  Widened wide({&p, &square_avg, &acc_delta});
  const Tensor g = widened(gradient);
  square_avg.mul_(o.rho).add_(g * g, 1 - o.rho);
  const Tensor delta = (acc_delta + o.eps).sqrt() / (square_avg + o.eps).sqrt() * g;
  acc_delta.mul_(o.rho).add_(delta * delta, 1 - o.rho);
  p.add_(delta, -o.lr);
  wide.store();
}

void adamax_step(Tensor p, const Tensor& gradient, Tensor exp_avg, Tensor exp_inf, int64_t step, const AdamaxOptions& o) {
  refuse_sparse(gradient, "Adamax");
  Widened wide({&p, &exp_avg, &exp_inf});
  const Tensor g = widened(gradient);
  exp_avg.add_(g - exp_avg, 1 - o.beta1);
  exp_inf.copy_(maximum(exp_inf * o.beta2, g.abs() + o.eps));
  p.sub_(exp_avg / exp_inf * (o.lr / (1 - std::pow(o.beta1, static_cast<double>(step)))));
  wide.store();
}

double nadam_mu(int64_t step, const NadamOptions& o) {
  return o.beta1 * (1.0 - 0.5 * std::pow(0.96, static_cast<double>(step) * o.momentum_decay));
}

void nadam_step(Tensor p, const Tensor& gradient, Tensor exp_avg, Tensor exp_avg_sq, double mu_product, int64_t step,
                const NadamOptions& o) {
  refuse_sparse(gradient, "NAdam");
  Widened wide({&p, &exp_avg, &exp_avg_sq});
  const Tensor g = widened(gradient);
  if (o.decoupled && o.weight_decay != 0) p.mul_(1 - o.lr * o.weight_decay);
  const double mu = nadam_mu(step, o), mu_next = nadam_mu(step + 1, o);
  exp_avg.add_(g - exp_avg, 1 - o.beta1);
  exp_avg_sq.mul_(o.beta2).add_(g * g, 1 - o.beta2);
  const Tensor scale = (exp_avg_sq / (1 - std::pow(o.beta2, static_cast<double>(step)))).sqrt() + o.eps;
  p.add_(g / scale, -o.lr * (1.0 - mu) / (1.0 - mu_product));
  p.add_(exp_avg / scale, -o.lr * mu_next / (1.0 - mu_product * mu_next));
  wide.store();
}

void sparse_adam_step(Tensor p, const Tensor& g, Tensor exp_avg, Tensor exp_avg_sq, int64_t step, const SparseAdamOptions& o) {
  if (!is_sparse(g)) throw RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead");
  const Tensor at = coalesce(g);
  if (stored_count(at) == 0) return;
  const Tensor values = raw_values(at), first = raw_values(sparse_mask(exp_avg, at)), second = raw_values(sparse_mask(exp_avg_sq, at));
  // What the moments change by; in place they take on no other order than dense ones.
  const Tensor more = (values - first) * (1 - o.beta1), more_sq = (values * values - second) * (1 - o.beta2);
  exp_avg.add_(beside(at, more));
  exp_avg_sq.add_(beside(at, more_sq));
  const double size =
      o.lr * std::sqrt(1 - std::pow(o.beta2, static_cast<double>(step))) / (1 - std::pow(o.beta1, static_cast<double>(step)));
  p.add_(beside(at, (first + more) / ((second + more_sq).sqrt() + o.eps) * -size));
}

}  // namespace naru::optim
