#include "backends/cuda/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "backends/cuda/device.h"
#include "naru/error.h"

namespace naru::backends::cuda {
namespace {

using Matrix = ir::MatMul::Matrix;

// NVIDIA's recommendation: 32 MiB from Hopper on, whose algorithms split k more often; 8 MiB before.
constexpr size_t kWorkspace = size_t{8} << 20, kWorkspaceOfHopper = size_t{32} << 20;

// The row stride of a matrix with contiguous rows, as leading dimension; 0 if it is not such a matrix.
int64_t row_step(const Matrix& x, int64_t rows, int64_t cols) noexcept {
  if (x.col_stride != 1 && cols != 1) return 0;
  if (rows == 1) return std::max<int64_t>(1, cols);
  return x.row_stride >= std::max<int64_t>(1, cols) ? x.row_stride : 0;
}

uint32_t alignment_of(const void* p) noexcept {
  constexpr uintptr_t kMost = 256;
  const auto address = reinterpret_cast<uintptr_t>(p) | kMost;
  return static_cast<uint32_t>(address & -address);
}

// A row-major matrix is its own transpose in column-major order.
std::optional<LtMatMul::Matrix> operand(const Matrix& x, int64_t rows, int64_t cols, int64_t batch) noexcept {
  LtMatMul::Matrix m;
  if (const int64_t ld = row_step(x, rows, cols)) {
    m.ld = ld;
  } else {
    m.transposed = true;
    m.ld = row_step({x.data, x.batch_stride, x.col_stride, x.row_stride}, cols, rows);
  }
  if (m.ld == 0 || x.batch_stride < 0) return std::nullopt;
  m.batch_stride = batch == 1 ? 0 : x.batch_stride;
  m.alignment = alignment_of(x.data);
  return m;
}

bool set_types(LtMatMul& p, const ir::MatMul& q, bool tf32) noexcept {
  p.compute = CUBLAS_COMPUTE_32F, p.scale = CUDA_R_32F;
  switch (q.dtype) {
    case DType::F32:
      p.type = CUDA_R_32F;
      if (q.precision.tf32 && tf32) p.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
      return true;
    case DType::F64:
      p.type = CUDA_R_64F, p.compute = CUBLAS_COMPUTE_64F, p.scale = CUDA_R_64F;
      return true;
    case DType::F16:
    case DType::BF16:
      p.type = q.dtype == DType::F16 ? CUDA_R_16F : CUDA_R_16BF;
      // Split k only where the partial sums are added in float32.
      if (!q.precision.reduced_accumulation) p.reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
      return true;
    default:
      return false;
  }
}

std::string described(const ir::MatMul& q) {
  return fmt::format("the matrix product of {} x {} and {} x {}{}{}, {}", q.m, q.k, q.k, q.n,
                     q.batch == 1 ? "" : fmt::format(", {} of them", q.batch), q.bias ? ", with bias" : "", name_of(q.dtype));
}

}  // namespace

bool unit_stride(const Matrix& matrix, int64_t rows, int64_t cols) noexcept { return operand(matrix, rows, cols, 1).has_value(); }

std::optional<LtMatMul> for_library(const ir::MatMul& q, bool tf32) noexcept {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  LtMatMul p;
  if (q.precision.deterministic || q.k == 0 || std::max({q.m, q.n, q.k, q.batch}) > kMost || !set_types(p, q, tf32)) return std::nullopt;
  // A row-major c is c^T in column-major order: c^T = b^T a^T, and the bias per column of c is a bias per row there.
  const auto a = operand(q.b, q.k, q.n, q.batch), b = operand(q.a, q.m, q.k, q.batch), d = operand(q.c, q.m, q.n, q.batch);
  if (!a || !b || !d || d->transposed) return std::nullopt;
  if (q.bias && q.bias_stride != 1 && q.n != 1) return std::nullopt;
  p.m = q.n, p.n = q.m, p.k = q.k, p.batch = q.batch;
  p.a = *a, p.b = *b, p.d = *d;
  p.bias_alignment = q.bias ? alignment_of(q.bias) : 0;
  return p;
}

Products::~Products() {
  plans_.clear();
  if (!handle_ || device_.forked() || device_.lost()) return;
  if (const CudaDevice::Current scope(device_, std::nothrow); scope) lt_->cublasLtDestroy(handle_);
}

bool Products::open() {
  if (opened_) return handle_ != nullptr;
  opened_ = true;
  lt_ = library_.get();
  if (!lt_) return false;
  const cublasStatus_t status = lt_->cublasLtCreate(&handle_);
  if (status == CUBLAS_STATUS_SUCCESS) return true;
  library_.refused(status);
  handle_ = nullptr;
  return false;
}

bool Products::available() {
  const std::lock_guard lock(mutex_);
  return open();
}

std::shared_ptr<Products::Plan> Products::plan_of(const LtMatMul& product, const void* bias) {
  if (const auto known = plans_.find(product); known != plans_.end()) return known->second;
  auto plan = std::make_shared<Plan>();
  auto descriptors = std::make_unique<LtDescriptors>(*lt_, product);
  if (bias) descriptors->set_bias(bias);
  if (descriptors->choose(handle_, device_.gpu().major >= 9 ? kWorkspaceOfHopper : kWorkspace)) {
    plan->workspace = descriptors->workspace();
    plan->descriptors = std::move(descriptors);
  }
  if (plans_.size() >= kMostPlans) plans_.clear();
  plans_.emplace(product, plan);
  return plan;
}

bool Products::start(const ir::MatMul& q, CUstream stream, const Workspace& workspace) {
  if (q.batch == 0 || q.m == 0 || q.n == 0) return false;
  const std::optional<LtMatMul> product = for_library(q, device_.gpu().major >= 8);
  if (!product) return false;
  std::shared_ptr<Plan> plan;
  {
    const std::lock_guard lock(mutex_);
    if (!open()) return false;
    plan = plan_of(*product, q.bias);
    if (!plan->descriptors) return false;
  }
  void* const memory = plan->workspace > 0 ? workspace(plan->workspace) : nullptr;
  if (plan->workspace > 0 && !memory) return false;
  if (!stream) return true;
  const std::lock_guard lock(mutex_);
  if (!plan->descriptors) return false;
  if (q.bias) plan->descriptors->set_bias(q.bias);
  const cublasStatus_t status = plan->descriptors->run(handle_, q.b.data, q.a.data, q.c.data, memory, stream);
  if (status == CUBLAS_STATUS_SUCCESS) return true;
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH) {
    // The library offered an algorithm and then rejected it; nothing was enqueued.
    plan->descriptors.reset();
    return false;
  }
  const std::string what = fmt::format("CUDA error: {} when calling `cublasLtMatmul` on {} for {}", gpu::status_name<CublasLt>(status),
                                       device_.device().str(), described(q));
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw OutOfMemoryError(what + ". Use smaller tensors, or free some");
  throw RuntimeError("{}. `use_deterministic_algorithms(True)` takes naru's own kernels", what);
}

}  // namespace naru::backends::cuda
