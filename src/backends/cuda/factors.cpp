#include "backends/cuda/factors.h"

#include "backends/cuda/device.h"
#include "naru/error.h"

namespace naru::backends::cuda {
namespace {

using ir::Lapack;
using Routine = Lapack::Routine;

int type_of(const Lapack& op) {
  if (op.dtype == DType::F32) return op.complex ? int{CUDA_C_32F} : int{CUDA_R_32F};
  return op.complex ? int{CUDA_C_64F} : int{CUDA_R_64F};
}

void* at(const Lapack::Array& a, int64_t matrix) {
  return static_cast<char*>(a.data) + matrix * a.matrix * static_cast<int64_t>(size_of(a.dtype)) * (a.complex ? 2 : 1);
}

int64_t column(const Lapack::Array& a) { return std::max<int64_t>(a.column, 1); }

}  // namespace

Factors::~Factors() {
  if (!functions_ || device_.forked() || device_.lost()) return;
  const CudaDevice::Current scope(device_, std::nothrow);
  if (!scope) return;
  for (const auto& [stream, handle] : handles_) functions_->cusolverDnDestroy(handle);
  if (params_) functions_->cusolverDnDestroyParams(params_);
  if (spare_) functions_->cusolverDnDestroy(spare_);
}

bool Factors::open() {
  if (opened_) return params_ != nullptr;
  opened_ = true;
  functions_ = library_.get();
  if (!functions_) return false;
  cusolverStatus_t status = functions_->cusolverDnCreate(&spare_);
  if (status == CUSOLVER_STATUS_SUCCESS) status = functions_->cusolverDnCreateParams(&params_);
  if (status == CUSOLVER_STATUS_SUCCESS) return true;
  library_.refused(status);
  params_ = nullptr;
  return false;
}

namespace {

void check(cusolverStatus_t status, const char* function, const Lapack& op, Device device) {
  if (status == CUSOLVER_STATUS_SUCCESS) return;
  const Lapack::Array& a = op.arrays[0];
  throw RuntimeError("cusolver error: {}, when calling `{}` on {} for linalg.{} of {} matrices of {} x {}", status_name<Cusolver>(status),
                     function, device.str(), op.name(), op.batch, a.rows, a.cols);
}

}  // namespace

cusolverDnHandle_t Factors::handle_of(CUstream stream) {
  cusolverDnHandle_t& handle = handles_[stream];
  if (handle) return handle;
  cusolverStatus_t status = functions_->cusolverDnCreate(&handle);
  if (status == CUSOLVER_STATUS_SUCCESS) status = functions_->cusolverDnSetStream(handle, stream);
  if (status == CUSOLVER_STATUS_SUCCESS) return handle;
  if (handle) functions_->cusolverDnDestroy(handle);
  handles_.erase(stream);
  throw RuntimeError("cusolver error: {}, when calling `cusolverDnCreate` on {}", status_name<Cusolver>(status), device_.device().str());
}

bool Factors::takes(const Lapack& op) {
  switch (op.routine) {
    case Routine::Cholesky:
    case Routine::CholeskySolve:
    case Routine::Lu:
    case Routine::LuSolve:
      break;
    default:
      return false;
  }
  for (const Lapack::Array& a : op.arrays)
    if (a.rows == 0 || a.cols == 0) return false;
  const std::lock_guard lock(mutex_);
  return op.batch > 0 && open();
}

Factors::Room Factors::room(const Lapack& op) {
  const std::lock_guard lock(mutex_);
  Room room;
  const Lapack::Array& a = op.arrays[0];
  const int type = type_of(op);
  if (!open()) check(CUSOLVER_STATUS_NOT_INITIALIZED, "cusolverDnCreate", op, device_.device());
  if (op.routine == Routine::Cholesky)
    check(functions_->cusolverDnXpotrf_bufferSize(spare_, params_, op.upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER, a.rows, type,
                                                  a.data, column(a), type, &room.device, &room.host),
          "cusolverDnXpotrf_bufferSize", op, device_.device());
  if (op.routine == Routine::Lu)
    check(functions_->cusolverDnXgetrf_bufferSize(spare_, params_, a.rows, a.cols, type, a.data, column(a), type, &room.device, &room.host),
          "cusolverDnXgetrf_bufferSize", op, device_.device());
  return room;
}

void Factors::start(const Lapack& op, int64_t matrix, int64_t* pivots, void* work, const Room& room, CUstream stream) {
  const std::lock_guard lock(mutex_);
  const cusolverDnHandle_t handle = handle_of(stream);
  if (host_.size() < room.host) host_.resize(room.host);
  const Lapack::Array& a = op.arrays[0];
  int* const info = static_cast<int*>(at(op.arrays.back(), matrix));
  const int type = type_of(op), triangle = op.upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
  void* const host = room.host > 0 ? host_.data() : nullptr;
  const auto done = [&](cusolverStatus_t status, const char* function) { check(status, function, op, device_.device()); };
  switch (op.routine) {
    case Routine::Cholesky:
      return done(functions_->cusolverDnXpotrf(handle, params_, triangle, a.rows, type, at(a, matrix), column(a), type, work, room.device,
                                               host, room.host, info),
                  "cusolverDnXpotrf");
    case Routine::CholeskySolve: {
      const Lapack::Array& b = op.arrays[1];
      return done(functions_->cusolverDnXpotrs(handle, params_, triangle, a.rows, b.cols, type, at(a, matrix), column(a), type,
                                               at(b, matrix), column(b), info),
                  "cusolverDnXpotrs");
    }
    case Routine::Lu:
      return done(functions_->cusolverDnXgetrf(handle, params_, a.rows, a.cols, type, at(a, matrix), column(a), pivots, type, work,
                                               room.device, host, room.host, info),
                  "cusolverDnXgetrf");
    case Routine::LuSolve: {
      const Lapack::Array& b = op.arrays[2];
      const int way = !op.transposed ? int{CUBLAS_OP_N} : op.complex ? int{CUBLAS_OP_C} : int{CUBLAS_OP_T};
      return done(functions_->cusolverDnXgetrs(handle, params_, way, a.rows, b.cols, type, at(a, matrix), column(a), pivots, type,
                                               at(b, matrix), column(b), info),
                  "cusolverDnXgetrs");
    }
    default:
      check(CUSOLVER_STATUS_NOT_SUPPORTED, "cusolver", op, device_.device());
  }
}

}  // namespace naru::backends::cuda
