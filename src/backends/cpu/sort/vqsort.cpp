// This file includes itself, to be compiled once for each instruction set that is not disabled here.
// (SVE code of this Highway version calls its library.)
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#define HWY_IS_DEBUG_BUILD 0  // debug assertions call Highway's library, which is not linked
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/sort/vqsort.cpp"
#include <hwy/foreach_target.h>
// (foreach_target.h comes first)
#include <hwy/contrib/sort/traits-inl.h>
#include <hwy/contrib/sort/traits128-inl.h>
#include <hwy/contrib/sort/vqsort-inl.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/exec/simd.h"
#include "backends/cpu/sort/vqsort.h"

HWY_BEFORE_NAMESPACE();
namespace naru::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

void sort_narrow(uint64_t* numbers, size_t n) { std::sort(numbers, numbers + n); }
void sort_wide(uint64_t* numbers, size_t n) {
  const auto wide = reinterpret_cast<Wide*>(numbers);
  std::sort(wide, wide + n, [](Wide a, Wide b) { return a.high != b.high ? a.high < b.high : a.low < b.low; });
}

#else

void sort_narrow(uint64_t* numbers, size_t n) {
  const hn::SortTag<uint64_t> tag;
  hn::Sort(tag, hn::detail::SharedTraits<hn::detail::TraitsLane<hn::detail::OrderAscending<uint64_t>>>(), numbers, n,
           static_cast<uint64_t*>(nullptr));
}

void sort_wide(uint64_t* numbers, size_t n) {
  const hn::SortTag<uint64_t> tag;
  hn::Sort(tag, hn::detail::SharedTraits<hn::detail::Traits128<hn::detail::OrderAscending128>>(), numbers, 2 * n,
           static_cast<uint64_t*>(nullptr));
}

#endif

}  // namespace naru::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

// The header leaves this function, which chooses pivots, to Highway's library. Any numbers will do; with these nothing has to be linked,
// and sorting is deterministic.
void hwy::Sorter::Fill24Bytes(const void*, size_t n, void* bytes) {
  const uint64_t seed[3] = {0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u, n};
  std::memcpy(bytes, seed, sizeof seed);
}

namespace naru::cpu {
namespace {

using SortNumbers = void (*)(uint64_t*, size_t);
struct Chosen {
  SortNumbers narrow = HWY_STATIC_DISPATCH(sort_narrow), wide = HWY_STATIC_DISPATCH(sort_wide);
};

Chosen choose() noexcept {
#if defined(__x86_64__)
  // Processors of family 19h (Zen 4) have AVX-512, but store partial vectors slowly.
  const int level = wide_level();
  if (level == 2 && !__builtin_cpu_is("amdfam19h")) return {N_AVX3::sort_narrow, N_AVX3::sort_wide};
  if (level >= 1) return {N_AVX2::sort_narrow, N_AVX2::sort_wide};
#endif
  return {};
}

const Chosen& chosen() noexcept {
  static const Chosen c = choose();
  return c;
}

}  // namespace

void vector_sort(uint64_t* numbers, size_t n) noexcept { chosen().narrow(numbers, n); }
void vector_sort(Wide* numbers, size_t n) noexcept { chosen().wide(reinterpret_cast<uint64_t*>(numbers), n); }

}  // namespace naru::cpu
#endif
