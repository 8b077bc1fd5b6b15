// A stream of a Metal device: a command queue, and a shared event that its command buffers signal.
#pragma once

#include <vector>

#include "backends/metal/device.h"
#include "backends/metal/products.h"
#include "runtime/device/event_stream.h"

namespace naru::backends::metal {

class MetalStream final : public runtime::EventStream, private render::c::Launcher {
 public:
  explicit MetalStream(MetalDevice& device);
  ~MetalStream() override;

  uint64_t submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) override;
  void prepare(const ir::Instruction& instruction) override;
  std::unique_ptr<runtime::TimeStamp> stamp() override;

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
  void prepare(const render::c::Launch& launch) override;
  void* scratch(size_t bytes) override { return take_scratch(bytes); }
  void* faults(int count, render::c::FaultError error) override { return take_faults(count, std::move(error)); }

  void run(const ir::Instruction& instruction);
  void copy(const ir::CopyBytes& copy);
  // By MetalPerformanceShaders. False: a kernel must do it.
  bool multiply(const ir::MatMul& product);
  // Copies within the device's memory, by a kernel: Metal's own copies want multiples of four bytes.
  void move(void* to, const void* from, size_t bytes);
  // The command buffer under construction, and the encoder of its kernels.
  id commands();
  id encoder();
  void end_encoder();
  // Hands the command buffer to the device, if there is one.
  void commit();

  MetalDevice& device_;
  const render::c::Target target_;
  Owned queue_, event_;
  uint64_t value_ = 0;  // that event_ was last asked to have
  Owned commands_, encoder_;
  std::vector<Owned> committed_;  // since the last signal
  Event signal_;                  // the last one
  Products products_;
};

}  // namespace naru::backends::metal
