// Probing of drivers shaped like CUDA's (libcuda, and AMD's libamdhip64): describes the driver and its devices without opening a context or
// leaving traces in this process. A child process queries the driver, unless this process has initialised it already. Each backend's folder
// has its own GpuDriver table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "naru/device.h"
#include "runtime/device/availability.h"
#include "runtime/os/library.h"

namespace naru::runtime {

struct ErrorText {
  int code;
  const char *name, *cause, *cure;
};

// Everything that differs between two such drivers.
struct GpuDriver {
  DeviceType kind;
  const char* words;                     // "the NVIDIA driver"
  const char* install;                   // how to install it
  const char* load;                      // what to do if the device node is missing
  const char* nodes;                     // "/dev/nvidia[0-9]*"; checked when the driver finds no device
  const char* nodes_variable;            // environment variable that names other nodes
  std::span<const PerSystem> libraries;  // "libcuda.so.1"
  const char* library_variable;          // environment variable that names another file
  // Names of its functions.
  const char *init, *version, *count, *get, *name, *uuid, *memory, *pci, *attribute;
  // Functions that write a struct of a device's properties, newest first, and where the name of its architecture stands in it.
  struct Architecture {
    const char* function;
    size_t offset;
  };
  Architecture architecture[2];  // null: the driver does not name architectures
  const char* slice_uuid;        // the one for a slice (MIG), where `uuid` gives the whole device's; null: none
  bool uuid_is_text;             // otherwise binary
  int major_attribute, minor_attribute, multiprocessors_attribute;
  int limit_attributes[6];                   // in the order of GpuLimits; 0: not queried
  std::string (*version_text)(int version);  // "CUDA 12.8"
  int need_version;
  const char* need_driver;  // the oldest driver that supports it: "460.27"
  int need_major, need_minor;
  const char* capability;  // "compute capability"
  std::span<const ErrorText> errors;
  // Environment variables: those that select devices, and the one that sets the driver's order of devices.
  const char *visible, *order;
};

// Bytes and counts; 0 if not queried.
struct GpuLimits {
  int warp = 0, threads_of_block = 0, threads_of_multiprocessor = 0, registers_of_multiprocessor = 0, shared_of_block = 0, l2 = 0;
};

struct Gpu {
  std::string name, uuid, pci;  // "NVIDIA H200", "GPU-5a1b6c..." (a slice: "MIG-..."), "0000:17:00.0"
  std::string architecture;     // "gfx90a:sramecc+:xnack-"; "" if the driver names none
  int major = 0, minor = 0, multiprocessors = 0;
  size_t memory = 0;  // bytes
  GpuLimits limits;
};

struct GpuProbe {
  Availability state;     // Works if the devices can be used, as far as the driver can tell
  std::vector<Gpu> gpus;  // visible devices, in the driver's order (AMD: by PCI address) or the order of the variable
  std::string driver;     // "CUDA 12.8"
  int version = 0;        // 12080
  // True if queried in this process: the driver was initialised here before, so forked children can't use it; or NARU_PROBE=here.
  bool in_use = false;
};

// Takes as long as the driver does (a second or less). Does not throw if the driver does not work.
GpuProbe probe_gpus(const GpuDriver& driver);

// "0: NVIDIA H200 GPU-5a1b6c... 0000:17:00.0, 1: ...".
std::string list_of(std::span<const Gpu> gpus);

// The devices that a variable like CUDA_VISIBLE_DEVICES selects, in its order. It lists indices, uuids or unique prefixes of uuids. As in
// CUDA, the list ends before the first entry that names no device, and naming a device twice selects none.
std::vector<int> visible_devices(std::string_view list, std::span<const std::string> uuids);

}  // namespace naru::runtime
