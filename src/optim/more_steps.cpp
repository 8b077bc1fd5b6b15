#include <algorithm>
#include <cmath>

#include "naru/autograd.h"
#include "naru/ops/functions.h"
#include "naru/ops/linalg.h"
#include "naru/optim/steps.h"
#include "ops/tensor/limits.h"
#include "optim/gradient.h"

namespace naru::optim {

void radam_step(Tensor p, const Tensor& gradient, Tensor exp_avg, Tensor exp_avg_sq, int64_t step, const RadamOptions& o) {
  Widened wide({&p, &exp_avg, &exp_avg_sq});
  const Tensor g = widened(gradient);
  if (o.decoupled && o.weight_decay != 0) p.mul_(1 - o.lr * o.weight_decay);
  exp_avg.add_(g - exp_avg, 1 - o.beta1);
  exp_avg_sq.mul_(o.beta2).add_(g * g, 1 - o.beta2);
  const auto t = static_cast<double>(step);
  const double rest1 = 1 - std::pow(o.beta1, t), rest2 = 1 - std::pow(o.beta2, t);
  const double longest = 2 / (1 - o.beta2) - 1, length = longest - 2 * t * std::pow(o.beta2, t) / rest2;
  const Tensor mean = exp_avg / rest1 * o.lr;
  if (length <= 5) {
    p.sub_(mean);
  } else {
    const double rectified = std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
    p.sub_(mean * (std::sqrt(rest2) / (exp_avg_sq.sqrt() + o.eps)) * rectified);
  }
  wide.store();
}

void rprop_step(Tensor p, const Tensor& gradient, Tensor prev, Tensor step_size, const RpropOptions& o) {
  Widened wide({&p, &prev, &step_size});
  const Tensor g = widened(gradient);
  const Tensor turn = g.detach() * prev.detach();
  step_size.mul_(
      where(turn > 0, where(turn < 0, full_like(turn, o.eta_minus), o.eta_plus), where(turn < 0, full_like(turn, o.eta_minus), 1.0)));
  clamp_(step_size, Operand(o.step_min), Operand(o.step_max));
  const Tensor left = where(turn < 0, zeros_like(g), g);
  p.sub_(sign(left) * step_size);
  prev.copy_(left);
  wide.store();
}

void asgd_step(Tensor p, const Tensor& gradient, Tensor ax, double eta, double mu, const AsgdOptions& o) {
  Widened wide({&p, &ax});
  const Tensor g = widened(gradient);
  p.mul_(1 - o.lambd * eta).add_(g, -eta);
  if (mu == 1)
    ax.copy_(p);
  else
    ax.add_((p - ax) * mu);
  wide.store();
}
double asgd_eta(int64_t step, const AsgdOptions& o) { return o.lr / std::pow(1 + o.lambd * o.lr * static_cast<double>(step), o.alpha); }
double asgd_mu(int64_t step, const AsgdOptions& o) { return 1 / std::max(1.0, static_cast<double>(step) - o.t0); }

void adafactor_step(Tensor p, const Tensor& gradient, Tensor row_var, Tensor col_var, Tensor variance, int64_t step,
                    const AdafactorOptions& o) {
  const auto t = static_cast<double>(step);
  const double eps = o.eps1 ? *o.eps1 : ops::epsilon_of(p.dtype()), fresh = std::pow(t, o.beta2_decay),
               rate = std::min(o.lr, 1 / std::sqrt(t));
  Widened wide({&p, &row_var, &col_var, &variance});
  const Tensor g = widened(gradient);
  const auto root_mean_square = [](const Tensor& x) { return norm(x).item<double>() / std::sqrt(static_cast<double>(x.numel())); };
  const double alpha = std::max(o.eps2, root_mean_square(p)) * rate;
  if (o.weight_decay != 0) p.mul_(1 - o.lr * o.weight_decay);
  Tensor estimate;
  if (g.dim() > 1) {
    const Tensor square = g * g;
    row_var.add_(square.mean({-1}, true) - row_var, fresh);
    col_var.add_(square.mean({-2}, true) - col_var, fresh);
    estimate = matmul(row_var, col_var) / clamp(row_var.mean({-2}, true), Operand(eps));
  } else {
    variance.add_(g * g - variance, fresh);
    estimate = variance;
  }
  const Tensor update = rsqrt(clamp(estimate, Operand(eps * eps))) * g;
  p.add_(update, -alpha / std::max(1.0, root_mean_square(update) / o.d));
  wide.store();
}

namespace {

// The nearest matrix with orthonormal rows (or columns), nearly: singular values come to lie about 1.
Tensor orthogonalized(const Tensor& g, const MuonOptions& o) {
  if (o.ns_steps >= 100) throw ValueError("Number of steps must be less than 100 for computational efficiency");
  const bool tall = g.size(0) > g.size(1);
  Tensor x = (tall ? g.t() : g).to(DType::BF16, false, true);
  x = x / clamp(norm(x), Operand(o.eps));
  for (int64_t i = 0; i < o.ns_steps; ++i) {
    const Tensor gram = matmul(x, x.t());
    x = addmm(x, addmm(gram, gram, gram, o.b, o.c), x, o.a);
  }
  return tall ? x.t() : x;
}

double adjusted(double lr, const std::string& how, double rows, double columns) {
  if (how == "original") return lr * std::sqrt(std::max(1.0, rows / columns));
  if (how == "match_rms_adamw") return lr * 0.2 * std::sqrt(std::max(rows, columns));
  if (how == "spectral_unclamped") return lr * std::sqrt(rows / columns);
  throw ValueError("Adjust learning rate function {} is not supported", how);
}

}  // namespace

void muon_step(Tensor p, const Tensor& g, Tensor buffer, const MuonOptions& o) {
  if (g.dim() != 2) throw ValueError("Param gradient must be a 2D matrix");
  const double lr = adjusted(o.lr, o.adjust_lr_fn, static_cast<double>(p.size(0)), static_cast<double>(p.size(1)));
  buffer.add_(g - buffer, 1 - o.momentum);
  const Tensor update = orthogonalized(o.nesterov ? g + (buffer - g) * o.momentum : buffer, o);
  p.mul_(1 - o.lr * o.weight_decay).add_(update, -lr);
}

}  // namespace naru::optim
