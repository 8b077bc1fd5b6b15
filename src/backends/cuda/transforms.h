// Fourier transforms by cuFFT where the library supports them; the others run on the cpu.
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

// A batch of 1-d transforms as cuFFT describes it. For input and output: the step between values of a row, and the step between rows.
struct FftRows {
  int type = 0;
  int64_t n = 0, rows = 0;
  int64_t in_step = 1, in_row = 0, out_step = 1, out_row = 0;
  auto operator<=>(const FftRows&) const = default;
};

// How to run an instruction: on the operands as they are, or with input or output copied to contiguous rows.
struct FftPlacing {
  FftRows rows;
  bool copies_in = false, copies_out = false;
};
FftPlacing placing_of(const ir::Fft& op);

// The transforms of one device: the library's plans. Thread-safe. The device's context must be current.
class Transforms {
 public:
  // Limit of cached plans; beyond it, a plan is made for each call.
  static constexpr size_t kMostPlans = 256;

  Transforms(const CudaDevice& device, const gpu::VendorLibrary<Cufft>& library) : device_(device), library_(library) {}
  ~Transforms();
  Transforms(const Transforms&) = delete;

  // True if the library has a plan for it; makes and caches the plan.
  bool takes(const ir::Fft& op);
  // Work memory of the plan in bytes. Throws RuntimeError if there is no plan.
  size_t workspace(const FftRows& rows);
  // Enqueues the transform, without its scale; `workspace` has workspace(rows) bytes. Throws RuntimeError if the library fails.
  void start(const FftRows& rows, bool inverse, void* in, void* out, void* workspace, CUstream stream);

 private:
  struct Plan;
  // Null if the library has none; `status` gives the reason.
  std::shared_ptr<Plan> plan_of(const FftRows& rows, cufftResult& status);
  std::shared_ptr<Plan> must_have(const FftRows& rows);

  const CudaDevice& device_;
  const gpu::VendorLibrary<Cufft>& library_;
  std::mutex mutex_;
  std::map<FftRows, std::shared_ptr<Plan>> plans_;
};

}  // namespace naru::backends::cuda
