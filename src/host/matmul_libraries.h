// The libraries that compute matrix products, opened at run time: oneDNN and OpenBLAS.
#pragma once

#include <cstdint>
#include <string>

namespace naru::host {

// Row-major, C = A B + beta C. transposed: the operand is stored with its rows and columns exchanged. Leading
// dimensions in elements. Run on the calling thread alone.
template <class T>
using Gemm = void (*)(bool transposed_a, bool transposed_b, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b,
                      int64_t ldb, T beta, T* c, int64_t ldc);
// y = A x + beta y, A of `rows` by `cols`.
template <class T>
using Gemv = void (*)(bool transposed, int64_t rows, int64_t cols, const T* a, int64_t lda, const T* x, int64_t incx, T beta, T* y,
                      int64_t incy);

// Null where no library gives the function.
struct Products {
  Gemm<float> big_sgemm = nullptr;    // oneDNN
  Gemm<float> small_sgemm = nullptr;  // OpenBLAS
  Gemm<double> dgemm = nullptr;
  Gemv<float> sgemv = nullptr;
  Gemv<double> dgemv = nullptr;
  bool convolutions = false;  // oneDNN's (host/onednn_convolution.h)
  std::string names;          // "oneDNN 2.6.3, OpenBLAS 0.3.34 (SkylakeX)"
};
// Opened at the first call.
const Products& products();

}  // namespace naru::host
