// Linear algebra on cuda by cuSOLVER, over the libraries in NVIDIA's place; the one in cuSOLVER's is tests/fakes/cusolver.cpp. Compared with the host.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backends/cuda_fixture.h"
#include "host/execute.h"
#include "naru/error.h"

namespace naru::runtime {
namespace {

using ir::Lapack;
using Routine = Lapack::Routine;

const Device kFirst(DeviceType::Cuda, 0);
constexpr int64_t kBatch = 2, kN = 4, kColumns = 3;

class CudaLapack : public CudaFixture {
 protected:
  struct Type {
    DType dtype;
    bool complex;
  };
  static constexpr Type kTypes[] = {{DType::F32, false}, {DType::F64, false}, {DType::F32, true}, {DType::F64, true}};

  // An instruction whose arrays lie in `memory`, on the host or the device.
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
    host::execute(c.op);
  }
  void run_there(DeviceStream& s, Call& c) {
    Lapack op = c.op;
    for (size_t i = 0; i < c.memory.size(); ++i) {
      op.arrays[i].data = memory(c.memory[i].size());
      up(s, op.arrays[i].data, c.memory[i].data(), c.memory[i].size());
    }
    ASSERT_TRUE(backend->takes(kFirst, op));
    s.submit(op, {});
    for (size_t i = 0; i < c.memory.size(); ++i) down(s, c.memory[i].data(), op.arrays[i].data, c.memory[i].size());
    s.synchronize(s.submitted());
    for (size_t i = 0; i < c.memory.size(); ++i) backend->release(kFirst, MemoryKind::Device, op.arrays[i].data, c.memory[i].size());
  }
  // Does it on both, and leaves the host's in `c`.
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

TEST_F(CudaLapack, a_matrix_without_a_factor_says_so_in_its_own_info) {
  const auto s = stream();
  Call c = call(Routine::Cholesky, kTypes[0], kN, kN), lu = call(Routine::Lu, kTypes[0], kN, kN);
  fill(c, 0, true);
  put(c, 0, kN * kN + 2 * kN + 2, -1);  // of the second matrix
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
  EXPECT_FALSE(backend->takes(kFirst, call(Routine::Qr, kTypes[0], kN, kN).op));
  EXPECT_FALSE(backend->takes(kFirst, call(Routine::Cholesky, kTypes[0], 0, 0).op));
  EXPECT_TRUE(backend->takes(kFirst, call(Routine::Lu, kTypes[0], kN, kN).op));
  const std::pair<const char*, const char*> troubles[] = {{"NARU_CUSOLVER_LIBRARY", "/nowhere/libcusolver.so"},
                                                          {"NARU_CUSOLVER_LIBRARY", NARU_FAKES "/libnvrtc.so"},
                                                          {"NARU_FAKE_ERROR", "cusolverDnCreate=1"}};
  for (const auto& [variable, value] : troubles) {
    set(variable, value);
    backend = backends::make_cuda();
    EXPECT_FALSE(backend->takes(kFirst, call(Routine::Lu, kTypes[0], kN, kN).op)) << value;
    unsetenv(variable);
    set("NARU_CUSOLVER_LIBRARY", NARU_FAKES "/libcusolver.so");
  }
}

TEST_F(CudaLapack, a_failure_says_which_matrices_and_what_the_library_said) {
  const auto s = stream();
  Call c = call(Routine::Cholesky, kTypes[0], kN, kN);
  set("NARU_FAKE_ERROR", "cusolverDnXpotrf=6@1");
  try {
    run_there(*s, c);
    ADD_FAILURE() << "nothing was said";
  } catch (const RuntimeError& e) {
    EXPECT_STREQ(e.what(),
                 "cusolver error: CUSOLVER_STATUS_EXECUTION_FAILED, when calling `cusolverDnXpotrf` on cuda:0 for linalg.cholesky of 2 "
                 "matrices of 4 x 4");
  }
}

}  // namespace
}  // namespace naru::runtime
