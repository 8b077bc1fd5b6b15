#include "backends/cuda/cublaslt.h"

#include <algorithm>

#include "naru/error.h"

namespace naru::backends::cuda {
namespace {

void check(cublasStatus_t status, const char* function) {
  if (status != CUBLAS_STATUS_SUCCESS) throw RuntimeError("CUDA error: {} when calling `{}`", gpu::status_name<CublasLt>(status), function);
}

template <class T>
std::unique_ptr<T, cublasStatus_t (*)(T*)> owned(T* object, cublasStatus_t (*destroy)(T*)) {
  return {object, destroy};
}

}  // namespace

template <class T, class V>
void LtDescriptors::set(cublasStatus_t (*function)(T*, int, const void*, size_t), T* object, int attribute, V value) const {
  if (const cublasStatus_t status = function(object, attribute, &value, sizeof value); status != CUBLAS_STATUS_SUCCESS)
    throw RuntimeError("CUDA error: {} when setting attribute {} of a product for cuBLASLt", gpu::status_name<CublasLt>(status), attribute);
}

LtDescriptors::Owned<LtLayoutTag> LtDescriptors::layout(uint64_t rows, uint64_t cols, const LtMatMul::Matrix& matrix) const {
  if (matrix.transposed) std::swap(rows, cols);
  cublasLtMatrixLayout_t made = nullptr;
  check(lt_.cublasLtMatrixLayoutCreate(&made, product_.type, rows, cols, matrix.ld), "cublasLtMatrixLayoutCreate");
  auto layout = owned(made, lt_.cublasLtMatrixLayoutDestroy);
  if (product_.batch != 1) {
    set(lt_.cublasLtMatrixLayoutSetAttribute, made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(product_.batch));
    set(lt_.cublasLtMatrixLayoutSetAttribute, made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.batch_stride);
  }
  return layout;
}

LtDescriptors::LtDescriptors(const CublasLt& lt, const LtMatMul& p)
    : lt_(lt),
      product_(p),
      operation_(nullptr, lt.cublasLtMatmulDescDestroy),
      a_(nullptr, nullptr),
      b_(nullptr, nullptr),
      d_(nullptr, nullptr) {
  cublasLtMatmulDesc_t made = nullptr;
  check(lt.cublasLtMatmulDescCreate(&made, p.compute, p.scale), "cublasLtMatmulDescCreate");
  operation_.reset(made);
  const auto operation = [&](int attribute, int32_t value) { set(lt.cublasLtMatmulDescSetAttribute, made, attribute, value); };
  operation(CUBLASLT_MATMUL_DESC_TRANSA, p.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  operation(CUBLASLT_MATMUL_DESC_TRANSB, p.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (p.bias_alignment) operation(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  const auto u = [](int64_t n) { return static_cast<uint64_t>(n); };
  a_ = layout(u(p.m), u(p.k), p.a), b_ = layout(u(p.k), u(p.n), p.b), d_ = layout(u(p.m), u(p.n), p.d);
}

void LtDescriptors::set_bias(const void* bias) {
  set(lt_.cublasLtMatmulDescSetAttribute, operation_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
}

bool LtDescriptors::choose(cublasLtHandle_t handle, size_t workspace) {
  cublasLtMatmulPreference_t made = nullptr;
  check(lt_.cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
  const auto preference = owned(made, lt_.cublasLtMatmulPreferenceDestroy);
  const auto prefer = [&](int attribute, auto value) { set(lt_.cublasLtMatmulPreferenceSetAttribute, made, attribute, value); };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{workspace});
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, product_.reductions);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product_.a.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product_.b.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product_.d.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, product_.d.alignment);
  // Ordered by expected time; some may prove unusable.
  cublasLtMatmulHeuristicResult_t found[4] = {};
  int count = 0;
  const cublasStatus_t status =
      lt_.cublasLtMatmulAlgoGetHeuristic(handle, operation_.get(), a_.get(), b_.get(), d_.get(), d_.get(), made, 4, found, &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE || status == CUBLAS_STATUS_ARCH_MISMATCH) return false;
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  const auto end = found + std::clamp(count, 0, 4);
  const auto best =
      std::find_if(found, end, [&](const auto& r) { return r.state == CUBLAS_STATUS_SUCCESS && r.workspaceSize <= workspace; });
  if (best == end) return false;
  chosen_ = *best;
  return true;
}

cublasStatus_t LtDescriptors::run(cublasLtHandle_t handle, const void* a, const void* b, void* d, void* workspace, CUstream stream) const {
  const float one = 1, zero = 0;
  const double one64 = 1, zero64 = 0;
  const bool wide = product_.scale == CUDA_R_64F;
  const void *const alpha = wide ? static_cast<const void*>(&one64) : &one, *const beta = wide ? static_cast<const void*>(&zero64) : &zero;
  // With beta = 0, the contents of C = D are not read.
  return lt_.cublasLtMatmul(handle, operation_.get(), alpha, a, a_.get(), b, b_.get(), beta, d, d_.get(), d, d_.get(), &chosen_.algo,
                            workspace, chosen_.workspaceSize, stream);
}

}  // namespace naru::backends::cuda
