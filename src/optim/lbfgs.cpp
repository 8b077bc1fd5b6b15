#include <algorithm>
#include <cmath>
#include <tuple>

#include "naru/autograd.h"
#include "naru/ops.h"
#include "naru/ops/complex.h"
#include "naru/optim.h"
#include "optim/checks.h"

namespace naru::optim {

LBFGS::LBFGS(std::vector<Tensor> params, LbfgsOptions o) : Optimizer(std::move(params)), options(o) {
  require(o.lr >= 0, "learning rate", o.lr);
}

void LBFGS::step() { throw RuntimeError("LBFGS.step() needs a closure, which computes the loss and its gradients anew"); }

Tensor LBFGS::gradient() const {
  std::vector<Tensor> parts;
  for (const Tensor& p : params_) {
    const Tensor g = p.grad();
    const Tensor part = g.defined() ? g.detach() : zeros_like(p.detach());
    parts.push_back((is_complex(p.dtype()) ? view_as_real(part.contiguous()) : part).reshape({-1}));
  }
  const Tensor all = cat(parts);
  return options.maximize ? -all : all;
}

void LBFGS::move(double t, const Tensor& d) {
  int64_t from = 0;
  for (Tensor& p : params_) {
    Tensor numbers = is_complex(p.dtype()) ? view_as_real(p.detach()) : p;
    numbers.add_(d.narrow(0, from, numbers.numel()).view(numbers.sizes()), t);
    from += numbers.numel();
  }
}

std::pair<double, Tensor> LBFGS::evaluate(const std::function<Tensor()>& closure) {
  Tensor loss;
  {
    const EnableGrad on;
    loss = closure();
  }
  const double value = loss.item<double>();
  return {options.maximize ? -value : value, gradient()};
}

LineSearch LBFGS::search(const std::function<Tensor()>& closure, double t, double loss, const Tensor& grad, double slope, int64_t most) {
  std::vector<Tensor> before;
  for (const Tensor& p : params_) before.push_back(p.detach().clone());
  const auto at = [&](double length) {
    move(length, direction_);
    auto found = evaluate(closure);
    for (size_t i = 0; i < params_.size(); ++i) params_[i].copy_(before[i]);
    return found;
  };
  return strong_wolfe(at, t, direction_, loss, grad, slope, 1e-9, most);
}

Tensor LBFGS::step(const std::function<Tensor()>& closure) {
  const NoGrad off;
  Tensor first;
  const auto kept = [&] { return first = closure(); };
  auto [loss, grad] = evaluate(kept);
  const LbfgsOptions& o = options;
  const int64_t max_eval = o.max_eval.value_or(o.max_iter * 5 / 4);
  const auto small = [&](const Tensor& g) { return g.abs().max().item<double>() <= o.tolerance_grad; };
  if (small(grad)) return first;
  int64_t evaluations = 1;
  for (int64_t n = 1; n <= o.max_iter; ++n) {
    ++iterations_;
    if (iterations_ > 1) history_.add(grad - last_grad_, direction_ * t_, static_cast<size_t>(std::max<int64_t>(o.history_size, 0)));
    direction_ = history_.direction(grad);
    last_grad_ = grad.clone();
    const double last_loss = loss, slope = dot(grad, direction_).item<double>();
    t_ = iterations_ == 1 ? std::min(1.0, 1 / grad.abs().sum().item<double>()) * o.lr : o.lr;
    if (slope > -o.tolerance_change) break;
    if (o.strong_wolfe) {
      const LineSearch found = search(closure, t_, loss, grad, slope, max_eval - evaluations);
      loss = found.loss, grad = found.grad, t_ = found.t;
      evaluations += found.evaluations;
      move(t_, direction_);
    } else {
      move(t_, direction_);
      if (n != o.max_iter) std::tie(loss, grad) = evaluate(closure), ++evaluations;
    }
    if (n == o.max_iter || evaluations >= max_eval || small(grad)) break;
    if ((direction_ * t_).abs().max().item<double>() <= o.tolerance_change || std::abs(loss - last_loss) < o.tolerance_change) break;
  }
  return first;
}

}  // namespace naru::optim
