#include "backends/cpu/libraries/matmul_libraries.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/cpu/exec/execute.h"
#include "backends/cpu/exec/simd.h"
#include "backends/cpu/gemm/builtin_gemm.h"
#include "backends/cpu/libraries/library_call.h"
#include "backends/cpu/libraries/onednn.h"
#include "backends/cpu/libraries/onednn_primitives.h"
#include "backends/cpu/libraries/openblas.h"
#include "naru/error.h"

namespace naru::cpu {
namespace {

// ---- without a library, when the process ends: beta is 0 or 1
// --------------------------------------------------------------------------------------------------------------------------

template <class T>
void own_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T beta, T* c,
              int64_t ldc) {
  own_product(OwnMatMul<T>{.m = m,
                           .n = n,
                           .k = k,
                           .a = a,
                           .a_row = ta ? 1 : lda,
                           .a_col = ta ? lda : 1,
                           .b = b,
                           .b_row = tb ? 1 : ldb,
                           .b_col = tb ? ldb : 1,
                           .c = c,
                           .c_row = ldc,
                           .add = beta != T(0)});
}
template <class T>
void own_gemv(bool t, int64_t rows, int64_t cols, const T* a, int64_t lda, const T* x, int64_t incx, T beta, T* y, int64_t incy) {
  own_product(OwnMatMul<T>{.m = rows,
                           .n = 1,
                           .k = cols,
                           .a = a,
                           .a_row = t ? 1 : lda,
                           .a_col = t ? lda : 1,
                           .b = x,
                           .b_row = incx,
                           .b_col = 1,
                           .c = y,
                           .c_row = incy,
                           .add = beta != T(0)});
}

// ---- OpenBLAS
// --------------------------------------------------------------------------------------------------------------------------

enum : int { kRowMajor = 101, kNoTrans = 111, kTrans = 112 };
using CblasSgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
using CblasDgemm = void (*)(int, int, int, int, int, int, double, const double*, int, const double*, int, double, double*, int);
using CblasSgemv = void (*)(int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
using CblasDgemv = void (*)(int, int, int, int, double, const double*, int, const double*, int, double, double*, int);

CblasSgemm cblas_sgemm;
CblasDgemm cblas_dgemm;
CblasSgemv cblas_sgemv;
CblasDgemv cblas_dgemv;

int as_int(int64_t v) { return static_cast<int>(v); }
int order(bool transposed) { return transposed ? kTrans : kNoTrans; }

void openblas_sgemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, float beta,
                    float* c, int64_t ldc) {
  static constinit std::atomic<bool> known{false};
  const LibraryCall call(known, LibraryCall::OrNone());
  if (!call) [[unlikely]]
    return own_gemm(ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc);
  cblas_sgemm(kRowMajor, order(ta), order(tb), as_int(m), as_int(n), as_int(k), 1, a, as_int(lda), b, as_int(ldb), beta, c, as_int(ldc));
}
void openblas_dgemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b, int64_t ldb,
                    double beta, double* c, int64_t ldc) {
  static constinit std::atomic<bool> known{false};
  const LibraryCall call(known, LibraryCall::OrNone());
  if (!call) [[unlikely]]
    return own_gemm(ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc);
  cblas_dgemm(kRowMajor, order(ta), order(tb), as_int(m), as_int(n), as_int(k), 1, a, as_int(lda), b, as_int(ldb), beta, c, as_int(ldc));
}
// CBLAS's rows and columns are those of the matrix as stored.
void openblas_sgemv(bool t, int64_t rows, int64_t cols, const float* a, int64_t lda, const float* x, int64_t incx, float beta, float* y,
                    int64_t incy) {
  static constinit std::atomic<bool> known{false};
  const LibraryCall call(known, LibraryCall::OrNone());
  if (!call) [[unlikely]]
    return own_gemv(t, rows, cols, a, lda, x, incx, beta, y, incy);
  cblas_sgemv(kRowMajor, order(t), as_int(t ? cols : rows), as_int(t ? rows : cols), 1, a, as_int(lda), x, as_int(incx), beta, y,
              as_int(incy));
}
void openblas_dgemv(bool t, int64_t rows, int64_t cols, const double* a, int64_t lda, const double* x, int64_t incx, double beta, double* y,
                    int64_t incy) {
  static constinit std::atomic<bool> known{false};
  const LibraryCall call(known, LibraryCall::OrNone());
  if (!call) [[unlikely]]
    return own_gemv(t, rows, cols, a, lda, x, incx, beta, y, incy);
  cblas_dgemv(kRowMajor, order(t), as_int(t ? cols : rows), as_int(t ? rows : cols), 1, a, as_int(lda), x, as_int(incx), beta, y,
              as_int(incy));
}

bool open_openblas(Products& p) {
  const auto find = [](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(openblas_function(name));
    return function != nullptr;
  };
  if (!find(cblas_sgemm, "cblas_sgemm") || !find(cblas_dgemm, "cblas_dgemm") || !find(cblas_sgemv, "cblas_sgemv") ||
      !find(cblas_dgemv, "cblas_dgemv"))
    return false;
  p.small_sgemm = openblas_sgemm, p.dgemm = openblas_dgemm, p.sgemv = openblas_sgemv, p.dgemv = openblas_dgemv;
  p.names += (p.names.empty() ? "" : ", ") + openblas_name();
  return true;
}

// ---- oneDNN
// ----------------------------------------------------------------------------------------------------------------------------

using DnnlSgemm = int (*)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t, float, float*,
                          int64_t);
DnnlSgemm dnnl_sgemm;

// The process may exit while a thread is here, even during its first product.
int call_sgemm(char ta, char tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, float beta,
               float* c, int64_t ldc) {
  const OneOpenMpThread one;
  static constinit std::atomic<bool> known{false};
  const LibraryCall call(known, LibraryCall::OrNone());
  if (!call) [[unlikely]] {
    own_gemm(ta == 'T', tb == 'T', m, n, k, a, lda, b, ldb, beta, c, ldc);
    return 0;
  }
  return dnnl_sgemm(ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
}

void onednn_sgemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, float beta,
                  float* c, int64_t ldc) {
  if (const int status = call_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, a, lda, b, ldb, beta, c, ldc); status != 0)
    throw RuntimeError("matmul: oneDNN failed with status {} for m = {}, n = {}, k = {}", status, m, n, k);
}

// Checks that it computes at all. It does not if the symbols of another version are used.
bool computes() {
  const float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8};
  float c[4] = {};
  return call_sgemm('N', 'N', 2, 2, 2, a, 2, b, 2, 0, c, 2) == 0 && c[0] == 19 && c[3] == 50;
}

// The library's own product of bfloat16, which its header does not declare.
using DnnlBfloatGemm = int (*)(char, char, int64_t, int64_t, int64_t, float, const void*, int64_t, const void*, int64_t, float, float*,
                               int64_t);
DnnlBfloatGemm dnnl_bfloat_gemm;

// The status of the library, or none if the process is ending: also the first product, which tries it, may be under way then.
std::optional<int> call_bfloat_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const void* a, int64_t lda, const void* b,
                                    int64_t ldb, float* c, int64_t ldc) {
  const OneOpenMpThread one;
  static constinit std::atomic<bool> known{false};
  const LibraryCall call(known, LibraryCall::OrNone());
  if (!call) [[unlikely]]
    return {};
  return dnnl_bfloat_gemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1, a, lda, b, ldb, 0, c, ldc);
}

bool onednn_bfloat_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const void* a, int64_t lda, const void* b, int64_t ldb, float* c,
                        int64_t ldc) {
  const std::optional<int> status = call_bfloat_gemm(ta, tb, m, n, k, a, lda, b, ldb, c, ldc);
  if (status && *status != 0)
    throw RuntimeError("matmul: oneDNN failed with status {} for bfloat16, m = {}, n = {}, k = {}", *status, m, n, k);
  return status.has_value();
}

bool multiplies_bfloat() {
#if defined(__x86_64__)
  return wide_level() == 2 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

// (1, 2; 3, 4) times (5, 6; 7, 8).
bool computes_bfloat() {
  const uint16_t a[4] = {0x3f80, 0x4000, 0x4040, 0x4080}, b[4] = {0x40a0, 0x40c0, 0x40e0, 0x4100};
  float c[4] = {};
  return call_bfloat_gemm(false, false, 2, 2, 2, a, 2, b, 2, c, 2) == 0 && c[0] == 19 && c[1] == 22 && c[2] == 43 && c[3] == 50;
}

bool open_onednn(Products& p) {
  dnnl_sgemm = reinterpret_cast<DnnlSgemm>(onednn_function("dnnl_sgemm"));
  if (!dnnl_sgemm || !computes()) return false;
  p.big_sgemm = onednn_sgemm;
  dnnl_bfloat_gemm = reinterpret_cast<DnnlBfloatGemm>(onednn_function("dnnl_gemm_bf16bf16f32"));
  if (dnnl_bfloat_gemm && multiplies_bfloat() && computes_bfloat()) p.bfloat_gemm = onednn_bfloat_gemm;
  p.names = onednn_name();
  p.convolutions = dnnl::available();
  return true;
}

Products open(const std::string& choice) {
  Products p;
  if (choice != "own" && choice != "openblas") open_onednn(p);
  if (choice != "own" && choice != "dnnl") open_openblas(p);
  // Fall back to the other library for missing functions.
  if (!p.small_sgemm) p.small_sgemm = p.big_sgemm;
  if (p.names.empty()) p.names = "own kernels";
  return p;
}

std::atomic<const Products*> chosen{nullptr};

}  // namespace

const Products& products() {
  if (const Products* p = chosen.load(std::memory_order_acquire)) return *p;
  const char* choice = std::getenv("NARU_MATMUL");
  set_matmul_libraries(choice ? choice : "");
  return *chosen.load(std::memory_order_acquire);
}

void set_matmul_libraries(const std::string& choice) {
  if (choice != "" && choice != "own" && choice != "dnnl" && choice != "openblas")
    throw RuntimeError("NARU_MATMUL: wanted own, dnnl or openblas, got '{}'", choice);
  static std::mutex mutex;
  // Never freed: another thread may be using one.
  static auto* const all = new std::vector<std::unique_ptr<Products>>;
  const std::lock_guard lock(mutex);
  all->push_back(std::make_unique<Products>(open(choice)));
  chosen.store(all->back().get(), std::memory_order_release);
}

std::string matmul_libraries() { return products().names; }

}  // namespace naru::cpu
