// Driver graphs of instructions: captured on a separate stream, each launched by one call.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backends/gpu/launcher.h"
#include "runtime/device/backend.h"

namespace naru::backends::gpu {

class GpuGraph final : public runtime::Recorded, private StreamLauncher {
 public:
  // Consecutive instructions that form one graph. If graph is null they are submitted one by one: instructions with index tensors, which
  // are checked for errors after each of them, and copies from other devices.
  struct Part {
    std::span<const ir::Instruction> work;
    GraphExecHandle graph = nullptr;
  };

  // cache: accounts for the graph's memory, and is emptied if the device runs out. Returns null, and does nothing, if the driver has no
  // graphs or the instructions can't be captured.
  static std::unique_ptr<GpuGraph> record(GpuDevice& device, GpuDevices& devices, std::span<const ir::Instruction> work,
                                          runtime::CachingAllocator* cache);
  ~GpuGraph() override;
  const std::vector<Part>& parts() const noexcept { return parts_; }

 private:
  GpuGraph(GpuDevice& device, GpuDevices& devices, runtime::CachingAllocator* cache);
  // Creates its streams.
  void open();
  GraphExecHandle capture(std::span<const ir::Instruction> work);

  void* scratch(size_t bytes) override;
  void* large_arguments(const void* bytes, size_t count) override;
  void* faults(int count, render::c::FaultError error) override;

  // Allocates device memory, emptying the cache if necessary; throws OutOfMemoryError.
  void* take(size_t bytes, const char* what);

  runtime::CachingAllocator* const cache_;  // null: no cache
  std::vector<Part> parts_;
  // Separate from the streams' scratch memory: graphs may run at the same time as streams.
  std::vector<std::pair<void*, size_t>> memory_;
  size_t used_ = 0;  // pieces of memory_ that the current instruction uses
  std::vector<std::pair<void*, size_t>> arguments_;
  StreamHandle filling_ = nullptr;
};

}  // namespace naru::backends::gpu
