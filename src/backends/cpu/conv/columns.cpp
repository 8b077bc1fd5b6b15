#include "backends/cpu/conv/columns.h"

#include <new>

namespace naru::cpu {
namespace {

using ir::Convolution;

constexpr int64_t kMostPlaces = int64_t{1} << 28;

Axis over_input(const Convolution& q, size_t d) {
  Axis a;
  a.count = q.result[d], a.step = q.stride[d], a.size = q.size[d];
  for (int64_t k = 0; k < q.kernel[d]; ++k) {
    a.place.push_back(k);
    a.offset.push_back(k * q.dilation[d] - q.padding[d]);
  }
  return a;
}

// Element i of x contributes to element (i + padding - k * dilation) / stride of y, for those taps k for which the division is exact.
std::vector<Axis> over_result(const Convolution& q, size_t d) {
  std::vector<Axis> all;
  for (int64_t first = 0; first < q.stride[d] && first < q.size[d]; ++first) {
    Axis a;
    a.first = first, a.stride = q.stride[d];
    a.count = (q.size[d] - first + q.stride[d] - 1) / q.stride[d];
    a.size = q.result[d];
    for (int64_t k = 0; k < q.kernel[d]; ++k) {
      const int64_t at = first + q.padding[d] - k * q.dilation[d];
      if (at % q.stride[d] != 0) continue;
      a.place.push_back(k);
      a.offset.push_back(at / q.stride[d]);
    }
    all.push_back(std::move(a));
  }
  return all;
}

Phase phase_of(const Axis& a, const Axis& b, const Axis& c) {
  Phase p{{a, b, c}};
  p.positions = a.count * b.count * c.count;
  p.taps = a.taps() * b.taps() * c.taps();
  return p;
}

}  // namespace

std::vector<Phase> phases_of(const Convolution& q) {
  // An expanded kernel may have more taps than memory can list; check before building the list.
  for (const int64_t size : q.kernel)
    if (size > kMostPlaces) throw std::bad_alloc();
  if (q.use != Convolution::Use::Input) return {phase_of(over_input(q, 0), over_input(q, 1), over_input(q, 2))};
  std::vector<Phase> all;
  for (const Axis& a : over_result(q, 0))
    for (const Axis& b : over_result(q, 1))
      for (const Axis& c : over_result(q, 2)) all.push_back(phase_of(a, b, c));
  return all;
}

}  // namespace naru::cpu
