// Embeddings, normalisation, pooling, resampling and losses as functions.
#include "naru/nn/functional.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "naru/autograd.h"
#include "ops/elementwise/half.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru::nn::functional {
namespace {

// Shrinks, in place, the rows about to be read whose norm is more than max_norm.
void renorm_rows(const Tensor& weight, const Tensor& index, double max_norm, double norm_type) {
  const NoGrad off;
  const Tensor used = std::get<0>(unique(index.reshape({-1})));
  const Tensor rows = weight.index(std::vector<Index>{used});
  const Tensor norms = norm(rows, norm_type, Dims{1}, true);
  Tensor target = weight;
  target.index_put_(std::vector<Index>{used}, where(norms > max_norm, rows * (Scalar(max_norm) / (norms + 1e-7)), rows));
}

void require_spatial(const Tensor& x, int64_t n, const char* name) {
  if (x.dim() != n + 1 && x.dim() != n + 2)
    throw RuntimeError("{}{}d: Expected {}D or {}D (batch mode) tensor for input, but got: {}", name, n, n + 1, n + 2, x.sizes().str());
}

int64_t at(const Dims& list, int64_t d) { return list[list.size() == 1 ? 0 : static_cast<size_t>(d)]; }

// The sizes that were pooled: those asked for, if a window could have been left over, else the least.
Dims unpooled_sizes(const Tensor& x, int64_t n, const Dims& kernel, const Dims& stride, const Dims& padding, const Dims& output_size) {
  const auto check = [&](const Dims& list, const char* what) {
    if (list.size() != 1 && static_cast<int64_t>(list.size()) != n)
      throw RuntimeError("max_unpool{}d: {} must be an int or have {} of them, got {}", n, what, n, list.size());
  };
  const Dims& step = stride.empty() ? kernel : stride;
  check(kernel, "kernel_size"), check(step, "stride"), check(padding, "padding");
  Dims least;
  for (int64_t d = 0; d < n; ++d) least.push_back((x.size(d - n) - 1) * at(step, d) + at(kernel, d) - 2 * at(padding, d));
  if (output_size.empty()) return least;
  const size_t front = static_cast<int64_t>(output_size.size()) == n + 2 ? 2 : 0;
  const Dims wanted(std::span<const int64_t>(output_size).subspan(front));
  if (static_cast<int64_t>(wanted.size()) != n)
    throw ValueError("output_size should be a sequence containing {} or {} elements, but it has a length of '{}'", n, n + 2,
                     output_size.size());
  for (int64_t d = 0; d < n; ++d) {
    const int64_t low = at(least, d) - at(step, d), high = at(least, d) + at(step, d), got = wanted[static_cast<size_t>(d)];
    if (got <= low || got >= high)
      throw ValueError("invalid output_size \"{}\" (dim {} must be between {} and {})", output_size.str(), d, low, high);
  }
  return wanted;
}

Tensor unpool(int64_t n, const Tensor& x, const Tensor& indices, const Dims& kernel, const Dims& stride, const Dims& padding,
              const Dims& output_size) {
  require_spatial(x, n, "max_unpool");
  return max_unpool(n, x, indices, unpooled_sizes(x, n, kernel, stride, padding, output_size));
}

Pair fractional(int64_t n, const Tensor& x, const Dims& kernel, const FractionalOptions& o) {
  require_spatial(x, n, "fractional_max_pool");
  Dims size = o.output_size;
  if (size.empty()) {
    if (o.output_ratio.empty()) throw ValueError("fractional_max_pool{}d requires specifying either an output_size or an output_ratio", n);
    for (int64_t d = 0; d < n; ++d)
      size.push_back(static_cast<int64_t>(static_cast<double>(x.size(d - n)) *
                                          o.output_ratio[o.output_ratio.size() == 1 ? 0 : static_cast<size_t>(d)]));
  }
  Tensor samples = o.samples;
  if (!samples.defined()) samples = rand({x.dim() == n + 1 ? 1 : x.size(0), x.size(-n - 1), n}, Options(x.dtype(), x.device()));
  return fractional_max_pool(n, x, kernel, size, samples);
}

}  // namespace

Tensor embedding(const Tensor& index, const Tensor& weight, std::optional<int64_t> padding_idx, std::optional<double> max_norm,
                 double norm_type, bool scale_grad_by_freq, bool sparse) {
  int64_t padding = padding_idx.value_or(-1);
  if (padding_idx) {
    const int64_t rows = weight.size(0);
    if (padding < -rows || padding >= rows) throw ValueError("Padding_idx must be within num_embeddings");
    if (padding < 0) padding += rows;
  }
  if (max_norm) renorm_rows(weight, index, *max_norm, norm_type);
  return naru::embedding(weight, index, padding, scale_grad_by_freq, sparse);
}

Tensor normalize(const Tensor& x, double p, int64_t dim, double eps) {
  if (ops::is_half(x.dtype())) return normalize(x.to(DType::F32), p, dim, eps).to(x.dtype());
  return x / clamp(norm(x, p, Dims{dim}, true), Operand(eps)).expand(x.sizes());
}

Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdim) {
  return norm(a - b + eps, p, Dims{-1}, keepdim);
}

Pair max_pool1d_with_indices(const Tensor& x, const Dims& k, const Dims& s, const Dims& p, const Dims& d, bool ceil) {
  return max_pool(1, x, k, s, p, d, ceil);
}
Pair max_pool2d_with_indices(const Tensor& x, const Dims& k, const Dims& s, const Dims& p, const Dims& d, bool ceil) {
  return max_pool(2, x, k, s, p, d, ceil);
}
Pair max_pool3d_with_indices(const Tensor& x, const Dims& k, const Dims& s, const Dims& p, const Dims& d, bool ceil) {
  return max_pool(3, x, k, s, p, d, ceil);
}
Pair adaptive_max_pool1d_with_indices(const Tensor& x, const Dims& size) { return adaptive_max_pool(1, x, size); }
Pair adaptive_max_pool2d_with_indices(const Tensor& x, const Dims& size) { return adaptive_max_pool(2, x, size); }
Pair adaptive_max_pool3d_with_indices(const Tensor& x, const Dims& size) { return adaptive_max_pool(3, x, size); }
Tensor adaptive_max_pool1d(const Tensor& x, const Dims& size) { return adaptive_max_pool(1, x, size).first; }
Tensor adaptive_max_pool2d(const Tensor& x, const Dims& size) { return adaptive_max_pool(2, x, size).first; }
Tensor adaptive_max_pool3d(const Tensor& x, const Dims& size) { return adaptive_max_pool(3, x, size).first; }
Tensor lp_pool1d(const Tensor& x, double p, const Dims& k, const Dims& s, bool ceil) { return lp_pool(1, x, p, k, s, ceil); }
Tensor lp_pool2d(const Tensor& x, double p, const Dims& k, const Dims& s, bool ceil) { return lp_pool(2, x, p, k, s, ceil); }
Tensor lp_pool3d(const Tensor& x, double p, const Dims& k, const Dims& s, bool ceil) { return lp_pool(3, x, p, k, s, ceil); }
Tensor fractional_max_pool2d(const Tensor& x, const Dims& k, const FractionalOptions& o) { return fractional(2, x, k, o).first; }
Tensor fractional_max_pool3d(const Tensor& x, const Dims& k, const FractionalOptions& o) { return fractional(3, x, k, o).first; }
Pair fractional_max_pool2d_with_indices(const Tensor& x, const Dims& k, const FractionalOptions& o) { return fractional(2, x, k, o); }
Pair fractional_max_pool3d_with_indices(const Tensor& x, const Dims& k, const FractionalOptions& o) { return fractional(3, x, k, o); }
Tensor max_unpool1d(const Tensor& x, const Tensor& i, const Dims& k, const Dims& s, const Dims& p, const Dims& size) {
  return unpool(1, x, i, k, s, p, size);
}
Tensor max_unpool2d(const Tensor& x, const Tensor& i, const Dims& k, const Dims& s, const Dims& p, const Dims& size) {
  return unpool(2, x, i, k, s, p, size);
}
Tensor max_unpool3d(const Tensor& x, const Tensor& i, const Dims& k, const Dims& s, const Dims& p, const Dims& size) {
  return unpool(3, x, i, k, s, p, size);
}

Tensor interpolate(const Tensor& x, const InterpolateOptions& o) {
  const bool corners = o.mode != "nearest" && o.mode != "area" && o.mode != "nearest-exact";
  if (!corners && o.align_corners)
    throw ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear");
  if (!o.size.empty() && !o.scale_factor.empty()) throw ValueError("only one of size or scale_factor should be defined");
  if (o.size.empty() && o.scale_factor.empty()) throw ValueError("either size or scale_factor should be defined");
  if (!o.size.empty() && o.recompute_scale_factor) throw ValueError("recompute_scale_factor is not meaningful with an explicit size.");
  if (o.antialias && !((o.mode == "bilinear" || o.mode == "bicubic" || o.mode == "lanczos") && x.dim() == 4))
    throw ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input");
  const auto n = static_cast<size_t>(std::max<int64_t>(x.dim() - 2, 0));
  const auto fits = [&](size_t given, const char* what) {
    if (given != 1 && given != n)
      throw ValueError("Input and {} must have the same number of spatial dimensions, but got input with {} of them and {} of {}", what, n,
                       what, given);
  };
  Dims size = o.size;
  std::vector<double> scales;
  if (!size.empty()) {
    fits(size.size(), "output");
    if (size.size() == 1) size = Dims(n, size[0]);
  } else {
    fits(o.scale_factor.size(), "scale_factor");
    for (size_t d = 0; d < n; ++d) {
      scales.push_back(o.scale_factor[o.scale_factor.size() == 1 ? 0 : d]);
      size.push_back(static_cast<int64_t>(static_cast<double>(x.size(static_cast<int64_t>(d) + 2)) * scales.back()));
    }
    if (o.recompute_scale_factor || o.mode == "area") scales.clear();
  }
  return naru::interpolate(x, size, o.mode, o.align_corners.value_or(false), scales, o.antialias);
}

Tensor kl_div(const Tensor& input, const Tensor& target, std::string_view reduction, bool log_target) {
  if (reduction == "mean") return naru::kl_div(input, target, Reduction::Mean, log_target);
  if (reduction == "none") return naru::kl_div(input, target, Reduction::None, log_target);
  if (reduction != "sum" && reduction != "batchmean") throw ValueError("{} is not a valid value for reduction", reduction);
  const Tensor sum = naru::kl_div(input, target, Reduction::Sum, log_target);
  return reduction == "sum" || input.dim() == 0 ? sum : sum / input.size(0);
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction, double beta) {
  if (beta < 0) throw RuntimeError("smooth_l1_loss does not support negative values for beta.");
  return beta == 0 ? l1_loss(input, target, reduction) : naru::smooth_l1_loss(input, target, reduction, beta);
}

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& variance, bool full, double eps, Reduction reduction) {
  Tensor var = variance;
  if (!(var.sizes() == input.sizes())) {
    const auto front = [](const Tensor& t) { return Dims(std::span<const int64_t>(t.sizes()).first(static_cast<size_t>(t.dim() - 1))); };
    const auto fits = [](int64_t n, int64_t of_var) { return of_var == 1 || of_var == n; };
    if (input.dim() > 0 && front(input) == var.sizes())
      var = var.unsqueeze(-1);
    else if (input.dim() != var.dim() || !std::equal(input.sizes().begin(), input.sizes().end(), var.sizes().begin(), fits))
      throw ValueError("var is of incorrect size");
  }
  if (var.numel() && ops::number_or(var.detach().min(), 0) < 0) throw ValueError("var has negative entry/entries");
  if (!is_floating(input.dtype()) || !is_floating(var.dtype()))
    throw RuntimeError("gaussian_nll_loss: wanted floating point input and var, got {} and {}: convert to floating point first",
                       name_of(input.dtype()), name_of(var.dtype()));
  var = var + (clamp(var.detach(), Operand(eps)) - var.detach());  // the floor takes no part in the gradient
  const Tensor difference = input - target;
  Tensor losses = Scalar(0.5) * (var.log() + difference.pow(2) / var);
  if (full) losses = losses + 0.5 * std::log(2 * std::numbers::pi);
  if (reduction == Reduction::None) return losses;
  return reduction == Reduction::Sum ? losses.sum() : losses.mean();
}

}  // namespace naru::nn::functional
