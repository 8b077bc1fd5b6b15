#include "naru/nn/losses.h"

#include "naru/nn/functional.h"

namespace naru::nn {

namespace F = functional;
// Parameter types of the two kinds of loss functions in the lambdas below.
using T = const Tensor&;
using W2 = const std::vector<std::pair<const char*, Tensor>>&;

L1Loss::L1Loss(Reduction r) : Loss(Parts{[=](T x, T y, W2) { return l1_loss(x, y, r); }, "L1Loss", {}}) {}
MSELoss::MSELoss(Reduction r) : Loss(Parts{[=](T x, T y, W2) { return mse_loss(x, y, r); }, "MSELoss", {}}) {}
SmoothL1Loss::SmoothL1Loss(Reduction r, double beta)
    : Loss(Parts{[=](T x, T y, W2) { return F::smooth_l1_loss(x, y, r, beta); }, "SmoothL1Loss", {}}) {}
HuberLoss::HuberLoss(Reduction r, double delta) : Loss(Parts{[=](T x, T y, W2) { return huber_loss(x, y, r, delta); }, "HuberLoss", {}}) {}
CrossEntropyLoss::CrossEntropyLoss(Reduction r, double label_smoothing, Tensor weight, int64_t ignore_index)
    : Loss(Parts{[=](T x, T y, W2 w) { return cross_entropy(x, y, w[0].second, r, ignore_index, label_smoothing); },
                 "CrossEntropyLoss",
                 {{"weight", std::move(weight)}}}) {}
NLLLoss::NLLLoss(Reduction r, Tensor weight, int64_t ignore_index)
    : Loss(Parts{
          [=](T x, T y, W2 w) { return nll_loss(x, y, w[0].second, r, ignore_index); }, "NLLLoss", {{"weight", std::move(weight)}}}) {}
BCELoss::BCELoss(Reduction r, Tensor weight)
    : Loss(Parts{[=](T x, T y, W2 w) { return binary_cross_entropy(x, y, w[0].second, r); }, "BCELoss", {{"weight", std::move(weight)}}}) {}
BCEWithLogitsLoss::BCEWithLogitsLoss(Reduction r, Tensor weight, Tensor pos_weight)
    : Loss(Parts{[=](T x, T y, W2 w) { return binary_cross_entropy_with_logits(x, y, w[0].second, r, w[1].second); },
                 "BCEWithLogitsLoss",
                 {{"weight", std::move(weight)}, {"pos_weight", std::move(pos_weight)}}}) {}
KLDivLoss::KLDivLoss(std::string reduction, bool log_target)
    : Loss(Parts{[=](T x, T y, W2) { return F::kl_div(x, y, std::string_view(reduction), log_target); }, "KLDivLoss", {}}) {}
PoissonNLLLoss::PoissonNLLLoss(bool log_input, bool full, double eps, Reduction r)
    : Loss(Parts{[=](T x, T y, W2) { return poisson_nll_loss(x, y, log_input, full, eps, r); }, "PoissonNLLLoss", {}}) {}
HingeEmbeddingLoss::HingeEmbeddingLoss(double margin, Reduction r)
    : Loss(Parts{[=](T x, T y, W2) { return hinge_embedding_loss(x, y, margin, r); }, "HingeEmbeddingLoss", {}}) {}
SoftMarginLoss::SoftMarginLoss(Reduction r) : Loss(Parts{[=](T x, T y, W2) { return soft_margin_loss(x, y, r); }, "SoftMarginLoss", {}}) {}
MultiMarginLoss::MultiMarginLoss(int64_t p, double margin, Tensor weight, Reduction r)
    : Loss(Parts{[=](T x, T y, W2 w) { return multi_margin_loss(x, y, p, margin, w[0].second, r); },
                 "MultiMarginLoss",
                 {{"weight", std::move(weight)}}}) {}
MultiLabelMarginLoss::MultiLabelMarginLoss(Reduction r)
    : Loss(Parts{[=](T x, T y, W2) { return multilabel_margin_loss(x, y, r); }, "MultiLabelMarginLoss", {}}) {}
MultiLabelSoftMarginLoss::MultiLabelSoftMarginLoss(Tensor weight, Reduction r)
    : Loss(Parts{[=](T x, T y, W2 w) { return multilabel_soft_margin_loss(x, y, w[0].second, r); },
                 "MultiLabelSoftMarginLoss",
                 {{"weight", std::move(weight)}}}) {}

GaussianNLLLoss::GaussianNLLLoss(bool full, double eps, Reduction r)
    : Loss(Parts{[=](T x, T y, T var, W2) { return F::gaussian_nll_loss(x, y, var, full, eps, r); }, "GaussianNLLLoss", {}}) {}
CosineEmbeddingLoss::CosineEmbeddingLoss(double margin, Reduction r)
    : Loss(Parts{[=](T a, T b, T y, W2) { return cosine_embedding_loss(a, b, y, margin, r); }, "CosineEmbeddingLoss", {}}) {}
MarginRankingLoss::MarginRankingLoss(double margin, Reduction r)
    : Loss(Parts{[=](T a, T b, T y, W2) { return margin_ranking_loss(a, b, y, margin, r); }, "MarginRankingLoss", {}}) {}
TripletMarginLoss::TripletMarginLoss(double margin, double p, double eps, bool swap, Reduction r)
    : Loss(Parts{[=](T a, T b, T c, W2) { return triplet_margin_loss(a, b, c, margin, p, eps, swap, r); }, "TripletMarginLoss", {}}) {
  if (margin <= 0) throw ValueError("TripletMarginLoss: expected margin to be greater than 0, got {} instead", margin);
}
TripletMarginWithDistanceLoss::TripletMarginWithDistanceLoss(Distance distance, double margin, bool swap, Reduction r)
    : Loss(Parts{[=](T a, T b, T c, W2) { return F::triplet_margin_with_distance_loss(a, b, c, distance, margin, swap, r); },
                 "TripletMarginWithDistanceLoss",
                 {}}) {
  if (margin <= 0) throw ValueError("TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {} instead", margin);
}
CTCLoss::CTCLoss(int64_t blank, Reduction r, bool zero_infinity)
    : Loss(Parts{
          [=](T x, T y, T inputs, T targets, W2) { return ctc_loss(x, y, inputs, targets, blank, r, zero_infinity); }, "CTCLoss", {}}) {}

CosineSimilarity::CosineSimilarity(int64_t dim, double eps)
    : Loss(Parts{[=](T a, T b, W2) { return cosine_similarity(a, b, dim, eps); }, "CosineSimilarity", {}}) {}
PairwiseDistance::PairwiseDistance(double p, double eps, bool keepdim)
    : Loss(Parts{[=](T a, T b, W2) { return F::pairwise_distance(a, b, p, eps, keepdim); }, "PairwiseDistance", {}}) {}

}  // namespace naru::nn
