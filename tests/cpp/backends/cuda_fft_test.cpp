// Fourier transforms on cuda through cuFFT, with the fake NVIDIA libraries; the fake cuFFT (tests/fakes/cufft.cpp) sums in float64, by
// definition.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backends/cpu/exec/execute.h"
#include "backends/cuda/transforms.h"
#include "backends/cuda_fixture.h"
#include "naru/error.h"

namespace naru::runtime {
namespace {

using backends::cuda::Cufft;
using backends::cuda::Transforms;
using backends::gpu::VendorLibrary;
using ir::Fft;
using Kind = Fft::Kind;

// Real numbers in each side's memory.
constexpr int64_t kSize = 2000;
const Device kFirst(DeviceType::Cuda, 0);

// A transform, and the offsets of its sides, in real numbers.
struct Job {
  Fft op;
  int64_t in = 0, out = 0;
};

Job dense(Kind kind, int64_t n, int64_t rows, bool inverse, double scale) {
  Job j;
  Fft& op = j.op;
  op.kind = kind, op.n = n, op.inverse = inverse, op.scale = scale, op.shape = {rows};
  const int64_t in_parts = op.complex_in() ? 2 : 1, out_parts = op.complex_out() ? 2 : 1;
  op.in.step = in_parts, op.in.strides = {in_parts * op.given()};
  op.out.step = out_parts, op.out.strides = {out_parts * op.made()};
  return j;
}

// Each kernel text costs a quarter of a second of host compilation, so there are few.
std::vector<Job> jobs() {
  std::vector<Job> all;
  for (const Kind kind : {Kind::Complex, Kind::RealToHalf, Kind::HalfToReal}) {
    for (const bool inverse : {false, true})
      for (const int64_t n : {1, 2, 5, 8}) all.push_back(dense(kind, n, 3, inverse, n == 5 ? 0.25 : 1));
    Job j = dense(kind, 6, 4, true, 1);
    j.in = 1, j.out = 3;  // not aligned to pairs
    if (kind != Kind::HalfToReal) all.push_back(j);
    j = dense(kind, 6, 4, true, 1);  // along the first dimension
    const int64_t in_parts = j.op.in.step, out_parts = j.op.out.step;
    j.op.in.step = 4 * in_parts, j.op.in.strides = {in_parts};
    j.op.out.step = 4 * out_parts, j.op.out.strides = {out_parts};
    all.push_back(j);
    j = dense(kind, 5, 3, true, 1);  // rows without a common stride
    j.op.shape = {2, 3};
    j.op.in.strides = {200, in_parts * 12}, j.op.out.strides = {out_parts * 30, out_parts * 8};
    if (kind == Kind::Complex) all.push_back(j);
  }
  return all;
}

class CudaFft : public CudaFixture {
 protected:
  void SetUp() override {
    CudaFixture::SetUp();
    std::mt19937 random(1);
    for (double& x : numbers) x = static_cast<double>(random()) / 4294967296.0 - 0.5;
  }

  // Runs it on the stream and on the host, and compares all of both sides' memory.
  template <class T>
  void check(DeviceStream& s, Job j, double bound) {
    j.op.dtype = sizeof(T) == 4 ? DType::F32 : DType::F64;
    std::vector<T> in(numbers.begin(), numbers.end()), out(in.size(), T(7)), got_in(in.size()), got_out(in.size());
    auto *const here_in = static_cast<T*>(memory(in.size() * sizeof(T))), *const here_out = static_cast<T*>(memory(in.size() * sizeof(T)));
    up(s, here_in, in.data(), in.size() * sizeof(T)), up(s, here_out, out.data(), out.size() * sizeof(T));
    Fft there = j.op;
    there.in.data = here_in + j.in, there.out.data = here_out + j.out;
    ASSERT_TRUE(backend->takes(kFirst, there));
    s.submit(there, {});
    down(s, got_in.data(), here_in, in.size() * sizeof(T));
    s.synchronize(down(s, got_out.data(), here_out, in.size() * sizeof(T)));
    EXPECT_EQ(got_in, in) << "the input is overwritten";
    Fft here = j.op;
    here.in.data = in.data() + j.in, here.out.data = out.data() + j.out;
    cpu::execute(here);
    for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(got_out[i], out[i], bound) << i;
    backend->release(kFirst, MemoryKind::Device, here_in, in.size() * sizeof(T));
    backend->release(kFirst, MemoryKind::Device, here_out, in.size() * sizeof(T));
  }
  Fft placed(const Job& j) {
    Fft op = j.op;
    op.in.data = memory(kSize * 4), op.out.data = memory(kSize * 4);
    return op;
  }

  std::vector<double> numbers = std::vector<double>(kSize);
};

TEST_F(CudaFft, the_library_transforms_every_kind_and_layout_as_the_host_does) {
  const auto s = stream();
  const std::vector<Job> all = jobs();
  for (const Job& j : all) {
    SCOPED_TRACE(&j - all.data());
    check<float>(*s, j, 2e-6);
    if (j.op.shape[0] == 3 && j.op.n == 8 && j.op.inverse == (j.op.kind != Kind::RealToHalf)) check<double>(*s, j, 1e-14);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST_F(CudaFft, a_plan_is_made_once_a_shape_and_given_back_with_the_backend) {
  const auto a = stream(), b = stream();
  const Fft one = placed(dense(Kind::Complex, 8, 3, false, 1)), other = placed(dense(Kind::Complex, 8, 4, false, 1));
  listen();
  for (int i = 0; i < 3; ++i)
    for (auto* s : {a.get(), b.get()}) {
      ASSERT_TRUE(backend->takes(kFirst, one));
      s->submit(one, {}), s->submit(other, {});
    }
  for (auto* s : {a.get(), b.get()}) s->synchronize(s->submitted());
  auto count = counted();
  EXPECT_EQ(count["cufftMakePlanMany64"], 2);
  EXPECT_EQ(count["cufftExecC2C"], 12);
  EXPECT_EQ(count["cufftDestroy"], 0);
}

TEST_F(CudaFft, each_stream_has_memory_of_its_own_to_work_in) {
  const auto a = stream(), b = stream();
  const Job j = dense(Kind::Complex, 8, 3, false, 1);
  const Fft one = placed(j), other = placed(j);
  const std::vector<float> in(numbers.begin(), numbers.end());
  up(*a, one.in.data, in.data(), kSize * 4), up(*b, other.in.data, in.data(), kSize * 4);
  for (int i = 0; i < 4; ++i) a->submit(one, {}), b->submit(other, {});
  // Each call of completed() lets the stream do one step of work, so the two alternate.
  for (int i = 0; i < 1000; ++i) a->completed(), b->completed();
  float first = 0, second = 0;
  a->synchronize(down(*a, &first, one.out.data, 4)), b->synchronize(down(*b, &second, other.out.data, 4));
  EXPECT_FALSE(std::isnan(first));
  EXPECT_EQ(first, second);
}

TEST_F(CudaFft, what_the_library_has_no_plan_for_is_not_taken) {
  const Job j = dense(Kind::Complex, 8, 3, false, 1);
  const std::pair<const char*, const char*> troubles[] = {{"NARU_CUFFT_LIBRARY", "/nowhere/libcufft.so"},
                                                          {"NARU_CUFFT_LIBRARY", NARU_FAKES "/libnvrtc.so"},
                                                          {"NARU_FAKE_ERROR", "cufftCreate=5"},
                                                          {"NARU_FAKE_ERROR", "cufftMakePlanMany64=2"},
                                                          {"NARU_FAKE_VERSION", "11080"},
                                                          {"NARU_FAKE_FFT_MOST", "7"}};
  for (const auto& [variable, value] : troubles) {
    SCOPED_TRACE(value);
    set(variable, value);
    backend = backends::make_cuda();
    EXPECT_FALSE(backend->takes(kFirst, placed(j)));
    unsetenv(variable);
    set("NARU_CUFFT_LIBRARY", NARU_FAKES "/libcufft.so");
  }
  backend = backends::make_cuda();
  EXPECT_TRUE(backend->takes(kFirst, placed(j)));
}

TEST_F(CudaFft, a_failure_says_which_transforms_and_what_the_library_said) {
  const auto s = stream();
  const Fft op = placed(dense(Kind::RealToHalf, 8, 3, false, 1));
  set("NARU_FAKE_ERROR", "cufftExecR2C=6@1");
  s->submit(op, {});
  try {
    s->synchronize(s->submitted());
    ADD_FAILURE() << "nothing was said";
  } catch (const RuntimeError& e) {
    EXPECT_STREQ(e.what(), "cuFFT error: CUFFT_EXEC_FAILED (3 transforms of 8 numbers on cuda:0)");
  }
}

}  // namespace
}  // namespace naru::runtime
