// Functions of torch.nn.functional composed of others: triplet loss with a distance, the cross entropy of a linear layer, grouped products.
#include "naru/nn/functional.h"
#include "ops/elementwise/half.h"
#include "ops/loss/triplets.h"
#include "ops/tensor/type_names.h"

namespace naru::nn::functional {

Tensor triplet_margin_of_distances(const Tensor& positive, const Tensor& negative, const Tensor& between, double margin,
                                   Reduction reduction) {
  const Tensor far = between.defined() ? minimum(negative, between) : negative;
  const Tensor losses = clamp_min(Scalar(margin) + positive - far, 0);
  return reduction == Reduction::Mean ? losses.mean() : reduction == Reduction::Sum ? losses.sum() : losses;
}

Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, const Distance& distance,
                                         double margin, bool swap, Reduction reduction) {
  ops::check_triplet(anchor, positive, negative, margin);
  const auto d = [&](const Tensor& a, const Tensor& b) { return distance ? distance(a, b) : pairwise_distance(a, b); };
  const Tensor near = d(anchor, positive), far = d(anchor, negative);
  return triplet_margin_of_distances(near, far, swap ? d(positive, negative) : Tensor(), margin, reduction);
}

Tensor linear_cross_entropy(const Tensor& x, const Tensor& linear_weight, const Tensor& target, const LinearCrossEntropyOptions& o) {
  if (x.dim() < 1 || x.dim() > 2) throw RuntimeError("expected input with dimensionality 1 or 2, got {}", x.dim());
  if (linear_weight.dim() < 2) throw RuntimeError("expected linear_weight with dimensionality at least 2, got {}", linear_weight.dim());
  const int64_t features = x.size(-1);
  if (features != linear_weight.size(-1))
    throw RuntimeError("expected equal input and linear_weight last dimensions (in_features), got {} and {}, respectively", features,
                       linear_weight.size(-1));
  const Dims outs(std::span<const int64_t>(linear_weight.sizes()).first(static_cast<size_t>(linear_weight.dim() - 1)));
  if (o.bias.defined() && !(o.bias.sizes() == outs))
    throw RuntimeError("expected linear_bias shape {}, got {}", outs.str(), o.bias.sizes().str());
  if (outs.size() > 1 && x.dim() == 1)
    throw RuntimeError(
        "K-dimensional loss defined by linear_weight shape {} requires batched input, (N, {}), got unbatched input with shape {}",
        linear_weight.sizes().str(), features, x.sizes().str());
  Dims shape;
  if (x.dim() == 2) shape.push_back(x.size(0));
  for (const int64_t d : outs) shape.push_back(d);
  if (target.sizes() == shape && o.ignore_index) throw RuntimeError("ignore_index cannot be specified when target contains probabilities");
  const int64_t columns = product(outs);
  const bool half = x.device().is_cpu() && ops::is_half(x.dtype()) && linear_weight.dtype() == x.dtype();
  if (half) {  // round to 16 bits once
    const auto wide = [](const Tensor& t) { return t.defined() && is_floating(t.dtype()) ? t.to(DType::F32) : t; };
    LinearCrossEntropyOptions options = o;
    options.bias = wide(o.bias), options.weight = wide(o.weight);
    return linear_cross_entropy(wide(x), wide(linear_weight), wide(target), options).to(x.dtype());
  }
  const Tensor logits = linear(x, linear_weight.reshape({columns, features}), o.bias.defined() ? o.bias.reshape({columns}) : Tensor());
  return cross_entropy(logits.reshape(shape), target, o.weight, o.reduction, o.ignore_index.value_or(-100), o.label_smoothing);
}

namespace {

// The end of each group. Checks that they do not decrease and are within `size`.
std::vector<int64_t> ends_of(const Tensor& offs, int64_t size) {
  if (offs.dim() != 1) throw RuntimeError("offs has to be 1D");
  if (offs.dtype() != DType::I32) throw RuntimeError("Offsets have to be int32");
  const std::vector<int64_t> ends = offs.to_ints();
  int64_t before = 0;
  for (const int64_t end : ends) {
    if (end < before || end > size)
      throw RuntimeError("grouped_mm: offs have to rise from 0 to at most {}, the size they divide; got {} behind {}", size, end, before);
    before = end;
  }
  return ends;
}

}  // namespace

Tensor grouped_mm(const Tensor& a, const Tensor& b, const Tensor& offs) {
  for (const auto& [t, name] : {std::pair(&a, "mat_a"), std::pair(&b, "mat_b")}) {
    if (!is_floating(t->dtype()))
      throw RuntimeError("Expected {} to be Float32, BFloat16 or Float16 matrix, got {}", name, ops::torch_name(t->dtype()));
    if (t->dim() != 2 && t->dim() != 3) throw RuntimeError("{} has to be 2 or 3d", name);
  }
  const bool groups_a = a.dim() == 3, groups_b = b.dim() == 3;
  if (offs.defined() == (groups_a && groups_b))
    throw RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d");
  if (a.size(-1) != b.size(-2))
    throw RuntimeError("contraction dimension of mat_a and mat_b must match (got {} and {})", a.size(-1), b.size(-2));
  const auto same_groups = [](int64_t x, int64_t y) {
    if (x != y) throw RuntimeError("matrix batch sizes have to match (got {} and {})", x, y);
  };
  if (!offs.defined()) {
    same_groups(a.size(0), b.size(0));
    return bmm(a, b);
  }
  const std::vector<int64_t> ends = ends_of(offs, groups_b ? a.size(0) : groups_a ? b.size(1) : a.size(1));
  const auto count = static_cast<int64_t>(ends.size());
  if (groups_a || groups_b) same_groups(count, groups_a ? a.size(0) : b.size(0));
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (int64_t g = 0; g < count; ++g) {
    const int64_t n = ends[static_cast<size_t>(g)] - begin;
    if (groups_b)
      parts.push_back(matmul(a.narrow(0, begin, n), b[g]));
    else if (groups_a)
      parts.push_back(matmul(a[g], b.narrow(1, begin, n)));
    else
      parts.push_back(matmul(a.narrow(1, begin, n), b.narrow(0, begin, n)));
    begin += n;
  }
  if (!groups_a && !groups_b) return parts.empty() ? zeros({0, a.size(0), b.size(1)}, Options(a.dtype(), a.device())) : stack(parts);
  const int64_t along = groups_b ? 0 : 1, rest = (groups_b ? a.size(0) : b.size(1)) - begin;
  if (rest || parts.empty()) {
    const Dims shape = groups_b ? Dims{rest, b.size(2)} : Dims{a.size(1), rest};
    parts.push_back(zeros(shape, Options(a.dtype(), a.device())));
  }
  return cat(parts, along);
}

}  // namespace naru::nn::functional
