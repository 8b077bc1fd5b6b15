// Losses that are compositions of other functions; also prelu, bilinear and tensordot, which are in autocast's lists too.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "autograd/history/constant.h"
#include "naru/ops.h"
#include "naru/ops/functions.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/half.h"
#include "ops/loss/parts.h"
#include "ops/loss/triplets.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

using ops::hinge;
using ops::only;
using ops::reduced;

// t where the condition is true, else 1, so that the logarithm is finite.
Tensor or_one(const Tensor& condition, const Tensor& t) { return where(condition, t, 1); }

}  // namespace

Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction, double delta) {
  if (auto y = ops::wrapped("huber_loss", huber_loss, input, target, reduction, delta)) return *std::move(y);
  if (delta <= 0) throw RuntimeError("huber_loss does not support non-positive values for delta. (got {})", delta);
  if (ops::is_half(input.dtype()) && input.dtype() == target.dtype())
    return huber_loss(input.to(DType::F32), target.to(DType::F32), reduction, delta).to(input.dtype());
  const Tensor difference = input - target;
  ops::require_floating(difference.dtype(), "huber_cpu");
  const Tensor d = abs(difference);
  const Tensor far = d > delta, some = where(far, 0.0, difference);
  return reduced(where(far, delta * (d - 0.5 * delta), 0.5 * some * some), reduction);
}

// In the functions below, intermediate tensors have names so that autograd nodes are created in a fixed order, not the compiler's: gradients are
// summed in that order.

Tensor kl_div(const Tensor& input, const Tensor& target, Reduction reduction, bool log_target) {
  if (auto y = ops::wrapped("kl_div", kl_div, input, target, reduction, log_target)) return *std::move(y);
  if (!is_floating(input.dtype()) || !is_floating(target.dtype()))
    throw RuntimeError("kl_div: Integral inputs not supported. (got {} and {}: convert to floating point first)",
                       ops::torch_name(input.dtype()), ops::torch_name(target.dtype()));
  if (log_target) return reduced(exp(target) * (target - input), reduction);
  const Tensor some = target != 0;
  const Tensor cross = target * input, own = only(some, target * log(or_one(some, target)));
  return reduced(own - cross, reduction);
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps, Reduction reduction) {
  if (auto y = ops::wrapped("poisson_nll_loss", poisson_nll_loss, input, target, log_input, full, eps, reduction)) return *std::move(y);
  const Tensor expected = target * (log_input ? input : log(input + eps));
  Tensor losses = (log_input ? exp(input) : input) - expected;
  if (full) {
    const Tensor large = target > 1, safe = or_one(large, target);
    const Tensor root = 0.5 * log(2 * std::numbers::pi * safe), power = safe * log(safe) - safe;
    losses = losses + only(large, power + root);
  }
  return reduced(losses, reduction);
}

Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin, Reduction reduction) {
  if (auto y = ops::wrapped("cosine_embedding_loss", cosine_embedding_loss, a, b, target, margin, reduction)) return *std::move(y);
  if (target.dim() > 1) throw RuntimeError("0D or 1D target tensor expected, multi-target not supported");
  if (const int64_t rank = target.dim() + 1; a.dim() != rank || b.dim() != rank)
    throw RuntimeError("{}D target tensor expects {}D input tensors, but found inputs with sizes {} and {}.", rank - 1, rank,
                       a.sizes().str(), b.sizes().str());
  if (ops::is_half(a.dtype()) && a.dtype() == b.dtype())  // in 16 bits squares overflow, and eps would be 0
    return cosine_embedding_loss(a.to(DType::F32), b.to(DType::F32), target, margin, reduction).to(a.dtype());
  constexpr double kEps = 1e-12;
  const auto dots = [](const Tensor& x, const Tensor& y) { return sum(x * y, Dims{-1}); };
  const Tensor length_b = dots(b, b) + kEps, length_a = dots(a, a) + kEps, lengths = sqrt(length_a * length_b);
  const Tensor cosine = dots(a, b) / lengths;
  const Tensor apart = only(target == -1, hinge(cosine - margin)), alike = only(target == 1, 1 - cosine);
  return reduced(alike + apart, reduction);
}

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin, Reduction reduction) {
  if (auto y = ops::wrapped("hinge_embedding_loss", hinge_embedding_loss, input, target, margin, reduction)) return *std::move(y);
  if (reduction == Reduction::Mean && !is_floating(input.dtype()))
    throw NotImplementedError("mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {}",
                              ops::torch_name(input.dtype()));
  return reduced(only(target != 1, hinge(margin - input)) + only(target != -1, input), reduction);
}

Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin, Reduction reduction) {
  if (auto y = ops::wrapped("margin_ranking_loss", margin_ranking_loss, a, b, target, margin, reduction)) return *std::move(y);
  return reduced(hinge(-target * (a - b) + margin), reduction);
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  if (auto y = ops::wrapped("soft_margin_loss", soft_margin_loss, input, target, reduction)) return *std::move(y);
  autograd::refuse_gradient(target, "soft_margin_loss", "target");
  const Tensor product = -input * target;
  if (!is_floating(input.dtype()))
    throw RuntimeError("result type Float can't be cast to the desired output type {} (soft_margin_loss: convert to floating point first)",
                       ops::torch_name(input.dtype()));
  // At 0 the slope of maximum() is 1/2, which is the slope of the whole loss there.
  const Tensor losses = maximum(product, zeros_like(product)) + log1p(exp(-abs(product)));
  return reduced(losses.dtype() == input.dtype() ? losses : losses.to(input.dtype()), reduction);
}

void ops::check_triplet(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin) {
  if (margin <= 0) throw ValueError("margin must be greater than 0, got {}", margin);
  if (anchor.dim() != positive.dim() || anchor.dim() != negative.dim())
    throw RuntimeError(
        "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
        "anchor {}D, positive {}D, and negative {}D inputs",
        anchor.dim(), positive.dim(), negative.dim());
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin, double p, double eps,
                           bool swap, Reduction reduction) {
  if (auto y = ops::wrapped("triplet_margin_loss", triplet_margin_loss, anchor, positive, negative, margin, p, eps, swap, reduction))
    return *std::move(y);
  ops::check_triplet(anchor, positive, negative, margin);
  const auto distance = [&](const Tensor& a, const Tensor& b) { return norm(a - b + eps, p, Dims{-1}); };
  Tensor far = distance(anchor, negative);
  if (swap) far = minimum(far, distance(positive, negative));
  return reduced(hinge(distance(anchor, positive) - far + margin), reduction);
}

Tensor prelu(const Tensor& t, const Tensor& weight) {
  if (auto y = ops::wrapped("prelu", prelu, t, weight)) return *std::move(y);
  ops::require_floating(t.dtype(), "prelu_cpu");
  Tensor w = weight;
  if (weight.numel() != 1) {
    const int64_t channels = t.dim() >= 2 ? t.size(1) : 1;
    if (weight.numel() != channels)
      throw RuntimeError("Mismatch of parameter numbers and input channel size. Found parameter numbers = {} and channel size = {}.",
                         weight.numel(), channels);
    Dims shape(static_cast<size_t>(std::max<int64_t>(t.dim() - 1, 1)), 1);
    shape[0] = -1;
    if (t.dim() > 2) w = weight.reshape(shape);
  }
  if (t.dim() == 0) w = weight.reshape({});
  // The branch that is not selected must be finite: a zero gradient times infinity is NaN.
  const Tensor above = t > 0;
  return autograd::reading_inputs(where(above, t, where(above, 0.0, w) * where(above, 0.0, t)));
}

Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight, const Tensor& bias) {
  if (auto y = ops::wrapped("bilinear", bilinear, a, b, weight, bias)) return *std::move(y);
  if (a.device().is_cpu() && ops::is_half(a.dtype()) && a.dtype() == b.dtype() && a.dtype() == weight.dtype()) {  // rounded once
    const Tensor wide = bilinear(a.to(DType::F32), b.to(DType::F32), weight.to(DType::F32));
    return bias.defined() ? (wide + bias).to(a.dtype()) : wide.to(a.dtype());
  }
  if (weight.dim() != 3) throw RuntimeError("bilinear(): weight must have 3 dimensions, got {}", weight.dim());
  if (a.dim() == 0 || b.dim() == 0)
    throw RuntimeError("bilinear(): inputs must have a dimension at least, got shapes {} and {}", a.sizes().str(), b.sizes().str());
  Dims lead = a.sizes(), others = b.sizes();
  lead.erase(lead.size() - 1), others.erase(others.size() - 1);
  if (!(lead == others))
    throw RuntimeError("bilinear(): input batch dimensions do not match: got {} and {}", a.sizes().str(), b.sizes().str());
  const int64_t outs = weight.size(0), ins[] = {weight.size(1), weight.size(2)};
  for (int i = 0; i < 2; ++i)
    if (const int64_t n = (i ? b : a).size(-1); n != ins[i])
      throw RuntimeError("bilinear(): input{} size does not match weight size: got {} but expected {}", i + 1, n, ins[i]);
  const int64_t rows = product(lead);
  const Tensor left = matmul(a.reshape({rows, ins[0]}), weight.permute({1, 0, 2}).reshape({ins[0], outs * ins[1]}));
  Dims shape = lead;
  shape.push_back(outs);
  const Tensor products = left.reshape({rows, outs, ins[1]}) * b.reshape({rows, 1, ins[1]});
  const Tensor out = sum(products, Dims{-1}, false, products.dtype()).reshape(shape);
  return bias.defined() ? out + bias : out;
}

namespace {

// The dimensions 0 ... all - 1 that are not in `some`.
Dims without(int64_t all, const Dims& some) {
  Dims rest;
  for (int64_t d = 0; d < all; ++d)
    if (std::find(some.begin(), some.end(), d) == some.end()) rest.push_back(d);
  return rest;
}
Dims wrapped(const Dims& dims, int64_t rank) {
  Dims out;
  for (const int64_t d : dims) out.push_back(wrap_dim(d, rank));
  return out;
}
Dims joined(Dims a, const Dims& b) {
  for (const int64_t d : b) a.push_back(d);
  return a;
}
Dims sizes_of(const Tensor& t, const Dims& dims) {
  Dims sizes;
  for (const int64_t d : dims) sizes.push_back(t.size(d));
  return sizes;
}

}  // namespace

Tensor tensordot(const Tensor& first, const Tensor& second, const Dims& first_dims, const Dims& second_dims) {
  if (auto y = ops::wrapped(
          "tensordot", [](const auto&... a) { return tensordot(a...); }, first, second, first_dims, second_dims))
    return *std::move(y);
  if (first_dims.size() != second_dims.size()) throw RuntimeError("both dimension lists should have same length");
  Tensor a = first, b = second;
  const Dims in_a = wrapped(first_dims, a.dim()), in_b = wrapped(second_dims, b.dim());
  // A size of 1 on one side broadcasts: sum the other side's dimension first.
  for (size_t k = 0; k < in_a.size(); ++k) {
    const int64_t i = in_a[k], j = in_b[k];
    if (a.size(i) == 1 && b.size(j) != 1)
      b = sum(b, Dims{j}, true, b.dtype());
    else if (b.size(j) == 1 && a.size(i) != 1)
      a = sum(a, Dims{i}, true, a.dtype());
    else if (a.size(i) != b.size(j))
      throw RuntimeError("contracted dimensions need to match, but first has size {} in dim {} and second has size {} in dim {}", a.size(i),
                         i, b.size(j), j);
  }
  const Dims free_a = without(a.dim(), in_a), free_b = without(b.dim(), in_b);
  const int64_t inner = product(sizes_of(a, in_a));
  const Tensor left = a.permute(joined(free_a, in_a)).reshape({product(sizes_of(a, free_a)), inner});
  const Tensor right = b.permute(joined(in_b, free_b)).reshape({inner, product(sizes_of(b, free_b))});
  return matmul(left, right).reshape(joined(sizes_of(a, free_a), sizes_of(b, free_b)));
}

Tensor tensordot(const Tensor& a, const Tensor& b, int64_t dims) {
  if (dims < 0) throw RuntimeError("tensordot expects dims >= 0, but got dims={}", dims);
  if (dims > std::min(a.dim(), b.dim())) throw RuntimeError("tensordot expects dims < ndim_a or ndim_b, but got dims={}", dims);
  Dims last(static_cast<size_t>(dims), 0), first(static_cast<size_t>(dims), 0);
  std::iota(last.begin(), last.end(), a.dim() - dims);
  std::iota(first.begin(), first.end(), 0);
  return tensordot(a, b, last, first);
}

}  // namespace naru
