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

 private:
  // The end of an instruction that has been handed to the driver.
  struct Step {
    uint64_t seq;
    cl_event event;
    std::vector<Ref<Storage>> hold;
  };
  using Steps = std::vector<Step>;

  const render::c::Target& target() const override { return target_; }
  void start(const render::c::Launch& launch) override;
  void set_arguments(Kernel& kernel, std::span<const cl_mem> memory, cl_mem apart, std::span<const std::byte> numbers) const;
  void prepare(const render::c::Launch& launch) override;
  void* scratch(size_t bytes) override { return scratch_.take(bytes); }
  void* faults(int count, std::function<std::string(int, uint32_t, int64_t)> text) override;

  void* get(size_t bytes) override { return device_.allocate(bytes); }
  void put_back(void* memory) noexcept override { device_.release(memory); }
  void drain() override;

  void run(const ir::Instruction& instruction);
  void copy(const ir::CopyBytes& copy);
  void copy_within(const ir::CopyBytes& copy);
  uint64_t end_step(std::vector<Ref<Storage>> hold);
  // The event to ask for from the next command of the instruction under way: the last one's stays.
  cl_event* next_event();
  // Moves the steps that are done out of the list. Hold mutex_; let them die without it.
  Steps take_done() const noexcept;
  // An event, kept alive, behind which `seq` is reached; null where it is already.
  cl_event event_of(uint64_t seq) const noexcept;
  // Keeps an error for what kernels up to `seq` have found wrong. Hold mutex_.
  void look_at_faults(uint64_t seq);

  OpenClDevice& device_;
  const render::c::Target target_;
  cl_command_queue queue_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::deque<Step> steps_;
  std::atomic<uint64_t> given_{0};
  mutable std::atomic<uint64_t> done_{0};
  cl_event last_ = nullptr;             // of the instruction being handed over
  runtime::Scratch scratch_;
  void* faults_ = nullptr;  // the memory of records_
  runtime::FaultRecords records_;
  cl_command_queue looking_ = nullptr;
};

}  // namespace naru::backends::opencl
