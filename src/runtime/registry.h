// The registry: which backend serves each kind of device, its devices' allocators and default queues.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "naru/virtual.h"
#include "runtime/backend.h"

namespace naru::runtime {

class CachingAllocator;
class Queue;

// A kind is there when a backend has devices of it and their kernels give the right bits (Backend::self_check, once
// before the first use; NARU_SELF_CHECK=0 leaves that out).

// The backend that serves `kind`: a virtual one where NARU_VIRTUAL names the kind, else the first that has a device.
// Throws DeviceUnavailableError with the reason and remedy where none does.
Backend& backend_of(DeviceType kind);
// Number of devices of a kind; 0 where there is none.
int device_count(DeviceType kind);
// available, or why not.
Availability availability(DeviceType kind);
// `device` with its index filled in (the thread's current one). Throws DeviceUnavailableError when it does not exist.
Device resolve(Device device);
Properties properties(Device device);
// Bytes of the device that nobody holds, this process or another. What the allocator keeps for new tensors is held.
size_t free_memory(Device device);

// The thread's current device of a kind (index 0 unless set).
int current_device(DeviceType kind) noexcept;
// Throws DeviceUnavailableError when there is no such device.
void set_current_device(DeviceType kind, int index);
// Those of all kinds, for a thread that goes on in another's place.
std::array<int8_t, kDeviceTypes> current_devices() noexcept;
void set_current_devices(const std::array<int8_t, kDeviceTypes>& devices) noexcept;

CachingAllocator& allocator_of(Device device);
// Of the host memory that the devices of `kind` copy from and to fastest; cpu: plain memory.
CachingAllocator& pinned_allocator(DeviceType kind);
// The queue the calling thread's instructions for `device` go to: one per thread on cpu, one per device elsewhere.
Queue& queue_of(Device device);
// Waits until all work of the device is done.
void synchronize(Device device);

// (Re)defines the virtual devices: "cuda:4,mps:1", "cuda:2(memory=64MiB;copy_delay=3ms)" (see naru/virtual.h); "" removes them. Tensors that live on removed devices stay valid.
// Until the first call NARU_VIRTUAL says which there are, and CUDA_VISIBLE_DEVICES (HIP_VISIBLE_DEVICES) chooses among
// them as it does among real ones. Throws RuntimeError that says what is wrong with `spec`.
void set_virtual_devices(const std::string& spec);
// What set_virtual_devices takes, for those that there are now.
std::string virtual_devices();
// Those of a kind; a count of 0 where there are none.
VirtualOptions virtual_options(DeviceType kind);
// Changes whenever others take their place.
uint64_t virtual_generation(DeviceType kind) noexcept;
// What the virtual backend serves: how many of a kind; the number behind an index, which differs where the environment
// hides some; a made-up uuid.
int virtual_device_count(DeviceType kind);
int virtual_device_number(Device device);
std::string virtual_uuid(DeviceType kind, int number);
// Not available and no reason: nobody asked for virtual devices of the kind.
Availability virtual_availability(DeviceType kind);
// Forgets the allocators of a kind's devices, and whether they can copy to one another: others take their place. Storages stay valid.
void retire_devices(DeviceType kind);
// The virtual devices have changed: they are checked again before their next use.
void forget_virtual_checks();

}  // namespace naru::runtime
