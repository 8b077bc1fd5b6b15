// Convolutions by a vendor's library (cuDNN, MIOpen) where it supports them; naru's own kernels compute the others.
#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <optional>
#include <string>

#include "backends/gpu/device.h"
#include "ir/instruction.h"

namespace naru::backends::gpu {

using Sizes5 = std::array<int64_t, 5>;
// Strides of a dense array, channels-last or row-major; and whether an array has them.
Sizes5 dense_strides(const Sizes5& sizes, bool channels_last) noexcept;
bool is_dense(const Sizes5& strides, const Sizes5& sizes, bool channels_last) noexcept;

// A convolution as it is described to a library: x, w and y are dense, and either all or none of them are channels-last.
struct DenseConvolution {
  ir::Convolution::Use use = ir::Convolution::Use::Forward;
  DType type = DType::F32;
  bool tf32 = false, channels_last = false;
  int dims = 4;
  Sizes5 x{}, w{}, y{};                                    // sizes, the first `dims`; w has the channels of one group
  std::array<int64_t, 3> padding{}, stride{}, dilation{};  // the first dims - 2
  auto operator<=>(const DenseConvolution&) const = default;

  int64_t groups() const noexcept { return x[1] / w[1]; }
  // Strides of an array of these sizes, the first `dims`.
  Sizes5 strides_of(const Sizes5& sizes) const noexcept;
  // "convolution of x 2 x 3 x 6 x 5, w 4 x 3 x 3 x 3 and y 2 x 4 x 6 x 5".
  std::string words() const;
};
// nullopt if no library is used: a canonical order is required, types or sizes are not supported, or padding differs between the two sides.
std::optional<DenseConvolution> dense_convolution(const ir::Convolution& q, bool channels_last) noexcept;

// The convolutions of one device: what the library proposes per shape. Thread-safe. The device must be current.
class ConvolutionLibrary {
 public:
  struct Way {
    size_t number = 0;
    size_t workspace = 0;  // bytes
  };

  explicit ConvolutionLibrary(const GpuDevice& device) : device_(device) {}
  virtual ~ConvolutionLibrary() = default;
  ConvolutionLibrary(const ConvolutionLibrary&) = delete;

  // The library's ways to compute it from number `from` on, expected fastest first. nullopt if there is no library, or no further way.
  virtual std::optional<Way> way(const DenseConvolution& convolution, size_t from) = 0;
  // Enqueues it on the stream. Returns false, and does nothing, if the library rejects it after all. Throws RuntimeError if it fails,
  // OutOfMemoryError if it has no memory.
  virtual bool start(const DenseConvolution& convolution, size_t way, void* x, void* w, void* y, void* workspace, StreamHandle stream) = 0;
  // "cuDNN".
  virtual const char* label() const noexcept = 0;
  // Warns once that there was no memory to work in.
  void warn_out_of_workspace();

 protected:
  const GpuDevice& device_;

 private:
  std::atomic<bool> told_{false};
};

// Puts the convolution on the launcher's stream by the library, with kernels around the call where it lacks something. Returns false, and
// does nothing, if naru's own kernels must do the work.
bool convolve_by_library(const ir::Convolution& convolution, ConvolutionLibrary& library, StreamLauncher& launcher);

}  // namespace naru::backends::gpu
