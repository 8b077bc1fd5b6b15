// Puts instructions on a stream of the driver: kernels, copies, products by the library. Streams and graphs are launchers of this kind; they
// differ in where they have memory for intermediate values.
#pragma once

#include "backends/cuda/device.h"

namespace naru::backends::cuda {

class StreamLauncher : protected render::c::Launcher {
 protected:
  StreamLauncher(CudaDevice& device, CudaDevices& devices) : device_(device), devices_(devices) {}

  // With the device's context current.
  void run(const ir::Instruction& instruction);
  // Memory of the device that holds the bytes until the kernel started next is done.
  virtual void* large_arguments(const void* bytes, size_t count) = 0;

  const render::c::Target& target() const override { return device_.target(); }
  void start(const render::c::Launch& launch) override;
  void prepare(const render::c::Launch& launch) override { device_.kernel_of(launch); }

  CudaDevice& device_;
  CudaDevices& devices_;
  CUstream stream_ = nullptr;
  bool only_prepares_ = false;  // run() compiles, plans and takes memory, and puts nothing on the stream

 private:
  // False where own kernels are to do it, and nothing has happened.
  bool matmul_by_library(const ir::MatMul& product);
  bool convolve_by_library(const ir::Convolution& q);
  bool convolve_by_library(const ir::Convolution& q, bool channels_last, bool& starved);
  // Once for each library and device: the program goes on, more slowly.
  void tell_starved(Product library, const char* what) const;
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
