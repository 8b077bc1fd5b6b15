// Execution of cuDNN operation graphs: the engines that cuDNN proposes, and the plans (kernels) that it makes of them for a device.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/dnn_graph.h"
#include "naru/device.h"

namespace naru::backends::cuda {

// True if a status means that the library does not support the operands or their addresses, false if it failed.
bool is_refusal(int status) noexcept;
// Throws for a status other than CUDNN_STATUS_SUCCESS: OutOfMemoryError, or a RuntimeError that ends with `advice`. what: names the
// operation.
void check_status(int status, const char* function, const Device& device, const std::string& what, const char* advice);

// The target of plans: the device of a handle, or, without a device, the given device properties.
struct DnnTarget {
  cudnnHandle_t handle = nullptr;
  const DnnDescriptor* properties = nullptr;
};

// Numerical notes of an engine: bit n is CUDNN_NUMERICAL_NOTE_n.
struct DnnNotes {
  uint32_t bits = 0;
  bool has(int note) const noexcept { return bits >> note & 1; }
};

// An engine with its settings, and its plan once that was made.
class DnnEngine {
 public:
  DnnEngine(DnnDescriptor engine, DnnNotes notes) : engine_(std::move(engine)), notes_(notes) {}

  DnnNotes notes() const noexcept { return notes_; }
  // Makes the plan, which may compile. Returns false if the library rejects it, or rejected it in an earlier run.
  bool usable(const Cudnn& functions, const DnnTarget& place, const DnnCheck& check);
  // Work memory of the plan in bytes; valid once usable() has returned true.
  size_t workspace() const noexcept { return workspace_; }
  // Runs the plan on the handle's stream; `addresses` are those of the tensors with the ids `numbers`. Returns false if the library rejects
  // it: nothing was enqueued, and the engine is no longer usable.
  bool run(const Cudnn& functions, cudnnHandle_t handle, std::span<const int64_t> numbers, std::span<void* const> addresses,
           void* workspace, const DnnCheck& check);

 private:
  DnnDescriptor engine_;
  DnnNotes notes_;
  std::optional<DnnDescriptor> plan_;
  size_t workspace_ = 0;
  bool refused_ = false;
};

// The library's engines for a graph, expected fastest first. The graph and its operations must outlive them.
std::vector<DnnEngine> engines_of(const Cudnn& functions, const DnnTarget& place, const DnnDescriptor& graph, const DnnCheck& check);

}  // namespace naru::backends::cuda
