// Averages of a model's parameters during training (SWA, EMA), after torch.optim.swa_utils.
#pragma once

#include "naru/nn/module.h"
#include "naru/optim/lr_scheduler.h"
#include "naru/standard.h"

namespace naru::optim {

// Computes the new average from the current average, a model's value, and the number of values averaged so far.
using Averaging = std::function<Tensor(const Tensor& average, const Tensor& value, int64_t count)>;
// swa: the arithmetic mean. ema: decay * average + (1 - decay) * value (ValueError unless 0 <= decay <= 1).
Averaging swa();
Averaging ema(double decay = 0.999);

// A clone of a model that holds the averages of the model's parameters. Throws NotImplementedError for modules that can't be cloned.
class AveragedModel : public nn::Module {
 public:
  // use_buffers: also average floating-point buffers; else they are copied.
  explicit AveragedModel(const nn::Module& model, Averaging averaging = swa(), bool use_buffers = false);
  Tensor forward(const Tensor& x) override { return (*module_)(x); }
  // Adds the model's current parameters to the average; the first call copies them. Throws RuntimeError if the model has other parameters.
  void update_parameters(const nn::Module& model);
  nn::Module& module() noexcept { return *module_; }
  int64_t n_averaged() const { return n_averaged_.item<int64_t>(SourceLocation()); }
  std::string name() const override { return "AveragedModel"; }

 private:
  Averaging averaging_;
  bool use_buffers_;
  std::shared_ptr<nn::Module> module_;
  Tensor n_averaged_;  // a buffer, so that it is saved
};

// Anneals the rates of all groups to swa_lr in anneal_epochs epochs, by a cosine or linearly, then keeps them.
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
