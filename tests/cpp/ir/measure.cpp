#include "ir/measure.h"

#include <cmath>
#include <limits>

#include "ir/interpreter/interpret.h"

namespace naru::ir::testing {
namespace {

uint64_t mix(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

template <class T>
std::vector<double> run(MapKernel& kernel, V result, std::span<const double> x, std::span<const double> y) {
  std::vector<T> a(x.begin(), x.end()), b(y.begin(), y.end()), out(x.size());
  kernel.outputs = {sizeof(T) == 4 ? DType::F32 : DType::F64};
  kernel.results = {result.id()};
  std::vector<void*> operands = {a.data()};
  if (!y.empty()) operands.push_back(b.data());
  operands.push_back(out.data());
  interpret(kernel, operands.data(), nullptr, static_cast<int64_t>(x.size()), 0);
  return {out.begin(), out.end()};
}

}  // namespace

double ulps(double got, long double want, VType type) {
  const bool is32 = type == VType::F32;
  const double rounded = is32 ? static_cast<double>(static_cast<float>(want)) : static_cast<double>(want);
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want) ? 0 : HUGE_VAL;
  if (want == 0) return got == 0 && std::signbit(got) == std::signbit(want) ? 0 : HUGE_VAL;
  if (std::isinf(rounded) && got == rounded) return 0;
  if (std::isinf(want) || std::signbit(got) != std::signbit(want)) return HUGE_VAL;
  // An infinity counts as the power of two after the greatest number.
  const long double value = std::isinf(got) ? std::copysign(std::ldexp(1.0L, is32 ? 128 : 1024), want) : got;
  int exponent = 0;
  std::frexp(want, &exponent);
  const int last_place = std::max(exponent - (is32 ? 24 : 53), is32 ? -149 : -1074);
  return static_cast<double>(std::ldexp(std::fabs(value - want), -last_place));
}

void Worst::take(double error, double at_x, double at_y, double value, long double truth) {
  if (error <= ulps) return;
  ulps = error, x = at_x, y = at_y, got = value, want = truth;
}

std::vector<double> evaluate(Unary f, VType type, std::span<const double> x) {
  MapKernel kernel;
  const DType dtype = type == VType::F32 ? DType::F32 : DType::F64;
  kernel.inputs = {{dtype}};
  const V result = f(input(kernel.graph, 0, dtype));
  return type == VType::F32 ? run<float>(kernel, result, x, {}) : run<double>(kernel, result, x, {});
}

std::vector<double> evaluate(Binary f, VType type, std::span<const double> x, std::span<const double> y) {
  MapKernel kernel;
  const DType dtype = type == VType::F32 ? DType::F32 : DType::F64;
  kernel.inputs = {{dtype}, {dtype}};
  const V result = f(input(kernel.graph, 0, dtype), input(kernel.graph, 1, dtype));
  return type == VType::F32 ? run<float>(kernel, result, x, y) : run<double>(kernel, result, x, y);
}

std::vector<double> all_halves() {
  std::vector<double> out;
  for (int i = 0; i < 65536; ++i) out.push_back(half_to_float(static_cast<uint16_t>(i)));
  return out;
}

std::vector<double> stratified(VType type, int each, uint64_t seed) {
  std::vector<double> out;
  const bool is32 = type == VType::F32;
  const double tiny = is32 ? 0x1p-149 : 0x1p-1074, normal = is32 ? 0x1p-126 : 0x1p-1022;
  const double greatest = is32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  for (const double v : {0.0, tiny, normal - tiny, normal, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 10.0, greatest, HUGE_VAL}) {
    out.push_back(v);
    out.push_back(-v);
    out.push_back(is32 ? std::nextafterf(static_cast<float>(v), 0.0f) : std::nextafter(v, 0.0));
    out.push_back(is32 ? std::nextafterf(static_cast<float>(v), HUGE_VALF) : std::nextafter(v, HUGE_VAL));
  }
  out.push_back(std::nan(""));
  const int mantissa = is32 ? 23 : 52, exponents = is32 ? 255 : 2047;
  for (int exponent = 0; exponent < exponents; ++exponent) {
    for (int i = 0; i < each; ++i) {
      const uint64_t random = mix(seed);
      const uint64_t low = random >> (64 - mantissa), sign = random & 1;
      const uint64_t bits = low | static_cast<uint64_t>(exponent) << mantissa | sign << (is32 ? 31 : 63);
      out.push_back(is32 ? std::bit_cast<float>(static_cast<uint32_t>(bits)) : std::bit_cast<double>(bits));
    }
  }
  return out;
}

std::vector<double> uniform(VType type, double low, double high, int n, uint64_t seed) {
  std::vector<double> out;
  for (int i = 0; i < n; ++i) {
    const double v = low + (high - low) * (static_cast<double>(mix(seed) >> 11) * 0x1p-53);
    out.push_back(type == VType::F32 ? static_cast<float>(v) : v);
  }
  return out;
}

}  // namespace naru::ir::testing
