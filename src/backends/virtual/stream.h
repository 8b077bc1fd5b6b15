// A stream of a virtual device: a thread that runs instructions in order, some time after they were submitted.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <variant>

#include "runtime/backend.h"

namespace naru::backends {

class VirtualStream final : public runtime::DeviceStream {
 public:
  explicit VirtualStream(Device device);
  // Runs what was submitted, then ends the thread.
  ~VirtualStream() override;

  uint64_t submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) override;
  void wait(runtime::DeviceStream& other, uint64_t seq) override;
  uint64_t completed() const noexcept override { return done_.load(std::memory_order_acquire); }
  void synchronize(uint64_t seq) override;
  uint64_t submitted() const noexcept override { return given_.load(std::memory_order_acquire); }

  // Returns when `seq` has been reached; throws nothing. In a forked child, where nothing runs any more, returns at
  // once.
  void reach(uint64_t seq) noexcept;

 private:
  struct Wait {
    runtime::DeviceStream* other;
    uint64_t seq;
  };
  struct Item {
    std::variant<ir::Instruction, Wait> work;
    std::vector<Ref<Storage>> hold;
    uint64_t seq;  // 0: takes no number
  };

  void check_process() const;
  bool forked() const noexcept;
  void push(Item item);
  void work() noexcept;
  void run(Item& item);

  const Device device_;
  const int process_;
  std::atomic<uint64_t> given_{0}, done_{0};
  std::mutex mutex_;
  std::condition_variable arrived_, reached_;
  std::deque<Item> items_;
  bool ends_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace naru::backends
