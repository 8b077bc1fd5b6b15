// Optimizers that update one parameter at a time (fused_optimizers.cpp has SGD and Adam).
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
      // Rounded to float32 at each step, as in PyTorch.
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

// Recomputes the products from the step counts.
void NAdam::forget_counts() {
  mu_products_.assign(params_.size(), 1.0);
  size_t i = 0;
  for (size_t group = 0; group < groups(); ++group)
    for (const size_t end = i + group_parameters(group).size(); i < end; ++i)
      for (int64_t step = 1; step <= steps_[i]; ++step)
        mu_products_[i] = static_cast<float>(mu_products_[i] * nadam_mu(step, group_options(group)));
}

namespace {

void check_radam(const RadamOptions& o) { check_betas(o); }
void check_rprop(const RpropOptions& o) {
  require(o.lr >= 0, "learning rate", o.lr);
  if (!(0 < o.eta_minus && o.eta_minus < 1 && 1 < o.eta_plus)) throw ValueError("Invalid eta values: {}, {}", o.eta_minus, o.eta_plus);
}
void check_asgd(const AsgdOptions& o) {
  require(o.lr >= 0, "learning rate", o.lr);
  require(o.lambd >= 0, "lambd value", o.lambd);
  require(o.alpha >= 0, "alpha value", o.alpha);
  require(o.weight_decay >= 0, "weight_decay value", o.weight_decay);
}
void check_adafactor(const AdafactorOptions& o) {
  const auto check = [](bool good, const char* what, double got) {
    if (!good) throw ValueError("{} but is: {}", what, got);
  };
  check(o.lr >= 0, "Learning rate should be >= 0", o.lr);
  check(o.beta2_decay <= 0, "beta2_decay should be <= 0", o.beta2_decay);
  check(o.eps1.value_or(0) >= 0, "epsilon1 should be >= 0", o.eps1.value_or(0));
  check(o.eps2 >= 0, "epsilon2 should be >= 0", o.eps2);
  check(o.d >= 1, "Clipping threshold d should be >= 1", o.d);
  check(o.weight_decay >= 0, "weight_decay should be >= 0", o.weight_decay);
}
void check_muon(const MuonOptions& o) {
  const auto check = [](bool good, const char* what, double got) {
    if (!good) throw ValueError("{} should be >= 0 but is: {}", what, got);
  };
  check(o.lr >= 0, "Learning rate", o.lr);
  check(o.momentum >= 0, "momentum", o.momentum);
  check(o.weight_decay >= 0, "weight decay", o.weight_decay);
  if (o.adjust_lr_fn != "original" && o.adjust_lr_fn != "match_rms_adamw" && o.adjust_lr_fn != "spectral_unclamped")
    throw ValueError("Adjust learning rate function {} is not supported", o.adjust_lr_fn);
}

}  // namespace

RAdam::RAdam(std::vector<Tensor> params, RadamOptions o)
    : Grouped(std::move(params), o, check_radam), exp_avg_(add_slot("exp_avg")), exp_avg_sq_(add_slot("exp_avg_sq")) {}

void RAdam::step() {
  const NoGrad off;
  const AsReal pairs(*this);
  for (size_t group = 0; group < groups(); ++group) {
    const RadamOptions& o = group_options(group);
    const std::vector<size_t> which = with_gradient(group);
    prepare_slot(exp_avg_, which);
    prepare_slot(exp_avg_sq_, which);
    for (const size_t i : which)
      radam_step(params_[i], gradient_of(params_[i], o, !o.decoupled), exp_avg_[i], exp_avg_sq_[i], ++steps_[i], o);
  }
}

Rprop::Rprop(std::vector<Tensor> params, RpropOptions o)
    : Grouped(std::move(params), o, check_rprop), prev_(add_slot("prev")), step_size_(add_slot("step_size")) {}

void Rprop::step() {
  const NoGrad off;
  const AsReal pairs(*this);
  for (size_t group = 0; group < groups(); ++group) {
    const RpropOptions& o = group_options(group);
    const std::vector<size_t> which = with_gradient(group);
    prepare_slot(prev_, which);
    for (const size_t i : which)
      if (!step_size_[i].defined()) step_size_[i] = full_like(params_[i].detach(), o.lr);
    follow_parameters(step_size_, which);
    for (const size_t i : which) {
      ++steps_[i];
      rprop_step(params_[i], gradient_of(params_[i], o, false), prev_[i], step_size_[i], o);
    }
  }
}

ASGD::ASGD(std::vector<Tensor> params, AsgdOptions o) : Grouped(std::move(params), o, check_asgd), ax_(add_slot("ax")) {}

ASGD::Rates ASGD::rates_of(size_t i, const AsgdOptions& o) const {
  return i < rates_.size() && rates_[i] ? *rates_[i] : Rates{static_cast<float>(o.lr), 1};
}

void ASGD::step() {
  const NoGrad off;
  const AsReal pairs(*this);
  rates_.resize(params_.size());
  for (size_t group = 0; group < groups(); ++group) {
    const AsgdOptions& o = group_options(group);
    const std::vector<size_t> which = with_gradient(group);
    prepare_slot(ax_, which);
    for (const size_t i : which) {
      const Rates r = rates_of(i, o);
      asgd_step(params_[i], gradient_of(params_[i], o, true), ax_[i], r.eta, r.mu, o);
      const int64_t done = ++steps_[i];
      // Rounded to float32, as in PyTorch.
      rates_[i] = Rates{static_cast<float>(asgd_eta(done, o)), static_cast<float>(asgd_mu(done, o))};
    }
  }
}

std::vector<std::pair<std::string, double>> ASGD::numbers(size_t i) const {
  const Rates r = rates_of(i, options);
  return {{"eta", r.eta}, {"mu", r.mu}};
}
void ASGD::set_number(size_t i, const std::string& name, double value) {
  rates_.resize(params_.size());
  Rates r = rates_of(i, options);
  (name == "eta" ? r.eta : r.mu) = value;
  rates_.at(i) = r;
}
void ASGD::forget_counts() {
  rates_.assign(params_.size(), {});
  size_t i = 0;
  for (size_t group = 0; group < groups(); ++group)
    for (const size_t end = i + group_parameters(group).size(); i < end; ++i)
      if (steps_[i] > 0)
        rates_[i] = Rates{static_cast<float>(asgd_eta(steps_[i], group_options(group))),
                          static_cast<float>(asgd_mu(steps_[i], group_options(group)))};
}

Adafactor::Adafactor(std::vector<Tensor> params, AdafactorOptions o)
    : Grouped(std::move(params), o, check_adafactor),
      row_var_(add_slot("row_var")),
      col_var_(add_slot("col_var")),
      variance_(add_slot("variance")) {}

Dims Adafactor::slot_shape(const std::string& slot, size_t i) const {
  Dims shape = params_[i].sizes();
  if (slot == "row_var" && shape.size() > 1) shape[shape.size() - 1] = 1;
  if (slot == "col_var" && shape.size() > 1) shape[shape.size() - 2] = 1;
  return shape;
}

void Adafactor::step() {
  const NoGrad off;
  refuse_complex("Adafactor");
  for (size_t group = 0; group < groups(); ++group) {
    const AdafactorOptions& o = group_options(group);
    const std::vector<size_t> which = with_gradient(group);
    for (const size_t i : which) {
      const Options like(params_[i].dtype(), params_[i].device());
      const bool matrix = params_[i].dim() > 1;
      if (matrix && !row_var_[i].defined())
        row_var_[i] = zeros(slot_shape("row_var", i), like), col_var_[i] = zeros(slot_shape("col_var", i), like);
      if (!matrix && !variance_[i].defined()) variance_[i] = zeros(params_[i].sizes(), like);
    }
    for (std::vector<Tensor>* slot : {&row_var_, &col_var_, &variance_}) follow_parameters(*slot, which);
    for (const size_t i : which)
      adafactor_step(params_[i], gradient_of(params_[i], o, false), row_var_[i], col_var_[i], variance_[i], ++steps_[i], o);
  }
}

Muon::Muon(std::vector<Tensor> params, MuonOptions o)
    : Grouped(std::move(params), o, check_muon), momentum_buffer_(add_slot("momentum_buffer")) {
  for (const Tensor& p : params_)
    if (p.dim() != 2) throw ValueError("Muon only supports 2D parameters whereas we found a parameter with size: {}", p.sizes().str());
}

void Muon::step() {
  const NoGrad off;
  refuse_complex("Muon");
  for (size_t group = 0; group < groups(); ++group) {
    const MuonOptions& o = group_options(group);
    const std::vector<size_t> which = with_gradient(group);
    prepare_slot(momentum_buffer_, which);
    for (const size_t i : which) {
      ++steps_[i];
      muon_step(params_[i], params_[i].grad(), momentum_buffer_[i], o);
    }
  }
}

}  // namespace naru::optim
