#include "backends/gpu/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include "ir/matrix_product.h"
#include "naru/error.h"

namespace naru::backends::gpu {
namespace {

using Matrix = ir::MatMul::Matrix;

uint32_t alignment_of(const void* p) noexcept {
  constexpr uintptr_t kMost = 256;
  const auto address = reinterpret_cast<uintptr_t>(p) | kMost;
  return static_cast<uint32_t>(address & -address);
}

// A row-major matrix is its own transpose in column-major order.
std::optional<LtMatMul::Matrix> operand(const Matrix& x, int64_t rows, int64_t cols, int64_t batch) noexcept {
  const std::optional<ir::MatrixRows> lying = ir::rows_of(x, rows, cols);
  if (!lying || x.batch_stride < 0) return std::nullopt;
  LtMatMul::Matrix m;
  m.transposed = lying->transposed, m.ld = lying->step;
  m.batch_stride = batch == 1 ? 0 : x.batch_stride;
  m.alignment = alignment_of(x.data);
  return m;
}

bool set_types(LtMatMul& p, const ir::MatMul& q, bool tf32) noexcept {
  switch (q.dtype) {
    case DType::F32:
      p.type = kLtF32, p.tf32 = q.precision.tf32 && tf32;
      return true;
    case DType::F64:
      p.type = kLtF64;
      return true;
    case DType::F16:
    case DType::BF16:
      p.type = q.dtype == DType::F16 ? kLtF16 : kLtBF16, p.reduces_in_type = q.precision.reduced_accumulation;
      return true;
    default:
      return false;
  }
}

std::string described_product(const ir::MatMul& q) {
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

void warn_out_of_workspace(std::atomic<bool>& told, const Device& device, const char* library, const char* what) {
  if (told.exchange(true)) return;
  std::fprintf(
      stderr,
      "naru: warning: %s has no memory left for %s to work in: %s are done by naru's own kernels, which are slower. Free some memory, "
      "or use smaller batches\n",
      device.str().c_str(), library, what);
}

Products::~Products() {
  plans_.clear();
  if (!handle_ || device_.forked() || device_.lost()) return;
  if (const GpuDevice::Current scope(device_, std::nothrow); scope) lt_->Destroy(handle_);
}

bool Products::open() {
  if (opened_) return handle_ != nullptr;
  opened_ = true;
  lt_ = get_();
  if (!lt_) return false;
  const int status = lt_->Create(&handle_);
  if (status == 0) return true;
  refused_(status);
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
  if (descriptors->choose(handle_, most_workspace_)) {
    plan->workspace = descriptors->workspace();
    plan->descriptors = std::move(descriptors);
  }
  if (plans_.size() >= kMostPlans) plans_.clear();
  plans_.emplace(product, plan);
  return plan;
}

bool Products::start(const ir::MatMul& q, StreamHandle stream, const Workspace& workspace) {
  if (q.batch == 0 || q.m == 0 || q.n == 0) return false;
  const std::optional<LtMatMul> product = for_library(q, tf32_);
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
  const int status = plan->descriptors->run(handle_, q.b.data, q.a.data, q.c.data, memory, stream);
  if (status == 0) return true;
  const LtNumbers& n = *lt_->numbers;
  if (status == n.not_supported || status == n.arch_mismatch) {
    // The library offered an algorithm and then rejected it; nothing was enqueued.
    plan->descriptors.reset();
    return false;
  }
  const std::string what = fmt::format("{} error: {} when calling `{}Matmul` on {} for {}", n.language, status_name(n.statuses, status),
                                       n.prefix, device_.device().str(), described_product(q));
  if (status == n.allocation_failed) throw OutOfMemoryError(what + ". Use smaller tensors, or free some");
  throw RuntimeError("{}. `use_deterministic_algorithms(True)` takes naru's own kernels", what);
}

}  // namespace naru::backends::gpu
