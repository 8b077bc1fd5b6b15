// A stream of a virtual device: a thread that runs instructions in order, some time after their submission. The thread ends after a while
// without work and starts again with the next instruction, so that streams of replaced devices cost no thread.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <variant>

#include "backends/virtual/faults.h"
#include "naru/condition_variable.h"
#include "runtime/device/backend.h"

namespace naru::backends {

class VirtualStream final : public runtime::DeviceStream {
 public:
  VirtualStream(Device device, std::shared_ptr<VirtualDevice> state);
  // Runs all submitted work, then ends the thread.
  ~VirtualStream() override;

  uint64_t submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) override;
  void prepare(const ir::Instruction& instruction) override;
  void wait(runtime::DeviceStream& other, uint64_t seq) override;
  uint64_t completed() const noexcept override { return done_.load(std::memory_order_acquire); }
  void synchronize(uint64_t seq) override;
  // Returns at once in a forked child, which has no stream threads.
  void reach(uint64_t seq) noexcept override;
  std::unique_ptr<runtime::TimeStamp> stamp() override;
  uint64_t submitted() const noexcept override { return given_.load(std::memory_order_acquire); }
  // Attaches the stream to a new state of its device.
  void renew(std::shared_ptr<VirtualDevice> state);

 private:
  struct Wait {
    runtime::DeviceStream* other;
    uint64_t seq;
  };
  using Time = std::shared_ptr<std::chrono::steady_clock::time_point>;  // set when the stream reaches it
  struct Item {
    std::variant<ir::Instruction, Wait, Time> work;
    std::vector<Ref<Storage>> hold;
    VirtualDevice::InjectedFault fate;
    uint64_t seq = 0;                             // 0: has no sequence number
    std::vector<ptx::OperandMemory> memory = {};  // for interpreted kernels
  };

  void check_process() const;
  std::shared_ptr<VirtualDevice> state() const;
  bool forked() const noexcept;
  uint64_t push(Item item, bool numbered);
  void work() noexcept;
  // Like reach(), but on the main thread of a Python program Ctrl-C interrupts it.
  void wait_watched(uint64_t seq);
  void run(Item& item);

  const Device device_;
  std::shared_ptr<VirtualDevice> state_;  // guarded by mutex_
  const bool wrong_;
  const int process_;
  std::atomic<uint64_t> given_{0}, done_{0};
  mutable std::mutex mutex_;
  ConditionVariable arrived_, reached_;
  std::deque<Item> items_;
  bool ends_ = false, running_ = false;
  std::atomic<bool> interrupted_{false};  // the kernel that runs is to end
  std::thread thread_;
};

// True if NARU_VIRTUAL_WRONG names the device. Its elementwise results are then wrong on purpose, to test the code that detects wrong
// devices.
bool is_wrong(Device device);

}  // namespace naru::backends
