#include "runtime/queue/streams.h"

#include <algorithm>
#include <array>

#include "core/device_kinds.h"
#include "core/per_thread.h"
#include "core/small_vector.h"
#include "naru/error.h"
#include "runtime/device/registry.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/foreign.h"
#include "runtime/os/fork.h"
#include "runtime/os/system.h"
#include "runtime/queue/capture.h"
#include "runtime/queue/sync.h"

namespace naru::runtime {
namespace {

constexpr int kDevices = 128;

struct DeviceQueues {
  std::atomic<Queue*> queues[kStreams] = {};
  std::array<int, kStreams> priorities{};
  std::atomic<unsigned> handed_out{0};
  DeferredErrors errors;
  uint32_t first_use = 0;  // source location in the user's program
  // Their owner.
  Device device;
  const Backend* backend = nullptr;
  int process = 0;
};

struct AllQueues {
  std::mutex mutex;
  std::atomic<DeviceQueues*> devices[kDeviceTypes][kDevices] = {};
  // Queues of removed devices: storages refer to them, and replacement devices reuse them.
  std::vector<DeviceQueues*> retired;
};
AllQueues& all_queues() {
  static auto* all = new AllQueues;
  return *all;
}
// Queues of ended threads: other threads may still be about to flush them, so they are reused by new threads and never destroyed.
struct SpareQueues {
  std::mutex mutex;
  std::vector<Queue*> queues;
  SpareQueues() { hold_at_fork(mutex); }
};
SpareQueues& spare_queues() {
  static auto* all = new SpareQueues;
  return *all;
}

// A thread's queue of cpu work.
struct HostQueue {
  Queue* queue = nullptr;
  ~HostQueue() {
    if (!queue) return;
    try {
      queue->synchronize();
    } catch (...) {
      // No caller is left to report the error to.
    }
    try {
      const std::lock_guard lock(spare_queues().mutex);
      spare_queues().queues.push_back(queue);
    } catch (const std::bad_alloc&) {
      // The queue is not reused.
    }
  }
};

Queue* new_host_queue() {
  SpareQueues& spare = spare_queues();
  {
    const std::lock_guard lock(spare.mutex);
    if (!spare.queues.empty()) {
      Queue* const q = spare.queues.back();
      spare.queues.pop_back();
      return q;
    }
  }
  return new Queue(backend_of(DeviceType::Cpu), Device(DeviceType::Cpu, 0));
}
thread_local std::array<int8_t, size_t{kDeviceTypes} * kDevices> current{};

DeviceQueues* known(Device d) noexcept { return all_queues().devices[static_cast<int>(d.type)][d.index].load(std::memory_order_acquire); }

template <class F>
void each_queue(DeviceQueues& device, F f) {
  for (auto& slot : device.queues)
    if (Queue* q = slot.load(std::memory_order_acquire)) f(*q);
}

// For a device without queues: those of a removed device with the same index, or new ones. With the lock held.
DeviceQueues* take_retired(AllQueues& all, Device d, const Backend& backend) {
  const auto left = std::find_if(all.retired.begin(), all.retired.end(), [&](const DeviceQueues* q) {
    return q->device == d && q->backend == &backend && q->process == system::process_id();
  });
  if (left == all.retired.end()) {
    auto* const made = new DeviceQueues;
    made->device = d, made->backend = &backend, made->process = system::process_id();
    return made;
  }
  DeviceQueues* const queues = *left;
  all.retired.erase(left);
  queues->errors.forget();
  each_queue(*queues, [](Queue& q) { q.renew(); });
  return queues;
}

DeviceQueues& queues_of(Device d) {
  if (DeviceQueues* q = known(d)) return *q;
  resolve(d);
  AllQueues& all = all_queues();
  const std::lock_guard lock(all.mutex);
  auto& slot = all.devices[static_cast<int>(d.type)][d.index];
  if (!slot.load(std::memory_order_acquire)) {
    DeviceQueues* const queues = take_retired(all, d, backend_of(d.type));
    queues->first_use = current_line();
    slot.store(queues, std::memory_order_release);
  }
  return *slot.load(std::memory_order_acquire);
}

template <class F>
void each_device(F f) {
  for (auto& kind : all_queues().devices)
    for (auto& slot : kind)
      if (DeviceQueues* d = slot.load(std::memory_order_acquire)) f(*d);
}

Queue& host_queue() {
  HostQueue& mine = per_thread<HostQueue>();
  if (!mine.queue) mine.queue = new_host_queue();
  return *mine.queue;
}

size_t place(Device d) noexcept { return static_cast<size_t>(d.type) * kDevices + static_cast<size_t>(d.index); }

}  // namespace

Queue& queue_of(Device d, int number) {
  if (d.is_cpu()) return host_queue();
  DeviceQueues& device = queues_of(d);
  std::atomic<Queue*>& slot = device.queues[number];
  if (Queue* q = slot.load(std::memory_order_acquire)) return *q;
  const std::lock_guard lock(all_queues().mutex);
  if (!slot.load(std::memory_order_acquire)) {
    auto q = std::make_unique<Queue>(backend_of(d.type), d, number, device.priorities[static_cast<size_t>(number)]);
    q->stream().belong_to(d, device.errors);
    q->stream().use_cache(allocator_of(d));
    slot.store(q.release(), std::memory_order_release);
  }
  return *slot.load(std::memory_order_acquire);
}

Queue& queue_of(Device device) {
  if (device.is_cpu()) return host_queue();
  const Device d = device.has_index() ? device : resolve(device);
  // A capture records all work that its thread gives the device, on any current stream.
  if (captures_under_way.load(std::memory_order_relaxed) != 0)
    if (Capture* c = Capture::current(); c && c->queue().device() == d) return c->queue();
  return queue_of(d, current_stream(d));
}

int next_stream(Device d, int priority) {
  DeviceQueues& device = queues_of(d);
  const int number = 1 + static_cast<int>(device.handed_out.fetch_add(1) % (kStreams - 1));
  const std::lock_guard lock(all_queues().mutex);
  if (!device.queues[number].load(std::memory_order_acquire)) device.priorities[static_cast<size_t>(number)] = priority;
  return number;
}

int current_stream(Device d) noexcept { return d.is_cpu() ? 0 : current[place(d)]; }
void set_current_stream(Device d, int number) noexcept {
  if (!d.is_cpu()) current[place(d)] = static_cast<int8_t>(number);
}

ThreadDevices thread_devices() { return {current_devices(), {current.begin(), current.end()}}; }
void set_thread_devices(const ThreadDevices& chosen) {
  set_current_devices(chosen.devices);
  std::copy(chosen.streams.begin(), chosen.streams.end(), current.begin());
}

std::string first_use(Device d) {
  const DeviceQueues* queues = known(d);
  return queues ? line_text(queues->first_use) : std::string();
}

std::vector<StreamUse> streams_in_use() {
  std::vector<StreamUse> list;
  each_device([&](DeviceQueues& d) {
    if (d.process != system::process_id()) return;  // inherited from the parent process by fork
    each_queue(d, [&](Queue& q) {
      const uint64_t completed = q.stream().completed();  // read before submitted(), which only grows, so that completed <= submitted
      list.push_back({d.device, q.number(), q.stream().submitted(), completed});
    });
  });
  return list;
}

void raise_forked(Device device, int parent) {
  const std::string where = first_use(device);
  throw RuntimeError(
      "Cannot re-initialize {} in forked subprocess: device '{}' was first used by process {}{}, before it forked this one ({}). Start "
      "processes with "
      "the 'spawn' method, or use the device first in the child",
      kind_of(device.type).label, device.str(), parent, where.empty() ? "" : " at " + where, system::process_id());
}

void retire_queues(DeviceType kind) {
  AllQueues& all = all_queues();
  for (auto& slot : all.devices[static_cast<int>(kind)]) {
    if (!slot.load(std::memory_order_relaxed)) continue;
    {
      const std::lock_guard lock(all.mutex);
      make_room(all.retired, kDevices);
    }
    DeviceQueues* d = slot.exchange(nullptr, std::memory_order_acq_rel);
    if (!d) continue;
    each_queue(*d, [](Queue& q) {
      try {
        q.synchronize();
      } catch (const std::exception&) {
        // The removed device's errors are dropped.
      }
    });
    const std::lock_guard lock(all.mutex);
    all.retired.push_back(d);
  }
}

void synchronize(Device device) {
  if (device.is_cpu()) return host_queue().synchronize();
  const Device d = resolve(device);
  note_synchronization("synchronize", d);
  queue_of(d, 0);
  std::exception_ptr error;
  each_queue(queues_of(d), [&](Queue& q) {
    try {
      q.synchronize();
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
  if (is_address_given(d)) backend_of(d.type).wait_for_others(d);
}

void flush_all() {
  if (const HostQueue* const mine = per_thread_if_any<HostQueue>(); mine && mine->queue) mine->queue->flush();
  each_device([](DeviceQueues& d) { each_queue(d, [](Queue& q) { q.flush(); }); });
}

}  // namespace naru::runtime
