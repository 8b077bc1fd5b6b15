// Pooling, channel normalization, padding and resampling.
#include "naru/ops/norms.h"
#include "naru/ops/pooling.h"
#include "naru/ops/resampling.h"
#include "object/tensor_object.h"
#include "ops/tensor/common.h"

namespace naru::py {
namespace {

using Pair = std::pair<Tensor, Tensor>;

Dims or_empty(const OptionalDims& d) { return d ? *d : Dims(); }

struct Named3 {
  const char *max, *max_with_indices, *avg, *adaptive_avg, *adaptive_max, *shape;
};
constexpr Named3 kPools[] = {
    {"max_pool1d", "max_pool1d_with_indices", "avg_pool1d", "adaptive_avg_pool1d", "adaptive_max_pool1d", "(N, C, l)"},
    {"max_pool2d", "max_pool2d_with_indices", "avg_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d", "(N, C, h, w)"},
    {"max_pool3d", "max_pool3d_with_indices", "avg_pool3d", "adaptive_avg_pool3d", "adaptive_max_pool3d", "(N, C, d, h, w)"},
};

void define_pools() {
  for (int64_t n = 1; n <= 3; ++n) {
    const Named3& names = kPools[n - 1];
    constexpr const char* kWindow = "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False";
    def(kFunction, names.max, kWindow, "The greatest element of each window of (N, C, d1...) or (C, d1...).",
        [n](const Tensor& x, const Dims& kernel, const OptionalDims& stride, const Dims& padding, const Dims& dilation, bool ceil_mode) {
          // Like PyTorch, which has two kernels: only the one that returns indices accepts integers.
          if (n == 1 && x.defined() && !is_floating(x.dtype())) ops::throw_not_implemented("max_pool1d_impl", x.dtype());
          return max_pool_values(n, x, kernel, or_empty(stride), padding, dilation, ceil_mode);
        });
    def(kFunction, names.max_with_indices, kWindow,
        "The greatest element of each window, and its place among those of its channel (int64).",
        [n](const Tensor& x, const Dims& kernel, const OptionalDims& stride, const Dims& padding, const Dims& dilation,
            bool ceil_mode) -> Pair { return max_pool(n, x, kernel, or_empty(stride), padding, dilation, ceil_mode); });
    if (n == 1)
      def(kFunction, names.avg, "input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True",
          "The mean of each window of (N, C, l) or (C, l).",
          [](const Tensor& x, const Dims& kernel, const OptionalDims& stride, const Dims& padding, bool ceil_mode, bool with_padding) {
            return avg_pool(1, x, kernel, or_empty(stride), padding, ceil_mode, with_padding);
          });
    else
      def(kFunction, names.avg,
          "input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None",
          "The mean of each window of (N, C, d1...) or (C, d1...).",
          [n](const Tensor& x, const Dims& kernel, const OptionalDims& stride, const Dims& padding, bool ceil_mode, bool with_padding,
              std::optional<int64_t> divisor) {
            return avg_pool(n, x, kernel, or_empty(stride), padding, ceil_mode, with_padding, divisor);
          });
    def(kFunction, names.adaptive_avg, "input, output_size", "The means of as many windows as asked for, which cover the input.",
        [n](const Tensor& x, const Dims& size) { return adaptive_avg_pool(n, x, size); });
    def(kFunction, names.adaptive_max, "input, output_size",
        "The greatest elements of as many windows as asked for, and their places among those of their channel (int64).",
        [n](const Tensor& x, const Dims& size) -> Pair { return adaptive_max_pool(n, x, size); });
  }
  def(kFunction, "_lp_pool", "n, input, norm_type, kernel_size, stride=None, ceil_mode=False",
      "(sum of x^p)^(1/p) of each window, of n dimensions.",
      [](int64_t n, const Tensor& x, double p, const Dims& kernel, const OptionalDims& stride, bool ceil_mode) {
        return lp_pool(n, x, p, kernel, or_empty(stride), ceil_mode);
      });
  def(kFunction, "_fractional_max_pool", "n, input, kernel_size, output_size, samples",
      "Greatest elements of windows at random places, and their places.",
      [](int64_t n, const Tensor& x, const Dims& kernel, const Dims& size, const Tensor& samples) -> Pair {
        return fractional_max_pool(n, x, kernel, size, samples);
      });
  def(kFunction, "_max_unpool", "n, input, indices, output_size", "Zeros, with the elements of input at their places.",
      [](int64_t n, const Tensor& x, const Tensor& indices, const Dims& size) { return max_unpool(n, x, indices, size); });
}

void define_norms() {
  def(kFunction, "batch_norm", "input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=False",
      "(x - mean) / sqrt(variance + eps) * weight + bias for each channel of (N, C, ...).",
      [](const Tensor& x, const OptTensor& w, const OptTensor& b, const OptTensor& mean, const OptTensor& var, bool training,
         double momentum, double eps, Ignored) {
        return batch_norm(x, or_undefined(mean), or_undefined(var), or_undefined(w), or_undefined(b), training, momentum, eps);
      });
  def(kFunction, "instance_norm", "input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled=False",
      "(x - mean) / sqrt(variance + eps) * weight + bias for each channel of each image of (N, C, ...).",
      [](const Tensor& x, const OptTensor& w, const OptTensor& b, const OptTensor& mean, const OptTensor& var, bool training,
         double momentum, double eps, Ignored) {
        return instance_norm(x, or_undefined(mean), or_undefined(var), or_undefined(w), or_undefined(b), training, momentum, eps);
      });
  def(kFunction, "group_norm", "input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=False",
      "(x - mean) / sqrt(variance + eps) for each group of channels of (N, C, ...), then weight and bias of each channel.",
      [](const Tensor& x, int64_t groups, const OptTensor& w, const OptTensor& b, double eps, Ignored) {
        return group_norm(x, groups, or_undefined(w), or_undefined(b), eps);
      });
  def(kFunction, "_local_response_norm", "input, size, alpha, beta, k", "x / (k + alpha * mean of x^2 over neighbouring channels)^beta.",
      [](const Tensor& x, int64_t size, double alpha, double beta, double k) { return local_response_norm(x, size, alpha, beta, k); });
}

void define_resampling() {
  def(kFunction, "_pad", "input, pad, mode='constant', value=None", "Padded in front and behind, the last dimension first.",
      [](const Tensor& x, const Dims& amounts, std::string_view mode, std::optional<double> value) {
        return pad(x, amounts, mode, value);
      });
  def(kFunction, "_interpolate", "input, size, mode, align_corners, scales, antialias", "Resampled to another size.",
      [](const Tensor& x, const Dims& size, std::string_view mode, bool align_corners, const OptTensor& scales, bool antialias) {
        return interpolate(x, size, mode, align_corners, scales ? scales->to_doubles() : std::vector<double>(), antialias);
      });
  def(kFunction, "_unfold", "input, kernel_size, dilation=1, padding=0, stride=1", "Windows as columns.",
      [](const Tensor& x, const Dims& kernel, const Dims& dilation, const Dims& padding, const Dims& stride) {
        return unfold(x, kernel, dilation, padding, stride);
      });
  def(kFunction, "_fold", "input, output_size, kernel_size, dilation=1, padding=0, stride=1", "Columns added up where their windows are.",
      [](const Tensor& x, const Dims& size, const Dims& kernel, const Dims& dilation, const Dims& padding, const Dims& stride) {
        return fold(x, size, kernel, dilation, padding, stride);
      });
  def(kFunction, "_grid_sample", "input, grid, mode='bilinear', padding_mode='zeros', align_corners=False",
      "The input at the places that a grid names.",
      [](const Tensor& x, const Tensor& grid, std::string_view mode, std::string_view padding, bool align_corners) {
        return grid_sample(x, grid, mode, padding, align_corners);
      });
  def(kFunction, "affine_grid_generator", "theta, size, align_corners", "The grid of an affine map, for grid_sample.",
      [](const Tensor& theta, const Dims& size, bool align_corners) { return affine_grid(theta, size, align_corners); });
  def(kFunction, "pixel_shuffle", "input, upscale_factor", "(..., C r r, h, w) to (..., C, h r, w r).",
      [](const Tensor& x, int64_t r) { return pixel_shuffle(x, r); });
  def(kFunction, "pixel_unshuffle", "input, downscale_factor", "(..., C, h r, w r) to (..., C r r, h, w).",
      [](const Tensor& x, int64_t r) { return pixel_unshuffle(x, r); });
  def(kFunction, "channel_shuffle", "input, groups", "Channels (groups, C / groups) in the order (C / groups, groups).",
      [](const Tensor& x, int64_t groups) { return channel_shuffle(x, groups); });
}

}  // namespace

void define_images() {
  define_pools();
  define_norms();
  define_resampling();
}

}  // namespace naru::py
