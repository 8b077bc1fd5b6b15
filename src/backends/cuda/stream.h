// A stream of a CUDA device, and the events that tell how far it is.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/cuda/device.h"
#include "backends/cuda/launcher.h"
#include "runtime/launching.h"

namespace naru::backends::cuda {

class CudaStream final : public runtime::DeviceStream, private StreamLauncher, private runtime::LaunchMemory {
 public:
  CudaStream(CudaDevice& device, CudaDevices& devices, int priority);
  ~CudaStream() override;

  uint64_t submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) override;
  void prepare(const ir::Instruction& instruction) override;
  std::unique_ptr<runtime::Recorded> record(std::span<const ir::Instruction> work) override;
  uint64_t replay(runtime::Recorded& work, std::vector<Ref<Storage>> hold) override;
  void wait(runtime::DeviceStream& other, uint64_t seq) override;
  uint64_t completed() const noexcept override;
  uint64_t submitted() const noexcept override { return given_.load(std::memory_order_acquire); }
  void reach(uint64_t seq) noexcept override;
  void synchronize(uint64_t seq) override;
  std::unique_ptr<runtime::TimeStamp> stamp() override;

 private:
  using StreamLauncher::device_;  // the runtime's stream has one by that name

  // Behind the instruction `seq`: reached when the event is. Shared with those who wait for it.
  struct Mark {
    uint64_t seq;
    std::shared_ptr<const CUevent> event;
    std::vector<Ref<Storage>> hold;
  };
  using Marks = std::vector<Mark>;

  void* scratch(size_t bytes) override { return scratch_.take(bytes); }
  void* faults(int count, std::function<std::string(int, uint32_t, int64_t)> text) override;
  void* get(size_t bytes) override { return device_.allocate(bytes); }
  void put_back(void* memory) noexcept override { device_.release(memory); }
  void drain() override;

  // Does `work` with the lock held, and counts it as one instruction; errors are kept. marked: an event is recorded behind it.
  template <class Work>
  uint64_t give(std::vector<Ref<Storage>> hold, bool marked, const Work& work);
  // With mutex_ held: counts an instruction; records an event behind all so far; moves the marks reached out of the list (let them die without the
  // lock); an event behind which `seq` is reached, null where it is already.
  uint64_t count(std::vector<Ref<Storage>> hold);
  void mark() const;
  Marks take_reached() const noexcept;
  std::shared_ptr<const CUevent> event_of(uint64_t seq) const;
  void read_faults(uint64_t seq);
  // Nothing more will happen on a device that was lost: all of it counts as reached, and whoever waits hears of it.
  Marks give_up(std::exception_ptr error) const noexcept;

  void* large_arguments(const void* bytes, size_t count) override;

  mutable std::mutex mutex_;
  mutable std::deque<Mark> marks_;
  // Kept alive by the next mark.
  mutable std::vector<Ref<Storage>> held_;
  mutable uint64_t marked_ = 0;
  std::atomic<uint64_t> given_{0};
  mutable std::atomic<uint64_t> done_{0};
  runtime::Scratch scratch_;
  void* faults_ = nullptr;  // the memory of records_
  runtime::FaultRecords records_;
  CUstream looking_ = nullptr;
};

}  // namespace naru::backends::cuda
