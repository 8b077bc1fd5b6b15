// Averages of a model's parameters over its training (SWA, EMA), as torch.optim.swa_utils has them.
#pragma once

#include "naru/lr_scheduler.h"
#include "naru/module.h"
#include "naru/standard.h"

namespace naru::optim {

// From the average so far, a model's value, and how many values went into the average, to the new average.
using Averaging = std::function<Tensor(const Tensor& average, const Tensor& value, int64_t count)>;
// All values equally; decay * average + (1 - decay) * value (ValueError unless 0 <= decay <= 1).
Averaging swa();
Averaging ema(double decay = 0.999);

// A clone of a model whose parameters are averages of the model's. NotImplementedError for modules that can't be cloned.
class AveragedModel : public nn::Module {
 public:
  // use_buffers: floating-point buffers are averaged, too; else they are copied.
  explicit AveragedModel(const nn::Module& model, Averaging averaging = swa(), bool use_buffers = false);
  Tensor forward(const Tensor& x) override { return (*module_)(x); }
  // Takes in what the model is now; the first time it is copied. RuntimeError for a model with other parameters.
  void update_parameters(const nn::Module& model);
  nn::Module& module() noexcept { return *module_; }
  int64_t n_averaged() const { return n_averaged_.item<int64_t>(Place()); }
  std::string name() const override { return "AveragedModel"; }

 private:
  Averaging averaging_;
  bool use_buffers_;
  std::shared_ptr<nn::Module> module_;
  Tensor n_averaged_;  // a buffer, so that it is saved
};

// Anneals the rates of all groups to swa_lr in so many epochs, along a cosine or a line, and keeps them there.
class SWALR : public LRScheduler {
 public:
  SWALR(Optimizer& optimizer, const PerGroup& swa_lr, int64_t anneal_epochs = 10, bool linear = false);

 protected:
  Rates get_lr() override;

 private:
  double share(int64_t epoch) const;
  std::vector<double> goal_;
  int64_t epochs_;
  bool linear_;
};

}  // namespace naru::optim
