// Instructions as graphs of the driver: recorded on a stream of their own, each started by one call.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backends/cuda/launcher.h"
#include "runtime/backend.h"

namespace naru::backends::cuda {

class CudaGraph final : public runtime::Recorded, private StreamLauncher {
 public:
  // A run of instructions that are one graph, or (graph null) are submitted as they are: those with positions, whose errors are looked for after
  // each of them, and copies from other devices.
  struct Part {
    std::span<const ir::Instruction> work;
    CUgraphExec graph = nullptr;
  };

  // cache: counts the graph's memory, and is emptied where the device has no more. Null where the driver has no graphs, or does not take these instructions; nothing has happened then.
  static std::unique_ptr<CudaGraph> record(CudaDevice& device, CudaDevices& devices, std::span<const ir::Instruction> work,
                                           runtime::CachingAllocator* cache);
  ~CudaGraph() override;
  const std::vector<Part>& parts() const noexcept { return parts_; }

 private:
  CudaGraph(CudaDevice& device, CudaDevices& devices, runtime::CachingAllocator* cache);
  // Its streams.
  void open();
  CUgraphExec capture(std::span<const ir::Instruction> work);

  void* scratch(size_t bytes) override;
  void* large_arguments(const void* bytes, size_t count) override;
  void* faults(int count, std::function<std::string(int, uint32_t, int64_t)> text) override;

  // Memory of the device, which the cache gives back where there is no more; throws OutOfMemoryError.
  void* take(size_t bytes, const char* what);

  runtime::CachingAllocator* const cache_;  // null: there is none
  std::vector<Part> parts_;
  // The graphs' own: they may run while streams use theirs.
  std::vector<std::pair<void*, size_t>> memory_;
  size_t used_ = 0;  // of memory_, by the instruction at hand
  std::vector<std::pair<void*, size_t>> arguments_;
  CUstream filling_ = nullptr;
};

}  // namespace naru::backends::cuda
