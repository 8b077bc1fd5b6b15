// Puts instructions on a driver stream: kernels, copies, library calls. Streams and graphs derive from it; they differ in where they
// allocate memory for intermediate values.
#pragma once

#include "backends/cuda/device.h"

namespace naru::backends::cuda {

class StreamLauncher : protected render::c::Launcher {
 protected:
  StreamLauncher(CudaDevice& device, CudaDevices& devices) : device_(device), devices_(devices) {}

  // Requires that the device's context is current.
  void run(const ir::Instruction& instruction);
  // Copies the bytes to device memory that stays valid until the next started kernel is done.
  virtual void* large_arguments(const void* bytes, size_t count) = 0;

  const render::c::Target& target() const override { return device_.target(); }
  void start(const render::c::Launch& launch) override;
  void prepare(const render::c::Launch& launch) override { device_.kernel_of(launch); }

  CudaDevice& device_;
  CudaDevices& devices_;
  CUstream stream_ = nullptr;
  bool only_prepares_ = false;  // run() only compiles, plans and allocates; it enqueues nothing

 private:
  // Return false, and do nothing, if naru's own kernels must do the work.
  bool matmul_by_library(const ir::MatMul& product);
  bool convolve_by_library(const ir::Convolution& q);
  bool convolve_by_library(const ir::Convolution& q, bool channels_last, bool& starved);
  // Warns once per library and device that memory ran short; the program continues, more slowly.
  void warn_out_of_workspace(Product library, const char* what) const;
  void transform(const ir::Fft& op);
  void attend(const ir::Attention& op);
  void factor(const ir::Lapack& op);
  void factor_wide(const ir::Lapack& op);
  void factor_each(const ir::Lapack& op);
  bool by_library(ir::MatMul product, const Products::Workspace& memory);
  void copy(const ir::CopyBytes& copy);
  void copy_within(const ir::CopyBytes& copy);
};

}  // namespace naru::backends::cuda
