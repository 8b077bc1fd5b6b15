// A stream of an OpenCL device: an in-order command queue, and the events that tell how far it is.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/opencl/device.h"
#include "runtime/launching.h"

namespace naru::backends::opencl {

class OpenClStream final : public runtime::DeviceStream, private render::c::Launcher, private runtime::LaunchMemory {
 public:
  explicit OpenClStream(OpenClDevice& device);
  ~OpenClStream() override;

  uint64_t submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) override;
  void prepare(const ir::Instruction& instruction) override;
  void wait(runtime::DeviceStream& other, uint64_t seq) override;
  uint64_t completed() const noexcept override;
  uint64_t submitted() const noexcept override { return given_.load(std::memory_order_acquire); }
  void reach(uint64_t seq) noexcept override;
  void synchronize(uint64_t seq) override;
  std::unique_ptr<runtime::TimeStamp> stamp() override;

  OpenClDevice& opencl() noexcept { return device_; }
  cl_command_queue queue() const noexcept { return queue_; }

 private:
  // Behind the instruction `seq`: reached when the event is.
  struct Mark {
    uint64_t seq;
    Event event;
    std::vector<Ref<Storage>> hold;
  };
  using Marks = std::vector<Mark>;

  const render::c::Target& target() const override { return target_; }
  void start(const render::c::Launch& launch) override;
  void set_arguments(Kernel& kernel, std::span<const void* const> memory, const void* apart, std::span<const std::byte> numbers) const;
  void prepare(const render::c::Launch& launch) override;
  void* scratch(size_t bytes) override { return scratch_.take(bytes); }
  void* faults(int count, std::function<std::string(int, uint32_t, int64_t)> text) override;

  void* get(size_t bytes) override { return device_.allocate(bytes); }
  void put_back(void* memory) noexcept override { device_.release(memory); }
  void drain() override;

  void run(const ir::Instruction& instruction);
  void copy(const ir::CopyBytes& copy);
  void copy_within(const ir::CopyBytes& copy);
  // With mutex_ held: counts an instruction; puts an event behind all so far; moves the marks reached out of the list (let them die without the
  // lock); an event behind which `seq` is reached, none where it is already.
  uint64_t count(std::vector<Ref<Storage>> hold);
  void mark() const;
  Marks take_reached() const noexcept;
  Event event_of(uint64_t seq) const;
  // Where the driver has failed, and nothing can be said of what is under way any more: all of it counts as reached, and whoever waits hears of it.
  Marks give_up(std::exception_ptr error) const noexcept;
  // Where the next command's event is to be put: asked for in instructions only that get a mark.
  cl_event* wanted_event() const noexcept;
  void take_times();
  // Keeps an error for what kernels up to `seq` have found wrong. Hold mutex_.
  void read_faults(uint64_t seq);

  OpenClDevice& device_;
  const render::c::Target target_;
  cl_command_queue queue_ = nullptr;
  bool timed_ = false;  // queue_ has times
  mutable std::mutex mutex_;
  mutable std::deque<Mark> marks_;
  // Kept alive by the next mark.
  mutable std::vector<Ref<Storage>> held_;
  mutable uint64_t marked_ = 0;
  bool due_ = false;    // the instruction being handed over gets a mark;
  mutable Event last_;  // this one, of its last command
  std::atomic<uint64_t> given_{0};
  mutable std::atomic<uint64_t> done_{0};
  runtime::Scratch scratch_;
  void* faults_ = nullptr;  // the memory of records_
  runtime::FaultRecords records_;
  cl_command_queue looking_ = nullptr;
};

}  // namespace naru::backends::opencl
