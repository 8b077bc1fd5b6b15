// Shared parts of streams on devices that accept kernels as text (render/c/launch.h): scratch memory, and the records of faults that
// kernels write.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "naru/device.h"
#include "render/c/launch.h"
#include "runtime/device/backend.h"

namespace naru::runtime {

// What Scratch and FaultRecords need of their device.
class LaunchMemory {
 public:
  virtual ~LaunchMemory() = default;
  virtual void* get(size_t bytes) = 0;  // nullptr: out of memory
  virtual void put_back(void* memory, size_t bytes) noexcept = 0;
  // Blocks until the stream has done all submitted work.
  virtual void finish() = 0;
};

// Scratch memory for one instruction at a time; the next instruction reuses it. Not thread-safe.
class Scratch {
 public:
  Scratch(Device device, LaunchMemory& memory) : device_(device), memory_(memory) {}
  Scratch(const Scratch&) = delete;
  // Starts a new instruction.
  void begin() noexcept { used_ = 0; }
  // Throws OutOfMemoryError.
  void* take(size_t bytes);
  bool empty() const noexcept { return pieces_.empty(); }
  // release() returns the pieces, which must be unused, to the device; abandon() leaks them. One of the two must be called before
  // destruction.
  void release() noexcept;
  void abandon() noexcept { pieces_.clear(); }

 private:
  struct Piece {
    void* memory;
    size_t bytes;
  };
  const Device device_;
  LaunchMemory& memory_;
  std::vector<Piece> pieces_;
  size_t used_ = 0;
};

// Records in device memory, used in rotation (see Launcher::faults), and the list of those handed out but not yet checked. Not thread-safe,
// except suspicious().
class FaultRecords {
 public:
  using Fault = render::c::Fault;
  using Error = render::c::FaultError;
  static constexpr int kCount = 1024;

  // Index of the first of `count` adjacent records, for the instruction `seq`. -1: all are handed out; check all with look(), then call
  // start_over().
  int take(int count, uint64_t seq, Error error);
  void start_over() noexcept { next_ = 0; }
  // Keeps an error for faults found by kernels of instructions up to `seq`. read(Fault*) reads all records of the device, which has
  // completed `seq`; clear(index) writes Fault{} to a record.
  template <class Read, class Clear>
  void look(uint64_t seq, DeferredErrors& errors, const Read& read, const Clear& clear) {
    if (suspects_.empty() || suspects_.front().seq > seq) return;
    std::vector<Fault> records(kCount);
    read(records.data());
    for (const int number : judge(seq, records, errors)) clear(number);
  }
  // True if there are records to check.
  bool suspicious() const noexcept { return suspicious_.load(std::memory_order_acquire); }

 private:
  struct Suspect {
    uint64_t seq;
    int first, count;
    Error error;
  };
  std::vector<int> judge(uint64_t seq, const std::vector<Fault>& records, DeferredErrors& errors);

  int next_ = 0;
  std::deque<Suspect> suspects_;
  std::atomic<bool> suspicious_{false};
};

}  // namespace naru::runtime
