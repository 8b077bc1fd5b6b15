// Virtual devices for tests: devices of any kind, made of host memory and threads, with configurable limits, delays and faults.
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
  Off,      // copies must pass through the host
  Corrupt,  // reported as possible, but the bytes arrive corrupted
};

struct VirtualOptions {
  int count = 1;
  size_t memory = size_t{4} << 30;  // bytes of each device
  double copy_delay = 0;            // minimum seconds per copy
  double launch_delay = 0;          // minimum seconds for any other operation
  double bandwidth = 0;             // of copies, in bytes per second; 0: the host's
  PeerAccess peer = PeerAccess::On;
  // The operation that fails on each device, counted from 1; 0: none. fail_allocation counts the program's requests, whether served from
  // the cache or not, and ends in OutOfMemoryError. fail_driver_allocation counts the cache's requests to the device, which the cache
  // retries with smaller sizes or after emptying itself.
  uint64_t fail_allocation = 0, fail_driver_allocation = 0, fail_copy = 0, fail_launch = 0;
  uint64_t lose_after = 0;                // the device is lost after this number of copies and launches; 0: never
  bool unified = false;                   // the host uses the devices' memory, at the same addresses
  std::vector<std::string> without = {};  // unsupported features: "fp64", "fp16", "bf16", "denormals", or names of operators
  // cuda only: kernels are compiled to PTX by NVRTC and interpreted, and their accesses to memory are checked (docs/kernelcheck.md). False: the
  // cpu's executor computes.
  bool ptx = false;

  bool operator==(const VirtualOptions& other) const;
};

// Parses "memory=64MiB;copy_delay=3ms;without=fp64+sort" (as in NARU_VIRTUAL="cuda:4(...)") into options for `count` devices. Sizes: bytes,
// or with K, M, G (KiB ...); times: seconds, or with s, ms, us; bandwidth: a size, with or without /s; peer: on, off, corrupt;
// unified: True, False. Throws
// RuntimeError naming the part that can't be parsed.
VirtualOptions parse_virtual_options(std::string_view text, int count = 1);
std::string to_text(const VirtualOptions& options);

// Replaces the devices of a kind by virtual ones within a scope, then restores the previous ones. Tensors on removed devices stay valid.
// Scopes on different threads must not overlap.
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
