// Linear algebra by cuSOLVER if it is available: Cholesky, LU and QR factorizations, their solves and the Q matrix, singular values, and
// eigenvalues of Hermitian matrices. Everything else runs on the cpu.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cuda/cusolver.h"
#include "ir/instruction.h"

namespace naru::backends::cuda {

class CudaDevice;

// The cuSOLVER routines of one device: one handle per stream. Thread-safe. The device's context must be current.
class Factors {
 public:
  struct Room {
    size_t device = 0, host = 0;  // bytes
  };

  Factors(const CudaDevice& device, const gpu::VendorLibrary<Cusolver>& library) : device_(device), library_(library) {}
  ~Factors();
  Factors(const Factors&) = delete;

  // True if the library has the routine for these arrays.
  bool takes(const ir::Lapack& op);
  // The functions below require rows >= cols for Svd (the library has no other case).
  // True if the library does all matrices of the batch in one call.
  static bool in_one_call(const ir::Lapack& op);
  // Work memory for each matrix.
  Room room(const ir::Lapack& op);
  // Enqueues the routine for one matrix. pivots: of this matrix, in the library's format (Lu, LuSolve). Throws RuntimeError.
  void start(const ir::Lapack& op, int64_t matrix, int64_t* pivots, void* work, const Room& room, CUstream stream);
  // Enqueues the routine for all matrices. matrices: their addresses, in device memory.
  void start_all(const ir::Lapack& op, void** matrices, CUstream stream);

 private:
  bool open();
  cusolverDnHandle_t handle_of(CUstream stream);
  void check(cusolverStatus_t status, const std::string& function, const ir::Lapack& op) const;

  const CudaDevice& device_;
  const gpu::VendorLibrary<Cusolver>& library_;
  std::mutex mutex_;
  bool opened_ = false;
  const Cusolver* functions_ = nullptr;
  cusolverDnHandle_t spare_ = nullptr;  // without a stream, for size queries
  cusolverDnParams_t params_ = nullptr;
  std::map<CUstream, cusolverDnHandle_t> handles_;
  std::vector<char> host_;
};

}  // namespace naru::backends::cuda
