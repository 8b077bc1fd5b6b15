#include <algorithm>
#include <cmath>

#include "naru/autograd.h"
#include "naru/nn/classes.h"

namespace naru::nn {

AdaptiveLogSoftmaxWithLoss::AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t classes, std::vector<int64_t> cutoffs, double div_value,
                                                       bool head_bias, const Options& options)
    : in_(in_features), classes_(classes), cutoffs_(std::move(cutoffs)), div_value_(div_value), head_bias_(head_bias) {
  if (cutoffs_.empty()) throw ValueError("cutoffs should be a sequence of length larger than 0");
  if (!std::is_sorted(cutoffs_.begin(), cutoffs_.end(), std::less_equal<>()) || cutoffs_.front() <= 0 || cutoffs_.back() > classes - 1)
    throw ValueError(
        "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is between 1 and "
        "n_classes-1");
  const auto clusters = static_cast<int64_t>(cutoffs_.size());
  head = register_module("head", Linear(in_features, cutoffs_[0] + clusters, head_bias, options));
  tail = register_module("tail", ModuleList());
  cutoffs_.push_back(classes);
  for (size_t i = 0; i + 1 < cutoffs_.size(); ++i) {
    const auto hidden =
        static_cast<int64_t>(std::floor(static_cast<double>(in_features) / std::pow(div_value, static_cast<double>(i + 1))));
    tail->push_back(std::make_shared<Sequential>(Linear(in_features, hidden, false, options),
                                                 Linear(hidden, cutoffs_[i + 1] - cutoffs_[i], false, options)));
  }
}

void AdaptiveLogSoftmaxWithLoss::reset_parameters() {
  head->reset_parameters();
  for (const auto& [name, cluster] : tail->named_children())
    for (const auto& [part, layer] : cluster->named_children()) static_cast<Linear&>(*layer).reset_parameters();
}

Tensor AdaptiveLogSoftmaxWithLoss::of_cluster(size_t i, const Tensor& x) { return log_softmax((*tail->named_children()[i].second)(x), 1); }

std::pair<Tensor, Tensor> AdaptiveLogSoftmaxWithLoss::forward(const Tensor& given, const Tensor& given_target) {
  const int64_t rank = given_target.dim();
  if (rank > 1) throw RuntimeError("0D or 1D target tensor expected, multi-target not supported");
  if (rank == 1 && given.dim() > 0 && given.size(0) != given_target.size(0))
    throw RuntimeError("Input and target should have the same size in the batch dimension.");
  if (given.dim() != rank + 1)
    throw RuntimeError("{}D target tensor expects {}D input tensors, but found inputs with size {}", rank, rank + 1, given.sizes().str());
  const Tensor x = rank ? given : given.unsqueeze(0), target = rank ? given_target : given_target.unsqueeze(0);
  if (target.numel() && !target.device().is_meta() && (target.min().item<int64_t>() < 0 || target.max().item<int64_t>() >= classes_))
    throw RuntimeError("Target values should be in [0, {}], but values in range [{}, {}] were found. ", classes_ - 1,
                       target.min().item<int64_t>(), target.max().item<int64_t>());
  // For each row: the index of its target in the head (a class, or its cluster), and the cluster's contribution to the output.
  Tensor output = zeros({target.size(0)}, Options(x.dtype(), x.device())), place = target;
  for (size_t i = 0; i + 1 < cutoffs_.size(); ++i) {
    const int64_t low = cutoffs_[i];
    const Tensor rows = nonzero(logical_and(target >= low, target < cutoffs_[i + 1])).squeeze(1);
    if (rows.numel() == 0) continue;
    const Tensor relative = index_select(target, 0, rows) - low;
    const Tensor local = gather(of_cluster(i, index_select(x, 0, rows)), 1, relative.unsqueeze(1)).squeeze(1);
    output = index_copy(output, 0, rows, local);
    place = index_fill(place, 0, rows, cutoffs_[0] + static_cast<int64_t>(i));
  }
  output = output + gather(log_softmax((*head)(x), 1), 1, place.unsqueeze(1)).squeeze(1);
  const Tensor loss = (-output).mean();
  return {rank ? output : output.squeeze(0), loss};
}

Tensor AdaptiveLogSoftmaxWithLoss::log_prob(const Tensor& x) {
  const Tensor all = log_softmax((*head)(x), 1);
  std::vector<Tensor> parts{all.narrow(1, 0, cutoffs_[0])};
  for (size_t i = 0; i + 1 < cutoffs_.size(); ++i)
    parts.push_back(of_cluster(i, x) + all.narrow(1, cutoffs_[0] + static_cast<int64_t>(i), 1));
  return cat(parts, 1);
}

Tensor AdaptiveLogSoftmaxWithLoss::predict(const Tensor& x) {
  const Tensor best = argmax((*head)(x), 1);
  const Tensor rows = nonzero(best >= cutoffs_[0]).squeeze(1);
  if (rows.numel() == 0) return best;
  return index_copy(best, 0, rows, argmax(log_prob(index_select(x, 0, rows)), 1));
}

std::shared_ptr<Module> AdaptiveLogSoftmaxWithLoss::remake() const {
  const std::vector<int64_t> cutoffs(cutoffs_.begin(), cutoffs_.end() - 1);
  return std::make_shared<AdaptiveLogSoftmaxWithLoss>(in_, classes_, cutoffs, div_value_, head_bias_);
}

LinearCrossEntropyLoss::LinearCrossEntropyLoss(int64_t in_features, int64_t num_classes, Settings settings, Tensor class_weight,
                                               const Options& options)
    : classes_(num_classes), settings_(std::move(settings)) {
  if (class_weight.defined() && !(class_weight.sizes() == Dims{num_classes}))
    throw RuntimeError("expected weight shape to be ({},), got {}", num_classes, class_weight.sizes().str());
  if (settings_.label_smoothing < 0 || settings_.label_smoothing > 1)
    throw RuntimeError("expected label_smoothing to be in range [0, 1], got {}", settings_.label_smoothing);
  weight = register_buffer("weight", std::move(class_weight));
  linear = register_module("linear", Linear(in_features, num_classes * product(settings_.out_features), settings_.bias, options));
}

std::pair<Tensor, Tensor> AdaptiveLogSoftmaxWithLoss::operator()(const Tensor& x, const Tensor& target) {
  return with_hooks([this](const Tensor& a, const Tensor& b) { return forward(a, b); }, x, target);
}
Tensor LinearCrossEntropyLoss::operator()(const Tensor& x, const Tensor& target) {
  return with_hooks([this](const Tensor& a, const Tensor& b) { return forward(a, b); }, x, target);
}

Tensor LinearCrossEntropyLoss::forward(const Tensor& x, const Tensor& target) {
  Dims outs{classes_};
  for (const int64_t d : settings_.out_features) outs.push_back(d);
  const Tensor bias = linear->bias.defined() ? linear->bias.reshape(outs) : Tensor();
  outs.push_back(linear->weight.size(1));
  return functional::linear_cross_entropy(x, linear->weight.reshape(outs), target,
                                          {bias, weight, settings_.reduction, settings_.ignore_index, settings_.label_smoothing});
}

std::shared_ptr<Module> LinearCrossEntropyLoss::remake() const {
  return std::make_shared<LinearCrossEntropyLoss>(linear->weight.size(1), classes_, settings_,
                                                  weight.defined() ? weight.detach().clone() : Tensor());
}

}  // namespace naru::nn
