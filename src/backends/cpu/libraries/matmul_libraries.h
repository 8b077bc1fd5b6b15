// Libraries for matrix products, opened at run time: oneDNN and OpenBLAS.
#pragma once

#include <cstdint>
#include <string>

namespace naru::cpu {

// Row-major C = A B + beta C. transposed: the operand is stored as its transpose. Leading dimensions are in elements. Runs on the calling
// thread only.
template <class T>
using Gemm = void (*)(bool transposed_a, bool transposed_b, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b,
                      int64_t ldb, T beta, T* c, int64_t ldc);
// y = A x + beta y, where A has `rows` rows and `cols` columns.
template <class T>
using Gemv = void (*)(bool transposed, int64_t rows, int64_t cols, const T* a, int64_t lda, const T* x, int64_t incx, T beta, T* y,
                      int64_t incy);

// C = A B, where the elements of A and B are bfloat16. False, with nothing done, in a process that is ending.
using BfloatGemm = bool (*)(bool transposed_a, bool transposed_b, int64_t m, int64_t n, int64_t k, const void* a, int64_t lda,
                            const void* b, int64_t ldb, float* c, int64_t ldc);

// A null function: no library has it.
struct Products {
  Gemm<float> big_sgemm = nullptr;    // oneDNN
  Gemm<float> small_sgemm = nullptr;  // OpenBLAS
  Gemm<double> dgemm = nullptr;
  BfloatGemm bfloat_gemm = nullptr;  // oneDNN, where the processor multiplies bfloat16 (AVX512-BF16, AMX)
  Gemv<float> sgemv = nullptr;
  Gemv<double> dgemv = nullptr;
  bool convolutions = false;  // oneDNN has convolutions (backends/cpu/libraries/onednn_convolution.h)
  std::string names;          // "oneDNN 2.6.3, OpenBLAS 0.3.34 (SkylakeX)"
};
// Opens the libraries at the first call.
const Products& products();

}  // namespace naru::cpu
