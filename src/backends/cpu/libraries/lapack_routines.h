// Wrappers of LAPACK routines, each for one matrix of each array (a Job). lapack.cpp lists them in its table.
#pragma once

#include <algorithm>
#include <climits>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>
#include <vector>

#include "ir/lapack.h"

namespace naru::cpu::lapack {

using ir::Lapack;
using Function = void (*)();

// Fortran's calling convention: all arguments by address, string lengths after all others.
template <class... A>
void call(Function f, A... a) {
  reinterpret_cast<void (*)(A...)>(f)(a...);
}

struct Sizes {
  int rows, cols, column;
};

template <class T>
struct Parts {
  using Real = T;
  static constexpr bool kComplex = false;
};
template <class R>
struct Parts<std::complex<R>> {
  using Real = R;
  static constexpr bool kComplex = true;
};
template <class T>
using RealOf = typename Parts<T>::Real;
template <class T>
constexpr bool kComplex = Parts<T>::kComplex;

// One matrix of each array, columns [first, first + columns) of the right-hand side, and the routine's work memory, which is reused from
// matrix to matrix.
template <class T>
struct Job {
  using Real = RealOf<T>;
  const Lapack& op;
  Function function;
  const std::vector<Sizes>& sizes;
  int64_t matrix = 0;
  int first = 0, columns = 0;
  std::vector<T> work{};
  std::vector<Real> reals{};  // more work memory, which complex routines need
  std::vector<int> integers{};

  template <class E>
  E* array(size_t k) const {
    return static_cast<E*>(op.arrays[k].data) + matrix * op.arrays[k].matrix;
  }
  T* at(size_t k) const { return array<T>(k); }
  Real* reals_at(size_t k) const { return array<Real>(k); }
  int* ints(size_t k) const { return array<int>(k); }
  const int* rows(size_t k) const { return &sizes[k].rows; }
  const int* cols(size_t k) const { return &sizes[k].cols; }
  const int* column(size_t k) const { return &sizes[k].column; }
  T* right(size_t k) const { return at(k) + int64_t{first} * sizes[k].column; }
  // Calls f(memory, size), at the first time also with size -1 to query the size that it needs.
  template <class F>
  void with_work(F&& f) {
    if (work.empty()) {
      T wanted = 0;
      const int query = -1;
      f(&wanted, &query);
      work.resize(static_cast<size_t>(std::max(Real{1}, std::ceil(std::real(wanted) * (1 + std::numeric_limits<Real>::epsilon())))));
    }
    const int have = static_cast<int>(work.size());
    f(work.data(), &have);
  }
  const char* triangle() const { return op.upper ? "U" : "L"; }
  const char* transposition() const { return op.transposed ? "T" : "N"; }
  const char* adjoint() const { return !op.transposed ? "N" : kComplex<T> ? "C" : "T"; }
};

constexpr size_t kOne = 1;  // string length of a one-letter argument

// True if array k has no infinity and no NaN. Routines that iterate until convergence might never end with them.
template <class T>
bool is_finite(const Job<T>& j, size_t k, int64_t rows) {
  using Real = RealOf<T>;
  constexpr int64_t kParts = kComplex<T> ? 2 : 1;
  const Real* const a = reinterpret_cast<const Real*>(j.at(k));
  const int64_t cols = *j.cols(k), step = *j.column(k) * kParts;
  int bad = 0;
  for (int64_t c = 0; c < cols; ++c)
    for (int64_t r = 0; r < rows * kParts; ++r) bad |= !(std::abs(a[c * step + r]) <= std::numeric_limits<Real>::max());
  return bad == 0;
}
// LAPACK's error numbers for an invalid argument (matrix, right-hand side), and for no convergence.
constexpr int kBadMatrix = -4, kBadRight = -6, kNotConverged = 1;

// Checks A and B of a least-squares problem; returns the error code, or 0.
template <class T>
int refused(const Job<T>& j) {
  return !is_finite(j, 0, *j.rows(0)) ? kBadMatrix : !is_finite(j, 1, *j.rows(0)) ? kBadRight : 0;
}

// Checks that pivots are rows of the matrix: LAPACK writes where they point, and a device that computes wrongly may have made them. With
// `pairs`, negative pivots stand for blocks of two rows (sytrs). If they are invalid, fills the result with NaN and returns false.
template <class T>
bool pivots_fit(const Job<T>& j, bool pairs) {
  const int n = *j.rows(0);
  const int* const p = j.ints(1);
  bool fit = true;
  for (int i = 0; i < n; ++i) fit &= p[i] != INT_MIN && std::abs(p[i]) >= 1 && std::abs(p[i]) <= n && (pairs || p[i] > 0);
  for (int i = 0; i < n && pairs; ++i)
    if (const int k = j.op.upper ? n - 1 - i : i; p[k] < 0) fit &= ++i < n && p[j.op.upper ? n - 1 - i : i] < 0;
  if (fit) return true;
  for (int c = 0; c < j.columns; ++c)
    std::fill_n(j.right(2) + int64_t{c} * *j.column(2), n, T(std::numeric_limits<RealOf<T>>::quiet_NaN()));
  return false;
}
constexpr int kBadPivots = -5;

template <class T>
int cholesky(Job<T>& j) {
  int info = 0;
  T* const a = j.at(0);
  const int64_t n = *j.rows(0), step = *j.column(0);
  call(j.function, j.triangle(), j.rows(0), a, j.column(0), &info, kOne);
  for (int64_t c = 0; c < n; ++c)
    j.op.upper ? std::fill(a + c * step + c + 1, a + c * step + n, T{0}) : std::fill(a + c * step, a + c * step + c, T{0});
  // Some versions of OpenBLAS do not report a NaN as not positive definite.
  for (int64_t c = 0; c < n && info == 0; ++c)
    if (std::isnan(std::real(a[c * step + c]))) info = static_cast<int>(c) + 1;
  return info;
}

template <class T>
int cholesky_solve(Job<T>& j) {
  int info = 0;
  call(j.function, j.triangle(), j.rows(0), &j.columns, j.at(0), j.column(0), j.right(1), j.column(1), &info, kOne);
  return info;
}

template <class T>
int cholesky_inverse(Job<T>& j) {
  int info = 0;
  T* const a = j.at(0);
  const int64_t n = *j.rows(0), step = *j.column(0);
  call(j.function, j.triangle(), j.rows(0), a, j.column(0), &info, kOne);
  const auto mirrored = [](T x) {
    if constexpr (kComplex<T>)
      return std::conj(x);
    else
      return x;
  };
  for (int64_t c = 0; c < n; ++c)
    for (int64_t r = 0; r < c; ++r) {
      T &above = a[c * step + r], &below = a[r * step + c];
      j.op.upper ? below = mirrored(above) : above = mirrored(below);
    }
  return info;
}

template <class T>
int lu(Job<T>& j) {
  int info = 0;
  call(j.function, j.rows(0), j.cols(0), j.at(0), j.column(0), j.ints(1), &info);
  return info;
}

template <class T>
int lu_solve(Job<T>& j) {
  int info = 0;
  if (!pivots_fit(j, false)) return kBadPivots;
  call(j.function, j.adjoint(), j.rows(0), &j.columns, j.at(0), j.column(0), j.ints(1), j.right(2), j.column(2), &info, kOne);
  return info;
}

template <class T>
int triangular_solve(Job<T>& j) {
  const T one = 1;
  call(j.function, "L", j.triangle(), j.transposition(), j.op.ones ? "U" : "N", j.rows(0), &j.columns, &one, j.at(0), j.column(0),
       j.right(1), j.column(1), kOne, kOne, kOne, kOne);
  return 0;
}

template <class T>
int qr(Job<T>& j) {
  int info = 0;
  j.with_work([&](T* work, const int* size) { call(j.function, j.rows(0), j.cols(0), j.at(0), j.column(0), j.at(1), work, size, &info); });
  return info;
}

template <class T>
int qr_vectors(Job<T>& j) {
  int info = 0;
  j.with_work([&](T* work, const int* size) {
    call(j.function, j.rows(0), j.cols(0), j.rows(1), j.at(0), j.column(0), j.at(1), work, size, &info);
  });
  return info;
}

template <class T>
int qr_product(Job<T>& j) {
  int info = 0;
  j.with_work([&](T* work, const int* size) {
    call(j.function, "L", j.adjoint(), j.rows(2), j.cols(2), j.rows(1), j.at(0), j.column(0), j.at(1), j.at(2), j.column(2), work, size,
         &info, kOne, kOne);
  });
  return info;
}

template <class T>
int svd(Job<T>& j) {
  int info = 0;
  if (!is_finite(j, 0, *j.rows(0))) return kBadMatrix;
  const bool vectors = j.op.vectors;
  const size_t u = vectors ? 2 : 0, vt = vectors ? 3 : 0;
  const char* const wanted = !vectors ? "N" : *j.cols(u) == *j.rows(0) && *j.rows(vt) == *j.cols(0) ? "A" : "S";
  const auto most = static_cast<size_t>(std::max(*j.rows(0), *j.cols(0))), least = static_cast<size_t>(*j.rows(1));
  j.integers.resize(8 * least);
  if (kComplex<T>) j.reals.resize(vectors ? least * std::max(5 * least + 7, 2 * most + 2 * least + 1) : 7 * least);
  j.with_work([&](T* work, const int* size) {
    const auto run = [&](auto... rest) {
      call(j.function, wanted, j.rows(0), j.cols(0), j.at(0), j.column(0), j.reals_at(1), j.at(u), j.column(u), j.at(vt), j.column(vt),
           work, size, rest..., j.integers.data(), &info, kOne);
    };
    if constexpr (kComplex<T>)
      run(j.reals.data());
    else
      run();
  });
  return info;
}

template <class T>
int eigh(Job<T>& j) {
  int info = 0;
  if (!is_finite(j, 0, *j.rows(0))) return kNotConverged;
  // A size below 0 queries the work size.
  const auto run = [&](T* work, const int* size, RealOf<T>* reals, const int* count, int* integers, const int* room) {
    const auto with = [&](auto... rest) {
      call(j.function, j.op.vectors ? "V" : "N", j.triangle(), j.rows(0), j.at(0), j.column(0), j.reals_at(1), work, size, rest...,
           integers, room, &info, kOne, kOne);
    };
    if constexpr (kComplex<T>)
      with(reals, count);
    else
      with();
  };
  if (j.integers.empty()) {
    T wanted = 0;
    RealOf<T> reals = 0;
    int integers = 0;
    const int query = -1;
    run(&wanted, &query, &reals, &query, &integers, &query);
    j.integers.resize(static_cast<size_t>(std::max(1, integers)));
    j.reals.resize(static_cast<size_t>(std::max(RealOf<T>{1}, std::ceil(reals * (1 + std::numeric_limits<RealOf<T>>::epsilon())))));
  }
  const int room = static_cast<int>(j.integers.size()), count = static_cast<int>(j.reals.size());
  j.with_work([&](T* work, const int* size) {
    run(work, size, j.reals.data(), *size < 0 ? size : &count, j.integers.data(), *size < 0 ? size : &room);
  });
  return info;
}

// Expands real eigenvector columns, of which two hold a conjugate pair, to complex columns.
template <class T>
void spread_pairs(Job<T>& j, const T* vectors) {
  const int64_t n = *j.cols(0);
  const auto* const w = j.template array<std::complex<T>>(1);
  auto* out = j.template array<std::complex<T>>(2);
  for (int64_t c = 0; c < n; ++c, out += n) {
    const bool first = w[c].imag() > 0 && c + 1 < n, second = w[c].imag() < 0 && c > 0;
    const T* const re = vectors + (second ? c - 1 : c) * n;
    const T* const im = first || second ? re + n : nullptr;
    for (int64_t r = 0; r < n; ++r) out[r] = {re[r], im ? (second ? -im[r] : im[r]) : T{0}};
  }
}

// Calls f(left vectors, leading dimension, right vectors, leading dimension, work, size). Left vectors are never computed, right ones only
// if op.vectors.
template <class T, class F>
void find_eigenvalues(Job<T>& j, T* vectors, F&& f) {
  const int one = 1;
  const int* const step = j.op.vectors ? j.cols(0) : &one;
  j.with_work([&](T* work, const int* size) { f(vectors, &one, vectors, step, work, size); });
}

template <class T>
int eig(Job<T>& j) {
  int info = 0;
  if (!is_finite(j, 0, *j.rows(0))) return kNotConverged;
  const auto n = static_cast<size_t>(*j.cols(0));
  const char* const wanted = j.op.vectors ? "V" : "N";
  if constexpr (kComplex<T>) {
    T none = 0;
    j.reals.resize(2 * n);
    find_eigenvalues(j, j.op.vectors ? j.at(2) : &none, [&](auto... rest) {
      call(j.function, "N", wanted, j.cols(0), j.at(0), j.column(0), j.at(1), rest..., j.reals.data(), &info, kOne, kOne);
    });
  } else {
    // Real and imaginary parts of the eigenvalues, then the eigenvectors.
    std::vector<T> parts(2 * n + (j.op.vectors ? n * n : 1));
    T* const vectors = parts.data() + 2 * n;
    find_eigenvalues(j, vectors, [&](auto... rest) {
      call(j.function, "N", wanted, j.cols(0), j.at(0), j.column(0), parts.data(), parts.data() + n, rest..., &info, kOne, kOne);
    });
    for (size_t i = 0; i < n; ++i) j.template array<std::complex<T>>(1)[i] = {parts[i], parts[n + i]};
    if (j.op.vectors) spread_pairs(j, vectors);
  }
  return info;
}

template <class T>
int ldl(Job<T>& j) {
  int info = 0;
  j.with_work([&](T* work, const int* size) {
    call(j.function, j.triangle(), j.rows(0), j.at(0), j.column(0), j.ints(1), work, size, &info, kOne);
  });
  return info;
}

template <class T>
int ldl_solve(Job<T>& j) {
  int info = 0;
  if (!pivots_fit(j, true)) return kBadPivots;
  call(j.function, j.triangle(), j.rows(0), &j.columns, j.at(0), j.column(0), j.ints(1), j.right(2), j.column(2), &info, kOne);
  return info;
}

template <class T>
int gels(Job<T>& j) {
  int info = refused(j);
  if (info) return info;
  j.with_work([&](T* work, const int* size) {
    call(j.function, "N", j.rows(0), j.cols(0), j.cols(1), j.at(0), j.column(0), j.at(1), j.column(1), work, size, &info, kOne);
  });
  return info;
}

template <class T>
int gelsy(Job<T>& j) {
  int info = refused(j);
  if (info) return info;
  const auto rcond = static_cast<RealOf<T>>(j.op.rcond);
  j.integers.assign(static_cast<size_t>(*j.cols(0)), 0);
  j.reals.resize(2 * static_cast<size_t>(*j.cols(0)));
  j.with_work([&](T* work, const int* size) {
    const auto run = [&](auto... rest) {
      call(j.function, j.rows(0), j.cols(0), j.cols(1), j.at(0), j.column(0), j.at(1), j.column(1), j.integers.data(), &rcond, j.ints(2),
           work, size, rest..., &info);
    };
    if constexpr (kComplex<T>)
      run(j.reals.data());
    else
      run();
  });
  return info;
}

// The common part of gelss and gelsd; more: arguments after the work memory.
template <class T, class... More>
void by_singular_values(Job<T>& j, const RealOf<T>& rcond, T* work, const int* size, int& info, More... more) {
  call(j.function, j.rows(0), j.cols(0), j.cols(1), j.at(0), j.column(0), j.at(1), j.column(1), j.reals_at(3), &rcond, j.ints(2), work,
       size, more..., &info);
}

template <class T>
int gelss(Job<T>& j) {
  int info = refused(j);
  if (info) return info;
  const auto rcond = static_cast<RealOf<T>>(j.op.rcond);
  j.reals.resize(5 * static_cast<size_t>(std::min(*j.rows(0), *j.cols(0))));
  j.with_work([&](T* work, const int* size) {
    if constexpr (kComplex<T>)
      by_singular_values(j, rcond, work, size, info, j.reals.data());
    else
      by_singular_values(j, rcond, work, size, info);
  });
  return info;
}

template <class T>
int gelsd(Job<T>& j) {
  int info = refused(j);
  if (info) return info;
  const auto rcond = static_cast<RealOf<T>>(j.op.rcond);
  const auto run = [&](T* work, const int* size, RealOf<T>* reals, int* integers) {
    if constexpr (kComplex<T>)
      by_singular_values(j, rcond, work, size, info, reals, integers);
    else
      by_singular_values(j, rcond, work, size, info, integers);
  };
  if (j.integers.empty()) {
    T wanted = 0;
    RealOf<T> reals = 0;
    int integers = 0;
    const int query = -1;
    run(&wanted, &query, &reals, &integers);
    j.integers.resize(static_cast<size_t>(std::max(1, integers)));
    j.reals.resize(static_cast<size_t>(std::max(RealOf<T>{1}, std::ceil(reals * (1 + std::numeric_limits<RealOf<T>>::epsilon())))));
  }
  j.with_work([&](T* work, const int* size) { run(work, size, j.reals.data(), j.integers.data()); });
  return info;
}

}  // namespace naru::cpu::lapack
