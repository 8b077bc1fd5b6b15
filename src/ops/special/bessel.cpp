// torch.special's Bessel and Airy functions. No coefficient tables from other libraries: trapezoidal sums of integral representations (whose error
// falls faster than any power of the step), power series where nothing cancels, and asymptotic series for large arguments.
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "naru/ops/special.h"
#include "ops/elementwise/by_float64.h"
#include "ops/tensor/type_names.h"

namespace naru::special {
namespace {

using ops::by_float64;
using ops::polynomial;
constexpr double kGamma = 0.57721566490153286061;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

// NotImplementedError with PyTorch's text for 16-bit and complex types.
void require_wide(const Tensor& t, const char* kernel) {
  if (t.defined() && (size_of(t.dtype()) == 2 || is_complex(t.dtype())) && is_inexact(t.dtype()))
    ops::throw_not_implemented(kernel, t.dtype());
}

template <class F, class D>
Tensor wide(const Tensor& t, const char* kernel, const char* node, F f, D derivative) {
  require_wide(t, kernel);
  return by_float64(t, node, f, derivative);
}

Tensor divided(const Tensor& y, const Tensor& x) { return y / where(eq(x, 0.0), 1.0, x); }

// --- J and Y -------------------------------------------------------------------------------------------------------------------------------
// cos(x sin t) has the Fourier coefficients 2 J_2k(x). So the mean over kPoints + 1 angles of a quarter circle gives J_0, and with weights sum of
// (-1)^k cos(2 k t) / k it gives the sum in Neumann's series of Y_0. Their derivatives by x give order 1.
constexpr double kFar = 20;
constexpr int kPoints = 32, kOrders = 28;
struct Angle {
  double sine, weight, weight_y;
};
const std::array<Angle, kPoints + 1>& angles() {
  static const auto all = [] {
    std::array<Angle, kPoints + 1> a{};
    for (int j = 0; j <= kPoints; ++j) {
      const double t = std::numbers::pi * j / (2 * kPoints), share = (j == 0 || j == kPoints ? 0.5 : 1.0) / kPoints;
      double y = 0;
      for (int k = kOrders; k >= 1; --k) y += (k % 2 ? -1 : 1) * std::cos(2 * k * t) / k;
      a[static_cast<size_t>(j)] = {std::sin(t), share, share * y};
    }
    return a;
  }();
  return all;
}

// Returns (J_n, sum of Neumann's series) for 0 <= x <= kFar; n is 0 or 1.
std::pair<Tensor, Tensor> near(const Tensor& x, int n, bool series) {
  Tensor j = zeros_like(x), y = j;
  for (const Angle& a : angles()) {
    const Tensor wave = n == 0 ? cos(x * a.sine) : sin(x * a.sine) * a.sine;
    j = j + wave * a.weight;
    if (series) y = y + wave * a.weight_y;
  }
  return {j, y};
}

// Hankel's asymptotic series: returns (J_n, Y_n).
std::pair<Tensor, Tensor> far(const Tensor& x, int n) {
  std::vector<double> p, q;
  double a = 1;
  for (int k = 0; k < 32; ++k) {
    (k % 2 ? q : p).push_back(k / 2 % 2 ? -a : a);
    a *= (4.0 * n * n - (2.0 * k + 1) * (2.0 * k + 1)) / (8.0 * (k + 1));
  }
  const Tensor i = reciprocal(x), i2 = i * i, even = polynomial(p, i2), odd = polynomial(q, i2) * i;
  // sqrt(2) times the cosine and the sine of x - (2 n + 1) pi / 4.
  const Tensor s = sin(x), c = cos(x), cosine = n == 0 ? c + s : s - c, sine = n == 0 ? s - c : -(s + c);
  const Tensor size = sqrt(i * (1 / std::numbers::pi));
  return {size * (even * cosine - odd * sine), size * (even * sine + odd * cosine)};
}

Tensor first_kind(const Tensor& x, int n) {
  const Tensor a = abs(x);
  const Tensor y = where(gt(a, kFar), far(clamp_min(a, kFar), n).first, near(clamp_max(a, kFar), n, false).first);
  return n == 0 ? y : where(signbit(x), -y, y);
}

Tensor second_kind(const Tensor& x, int n) {
  const Tensor a = clamp(x, 1e-300, kFar), level = log(a * 0.5) + kGamma;
  const auto [j, series] = near(a, n, true);
  Tensor inside = (level * j - series * 2.0) * (2 / std::numbers::pi);
  if (n == 1) inside = inside - near(a, 0, false).first / a * (2 / std::numbers::pi);
  const Tensor y = where(gt(x, kFar), far(clamp_min(x, kFar), n).second, inside);
  return where(gt(x, 0.0), y, where(eq(x, 0.0), -kInfinity, kNan));
}

// --- K -------------------------------------------------------------------------------------------------------------------------------------
// exp(x) K_n(x) for x >= 2: the integral of exp(-x (cosh t - 1)) cosh(n t), with step 0.3 / sqrt(x). `order`: n, or a fraction.
Tensor scaled_integral(const Tensor& x, double order) {
  constexpr double kStep = 0.3;
  const Tensor root = rsqrt(x);
  Tensor sum = full_like(x, Scalar(0.5));
  for (int j = 1; j <= 32; ++j) {
    const Tensor t = root * (kStep * j), s = sinh(t * 0.5);
    const Tensor decay = exp(x * s * s * -2.0);
    sum = sum + (order == 0 ? decay : decay * cosh(t * order));
  }
  return sum * root * kStep;
}

// K_n for 0 < x <= 2, by its power series.
Tensor small_k(const Tensor& x, int n) {
  std::vector<double> i{1}, k;
  double harmonic = 0, term = 1;
  for (int m = 0; m < 20; ++m) {
    if (m > 0) {
      term /= static_cast<double>(m) * (m + n), harmonic += 1.0 / m;
      i.push_back(term);
    }
    k.push_back(term * (n == 0 ? harmonic : 2 * harmonic + 1.0 / (m + 1) - 2 * kGamma));
  }
  const Tensor half = x * 0.5, square = half * half, level = log(half);
  const Tensor own = polynomial(i, square), rest = polynomial(k, square);
  return n == 0 ? rest - (level + kGamma) * own : reciprocal(x) + level * half * own - rest * half * 0.5;
}

Tensor third_kind(const Tensor& x, int n, bool scaled) {
  constexpr double kNear = 2;
  const Tensor small = clamp(x, 1e-300, kNear), large = clamp(x, kNear, 1e300);
  const Tensor inside = scaled ? small_k(small, n) * exp(small) : small_k(small, n);
  const Tensor outside = scaled ? scaled_integral(large, n) : scaled_integral(large, n) * exp(-large);
  const Tensor y = where(gt(x, kNear), outside, inside);
  return where(isinf(x), where(gt(x, 0.0), 0.0, kNan), where(gt(x, 0.0), y, where(eq(x, 0.0), kInfinity, kNan)));
}

// --- Airy ----------------------------------------------------------------------------------------------------------------------------------
struct Centre {
  double at, value, slope;
};
// Ai and Ai' at the centers of intervals of length 2.
constexpr Centre kCentres[] = {{-9, -0.02213372154734140, -0.9756639809263315947},  {-7, 0.1842808352505056373, -0.7710081684101265477},
                               {-5, 0.3507610090241143198, 0.3271928185544431368},  {-3, -0.3788142936776580743, 0.3145837692165988137},
                               {-1, 0.5355608832923521188, -0.0101605671166452094}, {1, 0.1352924163128814155, -0.1591474412967932128}};
constexpr double kLeft = -10, kRight = 2;

// Taylor series of Ai (or its derivative) about a center; the coefficients follow from y'' = x y.
Tensor about(const Centre& c, const Tensor& x, bool slope) {
  std::vector<double> a{c.value, c.slope, c.at * c.value / 2};
  for (size_t n = 1; n < 30; ++n) a.push_back((c.at * a[n] + a[n - 1]) / static_cast<double>((n + 2) * (n + 1)));
  if (slope) {
    for (size_t n = 1; n < a.size(); ++n) a[n - 1] = a[n] * static_cast<double>(n);
    a.pop_back();
  }
  return polynomial(a, x - c.at);
}

// For x < kLeft: oscillation with the asymptotic coefficients u_k, or, for the derivative, -(6 k + 1) / (6 k - 1) u_k.
Tensor waves(const Tensor& x, bool slope) {
  const Tensor z = -x, zeta = z * sqrt(z) * (2.0 / 3), i = reciprocal(zeta), i2 = i * i;
  std::vector<double> even, odd;
  double u = 1;
  for (int k = 0; k < 24; ++k) {
    const double c = slope ? -(6.0 * k + 1) / (6.0 * k - 1) * u : u;
    (k % 2 ? odd : even).push_back(k / 2 % 2 ? -c : c);
    u *= (6.0 * k + 1) * (6.0 * k + 3) * (6.0 * k + 5) / (216.0 * (k + 1) * (2.0 * k + 1));
  }
  const Tensor p = polynomial(even, i2), q = polynomial(odd, i2) * i;
  const Tensor s = sin(zeta), c = cos(zeta), cosine = (c + s) * std::sqrt(0.5), sine = (s - c) * std::sqrt(0.5);
  const Tensor fourth = sqrt(sqrt(z));
  return slope ? (sine * p - cosine * q) * fourth * (1 / std::sqrt(std::numbers::pi))
               : (cosine * p + sine * q) / fourth * (1 / std::sqrt(std::numbers::pi));
}

// For x > kRight: K of order 1/3 (2/3 for the derivative).
Tensor decaying(const Tensor& x, bool slope) {
  const Tensor zeta = x * sqrt(x) * (2.0 / 3), scale = exp(-zeta) * (1 / (std::numbers::pi * std::sqrt(3.0)));
  return slope ? -x * scaled_integral(zeta, 2.0 / 3) * scale : sqrt(x) * scaled_integral(zeta, 1.0 / 3) * scale;
}

Tensor airy_of(const Tensor& x, bool slope) {
  Tensor y = waves(clamp(x, -1e200, kLeft), slope);
  for (const Centre& c : kCentres) y = where(ge(x, c.at - 1), about(c, clamp(x, c.at - 1, c.at + 1), slope), y);
  y = where(gt(x, kRight), decaying(clamp(x, kRight, 1e6), slope), y);
  return where(isfinite(x), y, kNan);
}

Tensor airy_slope(const Tensor& t) {
  return by_float64(
      t, "SpecialAiryAiPrimeBackward0", [](const Tensor& x) { return airy_of(x, true); },
      [](const Tensor& x, const Tensor&) { return x * airy_ai(x); });
}

}  // namespace

Tensor bessel_j0(const Tensor& t) {
  return wide(
      t, "bessel_j0_cpu", "SpecialBesselJ0Backward0", [](const Tensor& x) { return first_kind(x, 0); },
      [](const Tensor& x, const Tensor&) { return -bessel_j1(x); });
}
Tensor bessel_j1(const Tensor& t) {
  return wide(
      t, "bessel_j1_cpu", "SpecialBesselJ1Backward0", [](const Tensor& x) { return first_kind(x, 1); },
      [](const Tensor& x, const Tensor& y) { return where(eq(x, 0.0), 0.5, bessel_j0(x) - divided(y, x)); });
}
Tensor bessel_y0(const Tensor& t) {
  return wide(
      t, "bessel_y0_cpu", "SpecialBesselY0Backward0", [](const Tensor& x) { return second_kind(x, 0); },
      [](const Tensor& x, const Tensor&) { return -bessel_y1(x); });
}
Tensor bessel_y1(const Tensor& t) {
  return wide(
      t, "bessel_y1_cpu", "SpecialBesselY1Backward0", [](const Tensor& x) { return second_kind(x, 1); },
      [](const Tensor& x, const Tensor& y) { return bessel_y0(x) - y / x; });
}

// i0 and i1, except for PyTorch's results at infinity and its rejection of 16-bit types.
Tensor modified_bessel_i0(const Tensor& t) {
  require_wide(t, "modified_bessel_i0_cpu");
  return where(isinf(t), kNan, i0(t));
}
Tensor modified_bessel_i1(const Tensor& t) {
  require_wide(t, "modified_bessel_i1_cpu");
  return where(isinf(t), kNan, i1(t));
}
Tensor modified_bessel_k0(const Tensor& t) {
  return wide(
      t, "modified_bessel_k0_cpu", "SpecialModifiedBesselK0Backward0", [](const Tensor& x) { return third_kind(x, 0, false); },
      [](const Tensor& x, const Tensor&) { return -modified_bessel_k1(x); });
}
Tensor modified_bessel_k1(const Tensor& t) {
  return wide(
      t, "modified_bessel_k1_cpu", "SpecialModifiedBesselK1Backward0", [](const Tensor& x) { return third_kind(x, 1, false); },
      [](const Tensor& x, const Tensor& y) { return -modified_bessel_k0(x) - y / x; });
}
Tensor scaled_modified_bessel_k0(const Tensor& t) {
  return wide(
      t, "scaled_modified_bessel_k0_cpu", "SpecialScaledModifiedBesselK0Backward0", [](const Tensor& x) { return third_kind(x, 0, true); },
      [](const Tensor& x, const Tensor& y) { return y - scaled_modified_bessel_k1(x); });
}
Tensor scaled_modified_bessel_k1(const Tensor& t) {
  return wide(
      t, "scaled_modified_bessel_k1_cpu", "SpecialScaledModifiedBesselK1Backward0", [](const Tensor& x) { return third_kind(x, 1, true); },
      [](const Tensor& x, const Tensor& y) { return y - scaled_modified_bessel_k0(x) - y / x; });
}

Tensor spherical_bessel_j0(const Tensor& t) {
  return wide(
      t, "spherical_bessel_j0_cpu", "SpecialSphericalBesselJ0Backward0",
      [](const Tensor& x) { return where(isinf(x), 0.0, where(lt(abs(x), 1e-8), 1.0, divided(sin(x), x))); },
      [](const Tensor& x, const Tensor& y) { return where(lt(abs(x), 1e-8), 0.0, divided(cos(x) - y, x)); });
}

Tensor airy_ai(const Tensor& t) {
  return wide(
      t, "airy_ai_cpu", "SpecialAiryAiBackward0", [](const Tensor& x) { return airy_of(x, false); },
      [](const Tensor& x, const Tensor&) { return airy_slope(x); });
}

}  // namespace naru::special
