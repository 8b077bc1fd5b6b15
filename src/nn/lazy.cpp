#include "naru/nn/lazy.h"

namespace naru::nn {
namespace {

// The channels of x: (batch, channels, N dimensions) or (channels, N dimensions).
template <int N>
int64_t channels_of(const Tensor& x) {
  return x.dim() == N + 2 ? x.size(1) : x.dim() == N + 1 ? x.size(0) : -1;
}
// The same, but x must have a batch dimension; for N = 1 also (batch, channels).
template <int N>
int64_t features_of(const Tensor& x) {
  return x.dim() == N + 2 || (N == 1 && x.dim() == 2) ? x.size(1) : -1;
}
int64_t first_size(const Tensor& t) { return t.size(0); }

}  // namespace

LazyLinear::LazyLinear(int64_t out, bool bias, const Options& options)
    : Lazy({[=](int64_t in) { return Linear(in, out, bias, options); }, [](const Tensor& x) { return x.dim() ? x.size(-1) : int64_t{-1}; },
            [](const Tensor& weight) { return weight.size(-1); }, "weight"}) {}

template <int N>
LazyConv<N>::LazyConv(int64_t out, const Dims& kernel, ConvSettings settings, const Options& options)
    : Lazy<Conv<N>>({[=](int64_t in) { return Conv<N>(in, out, kernel, settings, options); }, channels_of<N>,
                     [groups = settings.groups](const Tensor& weight) { return weight.dim() > 1 ? weight.size(1) * groups : 0; },
                     "weight"}) {}
template <int N>
LazyConvTranspose<N>::LazyConvTranspose(int64_t out, const Dims& kernel, ConvSettings settings, const Options& options)
    : Lazy<ConvTranspose<N>>(
          {[=](int64_t in) { return ConvTranspose<N>(in, out, kernel, settings, options); }, channels_of<N>, first_size, "weight"}) {}
template <int N>
LazyBatchNorm<N>::LazyBatchNorm(double eps, double momentum, bool affine, const Options& options, bool track)
    : Lazy<BatchNorm<N>>({[=](int64_t in) { return BatchNorm<N>(in, eps, momentum, affine, options, track); }, features_of<N>, first_size,
                          affine ? "weight" : "running_mean"}) {}
template <int N>
LazyInstanceNorm<N>::LazyInstanceNorm(double eps, double momentum, bool affine, bool track, const Options& options)
    : Lazy<InstanceNorm<N>>({[=](int64_t in) { return InstanceNorm<N>(in, eps, momentum, affine, track, options); }, channels_of<N>,
                             first_size, affine ? "weight" : "running_mean"}) {}

template class LazyConv<1>;
template class LazyConv<2>;
template class LazyConv<3>;
template class LazyConvTranspose<1>;
template class LazyConvTranspose<2>;
template class LazyConvTranspose<3>;
template class LazyBatchNorm<1>;
template class LazyBatchNorm<2>;
template class LazyBatchNorm<3>;
template class LazyInstanceNorm<1>;
template class LazyInstanceNorm<2>;
template class LazyInstanceNorm<3>;

}  // namespace naru::nn
