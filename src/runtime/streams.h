// The queues of all devices: up to kStreams each, made at their first use and never destroyed, for memory remembers them.
#pragma once

#include <array>
#include <vector>

#include "runtime/queue.h"

namespace naru::runtime {

constexpr int kStreams = 33;  // the default one and those of Stream()

// The queue of a stream of a device (with index).
Queue& queue_of(Device device, int number);
// The next stream beside the default one, in turn.
int next_stream(Device device, int priority);
// The calling thread's current stream of a device (with index).
int current_stream(Device device) noexcept;
void set_current_stream(Device device, int number) noexcept;

// What a thread has chosen among devices and streams, for another that goes on in its place.
struct ThreadDevices {
  std::array<int8_t, kDeviceTypes> devices{};
  std::vector<int8_t> streams;
};
ThreadDevices thread_devices();
void set_thread_devices(const ThreadDevices& chosen);

// "train.py:12", where the device was first used; "" where that is not known.
std::string first_use(Device device);

// How much a stream of a device was given, and how much of it is done; counted by the stream itself.
struct StreamUse {
  Device device;
  int number = 0;
  uint64_t submitted = 0, completed = 0;
};
// The streams that this process has used, but for the cpu's. Flushes nothing, waits for nothing and starts no device.
std::vector<StreamUse> streams_in_use();

// Throws the RuntimeError of a process that process `parent`, which used the device first, forked.
[[noreturn]] void raise_forked(Device device, int parent);

// Takes the queues of a kind's devices away, after waiting for their work; those that come in their place get them. Errors that nobody has
// waited for are dropped.
void retire_queues(DeviceType kind);

}  // namespace naru::runtime
