// Linear algebra by cuSOLVER, where there is one: factors of Cholesky, LU and QR, what they solve or span, singular values, eigenvalues of hermitian
// matrices. All else is done on the cpu.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cuda/cusolver.h"
#include "ir/instruction.h"

namespace naru::backends::cuda {

class CudaDevice;

// The routines of one device: a handle for each stream. Thread-safe. The device's context must be current.
class Factors {
 public:
  struct Room {
    size_t device = 0, host = 0;  // bytes
  };

  Factors(const CudaDevice& device, const VendorLibrary<Cusolver>& library) : device_(device), library_(library) {}
  ~Factors();
  Factors(const Factors&) = delete;

  // Whether the library has the routine, for such arrays.
  bool takes(const ir::Lapack& op);
  // What follows is for matrices that are not wider than high where the routine is Svd (the library has no others).
  // Whether the library does all matrices of the batch in one call.
  static bool in_one_call(const ir::Lapack& op);
  // What each of its matrices needs to work in.
  Room room(const ir::Lapack& op);
  // Puts the routine for one matrix on the stream. pivots: as the library counts them, of this matrix (Lu, LuSolve). Throws RuntimeError.
  void start(const ir::Lapack& op, int64_t matrix, int64_t* pivots, void* work, const Room& room, CUstream stream);
  // Puts it on the stream for all of them. matrices: their addresses, in the device's memory.
  void start_all(const ir::Lapack& op, void** matrices, CUstream stream);

 private:
  bool open();
  cusolverDnHandle_t handle_of(CUstream stream);
  void check(cusolverStatus_t status, const std::string& function, const ir::Lapack& op) const;

  const CudaDevice& device_;
  const VendorLibrary<Cusolver>& library_;
  std::mutex mutex_;
  bool opened_ = false;
  const Cusolver* functions_ = nullptr;
  cusolverDnHandle_t spare_ = nullptr;  // of no stream: sizes are asked of it
  cusolverDnParams_t params_ = nullptr;
  std::map<CUstream, cusolverDnHandle_t> handles_;
  std::vector<char> host_;
};

}  // namespace naru::backends::cuda
