// Storages: how tensors get memory of a device, and how it goes back.
#pragma once

#include "core/storage.h"
#include "runtime/allocator.h"

namespace naru::runtime {

// A storage with memory. Small cpu storages come from per-thread free lists, all others from the device's CachingAllocator. `device` has an index.
Ref<Storage> make_storage(Device device, size_t bytes);
// A storage whose memory is taken by materialise(), when it is first written. A request that cannot be met for certain fails at once.
Ref<Storage> make_lazy_storage(Device device, size_t bytes);
void materialise(Storage& storage);
// Memory that belongs to somebody else; `release(owner)` is called when the storage dies.
Ref<Storage> make_external_storage(Device device, void* data, size_t bytes, void (*release)(void*), void* owner);
// Page-locked host memory for copies to and from `device`'s kind.
Ref<Storage> make_pinned_storage(size_t bytes);

// Figures of a device's allocator, after all work has been handed over.
MemoryStats memory_stats(Device device);
void empty_cache(Device device);
void reset_peak_memory(Device device);
void set_memory_limit(Device device, size_t bytes);

}  // namespace naru::runtime
