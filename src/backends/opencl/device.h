// An OpenCL device in use: its context, its memory and its kernels.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/opencl/api.h"
#include "backends/opencl/devices.h"
#include "naru/device.h"
#include "render/c/kernel_table.h"

namespace naru::backends::opencl {

// A piece of the device's memory. Memory shared with the host has addresses. Other memory has none in OpenCL, so each piece gets a range of the
// process's that nothing lies in (the host faults at once if it accesses one); an address in it stands for the piece and an offset.
struct Piece {
  char* address = nullptr;
  size_t bytes = 0;
  cl_mem memory = nullptr;  // null: shared
  void* host = nullptr;     // where the contents lie, on devices that share the host's memory
};

struct Kernel {
  OwnedKernel kernel;
  // Of one that was just compiled: what is still to be put into the cache, and under which key.
  OwnedProgram program;
  std::string key;
  // What its arguments are, so that the same ones are not set again; worth nothing once memory has been released since.
  std::vector<const void*> memory{};
  std::vector<std::byte> arguments{};
  uint64_t releases = 0;
};

// Thread-safe.
class OpenClDevice {
 public:
  // Opens the context.
  OpenClDevice(Device device, const DeviceInfo& info);
  OpenClDevice(const OpenClDevice&) = delete;

  // nullptr where there is no memory left, or none in one piece.
  void* allocate(size_t bytes);
  void release(void* address) noexcept;
  // Bytes that this process has not taken.
  size_t free_memory() const;
  // Page-locked memory of the host.
  void* allocate_pinned(size_t bytes);
  void release_pinned(void* memory) noexcept;
  // What a kernel is given for a piece of memory, and how far behind it the address lies.
  struct Place {
    const void* memory;  // an address (shared), or a cl_mem
    size_t offset;
  };
  // Throws RuntimeError for an address of another device, naming what it is.
  Place place_of(const void* address, const char* what) const;
  void set_argument(cl_kernel kernel, cl_uint number, const void* memory) const;
  enum class Way : uint8_t { In, Out, Within };
  // Hands over a copy, which has been done on return if `wait`.
  void copy(cl_command_queue queue, Way way, void* to, const void* from, size_t bytes, bool wait, cl_event* event) const;

  // timed: its events have times.
  OwnedQueue make_queue(bool timed = false);
  // The kernel of a launch, compiled if it has not been before. Hold `launching` from here until it is started.
  Kernel& kernel_of(const render::c::Launch& launch, const render::c::Target& target);
  // To be called when a new kernel has run: puts it into the cache. Some drivers complete a kernel's code only then.
  void ran(Kernel& kernel);
  std::mutex launching;
  // How often memory was released so far.
  uint64_t releases() const noexcept { return releases_.load(std::memory_order_acquire); }

  const DeviceInfo& info() const noexcept { return info_; }
  // As the environment says now (see docs/opencl.md).
  render::c::Target target() const;
  cl_context context() const noexcept { return context_; }
  Device device() const noexcept { return device_; }
  // Raises RuntimeError in a process forked after the device was opened.
  void check_process() const;
  bool forked() const noexcept;

 private:
  bool get_shared(Piece& piece) const;
  bool get_buffer(Piece& piece) const;
  static size_t boundary_of(const Piece& piece) noexcept;
  void give_back(const Piece& piece) const noexcept;
  // Throws RuntimeError where its groups want more memory than the device has for one: some drivers end the process.
  void check_group_memory(cl_kernel kernel) const;
  Kernel compile(const std::string& text);
  OwnedProgram build(const std::string& text);

  const Device device_;
  const DeviceInfo info_;
  const int process_, generation_;
  cl_device_id id_ = nullptr;
  cl_context context_ = nullptr;
  std::string options_, fingerprint_;
  mutable std::mutex memory_mutex_;
  std::map<const char*, Piece> pieces_;  // by address
  size_t used_ = 0;
  std::atomic<uint64_t> releases_{0};
  std::map<void*, cl_mem> pinned_;
  OwnedQueue mapping_;                         // for pinned memory
  render::c::KernelTable<Kernel> kernels_[2];  // [loops]
};

}  // namespace naru::backends::opencl
