// VirtualDevice: the state of a virtual device from its definition until it is replaced: memory in use, and the faults to inject.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>

#include "backends/ptx/executor.h"
#include "ir/instruction.h"
#include "naru/device/virtual.h"

namespace naru::backends {

// The feature of VirtualOptions::without whose lack makes float32 operations take denormals for zero.
inline constexpr std::string_view kDenormals = "denormals";

class VirtualDevice {
 public:
  VirtualDevice(Device device, VirtualOptions options, uint64_t generation);

  // Counts an instruction at submission, in program order, and returns the faults to inject into it.
  struct InjectedFault {
    double delay = 0;    // seconds
    uint64_t fails = 0;  // its number, if this instruction fails
    bool loses = false;  // the device is lost together with it
    bool corrupts = false;
  };
  InjectedFault next(const ir::Instruction& instruction);
  // Inject the faults on the stream's thread, before and after the instruction. Throw if the instruction fails or the device is lost.
  void before(const InjectedFault& fate, const ir::Instruction& instruction);
  void after(const InjectedFault& fate, const ir::Instruction& instruction);

  // Counts a request of the program. Returns the reason if this request fails, else "".
  std::string refusal();
  // Allocates host memory, or only addresses for a device without elements. Null if memory runs out or this allocation is one to fail.
  void* allocate(size_t bytes);
  void release(void* memory, size_t bytes) noexcept;
  // True if its addresses have memory. If not, its work is skipped, and the host reads 0.
  bool has_elements() const noexcept { return has_elements_; }
  // True if its float32 operations take denormals for zero.
  bool flushes_denormals() const noexcept { return flushes_denormals_; }
  size_t used() const noexcept { return used_.load(); }

  // What interprets its kernels, for a device with execute=ptx; else null. Throws DeviceUnavailableError if there is no compiler for it.
  ptx::Executor* executor();

  // Throws DeviceLostError if the device is lost.
  void check() const;
  const VirtualOptions& options() const noexcept { return options_; }
  uint64_t generation() const noexcept { return generation_; }

 private:
  const Device device_;
  const VirtualOptions options_;
  const uint64_t generation_;
  const bool has_elements_, flushes_denormals_;
  std::atomic<uint64_t> requests_{0}, allocations_{0}, copies_{0}, launches_{0};
  std::atomic<size_t> used_{0};
  std::atomic<bool> lost_{false};
  std::mutex executor_mutex_;
  std::unique_ptr<ptx::Executor> executor_;
};

}  // namespace naru::backends
