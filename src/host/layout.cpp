#include "host/layout.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "host/simd.h"
#include "naru/error.h"

namespace naru::host {
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

// Calls f(address, stride of the innermost dimension, elements) for each innermost run of elements [first, first + n)
// of operand k.
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

size_t read_cache_bytes() noexcept {
  size_t best = 0;
  for (int i = 0; i < 5; ++i) {
    char path[96];
    std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
    FILE* f = std::fopen(path, "r");
    if (!f) break;
    unsigned long size = 0;
    char unit = 0;
    if (std::fscanf(f, "%lu%c", &size, &unit) >= 1) {
      size_t bytes = size;
      if (unit == 'K') bytes <<= 10;
      if (unit == 'M') bytes <<= 20;
      if (bytes > best) best = bytes;
    }
    std::fclose(f);
  }
  if (best == 0) {
    const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    best = bytes > 0 ? static_cast<size_t>(bytes) : size_t{32} << 20;
  }
  return best;
}

}  // namespace

Space& Space::operator=(const Space& o) noexcept {
  rank = o.rank, count = o.count;
  std::copy(o.sizes, o.sizes + rank, sizes);
  for (int k = 0; k < count; ++k) {
    operands[k].data = o.operands[k].data, operands[k].item = o.operands[k].item;
    std::copy(o.operands[k].strides, o.operands[k].strides + rank, operands[k].strides);
  }
  return *this;
}

void Space::reset(std::span<const int64_t> shape) {
  rank = static_cast<int>(shape.size()), count = 0;
  if (rank > kMaxRank) throw RuntimeError("too many dimensions: wanted at most {}, got {}", kMaxRank, rank);
  for (int d = 0; d < rank; ++d) sizes[d] = shape[d];
}

void Space::add(const ir::View& view) {
  add(static_cast<char*>(view.data), static_cast<int64_t>(size_of(view.dtype)), view.strides.data());
}

void Space::add(char* data, int64_t item, const int64_t* strides_in_elements) {
  Operand& o = operands[count++];
  o.data = data;
  o.item = item;
  for (int d = 0; d < rank; ++d) o.strides[d] = strides_in_elements[d] * item;
}

int64_t Space::numel() const noexcept {
  int64_t n = 1;
  for (int d = 0; d < rank; ++d) n *= sizes[d];
  return n;
}

void Space::drop_ones() {
  int kept = 0;
  for (int d = 0; d < rank; ++d) {
    if (sizes[d] == 1) continue;
    if (kept != d) {
      sizes[kept] = sizes[d];
      for (int k = 0; k < count; ++k) operands[k].strides[kept] = operands[k].strides[d];
    }
    ++kept;
  }
  rank = kept;
}

void Space::swap_dimensions(int a, int b) noexcept {
  std::swap(sizes[a], sizes[b]);
  for (int k = 0; k < count; ++k) std::swap(operands[k].strides[a], operands[k].strides[b]);
}

bool Space::order_by(int first) {
  // Is dimension a better placed further in than b? +1 yes, -1 no, 0 undecided. The operand `first`, those after it,
  // then those before.
  const auto inner = [&](int a, int b) {
    for (int i = 0; i < count; ++i) {
      const Operand& o = operands[(first + i) % count];
      const int64_t s = std::llabs(o.strides[a]), t = std::llabs(o.strides[b]);
      if (s == 0 || t == 0 || s == t) continue;
      return s < t ? 1 : -1;
    }
    return 0;
  };
  bool moved = false;
  // Insertion sort: the order asked for is not transitive, as operands may disagree.
  for (int d = 1; d < rank; ++d)
    for (int e = d; e > 0 && inner(e - 1, e) > 0; --e) {
      swap_dimensions(e - 1, e);
      moved = true;
    }
  return moved;
}

void Space::merge(int keep) {
  int kept = 0;  // the dimension that takes the next one in, if it can
  for (int d = 1; d < rank; ++d) {
    bool can = d != rank - keep;
    for (int k = 0; can && k < count; ++k) can = operands[k].strides[kept] == operands[k].strides[d] * sizes[d];
    if (can) {
      sizes[kept] *= sizes[d];
    } else {
      ++kept;
      sizes[kept] = sizes[d];
    }
    for (int k = 0; k < count; ++k) operands[k].strides[kept] = operands[k].strides[d];
  }
  if (rank > 0) rank = kept + 1;
}

bool Space::flat(int k) const noexcept {
  int64_t expected = operands[k].item;
  for (int d = rank - 1; d >= 0; --d) {
    if (operands[k].strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

bool Space::repeats_one(int k) const noexcept {
  for (int d = 0; d < rank; ++d)
    if (operands[k].strides[d] != 0) return false;
  return true;
}

void Walk::seek(int64_t row) {
  for (int k = 0; k < space_.count; ++k) at_[k] = space_.operands[k].data;
  for (int d = dims_ - 1; d >= 0; --d) {
    index_[d] = row % space_.sizes[d];
    row /= space_.sizes[d];
    for (int k = 0; k < space_.count; ++k) at_[k] += index_[d] * space_.operands[k].strides[d];
  }
}

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
  struct Release {
    void operator()(char* p) const noexcept { std::free(p); }
  };
  thread_local std::unique_ptr<char, Release> memory;
  thread_local size_t size = 0;
  if (bytes > size) {
    const size_t rounded = (bytes + 4095) / 4096 * 4096;
    memory.reset(static_cast<char*>(std::aligned_alloc(64, rounded)));
    size = memory ? rounded : 0;
    if (!memory) throw std::bad_alloc();
  }
  return memory.get();
}

int wide_level() noexcept {
#if defined(__x86_64__)
  static const int level = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
                               ? 2
                           : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 1
                                                                                             : 0;
  return level;
#else
  return 0;
#endif
}

size_t cache_bytes() noexcept {
  static const size_t bytes = read_cache_bytes();
  return bytes;
}

}  // namespace naru::host
