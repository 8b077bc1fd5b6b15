#include "runtime/memory/memory.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "core/device_kinds.h"
#include "naru/error.h"
#include "runtime/device/registry.h"
#include "runtime/queue/capture.h"
#include "runtime/queue/queue.h"

namespace naru::runtime {
namespace {

// Largest size class of the pool of small objects.
constexpr size_t kPooled = 1024;

// A unique fake address for each storage without memory. Addresses are far apart, so that views stay within their storage's range.
void* nowhere(size_t bytes) noexcept {
  static std::atomic<uintptr_t> next{uintptr_t{1} << 40};
  const uintptr_t room = (std::min(bytes, size_t{1} << 40) + 127) & ~uintptr_t{63};
  return reinterpret_cast<void*>(next.fetch_add(room, std::memory_order_relaxed));
}

bool pooled(const Storage& s) noexcept { return s.device.is_cpu() && s.bytes <= kPooled; }

// The allocated size is kept in `owner`, because a storage may be resized.
void release_pooled(Storage& s) noexcept { pool_release(s.data, reinterpret_cast<uintptr_t>(s.owner)); }
void release_promised(Storage& s) noexcept { static_cast<CachingAllocator*>(s.owner)->end_promise(s.bytes); }
void release_cached(Storage& s) noexcept { static_cast<CachingAllocator*>(s.owner)->release(s.data, s.pending_uses.take()); }

struct External {
  void (*release)(void*);
  void* owner;
};
void release_external(Storage& s) noexcept {
  auto* const e = static_cast<External*>(s.owner);
  if (e->release) e->release(e->owner);
  delete e;
}

}  // namespace

void allocate_storage(Storage& s, DeviceStream* stream) {
  if (s.data || s.bytes == 0) return;
  if (s.lost)
    throw RuntimeError("a result of {} was never computed: the work on {} failed, or memory ran out, when it was due. Compute it anew",
                       s.origin.op ? s.origin.op : "an operator", s.device.str());
  if (pooled(s)) {
    s.data = pool_allocate(s.bytes);
    s.owner = reinterpret_cast<void*>(s.bytes);
    s.release_memory = release_pooled;
    return;
  }
  if (s.device.is_meta()) {
    s.data = nowhere(s.bytes);
    return;
  }
  CachingAllocator& allocator = s.owner ? *static_cast<CachingAllocator*>(s.owner) : allocator_of(s.device);
  if (s.release_memory == release_promised) release_promised(s);
  s.release_memory = nullptr;
  if (Capture* c = captures_under_way.load(std::memory_order_relaxed) ? Capture::current() : nullptr)
    if (c->queue().device() == s.device && c->lend(s)) return;
  if (!stream && !s.device.is_cpu()) stream = &queue_of(s.device).stream();
  s.data = allocator.allocate(s.bytes, &s, stream);
  s.owner = &allocator;
  s.release_memory = release_cached;
  s.ordered = true;
}

void mark_storage_failed(Storage& s) noexcept {
  if (s.release_memory) s.release_memory(s);
  s.release_memory = nullptr;
  s.data = s.owner = nullptr;
  s.ordered = false;
  s.lost = true;
}

namespace {
Ref<Storage> without_memory(Device device, size_t bytes, Origin origin) {
  auto s = make_ref<Storage>(device.is_cpu() ? device : resolve(device), bytes);
  s->origin = origin;
  return s;
}

// The allocator that a result's memory comes from, after deferred work has run if there is no room. Null if no allocator is needed.
CachingAllocator* allocator_with_room(const Storage& s) {
  if (pooled(s) || s.bytes == 0 || s.device.is_meta()) return nullptr;
  CachingAllocator& allocator = allocator_of(s.device);
  if (!allocator.has_room(s.bytes)) flush_all();
  return &allocator;
}
}  // namespace

Ref<Storage> make_storage(Device device, size_t bytes, Origin origin) {
  auto s = without_memory(device, bytes, origin);
  allocate_storage(*s);
  return s;
}

Ref<Storage> make_result_storage(Device device, size_t bytes, Origin origin) {
  auto s = without_memory(device, bytes, origin);
  allocator_with_room(*s);
  allocate_storage(*s);
  return s;
}

Ref<Storage> make_lazy_storage(Device device, size_t bytes, Origin origin) {
  auto s = without_memory(device, bytes, origin);
  CachingAllocator* const allocator = allocator_with_room(*s);
  if (!allocator) return s;
  allocator->check_plausible(bytes);
  if (!allocator->promise(bytes)) {
    allocate_storage(*s);
    return s;
  }
  s->owner = allocator;
  s->release_memory = release_promised;
  return s;
}

Ref<Storage> make_external_storage(Device device, void* data, size_t bytes, void (*release)(void*), void* owner) {
  auto s = make_ref<Storage>(device, bytes);
  s->owner = new External{release, owner};
  s->release_memory = release_external;
  s->data = data;
  s->externally_aliased = 1;
  s->resizable = false;
  return s;
}

namespace {
// The first kind of accelerator that has devices; cpu if there is none.
DeviceType accelerator() {
  for (const DeviceKind& k : accelerator_kinds())
    if (device_count(k.type) > 0) return k.type;
  return DeviceType::Cpu;
}
}  // namespace

bool can_pin() { return accelerator() != DeviceType::Cpu; }

Ref<Storage> make_pinned_storage(size_t bytes) {
  const DeviceType kind = accelerator();
  if (kind == DeviceType::Cpu)
    throw RuntimeError(
        "Cannot access accelerator device when none is available. (Page-locked memory is a device's, for copies to it: leave pin_memory "
        "out "
        "where there is none, or see `naru doctor`)");
  auto s = make_ref<Storage>(Device(DeviceType::Cpu, 0), bytes);
  s->pinned = true;
  if (bytes == 0) return s;
  CachingAllocator& allocator = pinned_allocator(kind);
  s->data = allocator.allocate(bytes, s.get());
  s->owner = &allocator;
  s->release_memory = release_cached;
  s->ordered = true;
  return s;
}

void take_memory(Storage& storage, Storage& larger) {
  for (Storage* s : {&storage, &larger}) wait_for_host(*s, true);
  std::swap(storage.bytes, larger.bytes);
  std::swap(storage.data, larger.data);
  std::swap(storage.owner, larger.owner);
  std::swap(storage.release_memory, larger.release_memory);
  std::swap(storage.pinned, larger.pinned);
  std::swap(storage.lost, larger.lost);
  std::swap(storage.ordered, larger.ordered);
  std::swap(storage.host_wrote, larger.host_wrote);
  for (Storage* s : {&storage, &larger})
    if (s->release_memory == release_cached) static_cast<CachingAllocator*>(s->owner)->change_holder(s->data, *s);
}

MemoryStats memory_stats(Device device) { return allocator_of(device).stats(); }
void empty_cache(Device device) { allocator_of(device).empty_cache(); }
void set_memory_limit(Device device, size_t bytes) { allocator_of(device).set_limit(bytes); }

}  // namespace naru::runtime
