#include "core/tensor_impl.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>

#include "core/aligned.h"
#include "core/sizes.h"
#include "core/small_vector.h"

namespace naru {

constinit thread_local bool inference_enabled = false;

bool is_contiguous(const Dims& sizes, const Dims& strides) noexcept {
  int64_t step = 1;
  bool dense = true;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1 && strides[i] != step) dense = false;
    step = moved_by(0, step, sizes[i]);  // after a size of 0, found in a later iteration, the value does not matter
  }
  return dense;
}

bool may_overlap(const Dims& sizes, const Dims& strides) {
  SmallVector<std::pair<int64_t, int64_t>, Dims::kInline> dims;  // (stride, size)
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return false;
    if (sizes[i] > 1) dims.push_back({strides[i], sizes[i]});
  }
  std::sort(dims.begin(), dims.end());
  int64_t last = 0;  // the largest offset reached by the smaller strides
  for (const auto& [stride, size] : dims) {
    if (stride <= last) return true;
    last += stride * (size - 1);
  }
  return false;
}

void TensorImpl::set_geometry(Dims new_sizes, Dims new_strides, int64_t new_offset) {
  numel = checked_product(new_sizes);
  contiguous = naru::is_contiguous(new_sizes, new_strides);
  sizes = std::move(new_sizes);
  strides = std::move(new_strides);
  offset = new_offset;
}

namespace {

// Per-thread free lists. A block released on another thread joins that thread's list, because all blocks of a class are interchangeable.
constexpr size_t kClass = 64, kClasses = 17;
constexpr uint16_t kKeep = 256;

// Trivially destructible: destructors of other thread-locals and of statics may use it after this thread's lists were closed.
struct FreeLists {
  void* head[kClasses];
  uint16_t room[kClasses];  // how many more blocks fit; 0 before the lists are opened and after they are closed
  bool used;
};
thread_local constinit FreeLists free_lists{};

struct Closer {
  ~Closer() {
    for (uint16_t& room : free_lists.room) room = 0;
    for (void*& head : free_lists.head)
      while (void* const p = std::exchange(head, head ? *static_cast<void**>(head) : nullptr)) release_aligned(p);
  }
};

// Called when a list has no room. A thread's first release opens its lists, and registers their release at thread exit.
[[gnu::noinline]] void release_to_heap(void* memory) noexcept {
  FreeLists& lists = free_lists;
  if (!lists.used) {
    lists.used = true;
    std::fill(std::begin(lists.room) + 1, std::end(lists.room), kKeep);
    static thread_local Closer closer;
    static_cast<void>(&closer);
  }
  release_aligned(memory);
}

}  // namespace

void* pool_allocate(size_t bytes) {
  const size_t c = (bytes + kClass - 1) / kClass;
  if (c < kClasses) {
    FreeLists& lists = free_lists;
    if (void* p = lists.head[c]) {
      lists.head[c] = *static_cast<void**>(p);
      ++lists.room[c];
      return p;
    }
  }
  void* p = aligned_memory((c ? c : 1) * kClass);
  if (!p) throw std::bad_alloc();
  return p;
}

void pool_release(void* memory, size_t bytes) noexcept {
  const size_t c = (bytes + kClass - 1) / kClass;
  FreeLists& lists = free_lists;
  if (c >= kClasses || lists.room[c] == 0) return release_to_heap(memory);
  *static_cast<void**>(memory) = lists.head[c];
  lists.head[c] = memory;
  --lists.room[c];
}

}  // namespace naru
