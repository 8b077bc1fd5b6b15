// LAPACK routines by OpenBLAS. One thread computes each matrix; matrices (and columns of right-hand sides) are spread over the pool.
#include <fmt/format.h>

#include <atomic>

#include "backends/cpu/exec/instructions.h"
#include "backends/cpu/exec/layout.h"
#include "backends/cpu/libraries/lapack_routines.h"
#include "backends/cpu/libraries/library_call.h"
#include "backends/cpu/libraries/openblas.h"
#include "naru/error.h"

namespace naru::cpu {
namespace {

using namespace lapack;

// In the order of Lapack::Routine.
struct Row {
  const char* function;  // without the type letter
  int (*f32)(Job<float>&);
  int (*f64)(Job<double>&);
  int (*c64)(Job<std::complex<float>>&);
  int (*c128)(Job<std::complex<double>>&);
  double cost;                    // nanoseconds per rows * columns * min(rows, columns)
  int right = -1;                 // array whose columns are solved independently
  const char* complex = nullptr;  // name of the complex function, if it differs
  const char* hermitian = nullptr;
};
#define NARU_EACH(f) f<float>, f<double>, f<std::complex<float>>, f<std::complex<double>>
constexpr Row kRows[] = {{"potrf", NARU_EACH(cholesky), 0.1},
                         {"potrs", NARU_EACH(cholesky_solve), 0, 1},
                         {"potri", NARU_EACH(cholesky_inverse), 0.2},
                         {"getrf", NARU_EACH(lu), 0.1},
                         {"getrs", NARU_EACH(lu_solve), 0, 2},
                         {"trsm", NARU_EACH(triangular_solve), 0, 1},
                         {"geqrf", NARU_EACH(qr), 0.3},
                         {"orgqr", NARU_EACH(qr_vectors), 0.3, -1, "ungqr"},
                         {"ormqr", NARU_EACH(qr_product), 0.3, -1, "unmqr"},
                         {"gesdd", NARU_EACH(svd), 3},
                         {"syevd", NARU_EACH(eigh), 2, -1, "heevd"},
                         {"geev", NARU_EACH(eig), 20},
                         {"sytrf", NARU_EACH(ldl), 0.2, -1, nullptr, "hetrf"},
                         {"sytrs", NARU_EACH(ldl_solve), 0, 2, nullptr, "hetrs"},
                         {"gels", NARU_EACH(gels), 0.5},
                         {"gelsy", NARU_EACH(gelsy), 1},
                         {"gelsd", NARU_EACH(gelsd), 3},
                         {"gelss", NARU_EACH(gelss), 3}};
#undef NARU_EACH
static_assert(std::size(kRows) == std::size(Lapack::kNames));

constexpr int kColumns =
    64;  // columns of a right-hand side per thread: fixed, so that an element's bits do not depend on the number of columns

int narrow(int64_t size, const Lapack& op) {
  if (size > INT_MAX)
    throw RuntimeError("linalg.{}: wanted sizes below 2^31 (LAPACK counts in 32 bits), got a matrix with a side of {}", op.name(), size);
  return static_cast<int>(size);
}

double nanoseconds(const Row& row, const std::vector<Sizes>& sizes, const Lapack& op) {
  const double m = sizes[0].rows, n = sizes[0].cols;
  double each = 1000 + row.cost * m * n * std::min(m, n);
  if (row.right >= 0) each += 0.2 * m * m * sizes[static_cast<size_t>(row.right)].cols;
  return each * static_cast<double>(op.batch) * (op.complex ? 4 : 1);
}

std::string function_name(const Lapack& op, const Row& row) {
  const bool single = op.dtype == DType::F32;
  if (!op.complex) return fmt::format("{}{}_", single ? 's' : 'd', row.function);
  const char* const name = op.hermitian && row.hermitian ? row.hermitian : row.complex ? row.complex : row.function;
  return fmt::format("{}{}_", single ? 'c' : 'z', name);
}

// OpenBLAS's function, looked up at the first call. Throws RuntimeError if there is none.
Function function_of(const Lapack& op, const Row& row) {
  static constinit std::atomic<Function> known[8][std::size(kRows)]{};
  const int kind = (op.dtype == DType::F32) + 2 * op.complex + 4 * op.hermitian;
  std::atomic<Function>& place = known[kind][&row - kRows];
  if (const Function function = place.load(std::memory_order_acquire)) return function;
  const std::string name = function_name(op, row);
  const auto function = reinterpret_cast<Function>(openblas_function(name.c_str()));
  if (!function)
    throw RuntimeError(
        "Calling torch.linalg.{} on a CPU tensor requires LAPACK: {} (install the wheel scipy-openblas32 or Debian's libopenblas0, or name "
        "a "
        "library in NARU_OPENBLAS)",
        op.name(), openblas_name().empty() ? "no OpenBLAS was found" : fmt::format("{} has no {}", openblas_name(), name));
  place.store(function, std::memory_order_release);
  return function;
}

template <class T>
void run_typed(const Lapack& op, const Row& row, int (*routine)(Job<T>&), Function function, const std::vector<Sizes>& sizes) {
  const Lapack::Array& info = op.arrays.back();
  const int all = row.right < 0 ? 0 : sizes[static_cast<size_t>(row.right)].cols;
  const int64_t pieces = row.right < 0 ? 1 : (all + kColumns - 1) / kColumns;
  split(op.batch * pieces, nanoseconds(row, sizes, op), 1, [&](int64_t begin, int64_t end) {
    Job<T> job{op, function, sizes};
    for (int64_t i = begin; i < end; ++i) {
      job.matrix = i / pieces;
      job.first = static_cast<int>(i % pieces) * kColumns;
      job.columns = std::min(kColumns, all - job.first);
      const int status = routine(job);
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
  const Function function = function_of(op, row);
  static constinit std::atomic<bool> known[2][std::size(kRows)]{};
  const LibraryCall scope(known[op.complex][number]);
  const bool single = op.dtype == DType::F32;
  if (op.complex)
    single ? run_typed(op, row, row.c64, function, sizes) : run_typed(op, row, row.c128, function, sizes);
  else
    single ? run_typed(op, row, row.f32, function, sizes) : run_typed(op, row, row.f64, function, sizes);
}

}  // namespace naru::cpu
