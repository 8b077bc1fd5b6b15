#include "runtime/device/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "naru/error.h"
#include "runtime/device/backend_choice.h"
#include "runtime/device/peer.h"
#include "runtime/memory/allocator.h"

namespace naru::runtime {
namespace {

constexpr int kMaxDevices = 128;

// Created at first use and never destroyed: storages and threads that outlive main() use it.
struct Registry {
  std::vector<std::unique_ptr<Backend>> backends = make_all_backends();
  std::mutex mutex;
  // Per backend, because the backend of a kind can change (virtual devices are added and removed); each keeps its memory separate.
  struct Allocators {
    std::atomic<CachingAllocator*> device[kDeviceTypes][kMaxDevices] = {};
    std::atomic<CachingAllocator*> pinned[kDeviceTypes] = {};
  };
  std::vector<std::unique_ptr<Allocators>> allocators;
  // Allocators of removed devices: storages may still use their memory. When none does, they are reused for a replacement device.
  std::vector<CachingAllocator*> retired;
  // Results of self_check, per backend; null: not run yet.
  using Checks = std::array<std::atomic<const Availability*>, kDeviceTypes>;
  std::vector<std::unique_ptr<Checks>> checks;

  Registry() {
    for (size_t i = 0; i < backends.size(); ++i) {
      allocators.push_back(std::make_unique<Allocators>());
      checks.push_back(std::make_unique<Checks>());
    }
  }
};

Registry& registry() {
  static auto* r = new Registry;
  return *r;
}

// Result of self_check for a backend's devices. Cached and never freed, because other threads may be reading it.
const Availability& checked(size_t backend, DeviceType kind) {
  static const auto& right = *new const Availability{true, "", ""};
  thread_local bool asking = false;  // while a check runs, the devices that it uses are assumed to be right
  Registry& r = registry();
  auto& slot = (*r.checks[backend])[static_cast<size_t>(kind)];
  if (const Availability* a = slot.load(std::memory_order_acquire)) return *a;
  if (asking) return right;
  const char* wanted = std::getenv("NARU_SELF_CHECK");
  const Availability* answer = &right;
  if (!wanted || std::string_view(wanted) != "0") {
    asking = true;
    Availability found = r.backends[backend]->self_check(kind);
    asking = false;
    if (!found.available) answer = new Availability(std::move(found));
  }
  slot.store(answer, std::memory_order_release);
  return *answer;
}

// The index of the backend that serves a kind, or -1.
int find_backend(DeviceType kind) {
  Registry& r = registry();
  // The cpu's backend is looked up most often and never changes.
  static std::atomic<int> cpu{-1};
  if (kind == DeviceType::Cpu)
    if (const int found = cpu.load(std::memory_order_relaxed); found >= 0) return found;
  const bool wants_virtual = kind != DeviceType::Cpu && virtual_device_count(kind) > 0;
  const int found = choose_backend(r.backends, kind, wants_virtual, checked);
  if (kind == DeviceType::Cpu) cpu.store(found, std::memory_order_relaxed);
  return found;
}

[[noreturn]] void raise_unavailable(DeviceType kind) {
  const Availability a = availability(kind);
  throw DeviceUnavailableError(
      fmt::format("device '{}' is not available: {}{}{}", name_of(kind), a.reason, a.remedy.empty() ? "" : ". ", a.remedy));
}

int require_backend(DeviceType kind) {
  const int i = find_backend(kind);
  if (i < 0) raise_unavailable(kind);
  return i;
}

thread_local std::array<int8_t, kDeviceTypes> current{};

CachingAllocator& made(std::atomic<CachingAllocator*>& slot, Backend& backend, Device device, MemoryKind kind) {
  if (CachingAllocator* a = slot.load(std::memory_order_acquire)) return *a;
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (!slot.load(std::memory_order_acquire)) {
    const auto left = std::find_if(r.retired.begin(), r.retired.end(), [&](CachingAllocator* a) {
      return backend.simulated() && a->device() == device && a->kind() == kind && a->renew();
    });
    CachingAllocator* const a = left == r.retired.end() ? new CachingAllocator(backend, device, kind) : *left;
    if (left != r.retired.end()) r.retired.erase(left);
    slot.store(a, std::memory_order_release);
  }
  return *slot.load(std::memory_order_acquire);
}

}  // namespace

Backend& backend_of(DeviceType kind) { return *registry().backends[static_cast<size_t>(require_backend(kind))]; }

int device_count(DeviceType kind) {
  const int i = find_backend(kind);
  return i < 0 ? 0 : registry().backends[static_cast<size_t>(i)]->device_count(kind);
}

Availability availability(DeviceType kind) {
  Registry& r = registry();
  if (const int i = find_backend(kind); i >= 0) return r.backends[static_cast<size_t>(i)]->probe(kind);
  return why_none(r.backends, kind, checked);
}

void forget_virtual_checks() {
  Registry& r = registry();
  for (size_t i = 0; i < r.backends.size(); ++i)
    if (r.backends[i]->simulated())
      for (auto& slot : *r.checks[i]) slot.store(nullptr, std::memory_order_release);
}

Device resolve(Device device) {
  if (device.is_cpu()) {
    if (device.index > 0) throw RuntimeError("CPU device index must be -1 or zero, got {}", device.index);
    return Device(DeviceType::Cpu);
  }
  const int count = device_count(device.type);
  if (count == 0) raise_unavailable(device.type);
  if (!device.has_index()) device.index = static_cast<int8_t>(current_device(device.type));
  if (device.index >= count)
    throw DeviceUnavailableError(fmt::format(
        "invalid device ordinal: device '{}' does not exist: wanted an index below {}, got {}. {}", device.str(), count, device.index,
        count == 1 ? fmt::format("The only {} device is '{}:0'", name_of(device.type), name_of(device.type))
                   : fmt::format("There are '{0}:0' to '{0}:{1}'", name_of(device.type), count - 1)));
  return device;
}

Properties properties(Device device) {
  const Device d = resolve(device);
  Backend& backend = backend_of(d.type);
  Properties p = backend.properties(d);
  p.libraries = backend.libraries(d);
  return p;
}

size_t free_memory(Device device) {
  const Device d = resolve(device);
  return backend_of(d.type).free_memory(d);
}

int current_device(DeviceType kind) noexcept { return current[static_cast<size_t>(kind)]; }

void set_current_device(DeviceType kind, int index) {
  if (index < 0 || index >= kMaxDevices)
    throw DeviceUnavailableError(fmt::format("device index of '{}': wanted 0 to {}, got {}", name_of(kind), device_count(kind) - 1, index));
  resolve(Device(kind, index));
  current[static_cast<size_t>(kind)] = static_cast<int8_t>(index);
}

std::array<int8_t, kDeviceTypes> current_devices() noexcept { return current; }
void set_current_devices(const std::array<int8_t, kDeviceTypes>& devices) noexcept { current = devices; }

CachingAllocator& allocator_of(Device device) {
  Device d = device;
  if (!d.is_cpu() && !d.has_index()) d = resolve(device);
  const auto i = static_cast<size_t>(require_backend(d.type));
  const int index = d.is_cpu() ? 0 : d.index;
  Registry& r = registry();
  auto& slot = r.allocators[i]->device[static_cast<int>(d.type)][index];
  if (CachingAllocator* a = slot.load(std::memory_order_acquire)) return *a;
  return made(slot, *r.backends[i], resolve(d), MemoryKind::Device);
}

void retire_devices(DeviceType kind) {
  Registry& r = registry();
  forget_peers();
  for (size_t i = 0; i < r.backends.size(); ++i) {
    if (!r.backends[i]->simulated()) continue;
    for (auto& slot : r.allocators[i]->device[static_cast<int>(kind)]) {
      CachingAllocator* a = slot.exchange(nullptr, std::memory_order_acq_rel);
      if (!a) continue;
      a->empty_cache();
      const std::lock_guard lock(r.mutex);
      r.retired.push_back(a);
    }
  }
}

CachingAllocator& pinned_allocator(DeviceType kind) {
  if (kind == DeviceType::Cpu) return allocator_of(Device(DeviceType::Cpu));
  const auto i = static_cast<size_t>(require_backend(kind));
  Registry& r = registry();
  return made(r.allocators[i]->pinned[static_cast<int>(kind)], *r.backends[i], Device(kind, 0), MemoryKind::Pinned);
}

}  // namespace naru::runtime
