// What the streams of devices that take kernels as text (render/c/launch.h) have in common: memory for intermediate values, and the records of
// what kernels have found wrong.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "naru/device.h"
#include "render/c/launch.h"
#include "runtime/backend.h"

namespace naru::runtime {

// What both need of their device.
class LaunchMemory {
 public:
  virtual ~LaunchMemory() = default;
  virtual void* get(size_t bytes) = 0;  // nullptr: there is none
  virtual void put_back(void* memory, size_t bytes) noexcept = 0;
  // Waits until the stream has done all that it was given.
  virtual void finish() = 0;
};

// Pieces for one instruction at a time; the next one gets them again. Not thread-safe.
class Scratch {
 public:
  Scratch(Device device, LaunchMemory& memory) : device_(device), memory_(memory) {}
  Scratch(const Scratch&) = delete;
  // A new instruction begins.
  void begin() noexcept { used_ = 0; }
  // Throws OutOfMemoryError.
  void* take(size_t bytes);
  bool empty() const noexcept { return pieces_.empty(); }
  // Gives the pieces back, which nothing uses any more; or leaves them to the device. One of them before it dies.
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

// Records in the device's memory, used in turn (see Launcher::faults), and those given out that nobody has looked at yet. Not thread-safe, but
// for suspicious().
class FaultRecords {
 public:
  using Fault = render::c::Fault;
  using Text = std::function<std::string(int record, uint32_t found, int64_t value)>;
  static constexpr int kCount = 1024;

  // The number of the first of `count` neighbouring records, for the instruction `seq`; -1: all have been given out, and are again after look()
  // at all and start_over().
  int take(int count, uint64_t seq, Text text);
  void start_over() noexcept { next_ = 0; }
  // Keeps an error for what the kernels of instructions up to `seq` have found wrong. read(Fault*): all records of the device, which has reached
  // `seq`; clear(number): writes a Fault{} there.
  template <class Read, class Clear>
  void look(uint64_t seq, DeferredErrors& errors, const Read& read, const Clear& clear) {
    if (suspects_.empty() || suspects_.front().seq > seq) return;
    std::vector<Fault> records(kCount);
    read(records.data());
    for (const int number : judge(seq, records, errors)) clear(number);
  }
  // Whether there is anything to look at.
  bool suspicious() const noexcept { return suspicious_.load(std::memory_order_acquire); }

 private:
  struct Suspect {
    uint64_t seq;
    int first, count;
    Text text;
  };
  std::vector<int> judge(uint64_t seq, const std::vector<Fault>& records, DeferredErrors& errors);

  int next_ = 0;
  std::deque<Suspect> suspects_;
  std::atomic<bool> suspicious_{false};
};

}  // namespace naru::runtime
