// Modules for images: convolution, normalization, pooling, padding, resampling. N is the number of spatial dimensions; lists have one entry
// per dimension, or one for all.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "naru/nn.h"
#include "naru/ops/convolution.h"
#include "naru/ops/norms.h"
#include "naru/ops/pooling.h"
#include "naru/standard.h"

namespace naru::nn {

struct ConvSettings {
  Dims stride{1};
  ConvPadding padding = {};
  Dims dilation{1};
  int64_t groups = 1;
  bool bias = true;
  Dims output_padding{0};  // transposed convolutions only
};

// (N, in, ...) to (N, out, ...): see naru/ops/convolution.h. weight (out, in / groups, kernel...) and bias (out) are initialized uniformly
// in ± 1 / sqrt(elements of a window). Throws ValueError if groups does not divide in and out.
template <int N>
class Conv : public Module {
 public:
  Conv(int64_t in, int64_t out, const Dims& kernel, ConvSettings settings = {}, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  std::string name() const override { return "Conv" + std::to_string(N) + "d"; }
  std::string details() const override;
  Tensor weight, bias;

 protected:
  std::shared_ptr<Module> remake() const override;

 private:
  ConvSettings s_;
};
// Transposed convolution. weight (in, out / groups, kernel...).
template <int N>
class ConvTranspose : public Module {
 public:
  ConvTranspose(int64_t in, int64_t out, const Dims& kernel, ConvSettings settings = {}, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  std::string name() const override { return "ConvTranspose" + std::to_string(N) + "d"; }
  std::string details() const override;
  Tensor weight, bias;

 protected:
  std::shared_ptr<Module> remake() const override;

 private:
  ConvSettings s_;
};
using Conv1d = Conv<1>;
using Conv2d = Conv<2>;
using Conv3d = Conv<3>;
using ConvTranspose1d = ConvTranspose<1>;
using ConvTranspose2d = ConvTranspose<2>;
using ConvTranspose3d = ConvTranspose<3>;

// Base class of normalizations with running statistics (undefined without track_running_stats), weight and bias (undefined unless affine).
class StatisticsNorm : public Module {
 public:
  std::string details() const override;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 protected:
  StatisticsNorm(int64_t features, double eps, double momentum, bool affine, bool track_running_stats, Options options);
  int64_t features_;
  double eps_, momentum_;
};

// batch_norm of (N, C, ...): in training with the batch's statistics, which update the running statistics by `momentum`, else with the
// running statistics; without track_running_stats always with the batch's. N = 1 also accepts (N, C). Throws ValueError for another number
// of dimensions.
template <int N>
class BatchNorm : public StatisticsNorm {
 public:
  explicit BatchNorm(int64_t features, double eps = 1e-5, double momentum = 0.1, bool affine = true, const Options& options = {},
                     bool track_running_stats = true);
  Tensor forward(const Tensor& x) override;
  std::string name() const override { return "BatchNorm" + std::to_string(N) + "d"; }

 protected:
  std::shared_ptr<Module> remake() const override;
};
using BatchNorm1d = BatchNorm<1>;
using BatchNorm2d = BatchNorm<2>;
using BatchNorm3d = BatchNorm<3>;

// The same per image, for (N, C, ...) or (C, ...).
template <int N>
class InstanceNorm : public StatisticsNorm {
 public:
  explicit InstanceNorm(int64_t features, double eps = 1e-5, double momentum = 0.1, bool affine = false, bool track_running_stats = false,
                        const Options& options = {});
  Tensor forward(const Tensor& x) override;
  std::string name() const override { return "InstanceNorm" + std::to_string(N) + "d"; }

 protected:
  std::shared_ptr<Module> remake() const override;
};
using InstanceNorm1d = InstanceNorm<1>;
using InstanceNorm2d = InstanceNorm<2>;
using InstanceNorm3d = InstanceNorm<3>;

class GroupNorm : public Module {
 public:
  GroupNorm(int64_t groups, int64_t channels, double eps = 1e-5, bool affine = true, const Options& options = {});
  Tensor forward(const Tensor& x) override { return group_norm(x, groups_, weight, bias, eps_); }
  std::string name() const override { return "GroupNorm"; }
  std::string details() const override;
  Tensor weight, bias;

 protected:
  std::shared_ptr<Module> remake() const override;

 private:
  int64_t groups_, channels_;
  double eps_;
};
class LocalResponseNorm : public Layer<LocalResponseNorm> {
 public:
  using Layer<LocalResponseNorm>::Layer;
  explicit LocalResponseNorm(int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);
};
// Like LocalResponseNorm, for (N, C, H, W) only (ValueError). Uses the same number of neighbours on both sides; the mean always divides by
// `size`, also if `size` is even.
class CrossMapLRN2d : public Layer<CrossMapLRN2d> {
 public:
  using Layer<CrossMapLRN2d>::Layer;
  explicit CrossMapLRN2d(int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);
};

// --- pooling (naru/ops/pooling.h)
template <int N>
class MaxPool : public Layer<MaxPool<N>> {
 public:
  using Layer<MaxPool<N>>::Layer;
  explicit MaxPool(DimList kernel, Dims stride = {}, Dims padding = {0}, Dims dilation = {1}, bool ceil_mode = false);
  explicit MaxPool(int64_t kernel) : MaxPool(Dims{kernel}) {}
};
template <int N>
class AvgPool : public Layer<AvgPool<N>> {
 public:
  using Layer<AvgPool<N>>::Layer;
  explicit AvgPool(DimList kernel, Dims stride = {}, Dims padding = {0}, bool ceil_mode = false, bool count_include_pad = true,
                   std::optional<int64_t> divisor = {});
  explicit AvgPool(int64_t kernel) : AvgPool(Dims{kernel}) {}
};
template <int N>
class LPPool : public Layer<LPPool<N>> {
 public:
  using Layer<LPPool<N>>::Layer;
  LPPool(double p, Dims kernel, Dims stride = {}, bool ceil_mode = false);
};
// For 2 and 3 dimensions. Throws ValueError unless exactly one of size and ratio is given.
template <int N>
class FractionalMaxPool : public Layer<FractionalMaxPool<N>> {
 public:
  using Layer<FractionalMaxPool<N>>::Layer;
  FractionalMaxPool(Dims kernel, functional::FractionalOptions options);
};
template <int N>
class AdaptiveAvgPool : public Layer<AdaptiveAvgPool<N>> {
 public:
  using Layer<AdaptiveAvgPool<N>>::Layer;
  explicit AdaptiveAvgPool(Dims size);
  explicit AdaptiveAvgPool(int64_t size) : AdaptiveAvgPool(Dims{size}) {}
};
template <int N>
class AdaptiveMaxPool : public Layer<AdaptiveMaxPool<N>> {
 public:
  using Layer<AdaptiveMaxPool<N>>::Layer;
  explicit AdaptiveMaxPool(Dims size);
  explicit AdaptiveMaxPool(int64_t size) : AdaptiveMaxPool(Dims{size}) {}
};
// Puts elements (N, C, ...) back where max pooling found them, with zeros elsewhere.
template <int N>
class MaxUnpool : public Module {
 public:
  explicit MaxUnpool(DimList kernel, Dims stride = {}, Dims padding = {0})
      : kernel_(std::move(kernel)), stride_(std::move(stride)), padding_(std::move(padding)) {}
  explicit MaxUnpool(int64_t kernel) : MaxUnpool(Dims{kernel}) {}
  using Module::forward;
  Tensor forward(const Tensor& x, const Tensor& indices, const Dims& output_size = {});
  Tensor operator()(const Tensor& x, const Tensor& indices, const Dims& output_size = {}) {
    return this->with_hooks([&](const Tensor& t, const Tensor& places) { return forward(t, places, output_size); }, x, indices);
  }
  std::string name() const override { return "MaxUnpool" + std::to_string(N) + "d"; }

 protected:
  std::shared_ptr<Module> remake() const override { return std::make_shared<MaxUnpool<N>>(kernel_, stride_, padding_); }

 private:
  Dims kernel_, stride_, padding_;
};
using MaxPool1d = MaxPool<1>;
using MaxPool2d = MaxPool<2>;
using MaxPool3d = MaxPool<3>;
using AvgPool1d = AvgPool<1>;
using AvgPool2d = AvgPool<2>;
using AvgPool3d = AvgPool<3>;
using LPPool1d = LPPool<1>;
using LPPool2d = LPPool<2>;
using LPPool3d = LPPool<3>;
using FractionalMaxPool2d = FractionalMaxPool<2>;
using FractionalMaxPool3d = FractionalMaxPool<3>;
using AdaptiveAvgPool1d = AdaptiveAvgPool<1>;
using AdaptiveAvgPool2d = AdaptiveAvgPool<2>;
using AdaptiveAvgPool3d = AdaptiveAvgPool<3>;
using AdaptiveMaxPool1d = AdaptiveMaxPool<1>;
using AdaptiveMaxPool2d = AdaptiveMaxPool<2>;
using AdaptiveMaxPool3d = AdaptiveMaxPool<3>;
using MaxUnpool1d = MaxUnpool<1>;
using MaxUnpool2d = MaxUnpool<2>;
using MaxUnpool3d = MaxUnpool<3>;

// --- padding, resampling, rearranging (naru/ops/resampling.h)

// padding: (before, after) of the last dimension, then of the one before it; or one number for all.
template <int N>
class ConstantPad : public Layer<ConstantPad<N>> {
 public:
  using Layer<ConstantPad<N>>::Layer;
  ConstantPad(Dims padding, double value);
};
template <int N>
class ZeroPad : public Layer<ZeroPad<N>> {
 public:
  using Layer<ZeroPad<N>>::Layer;
  explicit ZeroPad(Dims padding);
};
template <int N>
class ReflectionPad : public Layer<ReflectionPad<N>> {
 public:
  using Layer<ReflectionPad<N>>::Layer;
  explicit ReflectionPad(Dims padding);
};
template <int N>
class ReplicationPad : public Layer<ReplicationPad<N>> {
 public:
  using Layer<ReplicationPad<N>>::Layer;
  explicit ReplicationPad(Dims padding);
};
template <int N>
class CircularPad : public Layer<CircularPad<N>> {
 public:
  using Layer<CircularPad<N>>::Layer;
  explicit CircularPad(Dims padding);
};
using ConstantPad1d = ConstantPad<1>;
using ConstantPad2d = ConstantPad<2>;
using ConstantPad3d = ConstantPad<3>;
using ZeroPad1d = ZeroPad<1>;
using ZeroPad2d = ZeroPad<2>;
using ZeroPad3d = ZeroPad<3>;
using ReflectionPad1d = ReflectionPad<1>;
using ReflectionPad2d = ReflectionPad<2>;
using ReflectionPad3d = ReflectionPad<3>;
using ReplicationPad1d = ReplicationPad<1>;
using ReplicationPad2d = ReplicationPad<2>;
using ReplicationPad3d = ReplicationPad<3>;
using CircularPad1d = CircularPad<1>;
using CircularPad2d = CircularPad<2>;
using CircularPad3d = CircularPad<3>;

// functional::interpolate.
class Upsample : public Layer<Upsample> {
 public:
  using Layer<Upsample>::Layer;
  explicit Upsample(functional::InterpolateOptions options);
};
class UpsamplingNearest2d : public Layer<UpsamplingNearest2d> {
 public:
  using Layer<UpsamplingNearest2d>::Layer;
  explicit UpsamplingNearest2d(functional::InterpolateOptions options);
};
class UpsamplingBilinear2d : public Layer<UpsamplingBilinear2d> {
 public:
  using Layer<UpsamplingBilinear2d>::Layer;
  explicit UpsamplingBilinear2d(functional::InterpolateOptions options);
};
class PixelShuffle : public Layer<PixelShuffle> {
 public:
  using Layer<PixelShuffle>::Layer;
  explicit PixelShuffle(int64_t upscale_factor);
};
class PixelUnshuffle : public Layer<PixelUnshuffle> {
 public:
  using Layer<PixelUnshuffle>::Layer;
  explicit PixelUnshuffle(int64_t downscale_factor);
};
class ChannelShuffle : public Layer<ChannelShuffle> {
 public:
  using Layer<ChannelShuffle>::Layer;
  explicit ChannelShuffle(int64_t groups);
};
class Fold : public Layer<Fold> {
 public:
  using Layer<Fold>::Layer;
  Fold(Dims output_size, Dims kernel, Dims dilation = {1}, Dims padding = {0}, Dims stride = {1});
};
class Unfold : public Layer<Unfold> {
 public:
  using Layer<Unfold>::Layer;
  explicit Unfold(DimList kernel, Dims dilation = {1}, Dims padding = {0}, Dims stride = {1});
};

}  // namespace naru::nn
