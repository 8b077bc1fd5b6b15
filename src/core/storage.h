// Storage: a piece of one device's memory, shared by the tensors that are views of it.
#pragma once

#include <atomic>

#include "core/pending_uses.h"
#include "core/ref.h"
#include "naru/device.h"

namespace naru {

namespace runtime {
class Queue;
}  // namespace runtime

// How many captures (naru/graph.h) have begun: the n-th one tells by it what was made since.
inline std::atomic<uint32_t> captures_begun{0};

// Whether this thread is within an InferenceMode (naru/autograd.h).
extern constinit thread_local bool inference_enabled;

// Where a tensor came from, for error messages: the operator, and the line of the user's program (0: not recorded). context: while a history of
// memory is recorded, the number of the calls that led there (see memory_context in core/tensor_impl.h).
struct Origin {
  const char* op = nullptr;
  uint32_t where = 0;
  uint32_t context = 0;
};

// What memory serves, as far as it is known: told by histories of memory.
enum class MemoryRole : uint8_t { Other, Parameter, Gradient, Activation, OptimizerState };

// Owns its memory through `release_memory`. `data` is an address of `device` (not of the host, unless device is cpu) and null until a queued
// instruction that writes it has been flushed.
struct Storage : RefCounted<Storage> {
  Device device;
  size_t bytes = 0;
  void* data = nullptr;
  // The queue that holds unfinished instructions on this storage, or null. Whoever else accesses it flushes that queue first.
  std::atomic<runtime::Queue*> pending{nullptr};
  // Counts in-place writes; shared by all views, so that backward sees whether a saved value is still what it was.
  std::atomic<uint32_t> version{0};
  // Counts those that version does not (through Tensor.data).
  std::atomic<uint32_t> silent_writes{0};
  // How many hold the address and use it on their own: NumPy arrays over it, whoever owns foreign memory. What is asked of such a
  // storage happens at once, for they know of no queue; on a device, what others have given it is waited for before.
  std::atomic<int> externally_aliased{0};
  PendingUses pending_uses;  // what streams have still to do here
  bool pinned = false;
  bool lost = false;  // what should have been written here never was: there was no memory
  bool resizable = true;
  bool ordered = false;     // the memory goes back with its pending uses: work under way need not keep the storage alive
  bool host_wrote = false;  // the host may have written here, as far as captures ask (see runtime/capture.h)
  std::atomic<MemoryRole> role{MemoryRole::Other};
  std::atomic<bool> captured{false};         // a capture under way writes here, so that nobody may look until its end
  const bool inference = inference_enabled;  // made in inference mode: no writes outside of it, no part in a graph
  const uint32_t born = captures_begun.load(std::memory_order_relaxed);
  Origin origin;  // of the tensor it was made for
  void (*release_memory)(Storage&) noexcept = nullptr;
  void* owner = nullptr;  // whatever release_memory needs: the allocator, a Python object ...

  Storage(Device d, size_t n) : device(d), bytes(n) {}
  ~Storage() {
    if (release_memory) release_memory(*this);
  }
  static void* operator new(size_t n) { return pool_allocate(n); }
  static void operator delete(void* p, size_t n) { pool_release(p, n); }
};

}  // namespace naru
