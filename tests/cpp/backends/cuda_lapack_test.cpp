// Linear algebra on cuda through cuSOLVER, with the fake NVIDIA libraries (tests/fakes/cusolver.cpp), compared with the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <random>

#include "backends/cpu/exec/execute.h"
#include "backends/cuda_fixture.h"
#include "naru/error.h"

namespace naru::runtime {
namespace {

using ir::Lapack;
using Routine = Lapack::Routine;

const Device kDevice(DeviceType::Cuda, 0);
constexpr int64_t kBatch = 2, kN = 4, kColumns = 3;

class CudaLapack : public CudaFixture {
 protected:
  struct Type {
    DType dtype;
    bool complex;
  };
  static constexpr Type kTypes[] = {{DType::F32, false}, {DType::F64, false}, {DType::F32, true}, {DType::F64, true}};

  // An instruction whose arrays are in `memory`, on the host or on the device.
  struct Call {
    Lapack op;
    std::vector<std::vector<char>> memory;

    void add(Type type, int64_t rows, int64_t cols, bool written) {
      Lapack::Array a;
      a.dtype = type.dtype, a.complex = type.complex, a.written = written;
      a.rows = a.column = rows, a.cols = cols, a.matrix = rows * cols;
      op.arrays.push_back(a);
      memory.emplace_back(static_cast<size_t>(kBatch * rows * cols * static_cast<int64_t>(size_of(type.dtype)) * (type.complex ? 2 : 1)));
    }
    double* doubles(size_t i) { return reinterpret_cast<double*>(memory[i].data()); }
  };

  static Call call(Routine routine, Type type, int64_t rows, int64_t cols) {
    Call c;
    c.op.routine = routine, c.op.dtype = type.dtype, c.op.complex = type.complex, c.op.hermitian = type.complex, c.op.batch = kBatch;
    c.add(type, rows, cols, routine == Routine::Cholesky || routine == Routine::Lu);
    if (routine == Routine::Lu || routine == Routine::LuSolve) c.add({DType::I32, false}, std::min(rows, cols), 1, routine == Routine::Lu);
    if (routine == Routine::LuSolve || routine == Routine::CholeskySolve) c.add(type, rows, kColumns, true);
    c.add({DType::I32, false}, 1, 1, true);
    return c;
  }
  struct Sizes {
    int64_t rows, cols;
    bool written;
  };
  // A call whose arrays all have `type`, except info, and array number `real`, which is real.
  static Call call_of(Routine routine, Type type, std::initializer_list<Sizes> arrays, size_t real = 9) {
    Call c;
    c.op.routine = routine, c.op.dtype = type.dtype, c.op.complex = type.complex, c.op.batch = kBatch, c.op.vectors = arrays.size() != 2;
    for (const Sizes& s : arrays) c.add({type.dtype, type.complex && c.memory.size() != real}, s.rows, s.cols, s.written);
    c.add({DType::I32, false}, 1, 1, true);
    return c;
  }
  static std::complex<double> element(const Call& c, size_t array, int64_t matrix, int64_t row, int64_t col) {
    const auto& a = c.op.arrays[array];
    const auto i = static_cast<size_t>(matrix * a.matrix + col * a.rows + row);
    return a.complex ? std::complex<double>(get(c, array, 2 * i), get(c, array, 2 * i + 1)) : get(c, array, i);
  }
  // Checks x^H x = 1, for columns or rows.
  static void expect_orthonormal(const Call& c, size_t array, bool rows, double bound) {
    const auto& a = c.op.arrays[array];
    const int64_t n = rows ? a.rows : a.cols, along = rows ? a.cols : a.rows;
    for (int64_t m = 0; m < kBatch; ++m)
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) {
          std::complex<double> sum = 0;
          for (int64_t k = 0; k < along; ++k)
            sum += rows ? element(c, array, m, i, k) * std::conj(element(c, array, m, j, k))
                        : std::conj(element(c, array, m, k, i)) * element(c, array, m, k, j);
          ASSERT_NEAR(std::abs(sum - (i == j ? 1.0 : 0.0)), 0, bound) << "array " << array << " at " << i << ' ' << j;
        }
  }
  static double get(const Call& c, size_t array, size_t i) {
    const char* const p = c.memory[array].data();
    switch (c.op.arrays[array].dtype) {
      case DType::F32:
        return reinterpret_cast<const float*>(p)[i];
      case DType::F64:
        return reinterpret_cast<const double*>(p)[i];
      default:
        return reinterpret_cast<const int*>(p)[i];
    }
  }
  static int64_t numbers(Type t) { return static_cast<int64_t>(size_of(t.dtype)) * (t.complex ? 2 : 1); }
  static size_t count(const Call& c, size_t array) { return c.memory[array].size() / size_of(c.op.arrays[array].dtype); }
  static void put(Call& c, size_t array, size_t i, double v) {
    char* const p = c.memory[array].data();
    c.op.arrays[array].dtype == DType::F32 ? static_cast<void>(reinterpret_cast<float*>(p)[i] = static_cast<float>(v))
                                           : static_cast<void>(reinterpret_cast<double*>(p)[i] = v);
  }
  void fill(Call& c, size_t array, bool definite) {
    const auto& a = c.op.arrays[array];
    const int64_t parts = a.complex ? 2 : 1;
    for (size_t i = 0; i < count(c, array); ++i) put(c, array, i, static_cast<double>(random()) / 4294967296.0 - 0.5);
    if (!definite) return;
    for (int64_t m = 0; m < kBatch; ++m)
      for (int64_t r = 0; r < a.rows; ++r)
        for (int64_t col = 0; col <= r; ++col)
          for (int64_t part = 0; part < parts; ++part) {
            const auto at = [&](int64_t i, int64_t j) { return static_cast<size_t>((m * a.matrix + j * a.rows + i) * parts + part); };
            if (r == col)
              put(c, array, at(r, r), part == 0 ? 4 : 0);
            else
              put(c, array, at(col, r), get(c, array, at(r, col)) * (part == 0 ? 1 : -1));
          }
  }

  static void run_here(Call& c) {
    for (size_t i = 0; i < c.memory.size(); ++i) c.op.arrays[i].data = c.memory[i].data();
    cpu::execute(c.op);
  }
  void run_there(DeviceStream& s, Call& c) {
    Lapack op = c.op;
    for (size_t i = 0; i < c.memory.size(); ++i) {
      op.arrays[i].data = memory(c.memory[i].size());
      up(s, op.arrays[i].data, c.memory[i].data(), c.memory[i].size());
    }
    ASSERT_TRUE(backend->takes(kDevice, op));
    s.submit(op, {});
    for (size_t i = 0; i < c.memory.size(); ++i) down(s, c.memory[i].data(), op.arrays[i].data, c.memory[i].size());
    s.synchronize(s.submitted());
    for (size_t i = 0; i < c.memory.size(); ++i) backend->release(kDevice, MemoryKind::Device, op.arrays[i].data, c.memory[i].size());
  }
  // Runs it on both, and leaves the host's results in `c`.
  void compare(DeviceStream& s, Call& c) {
    Call there = c;
    run_there(s, there);
    run_here(c);
    const double bound = c.op.dtype == DType::F32 ? 1e-4 : 1e-11;
    for (size_t i = 0; i < c.memory.size(); ++i)
      for (size_t k = 0; k < count(c, i); ++k) ASSERT_NEAR(get(there, i, k), get(c, i, k), bound) << "array " << i << " at " << k;
  }

  std::mt19937 random{1};
};

TEST_F(CudaLapack, factors_and_what_they_solve_are_the_hosts) {
  const auto s = stream();
  for (const Type type : kTypes)
    for (const bool flag : {false, true}) {
      SCOPED_TRACE(::testing::Message() << naru::name_of(type.dtype) << ' ' << type.complex << ' ' << flag);
      Call factor = call(Routine::Cholesky, type, kN, kN);
      factor.op.upper = flag;
      fill(factor, 0, true);
      compare(*s, factor);
      Call solve = call(Routine::CholeskySolve, type, kN, kN);
      solve.op.upper = flag, solve.memory[0] = factor.memory[0];
      fill(solve, 1, false);
      compare(*s, solve);
      Call lu = call(Routine::Lu, type, kN, kN);
      fill(lu, 0, false);
      compare(*s, lu);
      Call apply = call(Routine::LuSolve, type, kN, kN);
      apply.op.transposed = flag, apply.memory[0] = lu.memory[0], apply.memory[1] = lu.memory[1];
      fill(apply, 2, false);
      compare(*s, apply);
      Call oblong = call(Routine::Lu, type, flag ? 5 : 3, flag ? 3 : 5);
      fill(oblong, 0, false);
      compare(*s, oblong);
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST_F(CudaLapack, reflectors_and_their_products_are_the_hosts) {
  const auto s = stream();
  for (const Type type : kTypes)
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{5, 3}, {3, 5}, {4, 4}}) {
      SCOPED_TRACE(::testing::Message() << naru::name_of(type.dtype) << ' ' << type.complex << ' ' << m << ' ' << n);
      const int64_t k = std::min(m, n);
      Call factor = call_of(Routine::Qr, type, {{m, n, true}, {k, 1, true}});
      fill(factor, 0, false);
      compare(*s, factor);
      // All m columns from the first k.
      Call vectors = call_of(Routine::QrVectors, type, {{m, k, true}, {k, 1, false}});
      for (int64_t b = 0; b < kBatch; ++b)
        std::copy_n(factor.memory[0].data() + b * m * n * numbers(type), m * k * numbers(type),
                    vectors.memory[0].data() + b * m * k * numbers(type));
      vectors.memory[1] = factor.memory[1];
      for (const bool flag : {false, true}) {
        Call product = call_of(Routine::QrProduct, type, {{m, k, false}, {k, 1, false}, {m, kColumns, true}});
        product.op.transposed = flag, product.memory[0] = vectors.memory[0], product.memory[1] = vectors.memory[1];
        fill(product, 2, false);
        compare(*s, product);
      }
      compare(*s, vectors);
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST_F(CudaLapack, singular_values_are_the_hosts_and_vectors_give_the_matrix_back) {
  const auto s = stream();
  enum Kind { None, Thin, Full };
  for (const Type type : kTypes)
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{5, 3}, {3, 5}, {4, 4}})
      for (const Kind kind : {None, Thin, Full}) {
        SCOPED_TRACE(::testing::Message() << naru::name_of(type.dtype) << ' ' << type.complex << ' ' << m << ' ' << n << ' ' << kind);
        const int64_t k = std::min(m, n);
        const Sizes a{m, n, true}, values{k, 1, true}, u{m, kind == Full ? m : k, true}, vt{kind == Full ? n : k, n, true};
        Call c = kind == None ? call_of(Routine::Svd, type, {a, values}, 1) : call_of(Routine::Svd, type, {a, values, u, vt}, 1);
        fill(c, 0, false);
        const Call given = c;
        Call there = c;
        run_there(*s, there);
        run_here(c);
        const double bound = type.dtype == DType::F32 ? 1e-5 : 1e-12;
        for (size_t i = 0; i < count(c, 1); ++i) ASSERT_NEAR(get(there, 1, i), get(c, 1, i), bound) << i;
        for (size_t i = 0; i < kBatch; ++i) ASSERT_EQ(get(there, kind == None ? 2 : 4, i), 0);
        if (kind == None) continue;
        expect_orthonormal(there, 2, false, bound), expect_orthonormal(there, 3, true, bound);
        for (int64_t b = 0; b < kBatch; ++b)
          for (int64_t row = 0; row < m; ++row)
            for (int64_t col = 0; col < n; ++col) {
              std::complex<double> sum = 0;
              for (int64_t i = 0; i < k; ++i)
                sum += element(there, 2, b, row, i) * element(there, 1, b, i, 0) * element(there, 3, b, i, col);
              ASSERT_NEAR(std::abs(sum - element(given, 0, b, row, col)), 0, bound) << row << ' ' << col;
            }
        if (::testing::Test::HasFatalFailure()) return;
      }
}

TEST_F(CudaLapack, eigenvalues_are_the_hosts_and_vectors_are_eigenvectors) {
  const auto s = stream();
  for (const Type type : kTypes)
    for (const bool upper : {false, true})
      for (const bool vectors : {false, true}) {
        SCOPED_TRACE(::testing::Message() << naru::name_of(type.dtype) << ' ' << type.complex << ' ' << upper << ' ' << vectors);
        Call c = call_of(Routine::Eigh, type, {{kN, kN, true}, {kN, 1, true}}, 1);
        c.op.upper = upper, c.op.vectors = vectors;
        fill(c, 0, true);
        const Call given = c;
        Call there = c;
        run_there(*s, there);
        run_here(c);
        const double bound = type.dtype == DType::F32 ? 1e-5 : 1e-12;
        for (size_t i = 0; i < count(c, 1); ++i) ASSERT_NEAR(get(there, 1, i), get(c, 1, i), bound) << i;
        for (size_t i = 0; i < kBatch; ++i) ASSERT_EQ(get(there, 2, i), 0);
        if (!vectors) continue;
        expect_orthonormal(there, 0, false, bound);
        for (int64_t b = 0; b < kBatch; ++b)
          for (int64_t row = 0; row < kN; ++row)
            for (int64_t i = 0; i < kN; ++i) {
              std::complex<double> sum = 0;
              for (int64_t k = 0; k < kN; ++k) sum += element(given, 0, b, row, k) * element(there, 0, b, k, i);
              ASSERT_NEAR(std::abs(sum - element(there, 1, b, i, 0) * element(there, 0, b, row, i)), 0, bound) << row << ' ' << i;
            }
        if (::testing::Test::HasFatalFailure()) return;
      }
}

TEST_F(CudaLapack, a_matrix_with_elements_that_are_not_finite_has_the_hosts_number_and_spoils_no_other) {
  const auto s = stream();
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()})
    for (Call c : {call_of(Routine::Svd, kTypes[1], {{3, 5, true}, {3, 1, true}}, 1),
                   call_of(Routine::Eigh, kTypes[3], {{kN, kN, true}, {kN, 1, true}}, 1)}) {
      fill(c, 0, c.op.routine == Routine::Eigh);
      put(c, 0, count(c, 0) - 1, bad);
      Call there = c;
      run_there(*s, there);
      run_here(c);
      for (size_t i = 0; i < kBatch; ++i) EXPECT_EQ(get(there, 2, i), get(c, 2, i)) << c.op.name();
      for (size_t i = 0; i < count(c, 1) / 2; ++i) EXPECT_NEAR(get(there, 1, i), get(c, 1, i), 1e-12);
    }
}

TEST_F(CudaLapack, choleskys_factors_of_a_batch_are_one_call) {
  const auto s = stream();
  Call c = call(Routine::Cholesky, kTypes[1], kN, kN), alone = c;
  fill(c, 0, true);
  alone.op.batch = 1, alone.memory[0] = c.memory[0];
  listen();
  run_there(*s, c), run_there(*s, alone);
  const auto said = counted();
  EXPECT_EQ(said.at("cusolverDnDpotrfBatched"), 1);
  EXPECT_EQ(said.at("cusolverDnXpotrf"), 1);
  EXPECT_EQ(get(c, 0, 5), get(alone, 0, 5));
}

TEST_F(CudaLapack, a_matrix_without_a_factor_says_so_in_its_own_info) {
  const auto s = stream();
  Call c = call(Routine::Cholesky, kTypes[0], kN, kN), lu = call(Routine::Lu, kTypes[0], kN, kN);
  fill(c, 0, true);
  put(c, 0, kN * kN + 2 * kN + 2, -1);  // in the second matrix
  run_there(*s, c);
  EXPECT_EQ(get(c, 1, 0), 0);
  EXPECT_EQ(get(c, 1, 1), 3);
  run_there(*s, lu);  // zeros
  EXPECT_EQ(get(lu, 2, 0), 1);
}

TEST_F(CudaLapack, pivots_that_are_no_rows_are_kept_within_the_matrix) {
  const auto s = stream();
  Call c = call(Routine::LuSolve, kTypes[0], kN, kN);
  fill(c, 0, true), fill(c, 2, false);
  auto* const pivots = reinterpret_cast<int*>(c.memory[1].data());
  for (size_t i = 0; i < count(c, 1); ++i) pivots[i] = i % 2 ? 1000000 : -5;
  run_there(*s, c);
  EXPECT_EQ(get(c, 3, 0), 0);
}

TEST_F(CudaLapack, other_routines_and_empty_matrices_and_what_a_library_refuses_are_not_taken) {
  EXPECT_FALSE(backend->takes(kDevice, call(Routine::Ldl, kTypes[0], kN, kN).op));
  EXPECT_FALSE(backend->takes(kDevice, call(Routine::Cholesky, kTypes[0], 0, 0).op));
  EXPECT_TRUE(backend->takes(kDevice, call(Routine::Lu, kTypes[0], kN, kN).op));
  const std::pair<const char*, const char*> troubles[] = {{"NARU_CUSOLVER_LIBRARY", "/nowhere/libcusolver.so"},
                                                          {"NARU_CUSOLVER_LIBRARY", NARU_FAKES "/libnvrtc.so"},
                                                          {"NARU_FAKE_ERROR", "cusolverDnCreate=1"}};
  for (const auto& [variable, value] : troubles) {
    set(variable, value);
    backend = backends::make_cuda();
    EXPECT_FALSE(backend->takes(kDevice, call(Routine::Lu, kTypes[0], kN, kN).op)) << value;
    unsetenv(variable);
    set("NARU_CUSOLVER_LIBRARY", NARU_FAKES "/libcusolver.so");
  }
}

TEST_F(CudaLapack, a_failure_says_which_matrices_and_what_the_library_said) {
  const auto s = stream();
  const auto said_of = [&](Call c, const char* function) {
    set("NARU_FAKE_ERROR", std::string(function) + "=6@1");
    try {
      run_there(*s, c);
    } catch (const RuntimeError& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(said_of(call(Routine::Cholesky, kTypes[0], kN, kN), "cusolverDnSpotrfBatched"),
            "cusolver error: CUSOLVER_STATUS_EXECUTION_FAILED, when calling `cusolverDnSpotrfBatched` on cuda:0 for linalg.cholesky of 2 "
            "matrices of 4 x 4");
  EXPECT_EQ(said_of(call_of(Routine::QrVectors, kTypes[3], {{5, 3, true}, {3, 1, false}}), "cusolverDnZungqr_bufferSize"),
            "cusolver error: CUSOLVER_STATUS_EXECUTION_FAILED, when calling `cusolverDnZungqr_bufferSize` on cuda:0 for linalg.orgqr of 2 "
            "matrices of 5 x 3");
}

}  // namespace
}  // namespace naru::runtime
