// Iteration over strided spaces, and packing of strided operands into scratch memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/space.h"

namespace naru::cpu {

using ir::kMaxOperands;
using ir::kMaxRank;
using ir::Operand;
using ir::Space;

// Iterates over the outer dimensions [0, dims) of a space and keeps each operand's address.
class Walk {
 public:
  Walk(const Space& space, int dims) : space_(space), dims_(dims) {}
  void seek(int64_t row);
  void next();
  char* at(int k) const noexcept { return at_[k]; }

 private:
  const Space& space_;
  int dims_;
  int64_t index_[kMaxRank];
  char* at_[kMaxOperands];
};

// Copies n elements, `stride` bytes apart, to consecutive memory, and back. item: 1, 2, 4 or 8 bytes.
void pack(const char* source, int64_t stride, int64_t item, int64_t n, char* target) noexcept;
void unpack(const char* source, int64_t item, int64_t n, char* target, int64_t stride) noexcept;
// Copies elements [first, first + n) of operand k, in row-major order of the space, to consecutive memory, and back. `shift` bytes are
// added to the operand's address.
void pack_flat(const Space& space, int k, int64_t first, int64_t n, char* target, int64_t shift = 0) noexcept;
void unpack_flat(const Space& space, int k, int64_t first, int64_t n, const char* source) noexcept;

// This thread's scratch memory of at least `bytes` bytes, 64-byte aligned. There is one buffer per thread: a second call may reallocate it.
char* scratch(size_t bytes);

// Size of the last-level cache in bytes.
size_t cache_bytes() noexcept;

// Splits `count` units into parts for the pool according to the estimated total time, and runs body(begin, end) on each. Parts begin at
// multiples of `grain`.
template <class Body>
void split(int64_t count, double nanoseconds, int64_t grain, const Body& body);

}  // namespace naru::cpu

#include "backends/cpu/exec/thread_pool.h"

namespace naru::cpu {

// Nanoseconds: shorter work is not worth handing to another thread.
constexpr double kWorthSplitting = 4000;

template <class Body>
void split(int64_t count, double nanoseconds, int64_t grain, const Body& body) {
  const int threads = num_threads();
  if (threads == 1 || nanoseconds < kWorthSplitting || count <= grain) return body(int64_t{0}, count);
  const int64_t wanted = static_cast<int64_t>(nanoseconds / (kWorthSplitting / 2));
  int64_t pieces = wanted < 4 * threads ? wanted : 4 * threads;
  const int64_t grains = (count + grain - 1) / grain;
  if (pieces > grains) pieces = grains;
  const int64_t each = (grains + pieces - 1) / pieces * grain;
  struct Call {
    const Body& body;
    int64_t each, count;
  } call{body, each, count};
  parallel_for((count + each - 1) / each,
               [&call](int64_t i) {
                 const int64_t begin = i * call.each;
                 call.body(begin, begin + call.each < call.count ? begin + call.each : call.count);
               },
               nanoseconds);
}

}  // namespace naru::cpu
