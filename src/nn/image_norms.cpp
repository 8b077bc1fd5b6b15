// Normalisation modules for images.
#include <fmt/format.h>

#include "naru/autograd.h"
#include "naru/nn/images.h"
#include "nn/text.h"

namespace naru::nn {

StatisticsNorm::StatisticsNorm(int64_t features, double eps, double momentum, bool affine, bool track_running_stats, Options options)
    : features_(features), eps_(eps), momentum_(momentum) {
  weight = register_parameter("weight", affine ? ones({features}, options) : Tensor());
  bias = register_parameter("bias", affine ? zeros({features}, options) : Tensor());
  running_mean = register_buffer("running_mean", track_running_stats ? zeros({features}, options) : Tensor());
  running_var = register_buffer("running_var", track_running_stats ? ones({features}, options) : Tensor());
  options.dtype = DType::I64;
  num_batches_tracked = register_buffer("num_batches_tracked", track_running_stats ? zeros({}, options) : Tensor());
}
std::string StatisticsNorm::details() const {
  const char* affine = bool_text(weight.defined());
  return fmt::format("{}, eps={}, momentum={}, affine={}, bias={}, track_running_stats={}", features_, number_text(eps_),
                     number_text(momentum_), affine, affine, bool_text(running_mean.defined()));
}

template <int N>
BatchNorm<N>::BatchNorm(int64_t features, double eps, double momentum, bool affine, const Options& options, bool track_running_stats)
    : StatisticsNorm(features, eps, momentum, affine, track_running_stats, options) {}
template <int N>
Tensor BatchNorm<N>::forward(const Tensor& x) {
  if (x.dim() != N + 2 && (N != 1 || x.dim() != 2))
    throw ValueError("expected {}{}D input (got {}D input)", N == 1 ? "2D or " : "", N + 2, x.dim());
  const bool by_batch = is_training() || !running_mean.defined();
  if (by_batch && x.numel() == x.size(1))
    throw ValueError("Expected more than 1 value per channel when training, got input size {}", x.sizes().str());
  if (is_training() && num_batches_tracked.defined()) {
    const NoGrad no_grad;
    num_batches_tracked.add_(1);
  }
  return batch_norm(x, running_mean, running_var, weight, bias, by_batch, momentum_, eps_);
}
template <int N>
std::shared_ptr<Module> BatchNorm<N>::remake() const {
  return std::make_shared<BatchNorm<N>>(features_, eps_, momentum_, weight.defined(), Options(), running_mean.defined());
}

template <int N>
InstanceNorm<N>::InstanceNorm(int64_t features, double eps, double momentum, bool affine, bool track_running_stats, const Options& options)
    : StatisticsNorm(features, eps, momentum, affine, track_running_stats, options) {}
template <int N>
Tensor InstanceNorm<N>::forward(const Tensor& x) {
  if (x.dim() != N + 1 && x.dim() != N + 2) throw ValueError("expected {}D or {}D input (got {}D input)", N + 1, N + 2, x.dim());
  const bool one = x.dim() == N + 1;
  const Tensor in = one ? x.unsqueeze(0) : x;
  const bool by_input = is_training() || !running_mean.defined();
  if (by_input && in.numel() == in.size(0) * in.size(1))
    throw ValueError("Expected more than 1 spatial element when training, got input size {}", in.sizes().str());
  const Tensor out = instance_norm(in, running_mean, running_var, weight, bias, by_input, momentum_, eps_);
  return one ? out.squeeze(0) : out;
}
template <int N>
std::shared_ptr<Module> InstanceNorm<N>::remake() const {
  return std::make_shared<InstanceNorm<N>>(features_, eps_, momentum_, weight.defined(), running_mean.defined());
}

GroupNorm::GroupNorm(int64_t groups, int64_t channels, double eps, bool affine, const Options& options)
    : groups_(groups), channels_(channels), eps_(eps) {
  if (groups <= 0 || channels % groups != 0) throw ValueError("num_channels ({}) must be divisible by num_groups ({})", channels, groups);
  weight = register_parameter("weight", affine ? ones({channels}, options) : Tensor());
  bias = register_parameter("bias", affine ? zeros({channels}, options) : Tensor());
}
std::string GroupNorm::details() const {
  const char* affine = bool_text(weight.defined());
  return fmt::format("{}, {}, eps={}, affine={}, bias={}", groups_, channels_, number_text(eps_), affine, affine);
}
std::shared_ptr<Module> GroupNorm::remake() const { return std::make_shared<GroupNorm>(groups_, channels_, eps_, weight.defined()); }

LocalResponseNorm::LocalResponseNorm(int64_t size, double alpha, double beta, double k)
    : Layer(Parts{[=](const Tensor& x) { return local_response_norm(x, size, alpha, beta, k); }, "LocalResponseNorm",
                  fmt::format("{}, alpha={}, beta={}, k={}", size, number_text(alpha), number_text(beta), number_text(k))}) {}

CrossMapLRN2d::CrossMapLRN2d(int64_t size, double alpha, double beta, double k)
    : Layer(Parts{[=](const Tensor& x) {
                    if (x.dim() != 4) throw ValueError("CrossMapLRN2d: Expected input to be 4D, got {}D instead.", x.dim());
                    const int64_t seen = (size + 1) / 2 * 2 - 1;
                    return local_response_norm(x, seen, alpha * static_cast<double>(seen) / static_cast<double>(size), beta, k);
                  },
                  "CrossMapLRN2d",
                  fmt::format("{}, alpha={}, beta={}, k={}", size, number_text(alpha), number_text(beta), number_text(k))}) {}

template class BatchNorm<1>;
template class BatchNorm<2>;
template class BatchNorm<3>;
template class InstanceNorm<1>;
template class InstanceNorm<2>;
template class InstanceNorm<3>;

}  // namespace naru::nn
