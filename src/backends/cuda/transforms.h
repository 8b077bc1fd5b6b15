// Fourier transforms by cuFFT, where there is one that takes them; the others are done on the cpu.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "backends/cuda/cufft.h"
#include "ir/instruction.h"

namespace naru::backends::cuda {

class CudaDevice;

// Rows of a transform as cuFFT counts them: numbers from one to the next, and from one row to the next, on both sides.
struct FftRows {
  int type = 0;
  int64_t n = 0, rows = 0;
  int64_t in_step = 1, in_row = 0, out_step = 1, out_row = 0;
  auto operator<=>(const FftRows&) const = default;
};

// How an instruction is done: its sides as they lie, or copied to (from) rows behind one another.
struct FftPlacing {
  FftRows rows;
  bool copies_in = false, copies_out = false;
};
FftPlacing placing_of(const ir::Fft& op);

// The transforms of one device: the library's plans. Thread-safe. The device's context must be current.
class Transforms {
 public:
  // Plans kept; beyond that all are made anew.
  static constexpr size_t kMostPlans = 256;

  Transforms(const CudaDevice& device, const VendorLibrary<Cufft>& library) : device_(device), library_(library) {}
  ~Transforms();
  Transforms(const Transforms&) = delete;

  // Whether the library has a plan for it; made here and kept.
  bool takes(const ir::Fft& op);
  // Bytes that the plan needs to work in. Throws RuntimeError where there is no plan.
  size_t workspace(const FftRows& rows);
  // Puts the transform, without its scale, on the stream; `workspace` has that many bytes. Throws RuntimeError where the library fails.
  void start(const FftRows& rows, bool inverse, void* in, void* out, void* workspace, CUstream stream);

 private:
  struct Plan;
  // Null where the library has none: `status` says why.
  std::shared_ptr<Plan> plan_of(const FftRows& rows, cufftResult& status);
  std::shared_ptr<Plan> must_have(const FftRows& rows);

  const CudaDevice& device_;
  const VendorLibrary<Cufft>& library_;
  std::mutex mutex_;
  std::map<FftRows, std::shared_ptr<Plan>> plans_;
};

}  // namespace naru::backends::cuda
