#include "naru/nn/activations.h"

#include <fmt/format.h>

#include "naru/nn/functional.h"
#include "nn/text.h"

namespace naru::nn {
namespace {

namespace F = functional;

Stateless::Parts named(const char* name, std::function<Tensor(const Tensor&)> f, std::string details = "") {
  return {std::move(f), name, std::move(details)};
}
std::string one(const char* what, double v) { return fmt::format("{}={}", what, number_text(v)); }
std::string two(const char* a, double x, const char* b, double y) { return one(a, x) + ", " + one(b, y); }

}  // namespace

Stateless::Stateless(Parts parts) : parts_(std::move(parts)) {}
Tensor Stateless::forward(const Tensor& x) { return parts_.call(x); }
std::string Stateless::name() const { return parts_.name; }
std::string Stateless::details() const { return parts_.details; }

Functional::Functional(std::function<Tensor(const Tensor&)> f) : Layer(Parts{std::move(f), "Functional", ""}) {}
Identity::Identity() : Layer(named("Identity", [](const Tensor& x) { return x; })) {}
Flatten::Flatten(int64_t start, int64_t end)
    : Layer(named(
          "Flatten", [=](const Tensor& x) { return x.flatten(start, end); }, fmt::format("start_dim={}, end_dim={}", start, end))) {}
Unflatten::Unflatten(int64_t dim, Dims sizes)
    : Layer(named(
          "Unflatten", [=](const Tensor& x) { return x.unflatten(dim, sizes); },
          fmt::format("dim={}, unflattened_size={}", dim, tuple_text(sizes)))) {}

ReLU::ReLU() : Layer(named("ReLU", [](const Tensor& x) { return relu(x); })) {}
ReLU6::ReLU6() : Layer(named("ReLU6", [](const Tensor& x) { return relu6(x); })) {}
LeakyReLU::LeakyReLU(double negative_slope)
    : Layer(named(
          "LeakyReLU", [=](const Tensor& x) { return F::leaky_relu(x, negative_slope); }, one("negative_slope", negative_slope))) {}
ELU::ELU(double alpha)
    : Layer(named(
          "ELU", [=](const Tensor& x) { return F::elu(x, alpha); }, one("alpha", alpha))) {}
SELU::SELU() : Layer(named("SELU", [](const Tensor& x) { return F::selu(x); })) {}
CELU::CELU(double alpha)
    : Layer(named(
          "CELU", [=](const Tensor& x) { return F::celu(x, alpha); }, one("alpha", alpha))) {}
GELU::GELU(bool by_tanh)
    : Layer(named(
          "GELU", [=](const Tensor& x) { return by_tanh ? gelu_tanh(x) : gelu(x); },
          by_tanh ? "approximate='tanh'" : "approximate='none'")) {}
SiLU::SiLU() : Layer(named("SiLU", [](const Tensor& x) { return silu(x); })) {}
Mish::Mish() : Layer(named("Mish", [](const Tensor& x) { return mish(x); })) {}
Tanh::Tanh() : Layer(named("Tanh", [](const Tensor& x) { return tanh(x); })) {}
Sigmoid::Sigmoid() : Layer(named("Sigmoid", [](const Tensor& x) { return sigmoid(x); })) {}
Hardtanh::Hardtanh(double min_val, double max_val)
    : Layer(named(
          "Hardtanh", [=](const Tensor& x) { return F::hardtanh(x, min_val, max_val); }, two("min_val", min_val, "max_val", max_val))) {
  if (!(min_val < max_val)) throw ValueError("max_val ({}) must be greater than min_val ({})", max_val, min_val);
}
Hardsigmoid::Hardsigmoid() : Layer(named("Hardsigmoid", [](const Tensor& x) { return hardsigmoid(x); })) {}
Hardswish::Hardswish() : Layer(named("Hardswish", [](const Tensor& x) { return hardswish(x); })) {}
Hardshrink::Hardshrink(double lambd)
    : Layer(named(
          "Hardshrink", [=](const Tensor& x) { return F::hardshrink(x, lambd); }, number_text(lambd))) {}
Softshrink::Softshrink(double lambd)
    : Layer(named(
          "Softshrink", [=](const Tensor& x) { return F::softshrink(x, lambd); }, number_text(lambd))) {}
Tanhshrink::Tanhshrink() : Layer(named("Tanhshrink", [](const Tensor& x) { return F::tanhshrink(x); })) {}
Softplus::Softplus(double beta, double threshold)
    : Layer(named(
          "Softplus", [=](const Tensor& x) { return F::softplus(x, beta, threshold); }, two("beta", beta, "threshold", threshold))) {}
Softsign::Softsign() : Layer(named("Softsign", [](const Tensor& x) { return softsign(x); })) {}
LogSigmoid::LogSigmoid() : Layer(named("LogSigmoid", [](const Tensor& x) { return logsigmoid(x); })) {}
Threshold::Threshold(double threshold, double value)
    : Layer(named(
          "Threshold", [=](const Tensor& x) { return F::threshold(x, threshold, value); }, two("threshold", threshold, "value", value))) {}
GLU::GLU(int64_t dim)
    : Layer(named(
          "GLU", [=](const Tensor& x) { return F::glu(x, dim); }, fmt::format("dim={}", dim))) {}
Softmax::Softmax(int64_t dim)
    : Layer(named(
          "Softmax", [=](const Tensor& x) { return softmax(x, dim); }, fmt::format("dim={}", dim))) {}
Softmin::Softmin(int64_t dim)
    : Layer(named(
          "Softmin", [=](const Tensor& x) { return F::softmin(x, dim); }, fmt::format("dim={}", dim))) {}
LogSoftmax::LogSoftmax(int64_t dim)
    : Layer(named(
          "LogSoftmax", [=](const Tensor& x) { return log_softmax(x, dim); }, fmt::format("dim={}", dim))) {}
Softmax2d::Softmax2d()
    : Layer(named("Softmax2d", [](const Tensor& x) {
        if (x.dim() != 3 && x.dim() != 4) throw ValueError("Softmax2d: expected input to be 3D or 4D, got {}D instead", x.dim());
        return softmax(x, -3);
      })) {}

PReLU::PReLU(int64_t count, double init, const Options& options) : weight(register_parameter("weight", full({count}, init, options))) {}
Tensor PReLU::forward(const Tensor& x) { return prelu(x, weight); }
std::string PReLU::details() const { return fmt::format("num_parameters={}", weight.numel()); }
std::shared_ptr<Module> PReLU::remake() const { return std::make_shared<PReLU>(weight.numel()); }

DropoutBase::DropoutBase(const char* name, Drop drop, double p) : name_(name), drop_(drop), p_(p) {
  if (!(p >= 0 && p <= 1)) throw ValueError("dropout probability has to be between 0 and 1, but got {}", p);
}
std::string DropoutBase::details() const { return fmt::format("p={}, inplace=False", number_text(p_)); }

Dropout::Dropout(double p)
    : DropoutLayer(
          "Dropout", [](const Tensor& x, double q, bool training) { return dropout(x, q, training); }, p) {}
Dropout1d::Dropout1d(double p) : DropoutLayer("Dropout1d", F::dropout1d, p) {}
Dropout2d::Dropout2d(double p) : DropoutLayer("Dropout2d", F::dropout2d, p) {}
Dropout3d::Dropout3d(double p) : DropoutLayer("Dropout3d", F::dropout3d, p) {}
AlphaDropout::AlphaDropout(double p) : DropoutLayer("AlphaDropout", F::alpha_dropout, p) {}
FeatureAlphaDropout::FeatureAlphaDropout(double p) : DropoutLayer("FeatureAlphaDropout", F::feature_alpha_dropout, p) {}

RReLU::RReLU(double lower, double upper) : lower_(lower), upper_(upper) {}
Tensor RReLU::forward(const Tensor& x) { return F::rrelu(x, lower_, upper_, is_training()); }
std::shared_ptr<Module> RReLU::remake() const { return std::make_shared<RReLU>(lower_, upper_); }
std::string RReLU::details() const { return two("lower", lower_, "upper", upper_); }

}  // namespace naru::nn
