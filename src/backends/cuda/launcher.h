// Calls of NVIDIA's libraries on a stream.
#pragma once

#include "backends/cuda/device.h"
#include "backends/gpu/launcher.h"

namespace naru::backends::cuda {

// For one instruction: what the libraries run of it, with memory of the launcher's, and kernels around the calls where they lack something.
class LibraryLauncher {
 public:
  LibraryLauncher(CudaDevice& device, gpu::StreamLauncher& launcher)
      : device_(device), launcher_(launcher), stream_(launcher.stream()), only_prepares_(launcher.only_prepares()) {}

  // Returns false, and does nothing, if naru's own kernels must do the work.
  bool run(const ir::Instruction& instruction);

 private:
  void transform(const ir::Fft& op);
  void attend(const ir::Attention& op);
  void factor(const ir::Lapack& op);
  void factor_wide(const ir::Lapack& op);
  void factor_each(const ir::Lapack& op);
  void* scratch(size_t bytes) { return launcher_.scratch(bytes); }

  CudaDevice& device_;
  gpu::StreamLauncher& launcher_;
  const CUstream stream_;
  const bool only_prepares_;
};

}  // namespace naru::backends::cuda
