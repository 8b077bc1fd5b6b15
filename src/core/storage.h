// Storage: a piece of one device's memory, shared by a tensor and its views.
#pragma once

#include <atomic>

#include "core/pending_uses.h"
#include "core/ref.h"
#include "naru/device.h"

namespace naru {

namespace runtime {
class Queue;
}  // namespace runtime

// Number of captures (naru/device/graph.h) begun so far. The n-th capture compares it with Storage::born to find storages made since.
inline std::atomic<uint32_t> captures_begun{0};

// True while this thread is in InferenceMode (naru/autograd.h).
extern constinit thread_local bool inference_enabled;

// Where a tensor was made, for error messages: the operator, and the source location in the user's program (0: not recorded). context:
// while a memory history is recorded, the number of the call stack (see Language::call_stack in core/language.h).
struct Origin {
  const char* op = nullptr;
  uint32_t where = 0;
  uint32_t context = 0;
};

// Memory category, for the memory profiler.
enum class MemoryRole : uint8_t { Other, Parameter, Gradient, Activation, OptimizerState };

// Owns its memory through `release_memory`. `data` is an address on `device` (not on the host, unless device is cpu); it is null until a
// deferred instruction that writes it has been flushed.
struct Storage : RefCounted<Storage> {
  Device device;
  size_t bytes = 0;
  void* data = nullptr;
  // The queue that holds deferred work on this storage, or null. Other users must flush that queue first.
  std::atomic<runtime::Queue*> pending{nullptr};
  // Version counter: counts in-place writes; shared by all views, so that backward can detect a modified saved tensor.
  std::atomic<uint32_t> version{0};
  // Counts writes that do not increment `version` (through Tensor.data).
  std::atomic<uint32_t> silent_writes{0};
  // Number of external holders of the address: NumPy arrays that share it, owners of foreign memory. They do not know the queues, so work
  // on such a storage is submitted immediately; on a device, other libraries' work is waited for first.
  std::atomic<int> externally_aliased{0};
  PendingUses pending_uses;  // uses that streams have not finished
  bool pinned = false;
  bool lost = false;  // the work that should have written here failed for lack of memory
  bool resizable = true;
  bool ordered = false;     // the memory is released together with its pending uses, so pending work need not keep the storage alive
  bool host_wrote = false;  // the host may have written here; used by captures (see runtime/queue/capture.h)
  std::atomic<MemoryRole> role{MemoryRole::Other};
  std::atomic<bool> captured{false};         // an active capture writes here; reads outside it are refused
  const bool inference = inference_enabled;  // made in inference mode: no in-place writes outside it, no part in autograd
  const uint32_t born = captures_begun.load(std::memory_order_relaxed);
  Origin origin;  // of the tensor it was made for
  void (*release_memory)(Storage&) noexcept = nullptr;
  void* owner = nullptr;  // context for release_memory: the allocator, a Python object ...

  Storage(Device d, size_t n) : device(d), bytes(n) {}
  ~Storage() {
    if (release_memory) release_memory(*this);
  }
  static void* operator new(size_t n) { return pool_allocate(n); }
  static void operator delete(void* p, size_t n) { pool_release(p, n); }
};

}  // namespace naru
