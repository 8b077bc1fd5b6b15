// Modules for pooling, padding, resampling and rearranging.
#include <fmt/format.h>

#include "naru/nn/images.h"
#include "nn/text.h"

namespace naru::nn {
namespace {

namespace F = functional;
using Parts = Stateless::Parts;
using T = const Tensor&;

Parts numbered(const char* kind, int n, std::function<Tensor(T)> f, std::string details) {
  return {std::move(f), fmt::format("{}{}d", kind, n), std::move(details)};
}
std::string sizes_text(const Dims& kernel, const Dims& stride, const Dims& padding) {
  return fmt::format("kernel_size={}, stride={}, padding={}", one_or_tuple(kernel), one_or_tuple(stride.empty() ? kernel : stride),
                     one_or_tuple(padding));
}
// A single number applies to all edges.
Dims edges(int n, const Dims& padding) { return padding.size() == 1 ? Dims(static_cast<size_t>(2 * n), padding[0]) : padding; }

Parts padded(const char* kind, const char* mode, int n, const Dims& padding) {
  const Dims all = edges(n, padding);
  return numbered(
      kind, n, [=](T x) { return pad(x, all, mode); }, tuple_text(all));
}

Parts resampled(const char* name, const F::InterpolateOptions& o) {
  std::string of;
  if (o.scale_factor.size() == 1) of = "scale_factor=" + number_text(o.scale_factor[0]);
  if (o.scale_factor.size() > 1) {
    for (const double s : o.scale_factor) of += (of.empty() ? "scale_factor=(" : ", ") + number_text(s);
    of += ")";
  }
  if (of.empty()) of = "size=" + one_or_tuple(o.size);
  const std::string mode(o.mode);
  return {[o, mode](T x) {
            F::InterpolateOptions own = o;
            own.mode = mode;
            return F::interpolate(x, own);
          },
          name, fmt::format("{}, mode='{}'", of, mode)};
}
F::InterpolateOptions with_mode(F::InterpolateOptions o, std::string_view mode, std::optional<bool> align_corners) {
  o.mode = mode;
  o.align_corners = align_corners;
  return o;
}

}  // namespace

template <int N>
MaxPool<N>::MaxPool(DimList kernel, Dims stride, Dims padding, Dims dilation, bool ceil)
    : Layer<MaxPool<N>>(numbered(
          "MaxPool", N, [=](T x) { return max_pool_values(N, x, kernel, stride, padding, dilation, ceil); },
          sizes_text(kernel, stride, padding) + fmt::format(", dilation={}, ceil_mode={}", one_or_tuple(dilation), bool_text(ceil)))) {}
template <int N>
AvgPool<N>::AvgPool(DimList kernel, Dims stride, Dims padding, bool ceil, bool count_pad, std::optional<int64_t> divisor)
    : Layer<AvgPool<N>>(numbered(
          "AvgPool", N, [=](T x) { return avg_pool(N, x, kernel, stride, padding, ceil, count_pad, divisor); },
          sizes_text(kernel, stride, padding))) {}
template <int N>
LPPool<N>::LPPool(double p, Dims kernel, Dims stride, bool ceil)
    : Layer<LPPool<N>>(numbered(
          "LPPool", N, [=](T x) { return lp_pool(N, x, p, kernel, stride, ceil); },
          fmt::format("norm_type={}, kernel_size={}, stride={}, ceil_mode={}", number_text(p), one_or_tuple(kernel),
                      stride.empty() ? "None" : one_or_tuple(stride), bool_text(ceil)))) {}
template <int N>
FractionalMaxPool<N>::FractionalMaxPool(Dims kernel, F::FractionalOptions o)
    : Layer<FractionalMaxPool<N>>(numbered(
          "FractionalMaxPool", N,
          [=](T x) { return N == 2 ? F::fractional_max_pool2d(x, kernel, o) : F::fractional_max_pool3d(x, kernel, o); }, "")) {
  if (o.output_size.empty() == o.output_ratio.empty())
    throw ValueError("FractionalMaxPool{}d requires specifying either an output size, or a pooling ratio", N);
}
template <int N>
AdaptiveAvgPool<N>::AdaptiveAvgPool(Dims size)
    : Layer<AdaptiveAvgPool<N>>(numbered(
          "AdaptiveAvgPool", N, [=](T x) { return adaptive_avg_pool(N, x, size); }, "output_size=" + one_or_tuple(size))) {}
template <int N>
AdaptiveMaxPool<N>::AdaptiveMaxPool(Dims size)
    : Layer<AdaptiveMaxPool<N>>(numbered(
          "AdaptiveMaxPool", N, [=](T x) { return adaptive_max_pool(N, x, size).first; }, "output_size=" + one_or_tuple(size))) {}
template <int N>
Tensor MaxUnpool<N>::forward(T x, T indices, const Dims& output_size) {
  constexpr decltype(&F::max_unpool1d) kUnpool[] = {F::max_unpool1d, F::max_unpool2d, F::max_unpool3d};
  return kUnpool[N - 1](x, indices, kernel_, stride_, padding_, output_size);
}

template <int N>
ConstantPad<N>::ConstantPad(Dims padding, double value)
    : Layer<ConstantPad<N>>(numbered(
          "ConstantPad", N, [=](T x) { return pad(x, edges(N, padding), "constant", value); },
          fmt::format("padding={}, value={}", tuple_text(edges(N, padding)), number_text(value)))) {}
template <int N>
ZeroPad<N>::ZeroPad(Dims padding) : Layer<ZeroPad<N>>(padded("ZeroPad", "constant", N, padding)) {}
template <int N>
ReflectionPad<N>::ReflectionPad(Dims padding) : Layer<ReflectionPad<N>>(padded("ReflectionPad", "reflect", N, padding)) {}
template <int N>
ReplicationPad<N>::ReplicationPad(Dims padding) : Layer<ReplicationPad<N>>(padded("ReplicationPad", "replicate", N, padding)) {}
template <int N>
CircularPad<N>::CircularPad(Dims padding) : Layer<CircularPad<N>>(padded("CircularPad", "circular", N, padding)) {}

Upsample::Upsample(F::InterpolateOptions o) : Layer(resampled("Upsample", o)) {}
UpsamplingNearest2d::UpsamplingNearest2d(F::InterpolateOptions o) : Layer(resampled("UpsamplingNearest2d", with_mode(o, "nearest", {}))) {}
UpsamplingBilinear2d::UpsamplingBilinear2d(F::InterpolateOptions o)
    : Layer(resampled("UpsamplingBilinear2d", with_mode(o, "bilinear", true))) {}
PixelShuffle::PixelShuffle(int64_t r)
    : Layer(Parts{[=](T x) { return pixel_shuffle(x, r); }, "PixelShuffle", fmt::format("upscale_factor={}", r)}) {}
PixelUnshuffle::PixelUnshuffle(int64_t r)
    : Layer(Parts{[=](T x) { return pixel_unshuffle(x, r); }, "PixelUnshuffle", fmt::format("downscale_factor={}", r)}) {}
ChannelShuffle::ChannelShuffle(int64_t groups)
    : Layer(Parts{[=](T x) { return channel_shuffle(x, groups); }, "ChannelShuffle", fmt::format("groups={}", groups)}) {}
Fold::Fold(Dims size, Dims kernel, Dims dilation, Dims padding, Dims stride)
    : Layer(Parts{[=](T x) { return fold(x, size, kernel, dilation, padding, stride); }, "Fold",
                  fmt::format("output_size={}, kernel_size={}, dilation={}, padding={}, stride={}", one_or_tuple(size),
                              one_or_tuple(kernel), one_or_tuple(dilation), one_or_tuple(padding), one_or_tuple(stride))}) {}
Unfold::Unfold(DimList kernel, Dims dilation, Dims padding, Dims stride)
    : Layer(Parts{[=](T x) { return unfold(x, kernel, dilation, padding, stride); }, "Unfold",
                  fmt::format("kernel_size={}, dilation={}, padding={}, stride={}", one_or_tuple(kernel), one_or_tuple(dilation),
                              one_or_tuple(padding), one_or_tuple(stride))}) {}

template class MaxPool<1>;
template class MaxPool<2>;
template class MaxPool<3>;
template class AvgPool<1>;
template class AvgPool<2>;
template class AvgPool<3>;
template class LPPool<1>;
template class LPPool<2>;
template class LPPool<3>;
template class FractionalMaxPool<2>;
template class FractionalMaxPool<3>;
template class AdaptiveAvgPool<1>;
template class AdaptiveAvgPool<2>;
template class AdaptiveAvgPool<3>;
template class AdaptiveMaxPool<1>;
template class AdaptiveMaxPool<2>;
template class AdaptiveMaxPool<3>;
template class MaxUnpool<1>;
template class MaxUnpool<2>;
template class MaxUnpool<3>;
template class ConstantPad<1>;
template class ConstantPad<2>;
template class ConstantPad<3>;
template class ZeroPad<1>;
template class ZeroPad<2>;
template class ZeroPad<3>;
template class ReflectionPad<1>;
template class ReflectionPad<2>;
template class ReflectionPad<3>;
template class ReplicationPad<1>;
template class ReplicationPad<2>;
template class ReplicationPad<3>;
template class CircularPad<1>;
template class CircularPad<2>;
template class CircularPad<3>;

}  // namespace naru::nn
