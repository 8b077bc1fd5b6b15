// Allocation and release of storages' memory.
#pragma once

#include "core/storage.h"
#include "runtime/memory/allocator.h"

namespace naru::runtime {

// A storage of `bytes` bytes with undefined contents. Throws OutOfMemoryError, or DeviceUnavailableError for a device that does not exist.
// Small ones on cpu come from the pool of small objects, and the device's allocator does not count them.
Ref<Storage> make_storage(Device device, size_t bytes, Origin origin = {});
// The same for an operator's result: if there is no room, deferred work runs first. Not to be called while a queue runs work.
Ref<Storage> make_result_storage(Device device, size_t bytes, Origin origin);
// A storage whose memory is allocated at its first use. Throws at once for a size that the device could never hold.
Ref<Storage> make_lazy_storage(Device device, size_t bytes, Origin origin = {});
// Allocates the memory of a lazy storage; `stream` will use it first (null: the host, or the current stream). Does nothing if it has memory
// or has 0 bytes.
void allocate_storage(Storage& storage, DeviceStream* stream = nullptr);
// Marks a result that will never be computed: releases its memory, if any; later accesses throw.
void mark_storage_failed(Storage& storage) noexcept;
// A storage over memory with another owner: calls `release(owner)` after the last view is destroyed. It can't be resized.
Ref<Storage> make_external_storage(Device device, void* data, size_t bytes, void (*release)(void* owner), void* owner);
// Pinned host memory, which devices of the kind in use copy from and to asynchronously; its device is cpu. Throws RuntimeError if there is
// no device but the cpu.
Ref<Storage> make_pinned_storage(size_t bytes);
bool can_pin();
// Moves the memory of `larger`, which holds a copy of the contents, into `storage`, and releases the old memory. Both must be on one
// device; waits for all pending work on either.
void take_memory(Storage& storage, Storage& larger);

// For one device. An index of -1 means the current device.
MemoryStats memory_stats(Device device);
void empty_cache(Device device);
// Limits the reserved bytes from now on; 0: no limit.
void set_memory_limit(Device device, size_t bytes);

}  // namespace naru::runtime
