// Matrix products by MPSMatrixMultiplication, of MetalPerformanceShaders, where it takes them; naru's own kernels compute the others.
#pragma once

#include <array>
#include <compare>
#include <map>

#include "backends/metal/device.h"
#include "ir/instruction.h"

namespace naru::backends::metal {

// The products of one stream: the library's kernels are for one thread at a time.
class Products {
 public:
  // Limit of cached kernels; beyond it, they are made again.
  static constexpr size_t kMostKernels = 256;

  // Makes what the library needs for the product. Returns false if it must be computed by naru's own kernels: types or layouts that the
  // library does not take, a required canonical order of sums, an object that Metal does not give. Throws RuntimeError if an operand is not
  // in the device's memory.
  bool ready(const MetalDevice& device, const ir::MatMul& product);
  // Encodes the last product that was ready, without its bias. commands: a command buffer without an open encoder.
  void encode(id commands);
  // Never gives the kernels back: for processes that were forked.
  void abandon() noexcept;

 private:
  struct Key {
    bool left_transposed, right_transposed;
    UInteger rows, columns, interior, batch;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, Owned> kernels_;
  id kernel_ = nullptr;  // of the product that is ready, one of kernels_
  std::array<Owned, 3> matrices_;
};

}  // namespace naru::backends::metal
