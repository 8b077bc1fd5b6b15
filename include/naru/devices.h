// The devices of this machine: how many, what they are called, why there are none, and waiting for them.
#pragma once

#include <string>

#include "naru/device.h"

namespace naru {

// Number of devices of a kind; 0 where there is none.
int device_count(DeviceType kind);
bool is_available(DeviceType kind);
// The reason why there is no device of a kind, and what to do about it; "" where there is one.
std::string why_unavailable(DeviceType kind);
// "AMD EPYC 7763". Throws DeviceUnavailableError for a device that does not exist.
std::string device_name(Device device);
// The first device beside the cpu (cuda, rocm, xpu, mps, in this order), else the cpu.
Device best_device();
// Waits until all work of the device is done, and throws the errors it had.
void synchronize(Device device);
// Defines the virtual devices: "cuda:4,mps:1"; "" removes them. Until the first call the environment variable
// NARU_VIRTUAL says which there are.
void set_virtual_devices(const std::string& spec);

}  // namespace naru
