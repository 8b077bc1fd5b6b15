// Matrix products on cuda through cuBLASLt, with the fake NVIDIA libraries. The fake cuBLASLt (tests/fakes/cublaslt.cpp) sums in float64, so its
// bits differ from those of naru's own kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <thread>

#include "backends/cuda/cublaslt.h"
#include "backends/cuda_fixture.h"
#include "backends/gpu/matmul.h"
#include "naru/error.h"
#include "runtime/memory/allocator.h"

namespace naru::runtime {
namespace {

using backends::cuda::CublasLt;
using backends::gpu::for_library;
using backends::gpu::LtDescriptors;
using backends::gpu::LtMatMul;
using backends::gpu::Products;
using ir::MatMul;

// A float32 product and the offsets of its operands in device memory, in elements.
struct Product {
  MatMul q;
  int64_t a = 0, b = 0, c = 0, bias = -1;
  static constexpr int64_t kSize = 40000;  // elements of each operand's memory
};

Product job(int64_t batch, int64_t m, int64_t n, int64_t k, bool with_bias = false) {
  Product j;
  j.q.batch = batch, j.q.m = m, j.q.n = n, j.q.k = k;
  j.q.a = {nullptr, m * k, k, 1}, j.q.b = {nullptr, k * n, n, 1}, j.q.c = {nullptr, m * n, n, 1};
  if (with_bias) j.bias = 0;
  return j;
}

class CudaMatMul : public CudaFixture {
 protected:
  void SetUp() override {
    CudaFixture::SetUp();
    std::mt19937 random(1);
    for (float& x : numbers) x = static_cast<float>(random()) / 4294967296.0f - 0.5f;
  }

  struct Memory {
    float *a, *b, *c, *bias;
  };
  Memory filled(DeviceStream& s, int device = 0) {
    const auto make = [&](int64_t from) {
      auto* const p = static_cast<float*>(memory(Product::kSize * 4, device));
      up(s, p, numbers.data() + from, Product::kSize * 4, device);
      return p;
    };
    return {make(0), make(1000), make(2000), make(3000)};
  }
  MatMul placed(const Product& j, const Memory& at) {
    MatMul q = j.q;
    q.a.data = at.a + j.a, q.b.data = at.b + j.b, q.c.data = at.c + j.c;
    if (j.bias >= 0) q.bias = at.bias + j.bias;
    return q;
  }
  float wanted(const Product& j, int64_t item, int64_t row, int64_t col) const {
    const auto& q = j.q;
    double sum = j.bias < 0 ? 0 : numbers[static_cast<size_t>(3000 + j.bias + col * q.bias_stride)];
    for (int64_t i = 0; i < q.k; ++i)
      sum += double{numbers[static_cast<size_t>(j.a + item * q.a.batch_stride + row * q.a.row_stride + i * q.a.col_stride)]} *
             double{numbers[static_cast<size_t>(1000 + j.b + item * q.b.batch_stride + i * q.b.row_stride + col * q.b.col_stride)]};
    return static_cast<float>(sum);
  }
  // Runs it, and compares all of the result's memory: gaps between rows must be unchanged.
  void check(DeviceStream& s, const Product& j, const Memory& at, int device = 0, float bound = 1e-5f) {
    std::vector<float> before(Product::kSize, 7), got(Product::kSize);
    up(s, at.c, before.data(), Product::kSize * 4, device);
    s.submit(placed(j, at), {});
    s.synchronize(down(s, got.data(), at.c, Product::kSize * 4, device));
    for (int64_t i = 0; i < j.q.batch; ++i)
      for (int64_t r = 0; r < j.q.m; ++r)
        for (int64_t c = 0; c < j.q.n; ++c) {
          const auto place = static_cast<size_t>(j.c + i * j.q.c.batch_stride + r * j.q.c.row_stride + c);
          ASSERT_NEAR(got[place], wanted(j, i, r, c), bound) << i << ' ' << r << ' ' << c;
          got[place] = 7;
        }
    EXPECT_EQ(got, before) << "written beside the result";
  }

  std::vector<float> numbers = std::vector<float>(Product::kSize + 3000);
};

std::vector<Product> jobs_for_the_library() {
  std::vector<Product> all = {job(1, 5, 7, 9), job(1, 5, 7, 9, true), job(3, 5, 7, 9), job(3, 5, 7, 9, true),
                              job(1, 1, 7, 9), job(1, 5, 1, 9, true), job(1, 5, 7, 1), job(1, 1, 1, 1, true)};
  Product j = job(2, 5, 7, 9);  // both transposed
  j.q.a.row_stride = 1, j.q.a.col_stride = 5, j.q.b.row_stride = 1, j.q.b.col_stride = 9;
  all.push_back(j);
  j.q.a.batch_stride = j.q.b.batch_stride = 0;  // the same matrices for the whole batch
  all.push_back(j);
  j = job(3, 5, 7, 9, true);  // gaps between rows, and between matrices
  j.q.a = {nullptr, 200, 11, 1}, j.q.b = {nullptr, 300, 1, 13}, j.q.c = {nullptr, 400, 17, 1};
  all.push_back(j);
  for (int64_t shift : {1, 2, 3, 4, 64}) {  // addresses of every alignment
    j.a = shift, j.b = 2 * shift, j.c = 3 * shift, j.bias = shift;
    all.push_back(j);
    for (int64_t Product::*one : {&Product::a, &Product::b, &Product::c}) {
      Product alone = job(1, 5, 8, 12);
      alone.*one = shift;
      all.push_back(alone);
    }
  }
  j = job(1, 5, 1, 9, true);
  j.q.bias_stride = 0;
  all.push_back(j);
  return all;
}

TEST_F(CudaMatMul, the_library_computes_every_layout_it_takes) {
  const auto s = stream();
  const Memory at = filled(*s);
  listen();
  const std::vector<Product> jobs = jobs_for_the_library();
  for (const Product& j : jobs) {
    SCOPED_TRACE(&j - jobs.data());
    check(*s, j, at);
  }
  const auto count = counted();
  EXPECT_EQ(count.at("cublasLtMatmul"), static_cast<int>(jobs.size()));
  EXPECT_EQ(count.contains("cuLaunchKernel"), false);
}

TEST_F(CudaMatMul, what_is_not_for_the_library_is_done_by_own_kernels) {
  std::vector<Product> all;
  Product j = job(2, 5, 7, 9, true);
  j.q.precision.deterministic = true;
  all.push_back(j);
  all.push_back(job(1, 5, 7, 0));
  all.push_back(job(1, 5, 7, 0, true));
  const auto s = stream();
  const Memory at = filled(*s);
  listen();
  for (const Product& each : all) {
    SCOPED_TRACE(&each - all.data());
    EXPECT_FALSE(for_library(placed(each, at), true));
    check(*s, each, at);
  }
  EXPECT_FALSE(counted().contains("cublasLtMatmul"));
  MatMul q = job(1, 2, 2, 2).q;
  for (const DType t : {DType::I32, DType::I64, DType::Bool}) {
    q.dtype = t;
    EXPECT_FALSE(for_library(q, true));
  }
  for (const DType t : {DType::F32, DType::F64, DType::F16, DType::BF16}) {
    q.dtype = t;
    EXPECT_TRUE(for_library(q, true));
  }
}

TEST_F(CudaMatMul, a_bias_that_the_library_does_not_take_is_added_behind_its_matmul) {
  Product apart = job(1, 5, 7, 9, true);
  apart.q.bias_stride = 0;  // one value for all columns
  const auto s = stream();
  const Memory at = filled(*s);
  listen();
  check(*s, apart, at);
  set("NARU_FAKE_NO_BIAS", "1");
  for (const Product& j : {job(1, 6, 7, 9, true), job(3, 5, 7, 8, true)}) check(*s, j, at);
  auto count = counted();
  EXPECT_EQ(count["cublasLtMatmul"], 3);
  EXPECT_EQ(count["cuLaunchKernel"], 3);
}

TEST_F(CudaMatMul, factors_without_a_unit_stride_are_copied_for_the_library) {
  std::vector<Product> all;
  Product j = job(1, 5, 7, 9);
  j.q.a.row_stride = j.q.a.col_stride = 0;  // a single repeated element
  all.push_back(j);
  j.q.batch = 3, j.q.a.batch_stride = 1, j.bias = 0;  // one for each matrix
  all.push_back(j);
  j = job(2, 5, 7, 9);
  j.q.b.batch_stride = 0, j.q.b.row_stride = 20, j.q.b.col_stride = 2;  // every other column
  all.push_back(j);
  j.q.a.batch_stride = 3, j.q.a.row_stride = 4;  // overlapping rows, too
  all.push_back(j);
  const auto s = stream();
  const Memory at = filled(*s);
  listen();
  for (const Product& each : all) {
    SCOPED_TRACE(&each - all.data());
    check(*s, each, at);
  }
  auto count = counted();
  EXPECT_EQ(count["cublasLtMatmul"], 4);
  EXPECT_EQ(count["cuLaunchKernel"], 5);
}

TEST_F(CudaMatMul, an_algorithm_is_asked_for_once_a_shape_and_a_handle_once_a_device) {
  const auto a = stream(), b = stream(), there = stream(3);
  const Memory at = filled(*a), other = filled(*there, 3);
  a->synchronize(a->submitted());
  listen();
  for (int i = 0; i < 5; ++i) {
    for (auto* s : {a.get(), b.get()}) s->submit(placed(job(1, 5, 7, 9, true), at), {});
    there->submit(placed(job(1, 5, 7, 9, true), other), {});
  }
  a->submit(placed(job(1, 5, 7, 8, true), at), {});
  Product misaligned = job(1, 5, 7, 9, true);
  misaligned.a = 1;
  a->submit(placed(misaligned, at), {});
  for (auto* s : {a.get(), b.get(), there.get()}) s->synchronize(s->submitted());
  auto count = counted();
  EXPECT_EQ(count["cublasLtCreate"], 2);
  EXPECT_EQ(count["cublasLtMatmulAlgoGetHeuristic"], 4);
  EXPECT_EQ(count["cublasLtMatmul"], 17);
  EXPECT_EQ(count["cublasLtDestroy"], 0);
}

TEST_F(CudaMatMul, handles_are_given_back_with_the_backend) {
  {
    const auto a = stream(), b = stream(3);
    a->synchronize(a->submit(placed(job(1, 5, 7, 9), filled(*a)), {}));
    b->synchronize(b->submit(placed(job(1, 5, 7, 9), filled(*b, 3)), {}));
  }
  listen();
  backend.reset();
  EXPECT_EQ(counted()["cublasLtDestroy"], 2);
}

TEST_F(CudaMatMul, the_table_of_algorithms_is_bounded) {
  const auto s = stream();
  const Memory at = filled(*s);
  const auto ask = [&](int64_t rows) { s->submit(placed(job(1, rows, 1, 1), at), {}); };
  constexpr int64_t kMost = Products::kMostPlans;
  for (int64_t rows = 1; rows <= kMost; ++rows) ask(rows);
  listen();
  ask(1);  // has a plan
  ask(kMost + 1), ask(1);
  s->synchronize(s->submitted());
  EXPECT_EQ(counted()["cublasLtMatmulAlgoGetHeuristic"], 2);
}

TEST_F(CudaMatMul, without_the_library_an_algorithm_or_memory_to_work_in_own_kernels_do_it) {
  const Product j = job(2, 5, 7, 9, true);
  const std::pair<const char*, const char*> troubles[] = {{"NARU_CUBLASLT_LIBRARY", "/nowhere/libcublasLt.so"},
                                                          {"NARU_CUBLASLT_LIBRARY", NARU_FAKES "/libnvrtc.so"},
                                                          {"NARU_FAKE_ERROR", "cublasLtCreate=1"},
                                                          {"NARU_FAKE_ERROR", "cublasLtMatmulAlgoGetHeuristic=15"},
                                                          {"NARU_FAKE_ERROR", "cublasLtMatmulAlgoGetHeuristic=7"},
                                                          {"NARU_FAKE_ERROR", "cublasLtMatmulAlgoGetHeuristic=8"},
                                                          {"NARU_FAKE_VERSION", "11080"},
                                                          {"NARU_FAKE_ERROR", "cublasLtMatmul=15"},
                                                          {"NARU_FAKE_NO_ALGORITHM", "1"},
                                                          {"NARU_FAKE_WORKSPACE", "999999999"}};
  const std::string library = std::getenv("NARU_CUBLASLT_LIBRARY");
  for (const auto& [variable, value] : troubles) {
    SCOPED_TRACE(value);
    set(variable, value);
    backend = backends::make_cuda();
    const auto s = stream();
    const Memory at = filled(*s);
    for (int i = 0; i < 3; ++i) check(*s, j, at);
    unsetenv(variable);
    set("NARU_CUBLASLT_LIBRARY", library);
  }
}

TEST_F(CudaMatMul, where_no_memory_to_work_in_is_left_own_kernels_do_it) {
  const auto s = stream(3);
  const Memory at = filled(*s, 3);
  const Device last(DeviceType::Cuda, 3);
  const size_t rest = backend->free_memory(last) - 2 * kMiB;
  void* const most = memory(rest, 3);
  ASSERT_NE(most, nullptr);
  set("NARU_FAKE_WORKSPACE", std::to_string(4 * kMiB));
  listen();
  ::testing::internal::CaptureStderr();
  check(*s, job(1, 5, 7, 9), at, 3);
  check(*s, job(1, 5, 7, 9), at, 3);
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("cuda:3 has no memory left for cuBLASLt"), std::string::npos) << told;
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << "it is told once";
  EXPECT_FALSE(counted().contains("cublasLtMatmul"));
  backend->release(last, MemoryKind::Device, most, rest);
  check(*s, job(1, 5, 7, 9), at, 3);
}

TEST_F(CudaMatMul, a_full_cache_is_emptied_before_the_library_is_given_up) {
  const Device last(DeviceType::Cuda, 3);
  CachingAllocator cache(*backend, last);
  const auto s = stream(3);
  s->use_cache(cache);
  const Memory at = filled(*s, 3);
  cache.release(cache.allocate(backend->free_memory(last) - 4 * kMiB));
  set("NARU_FAKE_WORKSPACE", std::to_string(6 * kMiB));
  listen();
  check(*s, job(1, 5, 7, 9), at, 3);
  EXPECT_EQ(counted()["cublasLtMatmul"], 1);
  EXPECT_GE(cache.stats().reserved(), 6 * kMiB) << "memory to work in counts";
  cache.empty_cache();
  EXPECT_EQ(cache.stats().reserved(), 0u);
}

TEST_F(CudaMatMul, each_stream_has_memory_of_its_own_to_work_in) {
  set("NARU_FAKE_WORKSPACE", "100000");
  const auto a = stream(), b = stream();
  const Memory x = filled(*a), y = filled(*b);
  a->synchronize(a->submitted());
  const Product one = job(1, 20, 30, 40), two = job(2, 10, 30, 40);
  for (int i = 0; i < 4; ++i) a->submit(placed(one, x), {}), b->submit(placed(two, y), {});
  // Each call of completed() lets the stream do one step of work, so the two alternate.
  for (int i = 0; i < 1000; ++i) a->completed(), b->completed();
  EXPECT_EQ(a->completed() + b->completed(), a->submitted() + b->submitted());
  float got = 0;
  a->synchronize(down(*a, &got, x.c, 4));
  EXPECT_NEAR(got, wanted(one, 0, 0, 0), 1e-5f);
  b->synchronize(down(*b, &got, y.c, 4));
  EXPECT_NEAR(got, wanted(two, 0, 0, 0), 1e-5f);
}

TEST_F(CudaMatMul, threads_with_streams_of_their_own_get_their_own_matmuls_and_biases) {
  constexpr int kThreads = 4, kRounds = 50;
  std::vector<std::unique_ptr<DeviceStream>> streams;
  std::vector<Memory> places;
  for (int i = 0; i < kThreads; ++i) {
    streams.push_back(stream());
    places.push_back(filled(*streams.back()));
  }
  std::array<float, kThreads> got{};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      const auto at = static_cast<size_t>(i);
      Product j = job(1, 3, 4, 5, true);
      j.bias = 64 * i;
      for (int round = 0; round < kRounds; ++round) streams[at]->submit(placed(j, places[at]), {});
      streams[at]->synchronize(down(*streams[at], &got[at], places[at].c + 11, 4));
    });
  for (std::thread& t : threads) t.join();
  for (int i = 0; i < kThreads; ++i) {
    Product j = job(1, 3, 4, 5, true);
    j.bias = 64 * i;
    EXPECT_NEAR(got[static_cast<size_t>(i)], wanted(j, 0, 2, 3), 1e-5f) << i;
  }
}

TEST_F(CudaMatMul, a_failure_says_which_product_and_what_the_library_said_and_the_device_goes_on) {
  const auto s = stream();
  const Memory at = filled(*s);
  check(*s, job(2, 5, 7, 9, true), at);
  const auto said = [&](const char* error, const Product& j) -> std::string {
    set("NARU_FAKE_ERROR", error);
    s->submit(placed(j, at), {});
    try {
      s->synchronize(s->submitted());
    } catch (const OutOfMemoryError& e) {
      return std::string("memory: ") + e.what();
    } catch (const RuntimeError& e) {
      return e.what();
    }
    return "nothing";
  };
  EXPECT_EQ(said("cublasLtMatmul=13@1", job(2, 5, 7, 9, true)),
            "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasLtMatmul` on cuda:0 for the matrix product of 5 x 9 and 9 x 7, "
            "2 of them, with bias, float32. "
            "`use_deterministic_algorithms(True)` takes naru's own kernels");
  EXPECT_EQ(said("cublasLtMatmul=3@1", job(1, 5, 7, 9)),
            "memory: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasLtMatmul` on cuda:0 for the matrix product of 5 x 9 and 9 "
            "x 7, float32. "
            "Use smaller tensors, or free some");
  EXPECT_EQ(said("cublasLtMatmulAlgoGetHeuristic=14@1", job(1, 6, 7, 9)),
            "CUDA error: CUBLAS_STATUS_INTERNAL_ERROR when calling `cublasLtMatmulAlgoGetHeuristic`");
  unsetenv("NARU_FAKE_ERROR");
  check(*s, job(2, 5, 7, 9, true), at);
}

TEST_F(CudaMatMul, factors_are_rounded_to_tf32_only_where_that_is_allowed_and_the_device_can) {
  Product j = job(1, 1, 1, 1);
  for (const bool allowed : {false, true})
    for (const int device : {0, 3}) {
      const auto s = stream(device);
      const Memory at = filled(*s, device);
      j.q.precision.tf32 = allowed;
      float got = 0;
      s->submit(placed(j, at), {});
      s->synchronize(down(*s, &got, at.c, 4, device));
      const bool rounded = got != static_cast<float>(double{numbers[0]} * double{numbers[1000]});
      EXPECT_EQ(rounded, allowed && device == 0) << device;
      EXPECT_NEAR(got, numbers[0] * numbers[1000], 1e-3f);
    }
}

TEST_F(CudaMatMul, devices_say_which_library_they_have_or_how_to_get_it) {
  const Device first(DeviceType::Cuda, 0);
  EXPECT_EQ(backend->libraries(first), "NVRTC 12.9, cuBLASLt 12.9.5, cuFFT 11.3.3, cuSOLVER 11.7.1, cuDNN 9.19.0, NCCL 2.28.3");
  EXPECT_EQ(backend->libraries(Device(DeviceType::Cuda, 3)),
            backend->libraries(first) + "; never run by naru's authors on a GPU of its compute capability");
  set("NARU_CUBLASLT_LIBRARY", "/nowhere/libcublasLt.so");
  EXPECT_EQ(backends::make_cuda()->libraries(first),
            "NVRTC 12.9, own kernels for products (no cuBLASLt: pip install nvidia-cublas-cu12, or the CUDA toolkit), cuFFT 11.3.3, "
            "cuSOLVER 11.7.1, cuDNN 9.19.0, NCCL 2.28.3");
  set("NARU_CUBLASLT_LIBRARY", NARU_FAKES "/libcublasLt.so");
  set("NARU_FAKE_ERROR", "cublasLtCreate=1");
  backend = backends::make_cuda();
  const auto s = stream();
  s->synchronize(s->submit(placed(job(1, 5, 7, 9), filled(*s)), {}));
  EXPECT_EQ(backend->libraries(first),
            "NVRTC 12.9, own kernels for products (cuBLASLt 12.9.5 failed to start with CUBLAS_STATUS_NOT_INITIALIZED: "
            "pip install nvidia-cublas-cu12, or the CUDA toolkit), cuFFT 11.3.3, cuSOLVER 11.7.1, cuDNN 9.19.0, NCCL 2.28.3");
}

TEST(CudaRealLibrary, nvidias_own_cublaslt_takes_the_descriptors) {
  // Descriptors can be made without a GPU.
  const backends::gpu::VendorLibrary<CublasLt> library(13000);
  if (!library.get()) GTEST_SKIP() << "no cuBLASLt on this machine: " << library.text();
  const CublasLt& lt = *library.get();
  EXPECT_NE(lt.version(), 0);
  alignas(16) float memory[4] = {};
  for (const DType t : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (Product j : jobs_for_the_library()) {
      j.q.dtype = t, j.q.precision.tf32 = true, j.q.precision.reduced_accumulation = false;
      if (j.bias >= 0) j.q.bias = memory;
      const std::optional<LtMatMul> product = for_library(j.q, true);
      ASSERT_TRUE(product);
      LtDescriptors descriptors(lt, *product);
      if (j.q.bias) descriptors.set_bias(j.q.bias);
    }
}

}  // namespace
}  // namespace naru::runtime
