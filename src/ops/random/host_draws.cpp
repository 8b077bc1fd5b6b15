#include "ops/random/host_draws.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <string_view>
#include <vector>

#include "naru/ops.h"
#include "ops/random/normal_blocks.h"
#include "ops/tensor/common.h"
#include "runtime/queue/capture.h"

namespace naru {
namespace {

std::atomic<int> algorithm{-1};

RandomAlgorithm from_environment() {
  const char* const named = std::getenv("NARU_RANDOM");
  if (!named || !*named || named == std::string_view("philox")) return RandomAlgorithm::Philox;
  if (named == std::string_view("pytorch")) return RandomAlgorithm::PyTorch;
  throw ValueError("NARU_RANDOM: wanted philox or pytorch, got '{}'", named);
}

}  // namespace

void set_random_algorithm(RandomAlgorithm a) noexcept { algorithm = static_cast<int>(a); }
RandomAlgorithm random_algorithm() {
  int known = algorithm.load(std::memory_order_relaxed);
  if (known < 0) algorithm = known = static_cast<int>(from_environment());
  return static_cast<RandomAlgorithm>(known);
}

MersenneTwister::MersenneTwister(uint64_t seed) {
  words[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kWords; ++i) words[i] = 1812433253u * (words[i - 1] ^ (words[i - 1] >> 30)) + i;
}

uint32_t MersenneTwister::next() {
  if (at == kWords) {
    constexpr uint32_t kShift = 397;
    const auto renew = [this](uint32_t i, uint32_t next, uint32_t far) {
      const uint32_t y = (words[i] & 0x80000000u) | (words[next] & 0x7fffffffu);
      words[i] = words[far] ^ (y >> 1) ^ ((0u - (y & 1)) & 0x9908b0dfu);
    };
    for (uint32_t i = 0; i < kWords - kShift; ++i) renew(i, i + 1, i + kShift);
    for (uint32_t i = kWords - kShift; i + 1 < kWords; ++i) renew(i, i + 1, i + kShift - kWords);
    renew(kWords - 1, 0, kShift - 1);
    at = 0;
  }
  uint32_t y = words[at++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

namespace ops {

bool draws_as_pytorch() noexcept { return random_algorithm() == RandomAlgorithm::PyTorch; }

Twister::Twister(Generator* generator)
    : lock_(lock_of(generator ? *generator : default_generator())), twister_((generator ? *generator : default_generator()).twister()) {
  require_draws();
  if (runtime::Capture* c = runtime::Capture::current())
    c->refuse("PyTorch's random numbers are made by the host: a replay could not draw new ones");
}

// Box-Muller makes pairs; the second number is kept for the next call.
double Twister::normal() {
  if (twister_.has_normal) {
    twister_.has_normal = false;
    return twister_.normal;
  }
  const double angle = 2 * std::numbers::pi * uniform53();
  const double radius = std::sqrt(-2 * std::log1p(-uniform53()));
  twister_.normal = radius * std::sin(angle);
  twister_.has_normal = true;
  return radius * std::cos(angle);
}

namespace {

// Host memory for numbers that write() copies to `out`, rounded to its dtype.
template <class T>
struct Draft {
  explicit Draft(const Tensor& target, DType type)
      : out(target), made(empty(target.sizes(), Options(type, Device(DeviceType::Cpu)))), values(static_cast<T*>(made.data_ptr())) {}
  void write() { Tensor(out).copy_(made); }
  size_t size() const { return static_cast<size_t>(out.numel()); }
  T* begin() const { return values; }
  T* end() const { return values + out.numel(); }

  const Tensor& out;
  const Tensor made;
  T* const values;
};

bool is_double(const Tensor& t) { return t.dtype() == DType::F64; }

template <class T, class F>
void fill_with(const Tensor& out, DType type, F next) {
  Draft<T> draft(out, type);
  for (T& v : draft) v = static_cast<T>(next());
  draft.write();
}

// Fills `out` with next(), called for each element: in double precision, rounded once.
template <class F>
void fill(const Tensor& out, F next) {
  if (is_double(out) || !is_inexact(out.dtype())) return fill_with<double>(out, DType::F64, next);
  fill_with<float>(out, DType::F32, next);
}

template <class T, class F>
void normals_in_blocks(const Tensor& out, T mean, T std, DType type, F uniform) {
  Draft<T> draft(out, type);
  T* const values = draft.values;
  const size_t n = draft.size();
  // For 16-bit types, PyTorch does not first draw the numbers that the last block draws again.
  const size_t first = size_of(out.dtype()) == 2 ? n - n % 16 : n;
  for (size_t i = 0; i < first; ++i) values[i] = uniform();
  normals_of(values, static_cast<int64_t>(n / 16), mean, std);
  if (n % 16 != 0) {
    for (size_t i = n - 16; i < n; ++i) values[i] = uniform();
    normals_of(values + n - 16, 1, mean, std);
  }
  draft.write();
}

}  // namespace

Tensor in_memory_order(const Tensor& t) {
  Dims order;
  for (int64_t d = 0; d < t.dim(); ++d) order.push_back(d);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return t.strides()[a] > t.strides()[b]; });
  return t.detach().permute(order);
}

void host_uniform(const Tensor& out, double from, double to, Generator* generator) {
  Twister t(generator);
  if (is_double(out)) return fill(out, [&] { return std::fma(t.uniform53(), to - from, from); });
  const auto low = static_cast<float>(from), width = static_cast<float>(to) - low;
  // A number that 16 bits round to the exclusive upper end becomes the lower end.
  const auto in_range = [&](float x) {
    const float seen = out.dtype() == DType::F16    ? half_to_float(float_to_half(x))
                       : out.dtype() == DType::BF16 ? bfloat_to_float(float_to_bfloat(x))
                                                    : x;
    return size_of(out.dtype()) == 2 && seen == static_cast<float>(to) ? low : x;
  };
  fill(out, [&]() -> double { return in_range(std::fma(t.uniform24(), width, low)); });
}

void host_normal(const Tensor& out, double mean, double std, bool in_blocks, Generator* generator) {
  Twister t(generator);
  if (!in_blocks || out.numel() < 16) return fill(out, [&] { return std::fma(t.normal(), std, mean); });
  if (is_double(out)) return normals_in_blocks<double>(out, mean, std, DType::F64, [&] { return t.uniform53(); });
  normals_in_blocks<float>(out, static_cast<float>(mean), static_cast<float>(std), DType::F32, [&] { return t.uniform24(); });
}

void host_bernoulli(const Tensor& out, double p, Generator* generator) {
  Twister t(generator);
  fill(out, [&] { return t.uniform53() < p ? 1.0 : 0.0; });
}

void host_bernoulli(const Tensor& out, const Tensor& p, Generator* generator) {
  const bool wide = is_double(p);
  const Tensor values = p.detach().to(DType::F64).to(Device(DeviceType::Cpu)).contiguous();
  const auto* at = static_cast<const double*>(values.data_ptr());
  Twister t(generator);
  fill(out, [&] { return (wide ? t.uniform53() : static_cast<double>(t.uniform24())) < *at++ ? 1.0 : 0.0; });
}

void host_exponential(const Tensor& out, double rate, Generator* generator) {
  Twister t(generator);
  fill(out, [&] { return -1 / rate * std::log1p(-t.uniform53()); });
}

void host_cauchy(const Tensor& out, double median, double sigma, Generator* generator) {
  Twister t(generator);
  fill(out, [&] { return median + sigma * std::tan(std::numbers::pi * (t.uniform53() - 0.5)); });
}

void host_log_normal(const Tensor& out, double mean, double std, Generator* generator) {
  Twister t(generator);
  fill(out, [&] { return std::exp(std::fma(t.normal(), std, mean)); });
}

void host_geometric(const Tensor& out, double p, Generator* generator) {
  Twister t(generator);
  fill(out, [&] { return std::ceil(std::log(t.uniform53()) / std::log1p(-p)); });
}

void host_integers(const Tensor& out, int64_t from, uint64_t range, Generator* generator) {
  Twister t(generator);
  const bool wide = range == 0 || range >= uint64_t{1} << 28;
  fill_with<int64_t>(out, DType::I64, [&] {
    const uint64_t bits = wide ? t.bits64() : t.bits();
    return range ? bits % range + static_cast<uint64_t>(from) : bits;
  });
}

void host_any_integers(const Tensor& out, Generator* generator) {
  const DType type = out.dtype();
  const DTypeTraits& traits = traits_of(type);
  const bool wide = type == DType::I64 || type == DType::F64;
  const uint64_t range = type == DType::Bool ? 2 : is_inexact(type) ? (uint64_t{1} << traits.digits) + 1 : uint64_t{1} << traits.digits;
  Twister t(generator);
  fill_with<int64_t>(out, DType::I64, [&] { return (wide ? t.bits64() : t.bits()) % range; });
}

void host_permutation(int64_t* order, int64_t n, Generator* generator) {
  Twister t(generator);
  for (int64_t i = 0; i < n; ++i) order[i] = i;
  for (int64_t i = 0; i + 1 < n; ++i) std::swap(order[i], order[i + static_cast<int64_t>(t.bits() % static_cast<uint64_t>(n - i))]);
}

namespace {

template <class T>
void draw_categories(const T* weights, int64_t categories, int64_t samples, int64_t* chosen, Twister& t) {
  std::vector<T> running(static_cast<size_t>(categories));
  T sum = 0;
  for (int64_t j = 0; j < categories; ++j) running[static_cast<size_t>(j)] = sum += weights[j];
  for (T& r : running) r /= sum;
  for (int64_t i = 0; i < samples; ++i) {
    const double u = t.uniform53();
    int64_t low = 0, high = categories;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (static_cast<double>(running[static_cast<size_t>(middle)]) < u)
        low = middle + 1;
      else
        high = middle;
    }
    chosen[i] = std::min(low, categories - 1);
  }
}

}  // namespace

Tensor host_categories(const Tensor& weights, int64_t samples, Generator* generator) {
  const Tensor w = weights.to(Device(DeviceType::Cpu)).contiguous();
  const int64_t rows = w.size(0), categories = w.size(1);
  std::vector<int64_t> chosen(static_cast<size_t>(rows * samples));
  Twister t(generator);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t* const to = chosen.data() + r * samples;
    if (is_double(w))
      draw_categories(static_cast<const double*>(w.data_ptr()) + r * categories, categories, samples, to, t);
    else
      draw_categories(static_cast<const float*>(w.data_ptr()) + r * categories, categories, samples, to, t);
  }
  return from_data(chosen.data(), {rows, samples}, DType::I64, Options(DType::I64, weights.device()));
}

}  // namespace ops
}  // namespace naru
