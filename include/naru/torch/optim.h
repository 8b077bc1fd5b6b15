// libtorch's optimizers and their options. Included by naru/torch.h.
#pragma once

#include <tuple>
#include <utility>
#include <vector>

#include "naru/torch/tensor.h"

namespace torch::optim {

using naru::optim::LRScheduler;
using naru::optim::Optimizer;
using naru::optim::ReduceLROnPlateau;
using naru::optim::StepLR;

// Each method sets one setting and returns the options; without arguments it says what it is.
struct SGDOptions : naru::SgdOptions {
  SGDOptions(double rate) : naru::SgdOptions{.lr = rate} {}
  SGDOptions& momentum(double v) { return naru::SgdOptions::momentum = v, *this; }
  SGDOptions& dampening(double v) { return naru::SgdOptions::dampening = v, *this; }
  SGDOptions& weight_decay(double v) { return naru::SgdOptions::weight_decay = v, *this; }
  SGDOptions& nesterov(bool v) { return naru::SgdOptions::nesterov = v, *this; }
};
struct AdamOptions : naru::AdamOptions {
  AdamOptions(double rate = 1e-3) : naru::AdamOptions{.lr = rate} {}
  AdamOptions& lr(double v) { return naru::AdamOptions::lr = v, *this; }
  AdamOptions& betas(std::tuple<double, double> v) { return beta1 = std::get<0>(v), beta2 = std::get<1>(v), *this; }
  AdamOptions& eps(double v) { return naru::AdamOptions::eps = v, *this; }
  AdamOptions& weight_decay(double v) { return naru::AdamOptions::weight_decay = v, *this; }
  AdamOptions& amsgrad(bool v) { return naru::AdamOptions::amsgrad = v, *this; }
};
struct AdamWOptions : AdamOptions {
  AdamWOptions(double rate = 1e-3) : AdamOptions(rate) { naru::AdamOptions::weight_decay = 1e-2; }
};
struct RMSpropOptions : naru::optim::RmspropOptions {
  RMSpropOptions(double rate = 1e-2) : naru::optim::RmspropOptions{.lr = rate} {}
  RMSpropOptions& alpha(double v) { return naru::optim::RmspropOptions::alpha = v, *this; }
  RMSpropOptions& eps(double v) { return naru::optim::RmspropOptions::eps = v, *this; }
  RMSpropOptions& weight_decay(double v) { return naru::optim::RmspropOptions::weight_decay = v, *this; }
  RMSpropOptions& momentum(double v) { return naru::optim::RmspropOptions::momentum = v, *this; }
  RMSpropOptions& centered(bool v) { return naru::optim::RmspropOptions::centered = v, *this; }
};
struct AdagradOptions : naru::optim::AdagradOptions {
  AdagradOptions(double rate = 1e-2) : naru::optim::AdagradOptions{.lr = rate} {}
  AdagradOptions& lr_decay(double v) { return naru::optim::AdagradOptions::lr_decay = v, *this; }
  AdagradOptions& eps(double v) { return naru::optim::AdagradOptions::eps = v, *this; }
  AdagradOptions& weight_decay(double v) { return naru::optim::AdagradOptions::weight_decay = v, *this; }
};

struct SGD : naru::optim::SGD {
  SGD(std::vector<Tensor> params, const SGDOptions& o) : naru::optim::SGD(std::move(params), static_cast<const naru::SgdOptions&>(o)) {}
};
struct Adam : naru::optim::Adam {
  explicit Adam(std::vector<Tensor> params, const AdamOptions& o = {})
      : naru::optim::Adam(std::move(params), static_cast<const naru::AdamOptions&>(o)) {}
};
struct AdamW : naru::optim::AdamW {
  explicit AdamW(std::vector<Tensor> params, const AdamWOptions& o = {})
      : naru::optim::AdamW(std::move(params), static_cast<const naru::AdamOptions&>(o)) {}
};
struct RMSprop : naru::optim::RMSprop {
  explicit RMSprop(std::vector<Tensor> params, const RMSpropOptions& o = {})
      : naru::optim::RMSprop(std::move(params), static_cast<const naru::optim::RmspropOptions&>(o)) {}
};
struct Adagrad : naru::optim::Adagrad {
  explicit Adagrad(std::vector<Tensor> params, const AdagradOptions& o = {})
      : naru::optim::Adagrad(std::move(params), static_cast<const naru::optim::AdagradOptions&>(o)) {}
};

}  // namespace torch::optim
