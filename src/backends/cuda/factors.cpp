#include "backends/cuda/factors.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "backends/cuda/device.h"
#include "naru/error.h"

namespace naru::backends::cuda {
namespace {

using ir::Lapack;
using Routine = Lapack::Routine;

struct Type {
  int number;
  size_t index, bytes;  // index among float32, float64 and their complex types; bytes per element
};
Type type_of(const Lapack& op) {
  constexpr int kNumbers[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};
  const size_t index = (op.complex ? 2u : 0u) + (op.dtype == DType::F64 ? 1u : 0u);
  return {kNumbers[index], index, size_of(op.dtype) * (op.complex ? 2 : 1)};
}

// One matrix of each array, with handle and work memory.
struct Job {
  const Cusolver& f;
  cusolverDnHandle_t handle;
  cusolverDnParams_t params;
  const Lapack& op;
  int64_t matrix = 0;
  int64_t* pivots = nullptr;
  void *work = nullptr, *host = nullptr;
  Factors::Room room{};

  const Lapack::Array& array(size_t k) const { return op.arrays[k]; }
  void* at(size_t k) const {
    const Lapack::Array& a = array(k);
    return static_cast<char*>(a.data) + matrix * a.matrix * static_cast<int64_t>(size_of(a.dtype)) * (a.complex ? 2 : 1);
  }
  int* info() const { return static_cast<int*>(at(op.arrays.size() - 1)); }
  int64_t rows(size_t k) const { return array(k).rows; }
  int64_t cols(size_t k) const { return array(k).cols; }
  int64_t column(size_t k) const { return std::max<int64_t>(array(k).column, 1); }
  int type() const { return type_of(op).number; }
  int real() const { return op.dtype == DType::F32 ? int{CUDA_R_32F} : int{CUDA_R_64F}; }
  int triangle() const { return op.upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER; }
  int way() const { return !op.transposed ? int{CUBLAS_OP_N} : op.complex ? int{CUBLAS_OP_C} : int{CUBLAS_OP_T}; }
  // For functions with 32-bit sizes; takes() has checked the range.
  int rows32(size_t k) const { return static_cast<int>(rows(k)); }
  int cols32(size_t k) const { return static_cast<int>(cols(k)); }
  int column32(size_t k) const { return static_cast<int>(column(k)); }
  int work32() const { return static_cast<int>(room.device / type_of(op).bytes); }
};

// Sets the room in bytes from the number of elements that `ask` returns.
template <class Ask>
int in_numbers(const Job& j, Factors::Room& room, Ask&& ask) {
  int numbers = 0;
  const int status = ask(&numbers);
  room.device = static_cast<size_t>(std::max(numbers, 1)) * type_of(j.op).bytes;
  return status;
}

int cholesky_room(const Job& j, Factors::Room& r) {
  return j.f.cusolverDnXpotrf_bufferSize(j.handle, j.params, j.triangle(), j.rows(0), j.type(), j.at(0), j.column(0), j.type(), &r.device,
                                         &r.host);
}
int cholesky(const Job& j) {
  return j.f.cusolverDnXpotrf(j.handle, j.params, j.triangle(), j.rows(0), j.type(), j.at(0), j.column(0), j.type(), j.work, j.room.device,
                              j.host, j.room.host, j.info());
}
int cholesky_solve(const Job& j) {
  return j.f.cusolverDnXpotrs(j.handle, j.params, j.triangle(), j.rows(0), j.cols(1), j.type(), j.at(0), j.column(0), j.type(), j.at(1),
                              j.column(1), j.info());
}

int lu_room(const Job& j, Factors::Room& r) {
  return j.f.cusolverDnXgetrf_bufferSize(j.handle, j.params, j.rows(0), j.cols(0), j.type(), j.at(0), j.column(0), j.type(), &r.device,
                                         &r.host);
}
int lu(const Job& j) {
  return j.f.cusolverDnXgetrf(j.handle, j.params, j.rows(0), j.cols(0), j.type(), j.at(0), j.column(0), j.pivots, j.type(), j.work,
                              j.room.device, j.host, j.room.host, j.info());
}
int lu_solve(const Job& j) {
  return j.f.cusolverDnXgetrs(j.handle, j.params, j.way(), j.rows(0), j.cols(2), j.type(), j.at(0), j.column(0), j.pivots, j.type(),
                              j.at(2), j.column(2), j.info());
}

int qr_room(const Job& j, Factors::Room& r) {
  return j.f.cusolverDnXgeqrf_bufferSize(j.handle, j.params, j.rows(0), j.cols(0), j.type(), j.at(0), j.column(0), j.type(), j.at(1),
                                         j.type(), &r.device, &r.host);
}
int qr(const Job& j) {
  return j.f.cusolverDnXgeqrf(j.handle, j.params, j.rows(0), j.cols(0), j.type(), j.at(0), j.column(0), j.type(), j.at(1), j.type(), j.work,
                              j.room.device, j.host, j.room.host, j.info());
}
int qr_vectors_room(const Job& j, Factors::Room& r) {
  const decltype(j.f.cusolverDnSorgqr_bufferSize) of[] = {j.f.cusolverDnSorgqr_bufferSize, j.f.cusolverDnDorgqr_bufferSize,
                                                          j.f.cusolverDnCungqr_bufferSize, j.f.cusolverDnZungqr_bufferSize};
  return in_numbers(j, r, [&](int* numbers) {
    return of[type_of(j.op).index](j.handle, j.rows32(0), j.cols32(0), j.rows32(1), j.at(0), j.column32(0), j.at(1), numbers);
  });
}
int qr_vectors(const Job& j) {
  const decltype(j.f.cusolverDnSorgqr) of[] = {j.f.cusolverDnSorgqr, j.f.cusolverDnDorgqr, j.f.cusolverDnCungqr, j.f.cusolverDnZungqr};
  return of[type_of(j.op).index](j.handle, j.rows32(0), j.cols32(0), j.rows32(1), j.at(0), j.column32(0), j.at(1), j.work, j.work32(),
                                 j.info());
}
int qr_product_room(const Job& j, Factors::Room& r) {
  const decltype(j.f.cusolverDnSormqr_bufferSize) of[] = {j.f.cusolverDnSormqr_bufferSize, j.f.cusolverDnDormqr_bufferSize,
                                                          j.f.cusolverDnCunmqr_bufferSize, j.f.cusolverDnZunmqr_bufferSize};
  return in_numbers(j, r, [&](int* numbers) {
    return of[type_of(j.op).index](j.handle, CUBLAS_SIDE_LEFT, j.way(), j.rows32(2), j.cols32(2), j.rows32(1), j.at(0), j.column32(0),
                                   j.at(1), j.at(2), j.column32(2), numbers);
  });
}
int qr_product(const Job& j) {
  const decltype(j.f.cusolverDnSormqr) of[] = {j.f.cusolverDnSormqr, j.f.cusolverDnDormqr, j.f.cusolverDnCunmqr, j.f.cusolverDnZunmqr};
  return of[type_of(j.op).index](j.handle, CUBLAS_SIDE_LEFT, j.way(), j.rows32(2), j.cols32(2), j.rows32(1), j.at(0), j.column32(0),
                                 j.at(1), j.at(2), j.column32(2), j.work, j.work32(), j.info());
}

// Which singular vectors to compute: none, as many as there are singular values, or all.
struct Vectors {
  signed char job = 'N';
  void *u = nullptr, *vt = nullptr;
  int64_t u_column, vt_column;
  explicit Vectors(const Job& j) : u_column(j.rows(0)), vt_column(j.cols(0)) {
    if (!j.op.vectors) return;
    job = j.cols(2) == j.rows(2) && j.rows(3) == j.cols(3) ? 'A' : 'S';
    u = j.at(2), vt = j.at(3), u_column = j.column(2), vt_column = j.column(3);
  }
};
int svd_room(const Job& j, Factors::Room& r) {
  const Vectors v(j);
  return j.f.cusolverDnXgesvd_bufferSize(j.handle, j.params, v.job, v.job, j.rows(0), j.cols(0), j.type(), j.at(0), j.column(0), j.real(),
                                         j.at(1), j.type(), v.u, v.u_column, j.type(), v.vt, v.vt_column, j.type(), &r.device, &r.host);
}
int svd(const Job& j) {
  const Vectors v(j);
  return j.f.cusolverDnXgesvd(j.handle, j.params, v.job, v.job, j.rows(0), j.cols(0), j.type(), j.at(0), j.column(0), j.real(), j.at(1),
                              j.type(), v.u, v.u_column, j.type(), v.vt, v.vt_column, j.type(), j.work, j.room.device, j.host, j.room.host,
                              j.info());
}

int eigh_room(const Job& j, Factors::Room& r) {
  const int vectors = j.op.vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  return j.f.cusolverDnXsyevd_bufferSize(j.handle, j.params, vectors, j.triangle(), j.rows(0), j.type(), j.at(0), j.column(0), j.real(),
                                         j.at(1), j.type(), &r.device, &r.host);
}
int eigh(const Job& j) {
  const int vectors = j.op.vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  return j.f.cusolverDnXsyevd(j.handle, j.params, vectors, j.triangle(), j.rows(0), j.type(), j.at(0), j.column(0), j.real(), j.at(1),
                              j.type(), j.work, j.room.device, j.host, j.room.host, j.info());
}

struct Row {
  Routine routine;
  const char* function;  // full name; of functions that exist per type, the part after the letter of a real type
  int (*room)(const Job&, Factors::Room&);
  int (*start)(const Job&);
  const char* complex = nullptr;  // the same for complex types; functions per type have 32-bit sizes
};
constexpr Row kRows[] = {{Routine::Cholesky, "cusolverDnXpotrf", cholesky_room, cholesky},
                         {Routine::CholeskySolve, "cusolverDnXpotrs", nullptr, cholesky_solve},
                         {Routine::Lu, "cusolverDnXgetrf", lu_room, lu},
                         {Routine::LuSolve, "cusolverDnXgetrs", nullptr, lu_solve},
                         {Routine::Qr, "cusolverDnXgeqrf", qr_room, qr},
                         {Routine::QrVectors, "orgqr", qr_vectors_room, qr_vectors, "ungqr"},
                         {Routine::QrProduct, "ormqr", qr_product_room, qr_product, "unmqr"},
                         {Routine::Svd, "cusolverDnXgesvd", svd_room, svd},
                         {Routine::Eigh, "cusolverDnXsyevd", eigh_room, eigh}};

const Row* row_of(const Lapack& op) {
  const auto at = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.routine == op.routine; });
  return at == std::end(kRows) ? nullptr : at;
}

std::string of_type(const Lapack& op, const char* function) { return fmt::format("cusolverDn{}{}", "SDCZ"[type_of(op).index], function); }
std::string function_of(const Lapack& op, const Row& row) {
  return row.complex ? of_type(op, op.complex ? row.complex : row.function) : row.function;
}

bool is_narrow(const Lapack& op) {
  return std::ranges::all_of(op.arrays, [](const Lapack::Array& a) { return std::max({a.rows, a.cols, a.column}) <= INT_MAX; });
}

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

void Factors::check(cusolverStatus_t status, const std::string& function, const Lapack& op) const {
  if (status == CUSOLVER_STATUS_SUCCESS) return;
  const Lapack::Array& a = op.arrays[0];
  throw RuntimeError("cusolver error: {}, when calling `{}` on {} for linalg.{} of {} matrices of {} x {}",
                     gpu::status_name<Cusolver>(status), function, device_.device().str(), op.name(), op.batch, a.rows, a.cols);
}

cusolverDnHandle_t Factors::handle_of(CUstream stream) {
  cusolverDnHandle_t& handle = handles_[stream];
  if (handle) return handle;
  cusolverStatus_t status = functions_->cusolverDnCreate(&handle);
  if (status == CUSOLVER_STATUS_SUCCESS) status = functions_->cusolverDnSetStream(handle, stream);
  if (status == CUSOLVER_STATUS_SUCCESS) return handle;
  if (handle) functions_->cusolverDnDestroy(handle);
  handles_.erase(stream);
  throw RuntimeError("cusolver error: {}, when calling `cusolverDnCreate` on {}", gpu::status_name<Cusolver>(status),
                     device_.device().str());
}

bool Factors::takes(const Lapack& op) {
  const Row* const row = row_of(op);
  if (!row || op.batch == 0 || (row->complex && !is_narrow(op))) return false;
  for (const Lapack::Array& a : op.arrays)
    if (a.rows == 0 || a.cols == 0) return false;
  const std::lock_guard lock(mutex_);
  return open();
}

bool Factors::in_one_call(const Lapack& op) {
  return op.routine == Routine::Cholesky && op.batch > 1 && op.batch <= INT_MAX && op.arrays.back().matrix == 1 && is_narrow(op);
}

Factors::Room Factors::room(const Lapack& op) {
  const std::lock_guard lock(mutex_);
  Room room;
  const Row* const row = row_of(op);
  if (!open() || !row) check(CUSOLVER_STATUS_NOT_INITIALIZED, "cusolverDnCreate", op);
  if (row->room) check(row->room({*functions_, spare_, params_, op}, room), function_of(op, *row) + "_bufferSize", op);
  return room;
}

void Factors::start(const Lapack& op, int64_t matrix, int64_t* pivots, void* work, const Room& room, CUstream stream) {
  const std::lock_guard lock(mutex_);
  const cusolverDnHandle_t handle = handle_of(stream);
  if (host_.size() < room.host) host_.resize(room.host);
  const Row& row = *row_of(op);
  check(row.start({*functions_, handle, params_, op, matrix, pivots, work, room.host > 0 ? host_.data() : nullptr, room}),
        function_of(op, row), op);
}

void Factors::start_all(const Lapack& op, void** matrices, CUstream stream) {
  const std::lock_guard lock(mutex_);
  const decltype(Cusolver::cusolverDnSpotrfBatched) of[] = {functions_->cusolverDnSpotrfBatched, functions_->cusolverDnDpotrfBatched,
                                                            functions_->cusolverDnCpotrfBatched, functions_->cusolverDnZpotrfBatched};
  const Job j{*functions_, handle_of(stream), params_, op};
  check(of[type_of(op).index](j.handle, j.triangle(), j.rows32(0), matrices, j.column32(0), j.info(), static_cast<int>(op.batch)),
        of_type(op, "potrfBatched"), op);
}

}  // namespace naru::backends::cuda
