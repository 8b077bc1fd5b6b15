#include "backends/cpu/exec/layout.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "backends/cpu/exec/simd.h"
#include "core/aligned.h"
#include "core/per_thread.h"
#include "naru/error.h"
#include "runtime/os/system.h"

namespace naru::cpu {
namespace {

template <class T>
void pack_as(const char* source, int64_t stride, int64_t n, char* target) noexcept {
  T* out = reinterpret_cast<T*>(target);
  if (stride == 0) {
    const T value = *reinterpret_cast<const T*>(source);
    for (int64_t i = 0; i < n; ++i) out[i] = value;
    return;
  }
  for (int64_t i = 0; i < n; ++i) out[i] = *reinterpret_cast<const T*>(source + i * stride);
}

template <class T>
void unpack_as(const char* source, int64_t n, char* target, int64_t stride) noexcept {
  const T* in = reinterpret_cast<const T*>(source);
  for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(target + i * stride) = in[i];
}

// Calls f(address, stride of the innermost dimension, count) for each innermost run of elements [first, first + n) of operand k.
template <class F>
void each_run(const Space& space, int k, int64_t first, int64_t n, F f) {
  const Operand& o = space.operands[k];
  const int last = space.rank - 1;
  int64_t index[kMaxRank];
  char* at = o.data;
  int64_t rest = first;
  for (int d = last; d >= 0; --d) {
    index[d] = rest % space.sizes[d];
    rest /= space.sizes[d];
    at += index[d] * o.strides[d];
  }
  while (n > 0) {
    int64_t run = space.sizes[last] - index[last];
    if (run > n) run = n;
    f(at, o.strides[last], run);
    n -= run;
    at -= index[last] * o.strides[last];
    index[last] = 0;
    for (int d = last - 1; d >= 0; --d) {
      at += o.strides[d];
      if (++index[d] < space.sizes[d]) break;
      at -= index[d] * o.strides[d];
      index[d] = 0;
    }
  }
}

// Packs rows of kBytes contiguous bytes; starts at the beginning of a row.
template <size_t kBytes>
void pack_rows(const Space& space, int k, int64_t first, int64_t rows, char* target) noexcept {
  const Operand& o = space.operands[k];
  const int across = space.rank - 2;
  int64_t index[kMaxRank];
  const char* at = o.data;
  for (int d = across; d >= 0; --d) {
    index[d] = first % space.sizes[d];
    first /= space.sizes[d];
    at += index[d] * o.strides[d];
  }
  while (rows > 0) {
    const int64_t run = std::min(space.sizes[across] - index[across], rows), step = o.strides[across];
    for (int64_t i = 0; i < run; ++i) std::memcpy(target + static_cast<size_t>(i) * kBytes, at + i * step, kBytes);
    target += static_cast<size_t>(run) * kBytes, rows -= run;
    at -= index[across] * step;
    index[across] = 0;
    for (int d = across - 1; d >= 0; --d) {
      at += o.strides[d];
      if (++index[d] < space.sizes[d]) break;
      at -= index[d] * o.strides[d];
      index[d] = 0;
    }
  }
}

// Packs whole rows of few bytes. Returns false, and does nothing, if it does not support them.
bool pack_short_rows(const Space& space, int k, int64_t first, int64_t n, char* target) noexcept {
  const Operand& o = space.operands[k];
  const int last = space.rank - 1;
  const int64_t inner = space.sizes[last];
  if (last < 1 || o.strides[last] != o.item || first % inner != 0 || n % inner != 0) return false;
  switch (inner * o.item) {
    case 8:
      return pack_rows<8>(space, k, first / inner, n / inner, target), true;
    case 16:
      return pack_rows<16>(space, k, first / inner, n / inner, target), true;
    case 32:
      return pack_rows<32>(space, k, first / inner, n / inner, target), true;
    default:
      return false;
  }
}

}  // namespace

void Walk::seek(int64_t row) {
  for (int k = 0; k < space_.count; ++k) at_[k] = space_.operands[k].data;
  for (int d = dims_ - 1; d >= 0; --d) {
    index_[d] = row % space_.sizes[d];
    row /= space_.sizes[d];
    for (int k = 0; k < space_.count; ++k) at_[k] += index_[d] * space_.operands[k].strides[d];
  }
}

// (Vectorisation off: the strides are far apart, and gathering them takes longer than the additions.)
#if defined(__GNUC__) && !defined(__clang__)
__attribute__((optimize("no-tree-vectorize")))
#endif
void Walk::next() {
  for (int d = dims_ - 1; d >= 0; --d) {
    if (++index_[d] < space_.sizes[d]) {
      for (int k = 0; k < space_.count; ++k) at_[k] += space_.operands[k].strides[d];
      return;
    }
    for (int k = 0; k < space_.count; ++k) at_[k] -= (index_[d] - 1) * space_.operands[k].strides[d];
    index_[d] = 0;
  }
}

void pack(const char* source, int64_t stride, int64_t item, int64_t n, char* target) noexcept {
  if (stride == item) {
    std::memcpy(target, source, static_cast<size_t>(n * item));
    return;
  }
  switch (item) {
    case 1:
      return pack_as<uint8_t>(source, stride, n, target);
    case 2:
      return pack_as<uint16_t>(source, stride, n, target);
    case 4:
      return pack_as<uint32_t>(source, stride, n, target);
    default:
      return pack_as<uint64_t>(source, stride, n, target);
  }
}

void unpack(const char* source, int64_t item, int64_t n, char* target, int64_t stride) noexcept {
  if (stride == item) {
    std::memcpy(target, source, static_cast<size_t>(n * item));
    return;
  }
  switch (item) {
    case 1:
      return unpack_as<uint8_t>(source, n, target, stride);
    case 2:
      return unpack_as<uint16_t>(source, n, target, stride);
    case 4:
      return unpack_as<uint32_t>(source, n, target, stride);
    default:
      return unpack_as<uint64_t>(source, n, target, stride);
  }
}

void pack_flat(const Space& space, int k, int64_t first, int64_t n, char* target, int64_t shift) noexcept {
  const int64_t item = space.operands[k].item;
  if (shift == 0 && pack_short_rows(space, k, first, n, target)) return;
  each_run(space, k, first, n, [&](const char* at, int64_t stride, int64_t run) {
    pack(at + shift, stride, item, run, target);
    target += run * item;
  });
}

void unpack_flat(const Space& space, int k, int64_t first, int64_t n, const char* source) noexcept {
  const int64_t item = space.operands[k].item;
  each_run(space, k, first, n, [&](char* at, int64_t stride, int64_t run) {
    unpack(source, item, run, at, stride);
    source += run * item;
  });
}

char* scratch(size_t bytes) {
  struct Scratch {
    char* memory = nullptr;
    size_t size = 0;
    ~Scratch() { release_aligned(memory); }
  };
  Scratch& mine = per_thread<Scratch>();
  if (bytes > mine.size) {
    const size_t rounded = (bytes + 4095) / 4096 * 4096;
    release_aligned(mine.memory);
    mine.memory = static_cast<char*>(aligned_memory(rounded));
    mine.size = mine.memory ? rounded : 0;
    if (!mine.memory) throw std::bad_alloc();
  }
  return mine.memory;
}

int wide_level() noexcept {
#if defined(__x86_64__)
  static const int level = [] {
    const char* const limit = std::getenv("NARU_LOOP_ISA");
    const bool narrow = limit && std::strcmp(limit, "avx2") == 0;
    if (!narrow && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
      return 2;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 1 : 0;
  }();
  return level;
#else
  return 0;
#endif
}

size_t cache_bytes() noexcept {
  static const size_t known = runtime::system::cache_bytes(), bytes = known ? known : size_t{32} << 20;
  return bytes;
}

}  // namespace naru::cpu
