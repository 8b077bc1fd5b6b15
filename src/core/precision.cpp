#include "naru/device/precision.h"

#include "core/uninitialized.h"

#include <atomic>

namespace naru {
namespace {

// All settings in one word, so that an operator reads a consistent state.
enum Setting : unsigned { kDeterministic = 1, kTf32 = 2, kReducedF16 = 4, kReducedBF16 = 8, kFillUninitialized = 16 };
std::atomic<unsigned> settings{kReducedF16 | kReducedBF16 | kFillUninitialized};

void set(Setting which, bool on) noexcept {
  on ? settings.fetch_or(which, std::memory_order_relaxed) : settings.fetch_and(~which, std::memory_order_relaxed);
}
bool is_set(Setting which) noexcept { return settings.load(std::memory_order_relaxed) & which; }
Setting reduced(DType half) noexcept { return half == DType::BF16 ? kReducedBF16 : kReducedF16; }

}  // namespace

Precision precision_of(DType factors) noexcept {
  const unsigned s = settings.load(std::memory_order_relaxed);
  return {(s & kTf32) != 0, (s & reduced(factors)) != 0, (s & kDeterministic) != 0};
}

void use_deterministic_algorithms(bool on) noexcept { set(kDeterministic, on); }
bool deterministic_algorithms() noexcept { return is_set(kDeterministic); }
bool fills_uninitialized_memory() noexcept { return is_set(kFillUninitialized); }
void fill_uninitialized_memory(bool on) noexcept { set(kFillUninitialized, on); }
void allow_tf32(bool on) noexcept { set(kTf32, on); }
bool tf32_allowed() noexcept { return is_set(kTf32); }
void allow_reduced_precision_reduction(DType half, bool on) noexcept { set(reduced(half), on); }
bool reduced_precision_reduction_allowed(DType half) noexcept { return is_set(reduced(half)); }

}  // namespace naru
