// Puts instructions on a driver stream: kernels, copies, library calls. Streams and graphs derive from it; they differ in where they
// allocate memory for intermediate values.
#pragma once

#include "backends/gpu/device.h"

namespace naru::backends::gpu {

class StreamLauncher : public render::c::Launcher {
 public:
  const render::c::Target& target() const override { return device_.target(); }
  void start(const render::c::Launch& launch) override;
  void prepare(const render::c::Launch& launch) override { device_.kernel_of(launch); }

  StreamHandle stream() const noexcept { return stream_; }
  // True: instructions only compile, plan and allocate; nothing may be enqueued.
  bool only_prepares() const noexcept { return only_prepares_; }

 protected:
  StreamLauncher(GpuDevice& device, GpuDevices& devices) : device_(device), devices_(devices) {}

  // Requires that the device is current.
  void run(const ir::Instruction& instruction);
  // Copies the bytes to device memory that stays valid until the next started kernel is done.
  virtual void* large_arguments(const void* bytes, size_t count) = 0;

  GpuDevice& device_;
  GpuDevices& devices_;
  StreamHandle stream_ = nullptr;
  bool only_prepares_ = false;

 private:
  void copy(const ir::CopyBytes& copy);
  void copy_within(const ir::CopyBytes& copy);
};

}  // namespace naru::backends::gpu
