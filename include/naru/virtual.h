// Virtual devices for tests: devices of any kind, made of host memory and threads, with limits, delays and faults as asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "naru/device.h"

namespace naru {

enum class PeerAccess : uint8_t {
  On,       // devices copy from one to another directly
  Off,      // they can't: copies pass through the host
  Corrupt,  // they say they can, and the bytes arrive wrong
};

struct VirtualOptions {
  int count = 1;
  size_t memory = size_t{4} << 30;  // bytes of each device
  double copy_delay = 0;            // seconds that a copy takes at least
  double launch_delay = 0;          // seconds that anything else takes at least
  double bandwidth = 0;             // bytes a second of copies; 0: the host's
  PeerAccess peer = PeerAccess::On;
  // Which one of each device fails, counted from 1; 0: none. Allocations are what the program asks for, whether the cache has it or not, and end in
  // an OutOfMemoryError; driver allocations are what the cache asks the device for, which it asks again, in smaller pieces or with an empty cache.
  uint64_t fail_allocation = 0, fail_driver_allocation = 0, fail_copy = 0, fail_launch = 0;
  uint64_t lose_after = 0;                // so many copies and launches, then the device is lost; 0: never
  std::vector<std::string> without = {};  // "fp64", "fp16", "bf16", or names of operators: what the devices do not support

  bool operator==(const VirtualOptions& other) const;
};

// Reads "memory=64MiB;copy_delay=3ms;without=fp64+sort" (as in NARU_VIRTUAL="cuda:4(...)") into options of `count` devices. Sizes: bytes, or
// with K, M, G (KiB ...); times: seconds, or with s, ms, us; bandwidth: a size, with or without /s; peer: on, off, corrupt.
// Throws RuntimeError that names the part that can't be read.
VirtualOptions parse_virtual_options(std::string_view text, int count = 1);
std::string to_text(const VirtualOptions& options);

// Replaces the devices of a kind by virtual ones as long as it lives, then puts back those that were there. Tensors on devices that went
// stay valid. Not nested across threads.
class VirtualDevices {
 public:
  VirtualDevices(DeviceType kind, const VirtualOptions& options);
  VirtualDevices(const VirtualDevices&) = delete;
  VirtualDevices& operator=(const VirtualDevices&) = delete;
  ~VirtualDevices();

 private:
  std::string before_;
};

}  // namespace naru
