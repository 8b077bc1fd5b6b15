// Modules of images: convolutions, batch normalisation, pooling. N is the number of spatial dimensions; lists hold a number for each, or one for all.
#pragma once

#include <string>

#include "naru/convolution.h"
#include "naru/nn.h"
#include "naru/norms.h"
#include "naru/pooling.h"

namespace naru::nn {

struct ConvSettings {
  Dims stride{1};
  ConvPadding padding;
  Dims dilation{1};
  int64_t groups = 1;
  bool bias = true;
  Dims output_padding{0};  // of transposed ones
};

// (N, in, ...) to (N, out, ...): see naru/convolution.h. weight (out, in / groups, kernel...) and bias (out) start uniform in ± 1 / sqrt(elements of a
// window). ValueError where groups divides in or out with a remainder.
template <int N>
class Conv : public Module {
 public:
  Conv(int64_t in, int64_t out, const Dims& kernel, ConvSettings settings = {}, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  std::string name() const override { return fmt::format("Conv{}d", N); }
  std::string details() const override;
  Tensor weight, bias;

 private:
  ConvSettings s_;
};
// Its transpose. weight (in, out / groups, kernel...).
template <int N>
class ConvTranspose : public Module {
 public:
  ConvTranspose(int64_t in, int64_t out, const Dims& kernel, ConvSettings settings = {}, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  std::string name() const override { return fmt::format("ConvTranspose{}d", N); }
  std::string details() const override;
  Tensor weight, bias;

 private:
  ConvSettings s_;
};
using Conv1d = Conv<1>;
using Conv2d = Conv<2>;
using Conv3d = Conv<3>;
using ConvTranspose1d = ConvTranspose<1>;
using ConvTranspose2d = ConvTranspose<2>;
using ConvTranspose3d = ConvTranspose<3>;

// batch_norm of (N, C, ...): by the batch in training, which moves the running statistics by `momentum`, else by those. N = 1 takes (N, C) too; others
// throw ValueError for another number of dimensions.
template <int N>
class BatchNorm : public Module {
 public:
  explicit BatchNorm(int64_t features, double eps = 1e-5, double momentum = 0.1, bool affine = true, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  std::string name() const override { return fmt::format("BatchNorm{}d", N); }
  std::string details() const override;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 private:
  double eps_, momentum_;
};
using BatchNorm1d = BatchNorm<1>;
using BatchNorm2d = BatchNorm<2>;
using BatchNorm3d = BatchNorm<3>;

class GroupNorm : public Module {
 public:
  GroupNorm(int64_t groups, int64_t channels, double eps = 1e-5, bool affine = true, const Options& options = {});
  Tensor forward(const Tensor& x) override { return group_norm(x, groups_, weight, bias, eps_); }
  std::string name() const override { return "GroupNorm"; }
  std::string details() const override;
  Tensor weight, bias;

 private:
  int64_t groups_, channels_;
  double eps_;
};

template <int N>
class MaxPool : public Module {
 public:
  explicit MaxPool(Dims kernel, Dims stride = {}, Dims padding = {0}, Dims dilation = {1}, bool ceil_mode = false)
      : kernel_(std::move(kernel)),
        stride_(std::move(stride)),
        padding_(std::move(padding)),
        dilation_(std::move(dilation)),
        ceil_(ceil_mode) {}
  explicit MaxPool(int64_t kernel) : MaxPool(Dims{kernel}) {}
  Tensor forward(const Tensor& x) override { return max_pool(N, x, kernel_, stride_, padding_, dilation_, ceil_).first; }
  std::string name() const override { return fmt::format("MaxPool{}d", N); }

 private:
  Dims kernel_, stride_, padding_, dilation_;
  bool ceil_;
};
template <int N>
class AvgPool : public Module {
 public:
  explicit AvgPool(Dims kernel, Dims stride = {}, Dims padding = {0}, bool ceil_mode = false, bool count_include_pad = true)
      : kernel_(std::move(kernel)), stride_(std::move(stride)), padding_(std::move(padding)), ceil_(ceil_mode), count_(count_include_pad) {}
  explicit AvgPool(int64_t kernel) : AvgPool(Dims{kernel}) {}
  Tensor forward(const Tensor& x) override { return avg_pool(N, x, kernel_, stride_, padding_, ceil_, count_); }
  std::string name() const override { return fmt::format("AvgPool{}d", N); }

 private:
  Dims kernel_, stride_, padding_;
  bool ceil_, count_;
};
template <int N>
class AdaptiveAvgPool : public Module {
 public:
  explicit AdaptiveAvgPool(Dims size) : size_(std::move(size)) {}
  explicit AdaptiveAvgPool(int64_t size) : AdaptiveAvgPool(Dims{size}) {}
  Tensor forward(const Tensor& x) override { return adaptive_avg_pool(N, x, size_); }
  std::string name() const override { return fmt::format("AdaptiveAvgPool{}d", N); }

 private:
  Dims size_;
};
using MaxPool1d = MaxPool<1>;
using MaxPool2d = MaxPool<2>;
using MaxPool3d = MaxPool<3>;
using AvgPool1d = AvgPool<1>;
using AvgPool2d = AvgPool<2>;
using AvgPool3d = AvgPool<3>;
using AdaptiveAvgPool1d = AdaptiveAvgPool<1>;
using AdaptiveAvgPool2d = AdaptiveAvgPool<2>;
using AdaptiveAvgPool3d = AdaptiveAvgPool<3>;

}  // namespace naru::nn
