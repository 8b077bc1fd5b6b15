// What a driver of CUDA's shape (libcuda, and AMD's libamdhip64) says of itself and its devices, without opening a
// context and without leaving a trace in this process: a child asks (where the process has no trace of it yet). A backend's folder holds its table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "naru/device.h"
#include "runtime/availability.h"

namespace naru::runtime {

struct ErrorText {
  int code;
  const char *name, *cause, *cure;
};

// All that differs between two such drivers.
struct GpuDriver {
  DeviceType kind;
  const char* words;                       // "the NVIDIA driver"
  const char* install;                     // how to
  const char* load;                        // what to do where the device node is missing
  const char* nodes;                       // "/dev/nvidia[0-9]*", of which there must be one where the driver finds no device
  const char* nodes_variable;              // of the environment, names other nodes
  std::span<const char* const> libraries;  // "libcuda.so.1"
  const char* library_variable;            // of the environment, names another file
  // Its functions.
  const char *init, *version, *count, *get, *name, *uuid, *memory, *pci, *attribute;
  const char* slice_uuid;  // that of a slice (MIG), where `uuid` gives the whole device's; null: there is none
  bool uuid_is_text;       // else a number
  int major_attribute, minor_attribute, multiprocessors_attribute;
  int limit_attributes[6];                   // in the order of GpuLimits; 0: not asked for
  std::string (*version_text)(int version);  // "CUDA 12.8"
  int need_version;
  const char* need_driver;  // the oldest driver that supports it: "460.27"
  int need_major, need_minor;
  const char* capability;  // "compute capability"
  std::span<const ErrorText> errors;
  // The environment's variables: those that choose devices, and the one that says in which order the driver lists them.
  const char *visible, *order;
};

// Bytes and numbers; 0 where the driver was not asked.
struct GpuLimits {
  int warp = 0, threads_of_block = 0, threads_of_multiprocessor = 0, registers_of_multiprocessor = 0, shared_of_block = 0, l2 = 0;
};

struct Gpu {
  std::string name, uuid, pci;  // "NVIDIA H200", "GPU-5a1b6c..." (a slice: "MIG-..."), "0000:17:00.0"
  int major = 0, minor = 0, multiprocessors = 0;
  size_t memory = 0;  // bytes
  GpuLimits limits;
};

struct GpuProbe {
  Availability state;     // Works where the devices can be used, as far as the driver can tell
  std::vector<Gpu> gpus;  // those that the environment leaves visible, in the driver's order (AMD: of PCI addresses) or the variable's
  std::string driver;     // "CUDA 12.8"
  int version = 0;        // 12080
  bool in_use =
      false;  // asked in this process: somebody of it had initialised the driver before, which children then can't, or NARU_PROBE=here
};

// Takes as long as the driver does (a second or less). Never throws for a driver that does not work.
GpuProbe probe_gpus(const GpuDriver& driver);

// "0: NVIDIA H200 GPU-5a1b6c... 0000:17:00.0, 1: ...".
std::string list_of(std::span<const Gpu> gpus);

// Which devices a variable like CUDA_VISIBLE_DEVICES leaves, in its order: it lists indices, or uuids or what only one
// of them begins with. As in CUDA the list ends before the first entry that names no device, and naming one twice
// leaves none.
std::vector<int> visible_devices(std::string_view list, std::span<const std::string> uuids);

}  // namespace naru::runtime
