// A stream of an OpenCL device: an in-order command queue.
#pragma once

#include "backends/opencl/device.h"
#include "runtime/device/event_stream.h"

namespace naru::backends::opencl {

class OpenClStream final : public runtime::EventStream, private render::c::Launcher {
 public:
  explicit OpenClStream(OpenClDevice& device);
  ~OpenClStream() override;

  uint64_t submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) override;
  void prepare(const ir::Instruction& instruction) override;
  std::unique_ptr<runtime::TimeStamp> stamp() override;

  OpenClDevice& opencl() noexcept { return device_; }
  cl_command_queue queue() const noexcept { return queue_.get(); }

 private:
  Event record_event() override;
  bool query_event(const Event& event) override;
  void host_wait(const Event& event) override;
  bool can_wait_for(const EventStream& other) const noexcept override;
  void device_wait(const Event& event) override;
  void flush() override;
  void drain() override;
  void settle() noexcept override;
  void* allocate(size_t bytes) override { return device_.allocate(bytes); }
  void release(void* memory) noexcept override { device_.release(memory); }
  void read(void* host, const void* memory, size_t bytes) override;
  void write(void* memory, const void* host, size_t bytes) override;
  void check_usable() const override { device_.check_process(); }
  bool forked() const noexcept override { return device_.forked(); }

  const render::c::Target& target() const override { return target_; }
  void start(const render::c::Launch& launch) override;
  void set_arguments(Kernel& kernel, std::span<const void* const> memory, const void* apart, std::span<const std::byte> numbers) const;
  void prepare(const render::c::Launch& launch) override;
  void* scratch(size_t bytes) override { return take_scratch(bytes); }
  void* faults(int count, render::c::FaultError error) override { return take_faults(count, std::move(error)); }

  void run(const ir::Instruction& instruction);
  // Waits for all work so far. Returns false if Ctrl-C interrupted the wait.
  bool finish_or_interrupt();
  void copy(const ir::CopyBytes& copy);
  void copy_within(const ir::CopyBytes& copy);
  // Where the next command stores its event. Null unless an event follows the current instruction.
  cl_event* wanted_event() noexcept;
  void take_times();
  cl_command_queue beside();

  OpenClDevice& device_;
  const render::c::Target target_;
  OwnedQueue queue_;
  bool timed_ = false;  // queue_ has time stamps
  opencl::Event last_;  // of the last command of the current instruction, if requested
  OwnedQueue beside_;   // for read() and write()
};

}  // namespace naru::backends::opencl
