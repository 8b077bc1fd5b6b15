#include "naru/ops/signal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

// f(i, n): element i of a symmetric window of n. A periodic window is a symmetric one of n + 1 without its last element.
template <class F>
Tensor filled(int64_t m, bool sym, const Options& options, F f) {
  Options o = options;
  o.requires_grad = false;
  if (!o.dtype) o.dtype = default_dtype();
  const double n = static_cast<double>(m) + (sym ? 0 : 1);
  std::vector<double> numbers(static_cast<size_t>(m), 1.0);
  if (m > 1)
    for (int64_t i = 0; i < m; ++i) numbers[static_cast<size_t>(i)] = f(static_cast<double>(i), n);
  const Tensor t = from_data(numbers.data(), {m}, DType::F64, o).to(*o.dtype);
  return options.requires_grad ? t.requires_grad_() : t;
}

void check(int64_t m, const Options& o, const char* name) {
  if (m < 0) throw ValueError("{} requires non-negative window length, got M={}", name, m);
  const DType type = o.dtype.value_or(default_dtype());
  if (type != DType::F32 && type != DType::F64)
    throw ValueError("{} expects float32 or float64 dtypes, got: torch.{}", name, name_of(type));
}

void check_old(int64_t length, const Options& o, const char* name) {
  if (length < 0) throw RuntimeError("{} requires non-negative window_length, got window_length={}", name, length);
  const DType type = o.dtype.value_or(default_dtype());
  if (!is_inexact(type))
    throw RuntimeError("{} expects floating point dtypes, got: TensorOptions(dtype={})", name,
                       type == DType::I64 ? "long int" : ops::c_name(type));
}

// Formats as Python does: 1.0
std::string number(double x) {
  std::string text = fmt::format("{}", x);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

double triangle_at(double i, double n) { return 1 - std::abs(2 * i / (n - 1) - 1); }

// Evaluates mirrored positions at the same angle, so that the window is exactly symmetric.
double cosines(double i, double n, const double* a, size_t count) {
  const double at = std::min(i, n - 1 - i);
  double sum = 0;
  for (size_t k = count; k-- > 0;) sum += (k % 2 ? -a[k] : a[k]) * std::cos(2 * std::numbers::pi * static_cast<double>(k) * at / (n - 1));
  return sum;
}

// Modified Bessel function I0, by its power series.
double bessel(double x) {
  const double square = x * x / 4;
  double sum = 1, term = 1;
  for (double k = 1; term > sum * 1e-17 && k < 2000; ++k) sum += term *= square / (k * k);
  return sum;
}
double kaiser_at(double i, double n, double beta) {
  const double x = 2 * i / (n - 1) - 1;
  return bessel(beta * std::sqrt(std::max(0.0, 1 - x * x))) / bessel(beta);
}

Tensor of_cosines(int64_t m, std::initializer_list<double> a, bool sym, const Options& o) {
  return filled(m, sym, o, [&](double i, double n) { return cosines(i, n, a.begin(), a.size()); });
}

}  // namespace

namespace signal::windows {

Tensor bartlett(int64_t m, bool sym, const Options& o) {
  check(m, o, "bartlett");
  return filled(m, sym, o, triangle_at);
}
Tensor cosine(int64_t m, bool sym, const Options& o) {
  check(m, o, "cosine");
  return filled(m, sym, o, [](double i, double n) { return std::sin(std::numbers::pi * (std::min(i, n - 1 - i) + 0.5) / n); });
}

Tensor exponential(int64_t m, std::optional<double> center, double tau, bool sym, const Options& o) {
  check(m, o, "exponential");
  if (!(tau > 0)) throw ValueError("Tau must be positive, got: {} instead.", number(tau));
  if (sym && center) throw ValueError("Center must be None for symmetric windows");
  return filled(m, sym, o, [&](double i, double n) { return std::exp(-std::abs(i - center.value_or((n - 1) / 2)) / tau); });
}

Tensor gaussian(int64_t m, double std, bool sym, const Options& o) {
  check(m, o, "gaussian");
  if (!(std > 0)) throw ValueError("Standard deviation must be positive, got: {} instead.", number(std));
  return filled(m, sym, o, [&](double i, double n) {
    const double x = (i - (n - 1) / 2) / std;
    return std::exp(-x * x / 2);
  });
}

Tensor general_cosine(int64_t m, const std::vector<double>& a, bool sym, const Options& o) {
  check(m, o, "general_cosine");
  if (a.empty()) throw ValueError("Coefficients cannot be empty");
  return filled(m, sym, o, [&](double i, double n) { return cosines(i, n, a.data(), a.size()); });
}
Tensor general_hamming(int64_t m, double alpha, bool sym, const Options& o) { return general_cosine(m, {alpha, 1 - alpha}, sym, o); }
Tensor hamming(int64_t m, bool sym, const Options& o) { return general_hamming(m, 0.54, sym, o); }
Tensor hann(int64_t m, bool sym, const Options& o) { return general_hamming(m, 0.5, sym, o); }
Tensor blackman(int64_t m, bool sym, const Options& o) {
  check(m, o, "blackman");
  return general_cosine(m, {0.42, 0.5, 0.08}, sym, o);
}
Tensor nuttall(int64_t m, bool sym, const Options& o) { return general_cosine(m, {0.3635819, 0.4891775, 0.1365995, 0.0106411}, sym, o); }

Tensor kaiser(int64_t m, double beta, bool sym, const Options& o) {
  check(m, o, "kaiser");
  if (!(beta >= 0)) throw ValueError("beta must be non-negative, got: {} instead.", number(beta));
  return filled(m, sym, o, [&](double i, double n) { return kaiser_at(i, n, beta); });
}

}  // namespace signal::windows

Tensor bartlett_window(int64_t length, bool periodic, const Options& o) {
  check_old(length, o, "bartlett_window");
  return filled(length, !periodic, o, triangle_at);
}
Tensor blackman_window(int64_t length, bool periodic, const Options& o) {
  check_old(length, o, "blackman_window");
  return of_cosines(length, {0.42, 0.5, 0.08}, !periodic, o);
}
Tensor hann_window(int64_t length, bool periodic, const Options& o) {
  check_old(length, o, "hann_window");
  return of_cosines(length, {0.5, 0.5}, !periodic, o);
}
Tensor hamming_window(int64_t length, bool periodic, double alpha, double beta, const Options& o) {
  check_old(length, o, "hamming_window");
  return of_cosines(length, {alpha, beta}, !periodic, o);
}
Tensor kaiser_window(int64_t length, bool periodic, double beta, const Options& o) {
  check_old(length, o, "kaiser_window");
  return filled(length, !periodic, o, [&](double i, double n) { return kaiser_at(i, n, beta); });
}

}  // namespace naru
