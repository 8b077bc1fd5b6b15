#include "runtime/memory/foreign.h"

#include <array>
#include <atomic>

#include "core/device_kinds.h"
#include "runtime/device/registry.h"
#include "runtime/queue/streams.h"

namespace naru::runtime {
namespace {

std::atomic<bool>& given(Device device) noexcept {
  constexpr size_t kDevices = 128;
  static std::array<std::atomic<bool>, size_t{kDeviceTypes} * kDevices> all{};
  return all[static_cast<size_t>(device.type) * kDevices + static_cast<size_t>(device.index)];
}

}  // namespace

ForeignStreams* foreign_streams(DeviceType kind) {
  return kind == DeviceType::Cpu || kind == DeviceType::Meta ? nullptr : dynamic_cast<ForeignStreams*>(&backend_of(kind));
}

uint64_t handle_for_others(Device device, int stream) {
  ForeignStreams* const others = foreign_streams(device.type);
  if (!others) return 0;
  note_address_given(device);
  Queue& queue = queue_of(device, stream);
  queue.flush();
  return others->handle_of(queue.stream());
}

void note_address_given(Device device) noexcept { given(device).store(true, std::memory_order_relaxed); }
bool is_address_given(Device device) noexcept { return given(device).load(std::memory_order_relaxed); }

}  // namespace naru::runtime
