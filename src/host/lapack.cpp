// Routines of LAPACK, by OpenBLAS: each matrix on one thread, matrices (and columns of right sides) spread over the pool.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cmath>
#include <limits>
#include <vector>

#include "host/instructions.h"
#include "host/layout.h"
#include "host/library_call.h"
#include "host/openblas.h"
#include "naru/error.h"

namespace naru::host {
namespace {

using ir::Lapack;
using Function = void (*)();

// Fortran's convention: all by address, lengths of texts behind all others.
template <class... A>
void call(Function f, A... a) {
  reinterpret_cast<void (*)(A...)>(f)(a...);
}

struct Sizes {
  int rows, cols, column;
};

// One matrix of each array, columns [first, first + columns) of the right side, and room for the routine to work in, kept from matrix to matrix.
template <class T>
struct Job {
  const Lapack& op;
  Function function;
  const std::vector<Sizes>& sizes;
  int64_t matrix = 0;
  int first = 0, columns = 0;
  std::vector<T> work{};
  std::vector<int> integers{};

  T* at(size_t k) const { return static_cast<T*>(op.arrays[k].data) + matrix * op.arrays[k].matrix; }
  int* ints(size_t k) const { return static_cast<int*>(op.arrays[k].data) + matrix * op.arrays[k].matrix; }
  const int* rows(size_t k) const { return &sizes[k].rows; }
  const int* cols(size_t k) const { return &sizes[k].cols; }
  const int* column(size_t k) const { return &sizes[k].column; }
  T* right(size_t k) const { return at(k) + int64_t{first} * sizes[k].column; }
  // f(memory, how much): asked first how much it wants.
  template <class F>
  void with_work(F&& f) {
    if (work.empty()) {
      T wanted = 0;
      const int query = -1;
      f(&wanted, &query);
      work.resize(static_cast<size_t>(std::max(T{1}, std::ceil(wanted * (1 + std::numeric_limits<T>::epsilon())))));
    }
    const int have = static_cast<int>(work.size());
    f(work.data(), &have);
  }
  const char* triangle() const { return op.upper ? "U" : "L"; }
  const char* transposition() const { return op.transposed ? "T" : "N"; }
};

constexpr size_t kOne = 1;  // the length of such a text

// Iterations that wait for something to become small may wait for ever for what is infinite or no number: array k must hold neither.
template <class T>
bool is_finite(const Job<T>& j, size_t k, int64_t rows) {
  const T* const a = j.at(k);
  const int64_t cols = *j.cols(k), step = *j.column(k);
  int bad = 0;
  for (int64_t c = 0; c < cols; ++c)
    for (int64_t r = 0; r < rows; ++r) bad |= !(std::abs(a[c * step + r]) <= std::numeric_limits<T>::max());
  return bad == 0;
}
// LAPACK's number for an argument that it does not take.
constexpr int kBadMatrix = -4, kBadRight = -6, kNotConverged = 1;

// Of A and B of a problem of least squares.
template <class T>
int refused(const Job<T>& j) {
  return !is_finite(j, 0, *j.rows(0)) ? kBadMatrix : !is_finite(j, 1, *j.rows(0)) ? kBadRight : 0;
}

// Rows that are exchanged must be rows of the matrix: LAPACK writes where pivots say, and a device that computes wrongly may have made them. With
// `pairs`, negative ones stand for blocks of two rows (sytrs). Where they are none the result is NaN.
template <class T>
bool pivots_fit(const Job<T>& j, bool pairs) {
  const int n = *j.rows(0);
  const int* const p = j.ints(1);
  bool fit = true;
  for (int i = 0; i < n; ++i) fit &= p[i] != INT_MIN && std::abs(p[i]) >= 1 && std::abs(p[i]) <= n && (pairs || p[i] > 0);
  for (int i = 0; i < n && pairs; ++i)
    if (const int k = j.op.upper ? n - 1 - i : i; p[k] < 0) fit &= ++i < n && p[j.op.upper ? n - 1 - i : i] < 0;
  if (fit) return true;
  for (int c = 0; c < j.columns; ++c) std::fill_n(j.right(2) + int64_t{c} * *j.column(2), n, std::numeric_limits<T>::quiet_NaN());
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
  // Not every OpenBLAS takes NaN for a number that is not positive.
  for (int64_t c = 0; c < n && info == 0; ++c)
    if (std::isnan(a[c * step + c])) info = static_cast<int>(c) + 1;
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
  for (int64_t c = 0; c < n; ++c)
    for (int64_t r = 0; r < c; ++r) j.op.upper ? a[r * step + c] = a[c * step + r] : a[c * step + r] = a[r * step + c];
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
  call(j.function, j.transposition(), j.rows(0), &j.columns, j.at(0), j.column(0), j.ints(1), j.right(2), j.column(2), &info, kOne);
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
    call(j.function, "L", j.transposition(), j.rows(2), j.cols(2), j.rows(1), j.at(0), j.column(0), j.at(1), j.at(2), j.column(2), work,
         size, &info, kOne, kOne);
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
  j.integers.resize(static_cast<size_t>(8 * *j.rows(1)));
  j.with_work([&](T* work, const int* size) {
    call(j.function, wanted, j.rows(0), j.cols(0), j.at(0), j.column(0), j.at(1), j.at(u), j.column(u), j.at(vt), j.column(vt), work, size,
         j.integers.data(), &info, kOne);
  });
  return info;
}

template <class T>
int eigh(Job<T>& j) {
  int info = 0;
  if (!is_finite(j, 0, *j.rows(0))) return kNotConverged;
  const auto run = [&](T* work, const int* size, int* integers, const int* count) {
    call(j.function, j.op.vectors ? "V" : "N", j.triangle(), j.rows(0), j.at(0), j.column(0), j.at(1), work, size, integers, count, &info,
         kOne, kOne);
  };
  if (j.integers.empty()) {
    T wanted = 0;
    int integers = 0;
    const int query = -1;
    run(&wanted, &query, &integers, &query);
    j.integers.resize(static_cast<size_t>(std::max(1, integers)));
  }
  const int count = static_cast<int>(j.integers.size());
  j.with_work([&](T* work, const int* size) { run(work, size, j.integers.data(), *size < 0 ? size : &count); });
  return info;
}

// Columns of real and imaginary parts, of which pairs of conjugates share two columns of reals, as complex ones.
template <class T>
void spread_pairs(Job<T>& j, const T* vectors) {
  const int64_t n = *j.cols(0);
  const T* const w = j.at(1);
  T* out = j.at(2);
  for (int64_t c = 0; c < n; ++c, out += 2 * n) {
    const bool first = w[2 * c + 1] > 0 && c + 1 < n, second = w[2 * c + 1] < 0 && c > 0;
    const T* const re = vectors + (second ? c - 1 : c) * n;
    const T* const im = first || second ? re + n : nullptr;
    for (int64_t r = 0; r < n; ++r) out[2 * r] = re[r], out[2 * r + 1] = im ? (second ? -im[r] : im[r]) : T{0};
  }
}

template <class T>
int eig(Job<T>& j) {
  int info = 0;
  if (!is_finite(j, 0, *j.rows(0))) return kNotConverged;
  const auto n = static_cast<size_t>(*j.cols(0));
  const int one = 1;
  // Real and imaginary parts of the values, then the vectors.
  std::vector<T> parts(2 * n + (j.op.vectors ? n * n : 1));
  T* const vectors = parts.data() + 2 * n;
  j.with_work([&](T* work, const int* size) {
    call(j.function, "N", j.op.vectors ? "V" : "N", j.cols(0), j.at(0), j.column(0), parts.data(), parts.data() + n, vectors, &one, vectors,
         j.op.vectors ? j.cols(0) : &one, work, size, &info, kOne, kOne);
  });
  for (size_t i = 0; i < n; ++i) j.at(1)[2 * i] = parts[i], j.at(1)[2 * i + 1] = parts[n + i];
  if (j.op.vectors) spread_pairs(j, vectors);
  return info;
}

template <class T>
int eig_complex(Job<T>& j) {
  int info = 0;
  if (!is_finite(j, 0, *j.rows(0))) return kNotConverged;
  const int one = 1, *const n = j.cols(0);
  std::vector<T> spare(2 * static_cast<size_t>(*n) + 2);
  T* const vectors = j.op.vectors ? j.at(2) : spare.data();
  const auto run = [&](T* work, const int* size) {
    call(j.function, "N", j.op.vectors ? "V" : "N", n, j.at(0), n, j.at(1), vectors, &one, vectors, j.op.vectors ? n : &one, work, size,
         spare.data(), &info, kOne, kOne);
  };
  if (j.work.empty()) {
    T wanted[2] = {};
    const int query = -1;
    run(wanted, &query);
    j.work.resize(2 * static_cast<size_t>(std::max(T{2} * static_cast<T>(*n), wanted[0] + 1)));
  }
  const int have = static_cast<int>(j.work.size() / 2);
  run(j.work.data(), &have);
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
  const T rcond = static_cast<T>(j.op.rcond);
  j.integers.assign(static_cast<size_t>(*j.cols(0)), 0);
  j.with_work([&](T* work, const int* size) {
    call(j.function, j.rows(0), j.cols(0), j.cols(1), j.at(0), j.column(0), j.at(1), j.column(1), j.integers.data(), &rcond, j.ints(2),
         work, size, &info);
  });
  return info;
}

template <class T>
int gelss(Job<T>& j) {
  int info = refused(j);
  if (info) return info;
  const T rcond = static_cast<T>(j.op.rcond);
  j.with_work([&](T* work, const int* size) {
    call(j.function, j.rows(0), j.cols(0), j.cols(1), j.at(0), j.column(0), j.at(1), j.column(1), j.at(3), &rcond, j.ints(2), work, size,
         &info);
  });
  return info;
}

template <class T>
int gelsd(Job<T>& j) {
  int info = refused(j);
  if (info) return info;
  const T rcond = static_cast<T>(j.op.rcond);
  const auto run = [&](T* work, const int* size, int* integers) {
    call(j.function, j.rows(0), j.cols(0), j.cols(1), j.at(0), j.column(0), j.at(1), j.column(1), j.at(3), &rcond, j.ints(2), work, size,
         integers, &info);
  };
  if (j.integers.empty()) {
    T wanted = 0;
    int integers = 0;
    const int query = -1;
    run(&wanted, &query, &integers);
    j.integers.resize(static_cast<size_t>(std::max(1, integers)));
  }
  j.with_work([&](T* work, const int* size) { run(work, size, j.integers.data()); });
  return info;
}

// In the order of Lapack::Routine.
struct Row {
  const char* function;  // without its type's letter
  int (*f32)(Job<float>&);
  int (*f64)(Job<double>&);
  double cost;           // nanoseconds for each of rows * columns * the less of both
  int right = -1;        // the array whose columns are solved for one by one
  bool complex = false;  // the routine for complex numbers
};
#define NARU_BOTH(f) f<float>, f<double>
constexpr Row kRows[] = {{"potrf", NARU_BOTH(cholesky), 0.1},
                         {"potrs", NARU_BOTH(cholesky_solve), 0, 1},
                         {"potri", NARU_BOTH(cholesky_inverse), 0.2},
                         {"getrf", NARU_BOTH(lu), 0.1},
                         {"getrs", NARU_BOTH(lu_solve), 0, 2},
                         {"trsm", NARU_BOTH(triangular_solve), 0, 1},
                         {"geqrf", NARU_BOTH(qr), 0.3},
                         {"orgqr", NARU_BOTH(qr_vectors), 0.3},
                         {"ormqr", NARU_BOTH(qr_product), 0.3},
                         {"gesdd", NARU_BOTH(svd), 3},
                         {"syevd", NARU_BOTH(eigh), 2},
                         {"geev", NARU_BOTH(eig), 20},
                         {"geev", NARU_BOTH(eig_complex), 40, -1, true},
                         {"sytrf", NARU_BOTH(ldl), 0.2},
                         {"sytrs", NARU_BOTH(ldl_solve), 0, 2},
                         {"gels", NARU_BOTH(gels), 0.5},
                         {"gelsy", NARU_BOTH(gelsy), 1},
                         {"gelsd", NARU_BOTH(gelsd), 3},
                         {"gelss", NARU_BOTH(gelss), 3}};
#undef NARU_BOTH
static_assert(std::size(kRows) == std::size(Lapack::kNames));

constexpr int kColumns =
    64;  // of a right side that one thread takes: what each element is computed with must not depend on how many there are

int narrow(int64_t size, const Lapack& op) {
  if (size > INT_MAX)
    throw RuntimeError("linalg.{}: wanted sizes below 2^31 (LAPACK counts in 32 bits), got a matrix with a side of {}", op.name(), size);
  return static_cast<int>(size);
}

double nanoseconds(const Row& row, const std::vector<Sizes>& sizes, int64_t batch) {
  const double m = sizes[0].rows, n = sizes[0].cols;
  double each = 1000 + row.cost * m * n * std::min(m, n);
  if (row.right >= 0) each += 0.2 * m * m * sizes[static_cast<size_t>(row.right)].cols;
  return each * static_cast<double>(batch);
}

template <class T>
void run_typed(const Lapack& op, const Row& row, Function function, const std::vector<Sizes>& sizes) {
  const Lapack::Array& info = op.arrays.back();
  const int all = row.right < 0 ? 0 : sizes[static_cast<size_t>(row.right)].cols;
  const int64_t pieces = row.right < 0 ? 1 : (all + kColumns - 1) / kColumns;
  split(op.batch * pieces, nanoseconds(row, sizes, op.batch), 1, [&](int64_t begin, int64_t end) {
    Job<T> job{op, function, sizes};
    for (int64_t i = begin; i < end; ++i) {
      job.matrix = i / pieces;
      job.first = static_cast<int>(i % pieces) * kColumns;
      job.columns = std::min(kColumns, all - job.first);
      int status;
      if constexpr (std::is_same_v<T, float>)
        status = row.f32(job);
      else
        status = row.f64(job);
      if (job.first == 0) static_cast<int*>(info.data)[job.matrix * info.matrix] = status;
    }
  });
}

}  // namespace

void run(const Lapack& op) {
  const auto number = static_cast<size_t>(op.routine);
  const Row& row = kRows[number];
  std::vector<Sizes> sizes;
  bool empty = op.batch == 0;
  for (const Lapack::Array& a : op.arrays) {
    sizes.push_back({narrow(a.rows, op), narrow(a.cols, op), narrow(std::max<int64_t>(a.column, 1), op)});
    empty |= a.rows == 0 || a.cols == 0;
  }
  const Lapack::Array& info = op.arrays.back();
  if (empty) {
    for (int64_t i = 0; i < op.batch; ++i) static_cast<int*>(info.data)[i * info.matrix] = 0;
    return;
  }
  const std::string name =
      fmt::format("{}{}_", row.complex ? (op.dtype == DType::F32 ? 'c' : 'z') : (op.dtype == DType::F32 ? 's' : 'd'), row.function);
  const auto function = reinterpret_cast<Function>(openblas_function(name.c_str()));
  if (!function)
    throw RuntimeError(
        "Calling torch.linalg.{} on a CPU tensor requires LAPACK: {} (install the wheel scipy-openblas32 or Debian's libopenblas0, or name "
        "a "
        "library in NARU_OPENBLAS)",
        op.name(), openblas_name().empty() ? "no OpenBLAS was found" : fmt::format("{} has no {}", openblas_name(), name));
  static constinit std::atomic<bool> known[std::size(kRows)]{};
  const LibraryCall scope(known[number]);
  op.dtype == DType::F32 ? run_typed<float>(op, row, function, sizes) : run_typed<double>(op, row, function, sizes);
}

}  // namespace naru::host
