// VirtualDevice: one virtual device from when it is defined until it is replaced: its memory in use, and the faults it was given.
#pragma once

#include <atomic>
#include <memory>

#include "ir/instruction.h"
#include "naru/virtual.h"

namespace naru::backends {

class VirtualDevice {
 public:
  VirtualDevice(Device device, VirtualOptions options, uint64_t generation);

  // Counts an instruction where it is submitted, in the order of the program. What it is to do beside its work:
  struct Fate {
    double delay = 0;    // seconds
    uint64_t fails = 0;  // its number, if it is the one to fail
    bool loses = false;  // the device with it
    bool corrupts = false;
  };
  Fate next(const ir::Instruction& instruction);
  // Does it on the stream's thread, before and after the instruction. Throws for one that fails, and when the device is lost.
  void before(const Fate& fate, const ir::Instruction& instruction);
  void after(const Fate& fate, const ir::Instruction& instruction);

  // Counts a request of the program; why it fails, if it is the one to fail.
  std::string refusal();
  // Memory of the host; of a device without elements only addresses. Null: there is not so much, or this allocation is the one to fail.
  void* allocate(size_t bytes);
  void release(void* memory, size_t bytes) noexcept;
  // Whether there is memory behind its addresses: else its work is not done, and what the host reads is 0.
  bool has_elements() const noexcept { return has_elements_; }
  size_t used() const noexcept { return used_.load(); }

  // Throws DeviceLostError.
  void check() const;
  const VirtualOptions& options() const noexcept { return options_; }
  uint64_t generation() const noexcept { return generation_; }

 private:
  const Device device_;
  const VirtualOptions options_;
  const uint64_t generation_;
  const bool has_elements_;
  std::atomic<uint64_t> requests_{0}, allocations_{0}, copies_{0}, launches_{0};
  std::atomic<size_t> used_{0};
  std::atomic<bool> lost_{false};
};

}  // namespace naru::backends
