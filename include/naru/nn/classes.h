// Output layers that include a loss over many classes.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "naru/nn.h"
#include "naru/standard.h"

namespace naru::nn {

// Adaptive softmax for many, mostly rare classes (Grave et al., 2016): classes below cutoffs[0] are in the head, the others in clusters
// between adjacent cutoffs, whose projections have in_features / div_value^i features. cutoffs increase, between 1 and classes - 1
// (ValueError).
class AdaptiveLogSoftmaxWithLoss : public Module {
 public:
  AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t classes, std::vector<int64_t> cutoffs, double div_value = 4,
                             bool head_bias = false, const Options& options = {});
  using Module::forward;
  // x (N, in) and target (N), or (in) and (): returns the target's log probabilities, and minus their mean. Throws RuntimeError for other
  // shapes and targets.
  std::pair<Tensor, Tensor> forward(const Tensor& x, const Tensor& target);
  std::pair<Tensor, Tensor> operator()(const Tensor& x, const Tensor& target);
  Tensor log_prob(const Tensor& x);  // (N, in) to (N, classes)
  Tensor predict(const Tensor& x);   // the most probable class: (N, in) to (N)
  void reset_parameters();
  std::string name() const override { return "AdaptiveLogSoftmaxWithLoss"; }
  std::shared_ptr<Linear> head;
  std::shared_ptr<ModuleList> tail;

 protected:
  std::shared_ptr<Module> remake() const override;

 private:
  Tensor of_cluster(size_t i, const Tensor& x);

  int64_t in_, classes_;
  std::vector<int64_t> cutoffs_;  // followed by classes_
  double div_value_;
  bool head_bias_;
};

// functional::linear_cross_entropy with a linear layer's weight as parameter.
class LinearCrossEntropyLoss : public Module {
 public:
  struct Settings {
    Dims out_features = {};
    bool bias = false;
    Reduction reduction = Reduction::Mean;
    std::optional<int64_t> ignore_index = {};
    double label_smoothing = 0;
  };
  LinearCrossEntropyLoss(int64_t in_features, int64_t num_classes, Settings settings, Tensor weight = {}, const Options& options = {});
  LinearCrossEntropyLoss(int64_t in_features, int64_t num_classes) : LinearCrossEntropyLoss(in_features, num_classes, Settings()) {}
  using Module::forward;
  Tensor forward(const Tensor& x, const Tensor& target);
  Tensor operator()(const Tensor& x, const Tensor& target);
  std::string name() const override { return "LinearCrossEntropyLoss"; }
  std::shared_ptr<Linear> linear;
  Tensor weight;

 protected:
  std::shared_ptr<Module> remake() const override;

 private:
  int64_t classes_;
  Settings settings_;
};

}  // namespace naru::nn
