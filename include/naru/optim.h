// Optimizers in C++: SGD, Adam and AdamW as torch.optim has them, each a list of parameters, its state, and one step
// over all of them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "naru/ops.h"
#include "naru/tensor.h"

namespace naru::optim {

// Parameters without a gradient are left out of a step. Works on the tensors themselves: a module moved with Module::to
// keeps its optimizer, whose state follows at the next step.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // One step, no history recorded.
  virtual void step() = 0;
  // Forgets the gradients (or sets them to 0).
  void zero_grad(bool set_to_none = true);
  const std::vector<Tensor>& parameters() const noexcept { return params_; }

  // What the optimizer remembers, by name: "step", "momentum_buffer.0", "exp_avg.3" ...
  using State = std::vector<std::pair<std::string, Tensor>>;
  State state_dict() const;
  // Copies the state in. Throws RuntimeError for names and shapes that do not fit these parameters; nothing is changed
  // then.
  void load_state_dict(const State& state);

 protected:
  // Throws ValueError for an empty list, RuntimeError for a tensor that is no leaf.
  explicit Optimizer(std::vector<Tensor> params);
  // One slot of state: a tensor per parameter, undefined until first used.
  std::vector<Tensor>& add_slot(std::string name);
  // The numbers of the parameters that have a gradient.
  std::vector<size_t> with_gradient() const;
  // Undefined ones become zeros; those left behind on another device or of another dtype follow their parameter.
  void prepare_slot(std::vector<Tensor>& slot, const std::vector<size_t>& which);
  void follow_parameters(std::vector<Tensor>& slot, const std::vector<size_t>& which);

  // How many steps each parameter has made; what was counted elsewhere is to be forgotten, for steps_ has been loaded.
  virtual std::vector<int64_t> steps() const { return steps_; }
  virtual void forget_counts() {}

  std::vector<Tensor> params_;
  std::vector<int64_t> steps_;  // per parameter

 private:
  struct Slot {
    std::string name;
    std::vector<Tensor> tensors;
  };
  std::vector<std::unique_ptr<Slot>> slots_;  // their addresses stay
};

// v = momentum * v + (1 - dampening) * g; p -= lr * v (nesterov: lr * (g + momentum * v)); g includes weight_decay * p.
// The first v is g.
class SGD : public Optimizer {
 public:
  // ValueError for negative values, and for nesterov without momentum or with dampening.
  SGD(std::vector<Tensor> params, SgdOptions options);
  SGD(std::vector<Tensor> params, double lr) : SGD(std::move(params), SgdOptions{.lr = lr}) {}
  void step() override;
  SgdOptions options;

 private:
  std::vector<Tensor>& momenta_;
};

// Adam (Kingma and Ba, 2015).
class Adam : public Optimizer {
 public:
  // ValueError for values out of range.
  Adam(std::vector<Tensor> params, AdamOptions options = {});
  Adam(std::vector<Tensor> params, double lr) : Adam(std::move(params), AdamOptions{.lr = lr}) {}
  // Throws RuntimeError in a capture (naru/graph.h) without options.capturable, or before the first step.
  void step() override;
  AdamOptions options;

 private:
  std::vector<int64_t> steps() const override;
  void forget_counts() override { counts_.clear(); }
  void step_on_device(const std::vector<size_t>& which);

  std::vector<Tensor> counts_;  // capturable: the steps of each parameter, shared by those that began together
  std::vector<Tensor>&exp_avg_, &exp_avg_sq_, &max_exp_avg_sq_;
};

// Adam whose weight decay shrinks the parameters directly (Loshchilov and Hutter, 2019).
class AdamW : public Adam {
 public:
  AdamW(std::vector<Tensor> params, AdamOptions options) : Adam(std::move(params), decoupled(options)) {}
  AdamW(std::vector<Tensor> params, double lr = 1e-3)
      : Adam(std::move(params), AdamOptions{.lr = lr, .weight_decay = 1e-2, .decoupled = true}) {}

 private:
  static AdamOptions decoupled(AdamOptions o) {
    o.decoupled = true;
    return o;
  }
};

}  // namespace naru::optim
