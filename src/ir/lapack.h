// The linear algebra instruction (see ir/instruction.h).
#pragma once

#include <cstdint>
#include <vector>

#include "ir/operand.h"

namespace naru::ir {

// A LAPACK routine applied to each of `batch` matrices. Arrays are column-major and are overwritten as LAPACK does; the last one, `info`, has one
// entry per matrix: 0, or LAPACK's error number. For complex matrices, singular values, and eigenvalues of hermitian matrices, are real.
//   Cholesky            a (n, n): its factor, zeros in the other triangle
//   CholeskySolve       factor, b (n, k): solutions
//   CholeskyInverse     a: in, a factor; out, the inverse of the factored matrix
//   Lu                  a (m, n): both factors; pivots (I32, min(m, n))
//   LuSolve             factors, pivots, b
//   TriangularSolve     a, b; reads only the triangle, without the diagonal where that counts as ones
//   Qr, QrVectors       a (m, n), tau: R and reflectors; from those, the columns of Q
//   QrProduct           reflectors, tau, c (m, k): Q c
//   Svd                 a (destroyed), s; with vectors, u and vt: as many columns (rows) as those arrays have
//   Eigh                a: eigenvectors, if requested; w
//   Eig                 a (destroyed), w: eigenvalues; with vectors, v; both are always complex
//   Ldl, LdlSolve       a, pivots; factors, pivots, b
//   Gels .. Gelss       a (destroyed), b (max(m, n), k): solutions, residuals; rank (I32); s
struct Lapack {
  enum class Routine : uint8_t {
    Cholesky,
    CholeskySolve,
    CholeskyInverse,
    Lu,
    LuSolve,
    TriangularSolve,
    Qr,
    QrVectors,
    QrProduct,
    Svd,
    Eigh,
    Eig,
    Ldl,
    LdlSolve,
    Gels,
    Gelsy,
    Gelsd,
    Gelss
  };
  struct Array {
    void* data = nullptr;
    DType dtype = DType::F32;
    bool written = false;
    int64_t rows = 0, cols = 0, column = 0, matrix = 0;  // sizes; steps from one column and one matrix to the next
    bool complex = false;                                // elements are pairs of `dtype`; sizes and steps count pairs
  };
  Routine routine = Routine::Cholesky;
  DType dtype = DType::F32;  // F32 or F64
  bool complex = false;      // matrices are complex; with `hermitian`, treated as hermitian, not symmetric (Ldl, LdlSolve)
  bool hermitian = false;
  int64_t batch = 1;
  std::vector<Array> arrays;
  bool upper = false, ones = false, vectors = true;
  bool transposed = false;  // LuSolve, QrProduct: transposed and conjugated
  double rcond = 0;         // singular values below this fraction of the greatest count as 0

  static constexpr bool kHostOnly = true;
  static constexpr const char* kFamily = "linalg";
  static constexpr const char* kNames[] = {"cholesky",   "cholesky_solve", "cholesky_inverse",
                                           "lu_factor",  "lu_solve",       "solve_triangular",
                                           "geqrf",      "orgqr",          "ormqr",
                                           "svd",        "eigh",           "eig",
                                           "ldl_factor", "ldl_solve",      "gels",
                                           "gelsy",      "gelsd",          "gelss"};
  const char* name() const { return kNames[static_cast<int>(routine)]; }
  template <class F>
  void each_operand(F&& f) {
    for (Array& a : arrays) {
      const int64_t parts = a.complex ? 2 : 1;
      const int64_t sizes[] = {batch, a.rows * parts, a.cols}, strides[] = {a.matrix * parts, 1, a.column * parts};
      if (a.data) f(a.data, OperandUse{"array of a routine of LAPACK", a.written, a.dtype, sizes, strides});
    }
  }
};

}  // namespace naru::ir
