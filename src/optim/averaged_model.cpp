#include "naru/optim/averaged_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "naru/autograd.h"

namespace naru::optim {

Averaging swa() {
  return [](const Tensor& average, const Tensor& value, int64_t count) { return average + (value - average) / (count + 1); };
}

Averaging ema(double decay) {
  if (!(decay >= 0 && decay <= 1)) throw ValueError("Invalid decay value {} provided. Please provide a value in [0,1] range.", decay);
  return [decay](const Tensor& average, const Tensor& value, int64_t) { return lerp(average, value, 1 - decay); };
}

AveragedModel::AveragedModel(const nn::Module& model, Averaging averaging, bool use_buffers)
    : averaging_(std::move(averaging)), use_buffers_(use_buffers), module_(register_module("module", model.clone())) {
  n_averaged_ = register_buffer("n_averaged", tensor(int64_t{0}, Options(Device(DeviceType::Cpu))));
}

void AveragedModel::update_parameters(const nn::Module& model) {
  const NoGrad off;
  const int64_t count = n_averaged();
  const auto take = [&](std::vector<Tensor> own, const std::vector<Tensor>& theirs, bool average) {
    if (own.size() != theirs.size())
      throw RuntimeError("AveragedModel: the model has {} parameters or buffers, the average {}", theirs.size(), own.size());
    for (size_t i = 0; i < own.size(); ++i) {
      const Tensor value = theirs[i].detach().to(own[i].device());
      own[i].detach().copy_(count == 0 || !average || !is_inexact(own[i].dtype()) ? value : averaging_(own[i].detach(), value, count));
    }
  };
  take(module_->parameters(), model.parameters(), true);
  take(module_->buffers(), model.buffers(), use_buffers_);
  n_averaged_.add_(1);
}

SWALR::SWALR(Optimizer& optimizer, const PerGroup& swa_lr, int64_t anneal_epochs, bool linear)
    : LRScheduler(optimizer), goal_(swa_lr.of(optimizer, "swa_lr")), epochs_(anneal_epochs), linear_(linear) {
  if (anneal_epochs < 0) throw ValueError("anneal_epochs must be equal or greater than 0, got {}", anneal_epochs);
  begin();
}

double SWALR::share(int64_t epoch) const {
  const double t = std::clamp(static_cast<double>(epoch) / static_cast<double>(std::max<int64_t>(1, epochs_)), 0.0, 1.0);
  return linear_ ? t : (1 - std::cos(std::numbers::pi * t)) / 2;
}

// Recovers each group's rate before the annealing from its current rate, so that other schedulers may have changed it.
LRScheduler::Rates SWALR::get_lr() {
  const int64_t epoch = epochs_ == 0 ? std::max<int64_t>(1, last_epoch_) : last_epoch_;
  const double before = share(epoch - 1), now = share(epoch);
  Rates list = rates();
  for (size_t g = 0; g < list.size(); ++g) {
    const double start = before == 1 ? goal_[g] : (list[g] - before * goal_[g]) / (1 - before);
    list[g] = goal_[g] * now + start * (1 - now);
  }
  return list;
}

}  // namespace naru::optim
