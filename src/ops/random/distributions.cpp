// Further random distributions. Those with a closed formula are computed on the tensor's device from uniform or normal numbers. Those that need
// rejection are computed by the host from numbers drawn on the cpu, so that every device gives the same results.
#include <cmath>

#include "naru/ops.h"
#include "naru/random.h"
#include "ops/random/draws.h"
#include "ops/random/host_draws.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

// The dtype in which samples for `t` are computed.
DType wide(const Tensor& t) { return t.dtype() == DType::F64 ? DType::F64 : DType::F32; }

template <class F>
void fill_with(const Tensor& t, const char* op, F numbers) {
  ops::write_in_order(t, op, [&](const Tensor& out) { Tensor(out).copy_(numbers(Options(wide(out), out.device()))); });
}

}  // namespace

void cauchy_(const Tensor& t, double median, double sigma, Generator* generator) {
  ops::require_defined(t, "cauchy_", "self");
  if (!(sigma > 0)) throw RuntimeError("cauchy_ expects sigma > 0.0, but found sigma={}", sigma);
  if (!is_floating(t.dtype()))
    throw RuntimeError("Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you specified {}",
                       ops::c_name(t.dtype()));
  if (ops::draws_as_pytorch())
    return ops::write_in_order(t, "cauchy_", [&](const Tensor& out) { ops::host_cauchy(out, median, sigma, generator); });
  fill_with(t, "cauchy_",
            [&](const Options& o) { return tan((rand(t.sizes(), o, generator) - 0.5) * 3.14159265358979323846) * sigma + median; });
}

void log_normal_(const Tensor& t, double mean, double std, Generator* generator) {
  ops::require_defined(t, "log_normal_", "self");
  if (!(std > 0)) throw RuntimeError("log_normal_ expects std > 0.0, but found std={}", std);
  if (!is_floating(t.dtype())) ops::throw_not_implemented("log_normal_cpu", t.dtype());
  if (ops::draws_as_pytorch())
    return ops::write_in_order(t, "log_normal_", [&](const Tensor& out) { ops::host_log_normal(out, mean, std, generator); });
  fill_with(t, "log_normal_", [&](const Options& o) { return exp(randn(t.sizes(), o, generator) * std + mean); });
}

void geometric_(const Tensor& t, double p, Generator* generator) {
  ops::require_defined(t, "geometric_", "self");
  if (!(p > 0 && p < 1)) throw RuntimeError("geometric_ expects p to be in (0, 1), but got p={}", p);
  if (t.dtype() == DType::Bool || is_complex(t.dtype())) ops::throw_not_implemented("geometric_cpu", t.dtype());
  if (ops::draws_as_pytorch())
    return ops::write_in_order(t, "geometric_", [&](const Tensor& out) { ops::host_geometric(out, p, generator); });
  fill_with(t, "geometric_",
            [&](const Options& o) { return clamp_min(ceil(log1p(-rand(t.sizes(), o, generator)) / std::log1p(-p)), 1.0); });
}

namespace {

// Uniform numbers in (0, 1) for one element: from one random word (SplitMix, by Steele, Lea and Flood), or PyTorch's next numbers.
class Uniform {
 public:
  explicit Uniform(int64_t word) : state_(static_cast<uint64_t>(word)) {}
  explicit Uniform(ops::Twister& twister) : twister_(&twister) {}
  double normal() {
    if (twister_) return twister_->normal();
    const double radius = std::sqrt(-2 * std::log((*this)()));
    return radius * std::cos(6.283185307179586 * (*this)());
  }
  double operator()() {
    if (twister_) return twister_->uniform53();
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (static_cast<double>(z >> 12) + 0.5) * 0x1p-52;
  }

 private:
  uint64_t state_ = 0;
  ops::Twister* twister_ = nullptr;
};

constexpr double kSmall = 10;  // up to this mean, events are counted one by one

// Hörmann's transformed rejection (1993): PTRS for Poisson, BTRS for binomial.
double poisson_of(double rate, Uniform& u) {
  if (!(rate > 0)) return 0;
  if (rate < kSmall) {
    const double limit = std::exp(-rate);
    double k = 0;
    for (double product = u(); product > limit; product *= u()) ++k;
    return k;
  }
  if (std::isinf(rate)) return rate;
  const double root = std::sqrt(rate), level = std::log(rate);
  const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double x = u() - 0.5, v = u(), us = 0.5 - std::abs(x);
    const double k = std::floor((2 * a / us + b) * x + rate + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <= -rate + k * level - std::lgamma(k + 1)) return k;
  }
}

double binomial_of(double n, double p, Uniform& u) {
  if (std::isnan(n) || std::isnan(p)) return std::nan("");
  if (!(n > 0) || !(p > 0)) return 0;
  if (p >= 1) return n;
  if (p > 0.5) return n - binomial_of(n, 1 - p, u);
  n = std::floor(n);
  if (n * p < kSmall) {
    // Draw the gaps between successes.
    const double level = std::log1p(-p);
    double k = 0, tries = std::ceil(std::log(u()) / level);
    for (; tries <= n; tries += std::max(1.0, std::ceil(std::log(u()) / level))) ++k;
    return k;
  }
  const double spread = std::sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = n * p + 0.5, alpha = (2.83 + 5.1 / b) * spread, v_r = 0.92 - 4.2 / b;
  const double odds = p / (1 - p), mode = std::floor((n + 1) * p);
  const double top = std::lgamma(mode + 1) + std::lgamma(n - mode + 1);
  for (;;) {
    const double x = u() - 0.5, v = u(), us = 0.5 - std::abs(x);
    const double k = std::floor((2 * a / us + b) * x + c);
    if (k < 0 || k > n) continue;
    if (us >= 0.07 && v <= v_r) return k;
    if (std::log(v * alpha / (a / (us * us) + b)) <= top - std::lgamma(k + 1) - std::lgamma(n - k + 1) + (k - mode) * std::log(odds))
      return k;
  }
}

// Computes f(i, uniform numbers) for each element on the host; returns a tensor of that shape and dtype on `device`.
template <class F>
Tensor by_host(const Dims& shape, DType type, Device device, Generator* generator, F f) {
  const auto finished = [&](const std::vector<double>& values) {
    return from_data(values.data(), shape, DType::F64, Options(DType::F64, Device(DeviceType::Cpu))).to(type).to(device);
  };
  size_t count = 1;
  for (const int64_t n : shape) count *= static_cast<size_t>(n);
  std::vector<double> values(count);
  if (ops::draws_as_pytorch()) {
    ops::Twister twister(generator);
    Uniform u(twister);
    for (size_t i = 0; i < values.size(); ++i) values[i] = f(i, u);
    return finished(values);
  }
  const Tensor words = randint(0, int64_t{1} << 62, shape, Options(DType::I64, Device(DeviceType::Cpu)), generator);
  const auto* const word = values.empty() ? nullptr : static_cast<const int64_t*>(words.data_ptr());
  for (size_t i = 0; i < values.size(); ++i) {
    Uniform u(word[i]);
    values[i] = f(i, u);
  }
  return finished(values);
}

std::vector<double> doubles_of(const Tensor& t, const Dims& shape) {
  const Tensor host = t.detach().to(DType::F64).to(Device(DeviceType::Cpu)).expand(shape).contiguous();
  const auto* const p = host.numel() ? static_cast<const double*>(host.data_ptr()) : nullptr;
  return {p, p + host.numel()};
}

std::vector<Tensor> zeros_for(const std::vector<Tensor>& g, size_t count) { return std::vector<Tensor>(count, zeros_like(g[0])); }

}  // namespace

Tensor poisson(const Tensor& rates, Generator* generator) {
  ops::require_defined(rates, "poisson", "input");
  if (!is_floating(rates.dtype())) ops::throw_not_implemented("poisson_cpu", rates.dtype());
  const std::vector<double> rate = doubles_of(rates, rates.sizes());
  for (const double r : rate)
    if (!(r >= 0)) throw RuntimeError("invalid Poisson rate, expected rate to be non-negative");
  Tensor out =
      by_host(rates.sizes(), rates.dtype(), rates.device(), generator, [&](size_t i, Uniform& u) { return poisson_of(rate[i], u); });
  return autograd::record(std::move(out), "PoissonBackward0", {&rates}, {},
                          [](const std::vector<Tensor>& g, const std::vector<Tensor>&) { return zeros_for(g, 1); });
}

Tensor binomial(const Tensor& count, const Tensor& prob, Generator* generator) {
  ops::require_defined(count, "binomial", "count"), ops::require_defined(prob, "binomial", "prob");
  for (const auto& [t, role] : {std::pair(&count, "count"), std::pair(&prob, "prob")})
    if (!is_floating(t->dtype()))
      throw ValueError("binomial only supports floating-point dtypes for {}, got: {}", role, ops::torch_name(t->dtype()));
  if (count.dtype() != prob.dtype())
    throw RuntimeError("Found dtype {} but expected {}", ops::torch_name(prob.dtype()), ops::torch_name(count.dtype()));
  const Tensor* const both[] = {&count, &prob};
  const char* const roles[] = {"count", "prob"};
  const Device device = ops::common_device(both, roles, "binomial");
  const Dims shape = broadcast_shapes(count.sizes(), prob.sizes());
  const std::vector<double> n = doubles_of(count, shape), p = doubles_of(prob, shape);
  Tensor out = by_host(shape, count.dtype(), device, generator, [&](size_t i, Uniform& u) { return binomial_of(n[i], p[i], u); });
  return autograd::record(std::move(out), "BinomialBackward0", {&count, &prob}, {},
                          [](const std::vector<Tensor>& g, const std::vector<Tensor>&) { return zeros_for(g, 2); });
}

namespace {

// Marsaglia and Tsang's rejection (2000). A shape below 1 uses the sampler for shape + 1.
double gamma_of(double shape, Uniform& u) {
  if (!(shape > 0)) return shape == 0 ? 0 : std::nan("");
  double scale = 1;
  if (shape < 1) {
    scale = std::pow(1 - u(), 1 / shape);
    shape += 1;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    double x = 0, y = 0;
    do {
      x = u.normal();
      y = 1 + c * x;
    } while (y <= 0);
    const double v = y * y * y, w = 1 - u(), xx = x * x;
    if (w < 1 - 0.0331 * xx * xx || std::log(w) < 0.5 * xx + d * (1 - v + std::log(v))) return scale * d * v;
  }
}

double digamma_of(double x) {
  double sum = 0;
  for (; x < 10; ++x) sum -= 1 / x;
  const double r = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x - r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r / 132))));
}

// Implicit reparameterization gradient dx / dshape of a gamma sample: minus the derivative of the distribution function by the shape, divided by the
// density. Both are written as an integral over one side of x, smooth and decaying, computed with the exp-sinh rule.
double gamma_moves(double shape, double x) {
  if (!(x > 0) || !(shape > 0)) return 0;
  const double psi = digamma_of(shape), log_x = std::log(x);
  constexpr double kStep = 1.0 / 16;
  double sum = 0;
  for (int i = -64; i <= 48; ++i) {
    const double t = i * kStep, u = std::exp(1.5707963267948966 * std::sinh(t));
    const double weight = u * 1.5707963267948966 * std::cosh(t) * kStep;
    sum += weight * (x > shape ? (log_x + std::log1p(u / x) - psi) * std::exp((shape - 1) * std::log1p(u / x) - u)
                               : (psi + u - log_x) * x * std::exp(-u * shape - x * std::expm1(-u)));
  }
  return sum;
}

}  // namespace

Tensor standard_gamma(const Tensor& shape, Generator* generator) {
  ops::require_defined(shape, "_standard_gamma", "input");
  if (!is_floating(shape.dtype())) ops::throw_not_implemented("gamma_cpu", shape.dtype());
  const std::vector<double> a = doubles_of(shape, shape.sizes());
  Tensor out = by_host(shape.sizes(), shape.dtype(), shape.device(), generator, [&](size_t i, Uniform& u) { return gamma_of(a[i], u); });
  return autograd::record(
      out, "StandardGammaBackward0", {&shape}, {&shape},
      [](const std::vector<Tensor>& g, const std::vector<Tensor>& saved) -> std::vector<Tensor> {
        const Tensor &of = saved[0], &numbers = saved[1];
        const std::vector<double> alpha = doubles_of(of, of.sizes()), x = doubles_of(numbers, of.sizes());
        std::vector<double> moves(alpha.size());
        for (size_t i = 0; i < moves.size(); ++i) moves[i] = gamma_moves(alpha[i], x[i]);
        const Options host(DType::F64, Device(DeviceType::Cpu));
        return {g[0] * from_data(moves.data(), of.sizes(), DType::F64, host).to(of.dtype()).to(of.device())};
      },
      true);
}

}  // namespace naru
