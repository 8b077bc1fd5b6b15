#include "naru/nn/init.h"

#include <cmath>
#include <vector>

#include "naru/autograd.h"
#include "naru/ops.h"

namespace naru::nn::init {
namespace {

struct Gain {
  const char* name;
  double factor;
};
constexpr Gain kGains[] = {
    {"linear", 1},           {"conv1d", 1},           {"conv2d", 1},  {"conv3d", 1},     {"conv_transpose1d", 1},
    {"conv_transpose2d", 1}, {"conv_transpose3d", 1}, {"sigmoid", 1}, {"tanh", 5.0 / 3}, {"relu", 1.4142135623730951},
    {"selu", 3.0 / 4}};

int64_t fan(const Tensor& t, std::string_view mode) {
  std::string lower(mode);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower != "fan_in" && lower != "fan_out") throw ValueError("Mode {} not supported, please use one of ['fan_in', 'fan_out']", lower);
  const auto [in, out] = fan_in_and_fan_out(t);
  return lower == "fan_in" ? in : out;
}

bool is_empty(const Tensor& t) {
  if (t.numel() != 0) return false;
  warn("Initializing zero-element tensors is a no-op");
  return true;
}

double total_fan(const Tensor& t) {
  const auto [in, out] = fan_in_and_fan_out(t);
  return static_cast<double>(in + out);
}

// The orthogonal factor of a rows x columns matrix (rows >= columns) in row-major order, by Householder reflections, in place. Column signs are
// chosen so that the diagonal of the triangular factor is positive: then the factor is unique, and uniformly distributed over all orthogonal
// matrices.
void orthogonalize(std::vector<double>& a, size_t rows, size_t columns) {
  std::vector<std::vector<double>> reflections;
  std::vector<double> signs;
  for (size_t k = 0; k < columns; ++k) {
    std::vector<double> v(rows - k);
    double square = 0;
    for (size_t i = k; i < rows; ++i) v[i - k] = a[i * columns + k], square += v[i - k] * v[i - k];
    const double first = v[0], length = std::sqrt(square);
    signs.push_back(first > 0 ? -1 : 1);  // sign of the diagonal element, which is -sign(first) * length
    v[0] += first > 0 ? length : -length;
    double norm = 0;
    for (const double x : v) norm += x * x;
    if (norm > 0)
      for (double& x : v) x /= std::sqrt(norm);
    for (size_t j = k; j < columns; ++j) {
      double dot = 0;
      for (size_t i = k; i < rows; ++i) dot += v[i - k] * a[i * columns + j];
      for (size_t i = k; i < rows; ++i) a[i * columns + j] -= 2 * dot * v[i - k];
    }
    reflections.push_back(std::move(v));
  }
  std::fill(a.begin(), a.end(), 0.0);
  for (size_t k = 0; k < columns; ++k) a[k * columns + k] = signs[k];
  for (size_t k = columns; k-- > 0;)
    for (size_t j = 0; j < columns; ++j) {
      double dot = 0;
      for (size_t i = k; i < rows; ++i) dot += reflections[k][i - k] * a[i * columns + j];
      for (size_t i = k; i < rows; ++i) a[i * columns + j] -= 2 * dot * reflections[k][i - k];
    }
}

}  // namespace

double calculate_gain(std::string_view nonlinearity, std::optional<double> param) {
  if (nonlinearity == "leaky_relu") {
    const double slope = param.value_or(0.01);
    return std::sqrt(2.0 / (1 + slope * slope));
  }
  for (const Gain& g : kGains)
    if (nonlinearity == g.name) return g.factor;
  throw ValueError("Unsupported nonlinearity {}", nonlinearity);
}

std::pair<int64_t, int64_t> fan_in_and_fan_out(const Tensor& t) {
  if (t.dim() < 2) throw ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
  int64_t field = 1;
  for (int64_t d = 2; d < t.dim(); ++d) field *= t.size(d);
  return {t.size(1) * field, t.size(0) * field};
}

Tensor uniform_(const Tensor& t, double a, double b, Generator* generator) {
  const NoGrad off;
  naru::uniform_(t, a, b, generator);
  return t;
}

Tensor normal_(const Tensor& t, double mean, double std, Generator* generator) {
  const NoGrad off;
  naru::normal_(t, mean, std, generator);
  return t;
}

Tensor trunc_normal_(const Tensor& t, double mean, double std, double a, double b, Generator* generator) {
  if (mean < a - 2 * std || mean > b + 2 * std)
    warn("mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.");
  const NoGrad off;
  Tensor target = t;
  if (std == 0) return target.fill_(std::min(std::max(mean, a), b));
  naru::normal_(t, mean, std, generator);
  if (t.device().is_meta()) return target;
  for (int tries = 0; tries < 64; ++tries) {
    const Tensor outside = (t < a).logical_or(t > b);
    if (!any(outside).item<bool>()) break;
    const Tensor again = empty_like(t);
    naru::normal_(again, mean, std, generator);
    target.copy_(where(outside, again, t));
  }
  return target.clamp_(a, b);
}

Tensor constant_(const Tensor& t, Scalar value) {
  const NoGrad off;
  Tensor target = t;
  return target.fill_(value);
}
Tensor ones_(const Tensor& t) { return constant_(t, 1.0); }
Tensor zeros_(const Tensor& t) {
  const NoGrad off;
  Tensor target = t;
  return target.zero_();
}

Tensor eye_(const Tensor& t) {
  if (t.dim() != 2) throw ValueError("Only tensors with 2 dimensions are supported");
  const NoGrad off;
  Tensor target = t;
  return target.copy_(eye(t.size(0), t.size(1)));
}

Tensor dirac_(const Tensor& t, int64_t groups) {
  if (t.dim() < 3 || t.dim() > 5) throw ValueError("Only tensors with 3, 4, or 5 dimensions are supported");
  if (groups < 1 || t.size(0) % groups) throw ValueError("dim 0 must be divisible by groups");
  const int64_t per_group = t.size(0) / groups;
  const NoGrad off;
  zeros_(t);
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t channel = 0; channel < std::min(per_group, t.size(1)); ++channel) {
      Tensor place = t.select(0, g * per_group + channel).select(0, channel);
      while (place.dim()) place = place.select(0, place.size(0) / 2);
      place.fill_(1);
    }
  return t;
}

Tensor xavier_uniform_(const Tensor& t, double gain, Generator* generator) {
  const double bound = gain * std::sqrt(6.0 / total_fan(t));
  return init::uniform_(t, -bound, bound, generator);
}
Tensor xavier_normal_(const Tensor& t, double gain, Generator* generator) {
  return init::normal_(t, 0, gain * std::sqrt(2.0 / total_fan(t)), generator);
}

Tensor kaiming_uniform_(const Tensor& t, double a, std::string_view mode, std::string_view nonlinearity, Generator* generator) {
  if (is_empty(t)) return t;
  const double std = calculate_gain(nonlinearity, a) / std::sqrt(static_cast<double>(fan(t, mode)));
  const double bound = std::sqrt(3.0) * std;
  return init::uniform_(t, -bound, bound, generator);
}
Tensor kaiming_normal_(const Tensor& t, double a, std::string_view mode, std::string_view nonlinearity, Generator* generator) {
  if (is_empty(t)) return t;
  return init::normal_(t, 0, calculate_gain(nonlinearity, a) / std::sqrt(static_cast<double>(fan(t, mode))), generator);
}

Tensor orthogonal_(const Tensor& t, double gain, Generator* generator) {
  if (t.dim() < 2) throw ValueError("Only tensors with 2 or more dimensions are supported");
  if (t.numel() == 0 || t.device().is_meta()) return t;
  const int64_t rows = t.size(0), columns = t.numel() / rows, tall = std::max(rows, columns), wide = std::min(rows, columns);
  const Tensor flat = empty({rows, columns}, Options(t.dtype(), Device(DeviceType::Cpu)));
  const NoGrad off;
  naru::normal_(flat, 0, 1, generator);  // in the weight's layout and dtype: that is PyTorch's order of draws
  std::vector<double> values = (rows < columns ? flat.t() : flat).to_doubles();
  orthogonalize(values, static_cast<size_t>(tall), static_cast<size_t>(wide));
  Tensor q = from_data(values.data(), {tall, wide}, DType::F64, Options(Device(DeviceType::Cpu)));
  if (rows < columns) q = q.t();
  Tensor target = t;
  return target.copy_(q.reshape(t.sizes()) * gain);
}

Tensor sparse_(const Tensor& t, double sparsity, double std, Generator* generator) {
  if (t.dim() != 2) throw ValueError("Only tensors with 2 dimensions are supported");
  const int64_t rows = t.size(0), zeros = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(rows)));
  const NoGrad off;
  naru::normal_(t, 0, std, generator);
  for (int64_t column = 0; column < t.size(1); ++column) {
    const Tensor chosen = randperm(rows, Options(Device(DeviceType::Cpu)), generator).slice(0, {}, zeros);
    t.select(1, column).index_fill_(0, chosen.to(t.device()), 0);
  }
  return t;
}

}  // namespace naru::nn::init
