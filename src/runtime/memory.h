// Memory of storages: how they get it, and where it goes when they die.
#pragma once

#include "core/storage.h"
#include "runtime/allocator.h"

namespace naru::runtime {

// A storage of `bytes` bytes with undefined contents. Throws OutOfMemoryError, or DeviceUnavailableError for a device
// that is not there. Small ones on cpu come from the pool of small objects and are not counted by the device's
// allocator.
Ref<Storage> make_storage(Device device, size_t bytes, Origin origin = {});
// One whose memory is taken when it is allocated. A size that the device could never hold throws here.
Ref<Storage> make_lazy_storage(Device device, size_t bytes, Origin origin = {});
// Takes the memory of a lazy storage, for `stream` to use first (null: the host, or the current stream); nothing to do
// where it has some, or has 0 bytes.
void allocate_storage(Storage& storage, DeviceStream* stream = nullptr);
// A result that nobody will compute: its memory, if it has some, goes back, and whoever asks for it is told.
void lose_storage(Storage& storage) noexcept;
// Memory that somebody else owns: `release(owner)` is called when the last view is gone. It can't be resized.
Ref<Storage> make_external_storage(Device device, void* data, size_t bytes, void (*release)(void* owner), void* owner);
// Host memory that the device kind in use copies from and to without waiting; device cpu. Throws RuntimeError where there is no device but the cpu.
Ref<Storage> make_pinned_storage(size_t bytes);
bool can_pin();
// Gives `storage` the memory of `larger`, which it has copied its own to; the old memory goes. Both of one device; waits until nothing is under way in either.
void take_memory(Storage& storage, Storage& larger);

// Of one device. An index of -1 means the current one.
MemoryStats memory_stats(Device device);
void reset_peak_memory(Device device);
void empty_cache(Device device);
// No more than this many bytes from now on; 0: no limit.
void set_memory_limit(Device device, size_t bytes);

}  // namespace naru::runtime
