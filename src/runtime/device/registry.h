// The registry: the backend that serves each kind of device, and its devices' allocators and default queues.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "naru/device/virtual.h"
#include "runtime/device/backend.h"

namespace naru::runtime {

class CachingAllocator;
class Queue;

// A kind is available if a backend has devices of it and their kernels give the right bits (Backend::self_check, once before the first use;
// NARU_SELF_CHECK=0 skips it).

// The backend that serves `kind`: the virtual one if NARU_VIRTUAL names the kind, else the first that has a device. If there is none,
// throws DeviceUnavailableError with the reason and remedy.
Backend& backend_of(DeviceType kind);
// Number of devices of a kind; 0 if there are none.
int device_count(DeviceType kind);
// Whether the kind is available, or why not.
Availability availability(DeviceType kind);
// `device` with its index filled in (default: the thread's current device). Throws DeviceUnavailableError if it does not exist.
Device resolve(Device device);
Properties properties(Device device);
// Bytes of the device that neither this process nor another has allocated. Memory that the allocator caches counts as allocated.
size_t free_memory(Device device);

// The thread's current device of a kind (index 0 unless set).
int current_device(DeviceType kind) noexcept;
// Throws DeviceUnavailableError if there is no such device.
void set_current_device(DeviceType kind, int index);
// The current devices of all kinds, for a thread that continues another thread's work.
std::array<int8_t, kDeviceTypes> current_devices() noexcept;
void set_current_devices(const std::array<int8_t, kDeviceTypes>& devices) noexcept;

CachingAllocator& allocator_of(Device device);
// Allocator of the host memory that devices of `kind` copy from and to fastest; cpu: plain memory.
CachingAllocator& pinned_allocator(DeviceType kind);
// The queue for the calling thread's instructions on `device`: one per thread on cpu, one per device elsewhere.
Queue& queue_of(Device device);
// Waits until all work on the device is done.
void synchronize(Device device);

// (Re)defines the virtual devices: "cuda:4,mps:1", "cuda:2(memory=64MiB;copy_delay=3ms)" (see naru/device/virtual.h); "" removes them.
// Tensors on removed devices stay valid. Until the first call NARU_VIRTUAL defines them, and CUDA_VISIBLE_DEVICES (HIP_VISIBLE_DEVICES)
// selects among them as among real devices. Throws a RuntimeError that names the mistake in `spec`.
void set_virtual_devices(const std::string& spec);
// The current virtual devices, in the format that set_virtual_devices accepts.
std::string virtual_devices();
// Options of the virtual devices of a kind; the count is 0 if there are none.
VirtualOptions virtual_options(DeviceType kind);
// Changes whenever the kind's virtual devices are replaced.
uint64_t virtual_generation(DeviceType kind) noexcept;
// For the virtual backend: the number of devices of a kind; the physical number of an index, which differs if the environment hides some; a
// generated uuid.
int virtual_device_count(DeviceType kind);
int virtual_device_number(Device device);
std::string virtual_uuid(DeviceType kind, int number);
// Unavailable with an empty reason: no virtual devices of the kind were requested.
Availability virtual_availability(DeviceType kind);
// Forgets the allocators of a kind's devices and their peer access, because the devices are replaced. Storages stay valid.
void retire_devices(DeviceType kind);
// The virtual devices have changed: check them again before their next use.
void forget_virtual_checks();

}  // namespace naru::runtime
