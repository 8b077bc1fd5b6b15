// Matrix products: selects the kernel and splits the work. The parts depend on the shape alone, never on the number of threads, so the bits
// do not depend on it either.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "backends/cpu/exec/buffer.h"
#include "backends/cpu/exec/instructions.h"
#include "backends/cpu/exec/kernels.h"
#include "backends/cpu/exec/layout.h"
#include "backends/cpu/exec/simd.h"
#include "backends/cpu/gemm/bfloat_product.h"
#include "backends/cpu/gemm/builtin_gemm.h"
#include "backends/cpu/gemm/few_rows.h"
#include "backends/cpu/gemm/product_types.h"
#include "backends/cpu/libraries/matmul_libraries.h"
#include "ir/op_ids.h"
#include "ir/program_builder.h"
#include "naru/error.h"

namespace naru::cpu {
namespace {

using ir::MatMul;
using Matrix = MatMul::Matrix;

// Multiply-adds from which oneDNN is used; below, OpenBLAS.
constexpr int64_t kBig = 128 * 128 * 128;
// Below this, a product is one call of the small kernel.
constexpr int64_t kSmall = 3 << 19;
static_assert(kSmall <= kBig);
// Multiply-adds that keep a thread busy for several microseconds.
constexpr int64_t kWorthHanding = 1 << 17;
// Approximate nanoseconds per multiply-add, in matrix products and matrix-vector products. Only to recognise short jobs.
constexpr double kTime = 0.01, kVectorTime = 0.03;
// Number of parts of a product, by its multiply-adds. Each part packs its operands again, so there are few. Below: the minimum rows and
// columns of a part.
struct PartsFrom {
  int64_t work, parts;
};
constexpr PartsFrom kParts[] = {{int64_t{32} << 30, 32}, {int64_t{4} << 30, 16}, {64 << 20, 8}, {8 << 20, 4}, {kSmall, 2}};
// Elements of a matrix of 16-bit types, and of float32, from which a product with few rows reads it as it is.
constexpr int64_t kLeastFew = 1 << 10, kLeastFewWide = 1 << 17;
constexpr int64_t kLeastRows = 32, kLeastCols = 64, kLeastVector = 128;

int64_t parts_for(int64_t work) noexcept {
  for (const PartsFrom& p : kParts)
    if (work >= p.work) return p.parts;
  return 1;
}

// An elementwise instruction that copies and converts.
ir::Map copy_of(const Dims& shape, void* from, DType from_type, Dims from_strides, void* to, DType to_type, Dims to_strides) {
  return ir::copy_of(shape, {from, from_type, std::move(from_strides)}, {to, to_type, std::move(to_strides)});
}

// An operand in the layout that kernels accept: unit stride along rows or columns.
struct Plain {
  const char* data;
  int64_t batch, ld;  // in elements
  bool transposed;
};

bool unit_stride(const Matrix& x, int64_t rows, int64_t cols) {
  return (x.col_stride == 1 || cols == 1) && (x.row_stride >= std::max<int64_t>(1, cols) || rows == 1);
}

// x in such a layout: as it is, or as a copy in `held`.
Plain plain_of(const Matrix& x, int64_t rows, int64_t cols, int64_t batch, DType type, Buffer& held) {
  const char* data = static_cast<const char*>(x.data);
  if (unit_stride(x, rows, cols)) return {data, x.batch_stride, rows == 1 ? std::max<int64_t>(1, cols) : x.row_stride, false};
  if (unit_stride({nullptr, 0, x.col_stride, x.row_stride}, cols, rows))
    return {data, x.batch_stride, cols == 1 ? std::max<int64_t>(1, rows) : x.col_stride, true};
  const int64_t copies = x.batch_stride == 0 ? 1 : batch;
  held = make_buffer({copies, rows, cols}, size_of(type));
  cpu::run(
      copy_of({copies, rows, cols}, x.data, type, {x.batch_stride, x.row_stride, x.col_stride}, held.get(), type, {rows * cols, cols, 1}));
  return {held.get(), x.batch_stride == 0 ? 0 : rows * cols, cols, false};
}

// Parts of a product of m rows and n columns, by its size alone: each has so many rows and columns.
struct Cut {
  int64_t rows, cols, down, right;
  Cut(int64_t m, int64_t n, int64_t wanted) {
    // Halve the longer side until there are enough parts.
    down = right = 1;
    while (down * right < wanted) {
      rows = m / down, cols = n / right;
      if (rows >= cols && rows >= 2 * kLeastRows)
        down *= 2;
      else if (cols >= 2 * kLeastCols)
        right *= 2;
      else if (rows >= 2 * kLeastRows)
        down *= 2;
      else
        break;
    }
    rows = ((m + down - 1) / down + 15) / 16 * 16, cols = ((n + right - 1) / right + 31) / 32 * 32;
    down = (m + rows - 1) / rows, right = (n + cols - 1) / cols;
  }
};

template <class T>
struct MatMulJob {
  MatMul q;  // operands of type T; c has unit column stride
  Plain a, b;
  Buffer held_a, held_b;
  const Products* library = nullptr;  // null: naru's own kernel

  static constexpr DType kType = std::is_same_v<T, float>     ? DType::F32
                                 : std::is_same_v<T, double>  ? DType::F64
                                 : std::is_same_v<T, int32_t> ? DType::I32
                                                              : DType::I64;

  void part(int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols) const;
  void vector_part(int64_t batch, int64_t first, int64_t count) const;
  void own_part(int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols) const;
  T* at_c(int64_t batch, int64_t row, int64_t col) const {
    return static_cast<T*>(q.c.data) + batch * q.c.batch_stride + row * q.c.row_stride + col;
  }
  const T* at_bias(int64_t col) const { return static_cast<const T*>(q.bias) + col * q.bias_stride; }
  void put_bias(int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols) const;
  bool own_is_faster() const;
  // Packs operands if necessary; run() may follow.
  void prepare() {
    a = plain_of(q.a, q.m, q.k, q.batch, kType, held_a);
    b = plain_of(q.b, q.k, q.n, q.batch, kType, held_b);
  }
  void run() const;
};

template <class T>
void MatMulJob<T>::put_bias(int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols) const {
  for (int64_t i = row; i < row + rows; ++i) {
    T* c = at_c(batch, i, col);
    if (q.bias_stride == 1) {
      std::memcpy(c, at_bias(col), static_cast<size_t>(cols) * sizeof(T));
    } else {
      for (int64_t j = 0; j < cols; ++j) c[j] = *at_bias(col + j);
    }
  }
}

template <class T>
void MatMulJob<T>::own_part(int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols) const {
  OwnMatMul<T> p;
  p.m = rows, p.n = cols, p.k = q.k;
  p.a_row = a.transposed ? 1 : a.ld, p.a_col = a.transposed ? a.ld : 1;
  p.b_row = b.transposed ? 1 : b.ld, p.b_col = b.transposed ? b.ld : 1;
  p.a = reinterpret_cast<const T*>(a.data) + batch * a.batch + row * p.a_row;
  p.b = reinterpret_cast<const T*>(b.data) + batch * b.batch + col * p.b_col;
  p.c = at_c(batch, row, col);
  p.c_row = q.c.row_stride;
  own_product(p);
  if (!q.bias) return;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      T& c = p.c[i * p.c_row + j];
      c = plus(c, *at_bias(col + j));
    }
}

// x W^T, as in linear layers: both libraries take long to transpose W, while naru's kernel does it in registers. That time is a share of 1 / m of the
// product's; many rows are multiplied faster by the libraries. (With AVX-512, 64 x 784 x 256: Zen 5 107 us, 140 with oneDNN; a Xeon with AMX 188 and
// 210; there 1536 x 128 x 512 takes 1,460 and 1,170, 256^3 229 and 226.)
template <class T>
bool MatMulJob<T>::own_is_faster() const {
  constexpr int64_t kMost = 1 << 20, kMostRows = 256;
  return std::is_same_v<T, float> && !a.transposed && b.transposed && q.m >= 8 && q.m <= kMostRows && q.n >= 32 && q.k >= 32 &&
         q.n * q.k <= kMost && wide_level() == 2;
}

template <class T>
void MatMulJob<T>::part(int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols) const {
  if constexpr (std::is_floating_point_v<T>) {
    if (library && !own_is_faster()) {
      const T* pa = reinterpret_cast<const T*>(a.data) + batch * a.batch + row * (a.transposed ? 1 : a.ld);
      const T* pb = reinterpret_cast<const T*>(b.data) + batch * b.batch + col * (b.transposed ? b.ld : 1);
      if (q.bias) put_bias(batch, row, rows, col, cols);
      Gemm<T> gemm;
      if constexpr (std::is_same_v<T, float>)
        gemm = library->big_sgemm && q.m * q.n * q.k >= kBig && q.m >= 8 && q.n >= 8 ? library->big_sgemm : library->small_sgemm;
      else
        gemm = library->dgemm;
      return gemm(a.transposed, b.transposed, rows, cols, q.k, pa, a.ld, pb, b.ld, q.bias ? T(1) : T(0), at_c(batch, row, col),
                  q.c.row_stride);
    }
  }
  own_part(batch, row, rows, col, cols);
}

// Computes elements [first, first + count) of a product with one row (or one column) by the library's matrix-vector function.
template <class T>
void MatMulJob<T>::vector_part(int64_t batch, int64_t first, int64_t count) const {
  if constexpr (std::is_floating_point_v<T>) {
    Gemv<T> gemv;
    if constexpr (std::is_same_v<T, float>)
      gemv = library->sgemv;
    else
      gemv = library->dgemv;
    const bool row = q.m == 1;  // c = a B: y = B^T x
    const Plain& matrix = row ? b : a;
    const Plain& vector = row ? a : b;
    const T* x = reinterpret_cast<const T*>(vector.data) + batch * vector.batch;
    const int64_t incx = row == vector.transposed ? vector.ld : 1;
    const bool transposed = row != matrix.transposed;
    const T* m = reinterpret_cast<const T*>(matrix.data) + batch * matrix.batch + first * (transposed ? 1 : matrix.ld);
    T* y = row ? at_c(batch, 0, first) : at_c(batch, first, 0);
    const int64_t incy = row ? 1 : q.c.row_stride;
#if defined(__x86_64__)
    if constexpr (std::is_same_v<T, float>)
      if (!transposed && incx == 1 && wide_level() == 2) {
        avx512::dots(count, q.k, m, matrix.ld, x, y, incy);
        for (int64_t i = 0; q.bias && i < count; ++i) y[i * incy] += *at_bias(row ? first + i : 0);
        return;
      }
#endif
    if (q.bias)
      for (int64_t i = 0; i < count; ++i) y[i * incy] = *at_bias(row ? first + i : 0);
    gemv(transposed, count, q.k, m, matrix.ld, x, incx, q.bias ? T(1) : T(0), y, incy);
  }
}

template <class T>
void MatMulJob<T>::run() const {
  const int64_t work = q.m * q.n * q.k;
  if (library && (q.m == 1 || q.n == 1)) {
    const bool known = std::is_same_v<T, float> ? library->sgemv != nullptr : library->dgemv != nullptr;
    if (known) {
      const int64_t length = q.m == 1 ? q.n : q.m;
      const int64_t parts = std::clamp<int64_t>(length / kLeastVector, 1, parts_for(work * 8));
      const int64_t each = (length + parts - 1) / parts;
      const int64_t blocks = (length + each - 1) / each;
      const auto body = [&, this](int64_t i) {
        const int64_t first = i % blocks * each;
        vector_part(i / blocks, first, std::min(each, length - first));
      };
      if (work * q.batch < kWorthHanding) {
        for (int64_t i = 0; i < q.batch * blocks; ++i) body(i);
        return;
      }
      return parallel_for(q.batch * blocks, body, static_cast<double>(work * q.batch) * kVectorTime);
    }
  }
  const auto [rows, cols, down, right] = Cut(q.m, q.n, parts_for(work));
  const auto body = [this, rows = rows, cols = cols, down = down, right = right](int64_t i) {
    const int64_t batch = i / (down * right), row = i / right % down * rows, col = i % right * cols;
    part(batch, row, std::min(rows, q.m - row), col, std::min(cols, q.n - col));
  };
  const int64_t parts = q.batch * down * right;
  if (work * q.batch < kWorthHanding || parts == 1) {
    for (int64_t i = 0; i < parts; ++i) body(i);
    return;
  }
  // Hand out small products several at a time.
  const int64_t group = std::max<int64_t>(1, kWorthHanding / std::max<int64_t>(1, work / (down * right)));
  parallel_for((parts + group - 1) / group,
               [&](int64_t g) {
                 for (int64_t i = g * group; i < std::min(parts, (g + 1) * group); ++i) body(i);
               },
               static_cast<double>(work * q.batch) * kTime);
}

bool fits_library(const MatMul& q) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  for (const int64_t v : {q.m, q.n, q.k, q.a.row_stride, q.a.col_stride, q.b.row_stride, q.b.col_stride, q.c.row_stride})
    if (v > kMost || v < -kMost) return false;
  return true;
}

// The job that computes q. Its result goes to `held` if jobs can't write c's layout.
template <class T>
MatMulJob<T> job_of(MatMul q, Buffer& held) {
  const bool c_unit_stride = q.n == 1 || (q.c.col_stride == 1 && (q.m == 1 || q.c.row_stride >= q.n));
  if (q.m == 1) q.c.row_stride = std::max<int64_t>(q.n, 1);
  const bool c_transposed = !c_unit_stride && !q.bias && q.c.row_stride == 1 && q.c.col_stride >= q.m;
  if (c_transposed) {
    // c has unit row stride: compute its transpose, the product of the transposes.
    std::swap(q.a, q.b);
    std::swap(q.m, q.n);
    for (Matrix* x : {&q.a, &q.b, &q.c}) std::swap(x->row_stride, x->col_stride);
  } else if (!c_unit_stride) {
    held = make_buffer({q.batch, q.m, q.n}, sizeof(T));
    q.c = {held.get(), q.m * q.n, q.n, 1};
  }
  MatMulJob<T> job;
  job.q = q;
  if constexpr (std::is_floating_point_v<T>) {
    if (!q.precision.deterministic && fits_library(q)) {
      const Products& p = products();
      if constexpr (std::is_same_v<T, float>)
        job.library = p.small_sgemm ? &p : nullptr;
      else
        job.library = p.dgemm ? &p : nullptr;
    }
  }
  job.prepare();
  return job;
}

template <class T>
void run_typed(const MatMul& asked) {
  Buffer held;
  const MatMulJob<T> job = job_of<T>(asked, held);
  job.run();
  const MatMul& q = job.q;
  if (held)
    run(copy_of({asked.batch, asked.m, asked.n}, q.c.data, MatMulJob<T>::kType, {q.c.batch_stride, q.c.row_stride, 1}, asked.c.data,
                MatMulJob<T>::kType, {asked.c.batch_stride, asked.c.row_stride, asked.c.col_stride}));
}

// True if the processor's bfloat16 instructions are used, by naru's kernel or by the library's. Small products, and products with a vector, are
// not worth the packing (an estimate, not measured).
bool by_bfloat_instruction(const MatMul& q) {
  return q.dtype == DType::BF16 && !q.precision.deterministic && q.m >= 8 && q.n >= 8 && q.m * q.n * q.k >= kWorthHanding &&
         (has_bfloat_products() || (products().bfloat_gemm && fits_library(q)));
}

// q by the library, where q.c is row-major float32. False, with nothing of use in c, in a process that is ending.
bool bfloat_by_library(const MatMul& q) {
  Buffer held_a, held_b;
  const Plain a = plain_of(q.a, q.m, q.k, q.batch, DType::BF16, held_a), b = plain_of(q.b, q.k, q.n, q.batch, DType::BF16, held_b);
  const int64_t work = q.m * q.n * q.k;
  const Cut cut(q.m, q.n, parts_for(work));
  const BfloatGemm gemm = products().bfloat_gemm;
  std::atomic<bool> done{true};
  parallel_for(
      q.batch * cut.down * cut.right,
      [&](int64_t i) {
        constexpr int64_t kItem = 2;
        const int64_t batch = i / (cut.down * cut.right), row = i / cut.right % cut.down * cut.rows, col = i % cut.right * cut.cols;
        const char* const pa = a.data + (batch * a.batch + row * (a.transposed ? 1 : a.ld)) * kItem;
        const char* const pb = b.data + (batch * b.batch + col * (b.transposed ? b.ld : 1)) * kItem;
        float* const c = static_cast<float*>(q.c.data) + batch * q.c.batch_stride + row * q.c.row_stride + col;
        const int64_t rows = std::min(cut.rows, q.m - row), cols = std::min(cut.cols, q.n - col);
        if (!gemm(a.transposed, b.transposed, rows, cols, q.k, pa, a.ld, pb, b.ld, c, q.c.row_stride)) done = false;
      },
      static_cast<double>(work * q.batch) * kTime / 2);
  return done;
}

// asked.c = c, a product in float32, plus the bias, rounded once.
void round_into(const MatMul& asked, const Matrix& c) {
  ir::Map out = copy_of({asked.batch, asked.m, asked.n}, c.data, DType::F32, {c.batch_stride, c.row_stride, c.col_stride}, asked.c.data,
                        asked.dtype, {asked.c.batch_stride, asked.c.row_stride, asked.c.col_stride});
  if (asked.bias) {
    out.program = ir::ProgramBuilder::single(ir::op::add, {DType::F32, asked.dtype}, DType::F32, asked.dtype);
    out.inputs.push_back({const_cast<void*>(asked.bias), asked.dtype, {0, 0, asked.bias_stride}});
  }
  run(out);
}

// The product, or that of the transposes, if it has few rows and reads the large matrix as it lies. One row of float32 is a matrix-vector product of
// the library.
std::optional<MatMul> few_rows_of(const MatMul& asked, bool& turned) {
  const int64_t most = most_few_rows(asked.dtype);
  turned = asked.m > most;
  const int64_t rows = turned ? asked.n : asked.m, columns = turned ? asked.m : asked.n;
  if (rows > most) return {};
  if (asked.dtype == DType::F32 ? rows == 1 || columns < 64 || columns * asked.k < kLeastFewWide : columns * asked.k < kLeastFew) return {};
  if (asked.dtype != DType::F32 && asked.dtype != DType::F16 && asked.dtype != DType::BF16) return {};
  if (asked.precision.deterministic || !has_few_rows()) return {};
  MatMul q = asked;
  if (turned) {
    std::swap(q.a, q.b), std::swap(q.m, q.n);
    for (Matrix* x : {&q.a, &q.b}) std::swap(x->row_stride, x->col_stride);
  }
  if (q.b.row_stride != 1 && q.b.col_stride != 1) return {};
  return q;
}

// Returns false, and does nothing, for other products.
bool run_few_rows(const MatMul& asked) {
  bool turned = false;
  const std::optional<MatMul> found = few_rows_of(asked, turned);
  if (!found) return false;
  const MatMul& q = *found;
  const int64_t copies = q.a.batch_stride == 0 ? 1 : q.batch;
  const auto item = static_cast<int64_t>(size_of(q.dtype));
  const Buffer x = make_buffer({copies, q.m, q.k}, sizeof(float)), y = make_buffer({q.batch, q.m, q.n}, sizeof(float));
  run(copy_of({copies, q.m, q.k}, q.a.data, q.dtype, {q.a.batch_stride, q.a.row_stride, q.a.col_stride}, x.get(), DType::F32,
              {q.m * q.k, q.k, 1}));
  const int64_t each = std::max<int64_t>(kLeastVector, (kWorthHanding / q.k + 15) / 16 * 16), parts = (q.n + each - 1) / each;
  parallel_for(
      q.batch * parts,
      [&](int64_t i) {
        const int64_t batch = i / parts, first = i % parts * each;
        few_rows_product({q.dtype, q.m, std::min(each, q.n - first), q.k,
                          reinterpret_cast<const float*>(x.get()) + (copies == 1 ? 0 : batch) * q.m * q.k, q.k,
                          static_cast<const char*>(q.b.data) + (batch * q.b.batch_stride + first * q.b.col_stride) * item, q.b.row_stride,
                          q.b.col_stride, reinterpret_cast<float*>(y.get()) + batch * q.m * q.n + first, q.n});
      },
      static_cast<double>(q.n * q.k * q.batch) * kVectorTime * 3);
  const Matrix c{y.get(), q.m * q.n, q.n, 1};
  round_into(asked, turned ? Matrix{c.data, c.batch_stride, 1, q.n} : c);
  return true;
}

// False in a process that is ending.
bool run_bfloat(const MatMul& asked) {
  if (has_bfloat_tiles()) return bfloat_tile_product(asked), true;
  const Buffer held = make_buffer({asked.batch, asked.m, asked.n}, sizeof(float));
  MatMul q = asked;
  q.c = {held.get(), q.m * q.n, q.n, 1};
  // Where there is a library, its product is as fast as naru's without tiles, or faster.
  if (!products().bfloat_gemm || !fits_library(asked))
    bfloat_product(q);
  else if (!bfloat_by_library(q))
    return false;
  round_into(asked, q.c);
  return true;
}

// Computes narrow types in a wider one and converts back.
void run_wider(const MatMul& asked, DType wide) {
  if (by_bfloat_instruction(asked) && run_bfloat(asked)) return;
  const size_t item = size_of(wide);
  MatMul q = asked;
  q.dtype = wide;
  Buffer held[4];
  // Laid as the source: a matrix whose columns are contiguous stays one.
  const auto widen = [&](const Matrix& x, int64_t rows, int64_t cols, Buffer& to) {
    const int64_t copies = x.batch_stride == 0 ? 1 : asked.batch;
    const bool turned = x.row_stride == 1 && x.col_stride != 1;
    const Matrix wide_x{nullptr, x.batch_stride == 0 ? 0 : rows * cols, turned ? 1 : cols, turned ? rows : 1};
    to = make_buffer({copies, rows, cols}, item);
    run(copy_of({copies, rows, cols}, x.data, asked.dtype, {x.batch_stride, x.row_stride, x.col_stride}, to.get(), wide,
                {rows * cols, wide_x.row_stride, wide_x.col_stride}));
    return Matrix{to.get(), wide_x.batch_stride, wide_x.row_stride, wide_x.col_stride};
  };
  q.a = widen(asked.a, q.m, q.k, held[0]);
  q.b = widen(asked.b, q.k, q.n, held[1]);
  if (asked.bias) {
    q.bias = widen({const_cast<void*>(asked.bias), 0, 0, asked.bias_stride}, 1, q.n, held[2]).data;
    q.bias_stride = 1;
  }
  held[3] = make_buffer({q.batch, q.m, q.n}, item);
  q.c = {held[3].get(), q.m * q.n, q.n, 1};
  run(q);
  run(copy_of({q.batch, q.m, q.n}, q.c.data, wide, {q.m * q.n, q.n, 1}, asked.c.data, asked.dtype,
              {asked.c.batch_stride, asked.c.row_stride, asked.c.col_stride}));
}

// k = 0: fills the result with the bias, or zeros.
void fill_empty(const MatMul& q) {
  alignas(8) char zero[8] = {};
  void* from = q.bias ? const_cast<void*>(q.bias) : zero;
  run(copy_of({q.batch, q.m, q.n}, from, q.dtype, {0, 0, q.bias ? q.bias_stride : 0}, q.c.data, q.dtype,
              {q.c.batch_stride, q.c.row_stride, q.c.col_stride}));
}

}  // namespace

bool small_matmul(DType type, int64_t m, int64_t n, int64_t k, const void* a, const void* b, void* c) {
  if (type != DType::F32 || m < 2 || n < 2 || k < 1) return false;
  if (m >= kSmall || n >= kSmall || k >= kSmall || m * n >= kSmall || m * n * k >= kSmall) return false;
  const Gemm<float> gemm = products().small_sgemm;
  if (!gemm) return false;
  gemm(false, false, m, n, k, static_cast<const float*>(a), k, static_cast<const float*>(b), n, 0, static_cast<float*>(c), n);
  return true;
}

void run(const MatMul& q) {
  if (q.batch == 0 || q.m == 0 || q.n == 0) return;
  if (q.k == 0) return fill_empty(q);
  if (run_few_rows(q)) return;
  const auto typed = [&](auto zero) { run_typed<decltype(zero)>(q); };
  if (!in_product_type(q.dtype, typed, [&](DType wide) { run_wider(q, wide); }))
    throw RuntimeError("matmul: wanted numbers, got bool matrices; convert them first");
}

namespace {

class PreparedMatMul final : public Prepared {
 public:
  explicit PreparedMatMul(MatMulJob<float> job) : job_(std::move(job)) {}
  void run() override { job_.run(); }

 private:
  MatMulJob<float> job_;
};

}  // namespace

std::unique_ptr<Prepared> prepared(const MatMul& q) {
  bool turned = false;
  if (q.dtype != DType::F32 || q.batch == 0 || q.m == 0 || q.n == 0 || q.k == 0 || few_rows_of(q, turned)) return nullptr;
  Buffer held;
  MatMulJob<float> job = job_of<float>(q, held);
  // Copies of operands would have to be made again for each run.
  if (held || job.held_a || job.held_b) return nullptr;
  return std::make_unique<PreparedMatMul>(std::move(job));
}

}  // namespace naru::cpu
