// Optimizers that go parameter by parameter.
#include "naru/autograd.h"
#include "naru/optim.h"
#include "optim/checks.h"
#include "optim/gradient.h"

namespace naru::optim {
namespace {

void check_rmsprop(const RmspropOptions& o) {
  require(o.lr >= 0, "learning rate", o.lr);
  require(o.eps >= 0, "epsilon value", o.eps);
  require(o.momentum >= 0, "momentum value", o.momentum);
  require(o.weight_decay >= 0, "weight_decay value", o.weight_decay);
  require(o.alpha >= 0, "alpha value", o.alpha);
}
void check_adagrad(const AdagradOptions& o) {
  require(o.lr >= 0, "learning rate", o.lr);
  require(o.lr_decay >= 0, "lr_decay value", o.lr_decay);
  require(o.weight_decay >= 0, "weight_decay value", o.weight_decay);
  require(o.initial_accumulator_value >= 0, "initial_accumulator_value value", o.initial_accumulator_value);
  require(o.eps >= 0, "epsilon value", o.eps);
}
void check_sparse_adam(const SparseAdamOptions& o) {
  require(o.lr > 0, "learning rate", o.lr);
  require(o.eps > 0, "epsilon value", o.eps);
  require(o.beta1 >= 0 && o.beta1 < 1, "beta parameter at index 0", o.beta1);
  require(o.beta2 >= 0 && o.beta2 < 1, "beta parameter at index 1", o.beta2);
}
void check_adadelta(const AdadeltaOptions& o) {
  require(o.lr >= 0, "learning rate", o.lr);
  require(o.rho >= 0 && o.rho <= 1, "rho value", o.rho);
  require(o.eps >= 0, "epsilon value", o.eps);
  require(o.weight_decay >= 0, "weight_decay value", o.weight_decay);
}
void check_nadam(const NadamOptions& o) {
  check_betas(o);
  require(o.momentum_decay >= 0, "momentum_decay value", o.momentum_decay);
}

}  // namespace

RMSprop::RMSprop(std::vector<Tensor> params, RmspropOptions o)
    : Grouped(std::move(params), o, check_rmsprop),
      square_avg_(add_slot("square_avg")),
      momentum_(add_slot("momentum_buffer")),
      grad_avg_(add_slot("grad_avg")) {}

void RMSprop::step() {
  const NoGrad off;
  const AsReal pairs(*this);
  for (size_t group = 0; group < groups(); ++group) {
    const RmspropOptions& o = group_options(group);
    const std::vector<size_t> which = with_gradient(group);
    prepare_slot(square_avg_, which);
    if (o.momentum > 0) prepare_slot(momentum_, which);
    if (o.centered) prepare_slot(grad_avg_, which);
    for (const size_t i : which) {
      ++steps_[i];
      rmsprop_step(params_[i], gradient_of(params_[i], o, true), square_avg_[i], momentum_[i], grad_avg_[i], o);
    }
  }
}

Adagrad::Adagrad(std::vector<Tensor> params, AdagradOptions o) : Grouped(std::move(params), o, check_adagrad), sum_(add_slot("sum")) {}

void Adagrad::step() {
  const NoGrad off;
  const AsReal pairs(*this);
  for (size_t group = 0; group < groups(); ++group) {
    const AdagradOptions& o = group_options(group);
    const std::vector<size_t> which = with_gradient(group);
    for (const size_t i : which)
      if (!sum_[i].defined()) sum_[i] = full_like(params_[i].detach(), o.initial_accumulator_value);
    follow_parameters(sum_, which);
    for (const size_t i : which) adagrad_step(params_[i], gradient_of(params_[i], o, true), sum_[i], ++steps_[i], o);
  }
}

SparseAdam::SparseAdam(std::vector<Tensor> params, SparseAdamOptions o)
    : Grouped(std::move(params), o, check_sparse_adam), exp_avg_(add_slot("exp_avg")), exp_avg_sq_(add_slot("exp_avg_sq")) {}

void SparseAdam::step() {
  const NoGrad off;
  refuse_complex("SparseAdam");
  for (size_t group = 0; group < groups(); ++group) {
    const SparseAdamOptions& o = group_options(group);
    const std::vector<size_t> which = with_gradient(group);
    prepare_slot(exp_avg_, which);
    prepare_slot(exp_avg_sq_, which);
    for (const size_t i : which) {
      const Tensor g = params_[i].grad();
      sparse_adam_step(params_[i], o.maximize ? -g : g, exp_avg_[i], exp_avg_sq_[i], ++steps_[i], o);
    }
  }
}

Adadelta::Adadelta(std::vector<Tensor> params, AdadeltaOptions o)
    : Grouped(std::move(params), o, check_adadelta), square_avg_(add_slot("square_avg")), acc_delta_(add_slot("acc_delta")) {}

void Adadelta::step() {
  const NoGrad off;
  const AsReal pairs(*this);
  for (size_t group = 0; group < groups(); ++group) {
    const AdadeltaOptions& o = group_options(group);
    const std::vector<size_t> which = with_gradient(group);
    prepare_slot(square_avg_, which);
    prepare_slot(acc_delta_, which);
    for (const size_t i : which) {
      ++steps_[i];
      adadelta_step(params_[i], gradient_of(params_[i], o, true), square_avg_[i], acc_delta_[i], o);
    }
  }
}

Adamax::Adamax(std::vector<Tensor> params, AdamaxOptions o)
    : Grouped(std::move(params), o, check_betas<AdamaxOptions>), exp_avg_(add_slot("exp_avg")), exp_inf_(add_slot("exp_inf")) {}

void Adamax::step() {
  const NoGrad off;
  const AsReal pairs(*this);
  for (size_t group = 0; group < groups(); ++group) {
    const AdamaxOptions& o = group_options(group);
    const std::vector<size_t> which = with_gradient(group);
    prepare_slot(exp_avg_, which);
    prepare_slot(exp_inf_, which);
    for (const size_t i : which) adamax_step(params_[i], gradient_of(params_[i], o, true), exp_avg_[i], exp_inf_[i], ++steps_[i], o);
  }
}

NAdam::NAdam(std::vector<Tensor> params, NadamOptions o)
    : Grouped(std::move(params), o, check_nadam),
      exp_avg_(add_slot("exp_avg")),
      exp_avg_sq_(add_slot("exp_avg_sq")),
      mu_products_(params_.size(), 1.0) {}

void NAdam::step() {
  const NoGrad off;
  const AsReal pairs(*this);
  mu_products_.resize(params_.size(), 1.0);
  for (size_t group = 0; group < groups(); ++group) {
    const NadamOptions& o = group_options(group);
    const std::vector<size_t> which = with_gradient(group);
    prepare_slot(exp_avg_, which);
    prepare_slot(exp_avg_sq_, which);
    for (const size_t i : which) {
      const int64_t step = ++steps_[i];
      // Rounded to float32 at each step, as Python keeps it.
      mu_products_[i] = static_cast<float>(mu_products_[i] * nadam_mu(step, o));
      nadam_step(params_[i], gradient_of(params_[i], o, !o.decoupled), exp_avg_[i], exp_avg_sq_[i], mu_products_[i], step, o);
    }
  }
}

std::vector<std::pair<std::string, double>> NAdam::numbers(size_t i) const {
  return {{"mu_product", i < mu_products_.size() ? mu_products_[i] : 1}};
}

void NAdam::set_number(size_t i, const std::string&, double value) {
  mu_products_.resize(params_.size(), 1.0);
  mu_products_.at(i) = value;
}

// The products follow from the steps made.
void NAdam::forget_counts() {
  mu_products_.assign(params_.size(), 1.0);
  size_t i = 0;
  for (size_t group = 0; group < groups(); ++group)
    for (const size_t end = i + group_parameters(group).size(); i < end; ++i)
      for (int64_t step = 1; step <= steps_[i]; ++step)
        mu_products_[i] = static_cast<float>(mu_products_[i] * nadam_mu(step, group_options(group)));
}

}  // namespace naru::optim
