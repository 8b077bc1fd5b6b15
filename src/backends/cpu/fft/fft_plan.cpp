#include "backends/cpu/fft/fft_plan.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>

#include "backends/cpu/fft/fft_passes.h"

namespace naru::cpu {
namespace {

// sin and cos on [0, pi / 4], by Taylor series.
Unit small_angle(double t) noexcept {
  const double x = t * t;
  double s = -1.0 / 1307674368000, c = 1.0 / 20922789888000;
  for (const double a : {1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6}) s = s * x + a;
  for (const double a : {-1.0 / 87178291200, 1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5}) c = c * x + a;
  return {1 + c * x, t + t * x * s};
}

constexpr int64_t kLargestRadix = 31;  // lengths with larger prime factors use Bluestein's algorithm

int64_t largest_factor(int64_t n) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p) largest = p;
  return std::max(largest, n);
}

// The next length that has only small prime factors.
int64_t smooth(int64_t n) {
  for (;; ++n) {
    int64_t rest = n;
    for (const int64_t p : {2, 3, 5})
      while (rest % p == 0) rest /= p;
    if (rest == 1) return n;
  }
}

}  // namespace

Unit unit_root(int64_t k, int64_t n) noexcept {
  const int64_t octant = 8 * k / n, rest = 8 * k - octant * n;
  constexpr double kEighth = 0.78539816339744830962;
  const auto [c, s] = small_angle(kEighth * (static_cast<double>(octant % 2 ? n - rest : rest) / static_cast<double>(n)));
  switch (octant) {
    case 0:
      return {c, s};
    case 1:
      return {s, c};
    case 2:
      return {-s, c};
    case 3:
      return {-c, s};
    case 4:
      return {-c, -s};
    case 5:
      return {-s, -c};
    case 6:
      return {s, -c};
    default:
      return {c, -s};
  }
}

template <class T>
FftPlan<T>::FftPlan(int64_t n) : n_(n) {
  largest_factor(n) > kLargestRadix ? make_chirp() : make_passes();
  for (int64_t k = 0; k <= n; ++k) {
    const Unit w = unit_root(k, 2 * n);
    half_turns_.push_back(static_cast<T>(w.cosine)), half_turns_.push_back(static_cast<T>(-w.sine));
  }
}

template <class T>
void FftPlan<T>::make_passes() {
  int64_t rest = n_, stride = 1;
  const auto add = [&](int64_t radix) {
    rest /= radix;
    passes_.push_back({radix, rest, stride, table_.size()});
    for (int64_t p = 0; p < rest; ++p)
      for (int64_t j = 1; j < radix; ++j) {
        const Unit w = unit_root(p * j, radix * rest);
        table_.push_back(static_cast<T>(w.cosine)), table_.push_back(static_cast<T>(-w.sine));
      }
    stride *= radix;
  };
  while (rest % 4 == 0) add(4);
  for (const int64_t p : {2, 3, 5})
    while (rest % p == 0) add(p);
  for (int64_t p = 7; rest > 1; p += 2)
    while (rest % p == 0) add(p);
  // The roots of each prime radix, smallest first.
  for (int64_t before = 0; const Pass& pass : passes_)
    if (pass.radix > 5 && pass.radix != before) {
      before = pass.radix;
      for (int64_t j = 0; j < before; ++j) {
        const Unit w = unit_root(j, before);
        roots_.push_back(static_cast<T>(w.cosine)), roots_.push_back(static_cast<T>(-w.sine));
      }
    }
}

// Bluestein's algorithm: with j k = (j² + k² - (k - j)²) / 2 the sum is a convolution, computed by transforms of a length with small
// factors.
template <class T>
void FftPlan<T>::make_chirp() {
  rounded_ = smooth(2 * n_ - 1);
  inner_ = of(rounded_);
  std::vector<T> re(static_cast<size_t>(rounded_)), im = re, other_re = re, other_im = re;
  for (int64_t k = 0; k < n_; ++k) {
    const auto square = static_cast<int64_t>(static_cast<unsigned __int128>(k) * static_cast<uint64_t>(k) % static_cast<uint64_t>(2 * n_));
    const Unit w = unit_root(square, 2 * n_);
    chirp_.push_back(static_cast<T>(w.cosine)), chirp_.push_back(static_cast<T>(-w.sine));
    for (const int64_t at : {k, k == 0 ? 0 : rounded_ - k})
      re[static_cast<size_t>(at)] = static_cast<T>(w.cosine), im[static_cast<size_t>(at)] = static_cast<T>(w.sine);
  }
  const Lanes<T> f = inner_->run({re.data(), im.data()}, {other_re.data(), other_im.data()}, 1);
  const T share = T{1} / static_cast<T>(rounded_);
  for (int64_t k = 0; k < rounded_; ++k) filter_.push_back(f.re[k] * share), filter_.push_back(f.im[k] * share);
}

template <class T>
Lanes<T> FftPlan<T>::run(Lanes<T> x, Lanes<T> other, int64_t lanes) const {
  return rounded_ ? run_chirp(x, other, lanes) : run_passes(x, other, lanes);
}

template <class T>
Lanes<T> FftPlan<T>::run_passes(Lanes<T> x, Lanes<T> other, int64_t lanes) const {
  const T* roots = roots_.data();
  for (int64_t before = 0; const Pass& p : passes_) {
    if (before > 5 && p.radix != before) roots += 2 * before;
    before = p.radix;
    fft_pass(p.radix, p.m, p.stride * lanes, Lanes<const T>{x.re, x.im}, other, table_.data() + p.table, roots);
    std::swap(x, other);
  }
  return x;
}

template <class T>
Lanes<T> FftPlan<T>::run_chirp(Lanes<T> x, Lanes<T> other, int64_t lanes) const {
  fft_scale(n_, lanes, Lanes<const T>{x.re, x.im}, chirp_.data(), false, x);
  std::fill(x.re + n_ * lanes, x.re + rounded_ * lanes, T{0});
  std::fill(x.im + n_ * lanes, x.im + rounded_ * lanes, T{0});
  Lanes<T> y = inner_->run(x, other, lanes), spare = y.re == x.re ? other : x;
  // Exchanging real and imaginary parts makes the transform an inverse one.
  fft_scale(rounded_, lanes, Lanes<const T>{y.re, y.im}, filter_.data(), true, spare);
  std::swap(y, spare);
  y = inner_->run(y, spare, lanes);
  spare = y.re == x.re ? other : x;
  fft_scale(n_, lanes, Lanes<const T>{y.im, y.re}, chirp_.data(), false, spare);
  return spare;
}

template <class T>
double FftPlan<T>::nanoseconds() const {
  if (rounded_) return 2 * inner_->nanoseconds() + 2.0 * static_cast<double>(rounded_);
  double each = 1;
  for (const Pass& p : passes_) each += p.radix <= 5 ? 0.3 : 0.3 * static_cast<double>(p.radix);
  return each * static_cast<double>(n_);
}

template <class T>
std::shared_ptr<const FftPlan<T>> FftPlan<T>::of(int64_t n) {
  using Plan = std::shared_ptr<const FftPlan>;
  constexpr size_t kKept = 32, kBytes = size_t{128} << 20;
  static auto* const mutex = new std::mutex;
  static auto* const kept = new std::list<Plan>;  // most recently used first
  const auto find = [&]() -> Plan {
    const auto at = std::find_if(kept->begin(), kept->end(), [n](const Plan& p) { return p->size() == n; });
    if (at == kept->end()) return nullptr;
    kept->splice(kept->begin(), *kept, at);
    return kept->front();
  };
  {
    const std::lock_guard lock(*mutex);
    if (Plan p = find()) return p;
  }
  Plan made = std::make_shared<const FftPlan>(n);
  const std::lock_guard lock(*mutex);
  if (Plan p = find()) return p;
  kept->push_front(made);
  size_t bytes = 0;
  for (const Plan& p : *kept) bytes += p->bytes();
  for (; kept->size() > kKept || bytes > kBytes; kept->pop_back()) bytes -= kept->back()->bytes();
  return made;
}

template class FftPlan<float>;
template class FftPlan<double>;

}  // namespace naru::cpu
