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

// A block of the device's memory. Shared memory (SVM) has addresses. Other OpenCL memory has none, so each block gets an address range of
// the process without memory (a host access faults); an address in it represents the block and an offset.
struct Piece {
  char* address = nullptr;
  size_t bytes = 0;
  cl_mem memory = nullptr;  // null: shared memory
  void* host = nullptr;     // the contents, on devices that share the host's memory
};

struct Kernel {
  OwnedKernel kernel;
  // Of a newly compiled kernel: the program to store in the cache, and its key.
  OwnedProgram program;
  std::string key;
  // The arguments that are set now, so that equal ones are not set again. Invalid once memory has been released (see `releases`).
  std::vector<const void*> memory{};
  std::vector<std::byte> arguments{};
  uint64_t releases = 0;
};

// Thread-safe.
class OpenClDevice {
 public:
  // Creates the context.
  OpenClDevice(Device device, const DeviceInfo& info);
  OpenClDevice(const OpenClDevice&) = delete;

  // nullptr if there is no memory left, or no block that large.
  void* allocate(size_t bytes);
  void release(void* address) noexcept;
  // Bytes that this process has not allocated.
  size_t free_memory() const;
  // Page-locked host memory.
  void* allocate_pinned(size_t bytes);
  void release_pinned(void* memory) noexcept;
  // The kernel argument for a block of memory, and the offset of an address from it.
  struct BufferOffset {
    const void* memory;  // an address (shared memory) or a cl_mem
    size_t offset;
  };
  // Throws RuntimeError, which mentions `what`, for an address of another device.
  BufferOffset place_of(const void* address, const char* what) const;
  void set_argument(cl_kernel kernel, cl_uint number, const void* memory) const;
  enum class Way : uint8_t { In, Out, Within };
  // Enqueues a copy. If `wait`, the copy is done on return.
  void copy(cl_command_queue queue, Way way, void* to, const void* from, size_t bytes, bool wait, cl_event* event) const;

  // timed: events of the queue have time stamps.
  OwnedQueue make_queue(bool timed = false);
  // The kernel of a launch, compiled if necessary. Hold `launching` from this call until the kernel is started.
  Kernel& kernel_of(const render::c::Launch& launch, const render::c::Target& target);
  // Call it when a new kernel has run: stores it in the cache. Some drivers finish a kernel's code only then.
  void ran(Kernel& kernel);
  std::mutex launching;
  // Number of releases of memory so far.
  uint64_t releases() const noexcept { return releases_.load(std::memory_order_acquire); }

  const DeviceInfo& info() const noexcept { return info_; }
  // The render target, with the current settings of the environment (see docs/opencl.md).
  render::c::Target target() const;
  cl_context context() const noexcept { return context_; }
  Device device() const noexcept { return device_; }
  // Throws RuntimeError in a process forked after the device was opened.
  void check_process() const;
  bool forked() const noexcept;

 private:
  bool get_shared(Piece& piece) const;
  bool get_buffer(Piece& piece) const;
  static size_t boundary_of(const Piece& piece) noexcept;
  void give_back(const Piece& piece) const noexcept;
  // Throws RuntimeError if the kernel's groups need more local memory than the device has: some drivers would abort the process.
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
