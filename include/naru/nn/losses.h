// Losses as modules, documented in naru/nn/functional.h, naru/ops.h and naru/ops/functions.h.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "naru/nn/module.h"
#include "naru/standard.h"

namespace naru::nn {

// Base class: a function of In... tensors and of the loss's weights, which are buffers.
template <class D, class... In>
class Loss : public Module {
 public:
  using Weights = std::vector<std::pair<const char*, Tensor>>;
  struct Parts {
    std::function<Tensor(const In&..., const Weights&)> call;
    std::string name;
    Weights weights;
  };
  explicit Loss(Parts parts) : parts_(std::move(parts)) {
    for (const auto& [key, t] : parts_.weights) register_buffer(key, t);
  }
  using Module::forward;
  Tensor forward(const In&... in) { return parts_.call(in..., parts_.weights); }
  Tensor operator()(const In&... in) {
    return this->with_hooks([this](const In&... given) { return forward(given...); }, in...);
  }
  std::string name() const override { return parts_.name; }

 protected:
  std::shared_ptr<Module> remake() const override {
    Parts own = parts_;
    for (auto& [key, t] : own.weights)
      if (t.defined()) t = t.detach().clone();
    return std::make_shared<D>(std::move(own));
  }

 private:
  Parts parts_;
};
template <class D>
using Loss2 = Loss<D, Tensor, Tensor>;
template <class D>
using Loss3 = Loss<D, Tensor, Tensor, Tensor>;

// --- losses of an input and a target
class L1Loss : public Loss2<L1Loss> {
 public:
  using Loss::Loss;
  explicit L1Loss(Reduction reduction = Reduction::Mean);
};
class MSELoss : public Loss2<MSELoss> {
 public:
  using Loss::Loss;
  explicit MSELoss(Reduction reduction = Reduction::Mean);
};
class SmoothL1Loss : public Loss2<SmoothL1Loss> {
 public:
  using Loss::Loss;
  explicit SmoothL1Loss(Reduction reduction = Reduction::Mean, double beta = 1);
};
class HuberLoss : public Loss2<HuberLoss> {
 public:
  using Loss::Loss;
  explicit HuberLoss(Reduction reduction = Reduction::Mean, double delta = 1);
};
// input (N, C): unnormalized log probabilities (logits); target: class indices (N), or probabilities (N, C).
class CrossEntropyLoss : public Loss2<CrossEntropyLoss> {
 public:
  using Loss::Loss;
  explicit CrossEntropyLoss(Reduction reduction = Reduction::Mean, double label_smoothing = 0, Tensor weight = {},
                            int64_t ignore_index = -100);
};
class NLLLoss : public Loss2<NLLLoss> {
 public:
  using Loss::Loss;
  explicit NLLLoss(Reduction reduction = Reduction::Mean, Tensor weight = {}, int64_t ignore_index = -100);
};
class BCELoss : public Loss2<BCELoss> {
 public:
  using Loss::Loss;
  explicit BCELoss(Reduction reduction = Reduction::Mean, Tensor weight = {});
};
class BCEWithLogitsLoss : public Loss2<BCEWithLogitsLoss> {
 public:
  using Loss::Loss;
  explicit BCEWithLogitsLoss(Reduction reduction = Reduction::Mean, Tensor weight = {}, Tensor pos_weight = {});
};
// reduction: "mean", "sum", "none" or "batchmean".
class KLDivLoss : public Loss2<KLDivLoss> {
 public:
  using Loss::Loss;
  explicit KLDivLoss(std::string reduction = "mean", bool log_target = false);
};
class PoissonNLLLoss : public Loss2<PoissonNLLLoss> {
 public:
  using Loss::Loss;
  explicit PoissonNLLLoss(bool log_input = true, bool full = false, double eps = 1e-8, Reduction reduction = Reduction::Mean);
};
class HingeEmbeddingLoss : public Loss2<HingeEmbeddingLoss> {
 public:
  using Loss::Loss;
  explicit HingeEmbeddingLoss(double margin = 1, Reduction reduction = Reduction::Mean);
};
class SoftMarginLoss : public Loss2<SoftMarginLoss> {
 public:
  using Loss::Loss;
  explicit SoftMarginLoss(Reduction reduction = Reduction::Mean);
};
class MultiMarginLoss : public Loss2<MultiMarginLoss> {
 public:
  using Loss::Loss;
  explicit MultiMarginLoss(int64_t p = 1, double margin = 1, Tensor weight = {}, Reduction reduction = Reduction::Mean);
};
class MultiLabelMarginLoss : public Loss2<MultiLabelMarginLoss> {
 public:
  using Loss::Loss;
  explicit MultiLabelMarginLoss(Reduction reduction = Reduction::Mean);
};
class MultiLabelSoftMarginLoss : public Loss2<MultiLabelSoftMarginLoss> {
 public:
  using Loss::Loss;
  explicit MultiLabelSoftMarginLoss(Tensor weight = {}, Reduction reduction = Reduction::Mean);
};

// --- losses of three tensors: input, target, variance; two inputs and a target; anchor, positive, negative
class GaussianNLLLoss : public Loss3<GaussianNLLLoss> {
 public:
  using Loss::Loss;
  explicit GaussianNLLLoss(bool full = false, double eps = 1e-6, Reduction reduction = Reduction::Mean);
};
class CosineEmbeddingLoss : public Loss3<CosineEmbeddingLoss> {
 public:
  using Loss::Loss;
  explicit CosineEmbeddingLoss(double margin = 0, Reduction reduction = Reduction::Mean);
};
class MarginRankingLoss : public Loss3<MarginRankingLoss> {
 public:
  using Loss::Loss;
  explicit MarginRankingLoss(double margin = 0, Reduction reduction = Reduction::Mean);
};
class TripletMarginLoss : public Loss3<TripletMarginLoss> {
 public:
  using Loss::Loss;
  explicit TripletMarginLoss(double margin = 1, double p = 2, double eps = 1e-6, bool swap = false, Reduction reduction = Reduction::Mean);
};
class TripletMarginWithDistanceLoss : public Loss3<TripletMarginWithDistanceLoss> {
 public:
  using Loss::Loss;
  using Distance = std::function<Tensor(const Tensor&, const Tensor&)>;
  explicit TripletMarginWithDistanceLoss(Distance distance = {}, double margin = 1, bool swap = false,
                                         Reduction reduction = Reduction::Mean);
};
// For log_probs, targets, input_lengths, target_lengths: see naru/ops/losses.h.
class CTCLoss : public Loss<CTCLoss, Tensor, Tensor, Tensor, Tensor> {
 public:
  using Loss::Loss;
  explicit CTCLoss(int64_t blank = 0, Reduction reduction = Reduction::Mean, bool zero_infinity = false);
};

// --- layers of two tensors
// cosine_similarity and pairwise_distance as modules.
class CosineSimilarity : public Loss2<CosineSimilarity> {
 public:
  using Loss::Loss;
  explicit CosineSimilarity(int64_t dim = 1, double eps = 1e-8);
};
class PairwiseDistance : public Loss2<PairwiseDistance> {
 public:
  using Loss::Loss;
  explicit PairwiseDistance(double p = 2, double eps = 1e-6, bool keepdim = false);
};

}  // namespace naru::nn
