// The queues of all devices: up to kStreams each, created at first use and never destroyed, because storages refer to them.
#pragma once

#include <array>
#include <vector>

#include "runtime/queue/queue.h"

namespace naru::runtime {

constexpr int kStreams = 33;  // the default stream and those of Stream()

// The queue of a stream of a device (with index).
Queue& queue_of(Device device, int number);
// The next non-default stream, in rotation.
int next_stream(Device device, int priority);
// The calling thread's current stream of a device (with index).
int current_stream(Device device) noexcept;
void set_current_stream(Device device, int number) noexcept;

// A thread's current devices and streams, for a thread that continues its work.
struct ThreadDevices {
  std::array<int8_t, kDeviceTypes> devices{};
  std::vector<int8_t> streams;
};
ThreadDevices thread_devices();
void set_thread_devices(const ThreadDevices& chosen);

// "train.py:12", where the device was first used; "" if unknown.
std::string first_use(Device device);

// How much work a device's stream was given and how much is done, as counted by the stream itself.
struct StreamUse {
  Device device;
  int number = 0;
  uint64_t submitted = 0, completed = 0;
};
// The streams that this process has used, except the cpu's. Does not flush, wait, or start a device.
std::vector<StreamUse> streams_in_use();

// Throws the RuntimeError for a process forked by process `parent`, which had used the device before.
[[noreturn]] void raise_forked(Device device, int parent);

// Removes the queues of a kind's devices, after waiting for their work; the replacement devices reuse them. Drops errors that no wait has
// reported.
void retire_queues(DeviceType kind);

}  // namespace naru::runtime
