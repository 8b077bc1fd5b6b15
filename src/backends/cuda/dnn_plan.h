// Ways in which cuDNN carries out a graph of operations: engines that it proposes, and the kernels that it makes of them for a device.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/dnn_graph.h"
#include "naru/device.h"

namespace naru::backends::cuda {

// Whether a status says that the library does not take the operands or their addresses, rather than that it failed.
bool is_refusal(int status) noexcept;
// Throws for a status other than CUDNN_STATUS_SUCCESS: OutOfMemoryError, or a RuntimeError that ends with `advice`. what: the operation.
void check_status(int status, const char* function, const Device& device, const std::string& what, const char* advice);

// What plans are made for: the device of a handle, or, where no device is at hand, one of these properties.
struct DnnPlace {
  cudnnHandle_t handle = nullptr;
  const DnnDescriptor* properties = nullptr;
};

// What an engine's results are like: bit n is CUDNN_NUMERICAL_NOTE_n.
struct DnnNotes {
  uint32_t bits = 0;
  bool has(int note) const noexcept { return bits >> note & 1; }
};

// An engine with its settings, and the plan once it was asked for.
class DnnWay {
 public:
  DnnWay(DnnDescriptor engine, DnnNotes notes) : engine_(std::move(engine)), notes_(notes) {}

  DnnNotes notes() const noexcept { return notes_; }
  // Makes the plan, which may compile. False where the library does not take it after all, or did not when it was to run.
  bool usable(const Cudnn& functions, const DnnPlace& place, const DnnCheck& check);
  // Bytes that the plan works in, once it is usable.
  size_t workspace() const noexcept { return workspace_; }
  // Runs the plan on the handle's stream, with addresses of the tensors with these numbers. False where the library refuses: nothing has happened,
  // and it is not usable any more.
  bool run(const Cudnn& functions, cudnnHandle_t handle, std::span<const int64_t> numbers, std::span<void* const> addresses,
           void* workspace, const DnnCheck& check);

 private:
  DnnDescriptor engine_;
  DnnNotes notes_;
  std::optional<DnnDescriptor> plan_;
  size_t workspace_ = 0;
  bool refused_ = false;
};

// The library's proposals for a graph, the quickest first as it expects. The graph, and the operations that it is made of, must outlive them.
std::vector<DnnWay> ways_of(const Cudnn& functions, const DnnPlace& place, const DnnDescriptor& graph, const DnnCheck& check);

}  // namespace naru::backends::cuda
