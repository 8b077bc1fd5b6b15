// Convolutions on cuda through cuDNN, with the fake NVIDIA libraries; the fake cuDNN (tests/fakes/cudnn.cpp) sums in float64, by definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "backends/cpu/exec/execute.h"
#include "backends/cuda/convolutions.h"
#include "backends/cuda_fixture.h"
#include "backends/dnn_device.h"
#include "naru/error.h"

namespace naru::runtime {
namespace {

using backends::cuda::add_convolution;
using backends::cuda::Cudnn;
using backends::cuda::DnnCheck;
using backends::cuda::DnnDescriptor;
using backends::cuda::DnnEngine;
using backends::cuda::DnnGraph;
using backends::cuda::engines_of;
using backends::cuda::is_exact;
using backends::gpu::dense_convolution;
using backends::gpu::dense_strides;
using backends::gpu::Sizes5;
using backends::gpu::VendorLibrary;
using ir::Convolution;
using Use = Convolution::Use;

enum class Format { Contiguous, Last, Apart, Repeated };  // Apart: not dense; Repeated: batch stride 0

struct Shape {
  int64_t batch, groups, in, out;
  Convolution::Sizes size, kernel, stride, padding, dilation;
};
constexpr Shape kPlain{2, 1, 3, 4, {1, 6, 5}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}};
constexpr Shape kShapes[] = {kPlain,
                             {2, 1, 3, 2, {1, 1, 9}, {1, 1, 4}, {1, 1, 2}, {0, 0, 1}, {1, 1, 1}},  // one dimension
                             {2, 2, 2, 3, {1, 7, 6}, {1, 3, 2}, {1, 2, 1}, {0, 2, 0}, {1, 2, 3}},  // groups, windows of all kinds
                             {1, 4, 1, 1, {1, 5, 5}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},  // depthwise
                             {2, 1, 2, 3, {4, 3, 5}, {2, 3, 2}, {1, 1, 2}, {1, 1, 0}, {1, 1, 1}},  // three dimensions
                             {1, 1, 1, 1, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}}};

Convolution::Array laid(const Sizes5& sizes, Format format) {
  Convolution::Array a;
  a.strides = dense_strides(sizes, format == Format::Last);
  for (int64_t& s : a.strides) s *= format == Format::Apart ? 2 : 1;
  if (format == Format::Repeated) a.strides[0] = 0;
  return a;
}
int64_t reach(const Sizes5& sizes, const Convolution::Array& a) {
  int64_t n = 1;
  for (size_t d = 0; d < 5; ++d) n += (sizes[d] - 1) * a.strides[d];
  return n;
}

Convolution convolution(const Shape& s, Use use, Format x = Format::Contiguous, Format w = Format::Contiguous,
                        Format y = Format::Contiguous) {
  Convolution q;
  q.use = use;
  q.batch = s.batch, q.groups = s.groups, q.in = s.in, q.out = s.out;
  q.size = s.size, q.kernel = s.kernel, q.stride = s.stride, q.padding = s.padding, q.dilation = s.dilation;
  for (size_t d = 0; d < 3; ++d) q.result[d] = 1 + (s.size[d] + 2 * s.padding[d] - ((s.kernel[d] - 1) * s.dilation[d] + 1)) / s.stride[d];
  q.x = laid(q.sizes_of_x(), x), q.w = laid(q.sizes_of_w(), w), q.y = laid(q.sizes_of_y(), y);
  return q;
}

class CudaConvolution : public CudaFixture {
 protected:
  // Elements of each operand's memory.
  static constexpr int64_t kSize = 1000;
  using Bytes = std::vector<char>;

  // Values that the type represents exactly.
  Bytes numbers(DType type, uint32_t seed) {
    std::mt19937 random(seed);
    Bytes bytes(static_cast<size_t>(kSize) * size_of(type));
    for (int64_t i = 0; i < kSize; ++i)
      testing::write(type, bytes.data() + static_cast<size_t>(i) * size_of(type), static_cast<double>(random()) / 4294967296.0 - 0.5);
    return bytes;
  }
  static std::vector<double> doubles(const Bytes& bytes, DType type) {
    std::vector<double> d(kSize);
    for (size_t i = 0; i < d.size(); ++i) d[i] = testing::read(type, bytes.data() + i * size_of(type));
    return d;
  }
  struct Memory {
    void *x, *w, *y, *bias;
  };
  Memory filled(DeviceStream& s, DType type, int device = 0) {
    const auto make = [&](uint32_t seed) {
      const Bytes bytes = numbers(type, seed);
      void* const p = memory(bytes.size(), device);
      s.synchronize(up(s, p, bytes.data(), bytes.size(), device));
      return p;
    };
    return {make(1), make(2), make(3), make(4)};
  }
  static Convolution placed(Convolution q, const Memory& at, bool bias) {
    q.x.data = at.x, q.w.data = at.w, q.y.data = at.y;
    if (bias) q.bias = at.bias;
    return q;
  }
  // Runs it on the stream, and in float64 on the host, and compares all of the result's memory.
  void check(DeviceStream& s, Convolution q, DType type, bool bias = false, int device = 0) {
    q.dtype = type;
    ASSERT_LE(std::max({reach(q.sizes_of_x(), q.x), reach(q.sizes_of_w(), q.w), reach(q.sizes_of_y(), q.y)}), kSize);
    const Memory at = filled(s, type, device);
    const Convolution there = placed(q, at, bias);
    s.submit(there, {});
    void* const result = q.use == Use::Forward ? at.y : q.use == Use::Input ? at.x : at.w;
    Bytes got(static_cast<size_t>(kSize) * size_of(type));
    s.synchronize(down(s, got.data(), result, got.size(), device));
    std::vector<double> x = doubles(numbers(type, 1), type), w = doubles(numbers(type, 2), type), y = doubles(numbers(type, 3), type),
                        b = doubles(numbers(type, 4), type);
    Convolution here = placed(q, {x.data(), w.data(), y.data(), b.data()}, bias);
    here.dtype = DType::F64, here.precision.deterministic = true;
    cpu::execute(here);
    const std::vector<double>& wanted = q.use == Use::Forward ? y : q.use == Use::Input ? x : w;
    const std::vector<double> all = doubles(got, type);
    const double bound = type == DType::F64 ? 1e-14 : type == DType::F32 ? 2e-6 : type == DType::F16 ? 4e-3 : 3e-2;
    for (size_t i = 0; i < all.size(); ++i) ASSERT_NEAR(all[i], wanted[i], bound) << i;
    const size_t bytes = static_cast<size_t>(kSize) * size_of(type);
    for (void* p : {at.x, at.w, at.y, at.bias}) backend->release(Device(DeviceType::Cuda, device), MemoryKind::Device, p, bytes);
  }
  static int descriptors() {
    void* const library = dlopen(NARU_FAKES "/libcudnn.so", RTLD_NOW | RTLD_NOLOAD);
    return library ? reinterpret_cast<int (*)()>(dlsym(library, "fake_cudnn_descriptors"))() : 0;
  }
};

// The descriptors of a float32 convolution: three tensors, the window, the operation, the graph, three engines with exact results, and one plan.
constexpr int kOfOnePlan = 10;
constexpr Use kUses[] = {Use::Forward, Use::Input, Use::Weight};
constexpr const char* kWork = "cudnnBackendExecute";

TEST_F(CudaConvolution, the_library_computes_every_use_shape_and_type) {
  const auto s = stream();
  listen();
  for (const Use use : kUses)
    for (const Shape& shape : kShapes)
      for (const DType type : {DType::F32, DType::F64, DType::F16, DType::BF16}) {
        SCOPED_TRACE(::testing::Message() << static_cast<int>(use) << ' ' << &shape - kShapes << ' ' << naru::name_of(type));
        check(*s, convolution(shape, use), type);
        if (::testing::Test::HasFatalFailure()) return;
      }
  const auto count = counted();
  EXPECT_EQ(count.at(kWork), static_cast<int>(3 * 4 * std::size(kShapes)));
  EXPECT_FALSE(count.contains("cuLaunchKernel"));
}

TEST_F(CudaConvolution, channels_last_are_the_librarys_own_layout_and_others_are_copied) {
  const auto s = stream();
  // The number of copy kernels: for operands whose layout differs from the images', and for the result.
  struct Case {
    Format x, w, y;
    int copies[3];  // for Forward, Input, Weight
  };
  using enum Format;
  const Case cases[] = {{Last, Last, Last, {0, 0, 0}},
                        {Last, Contiguous, Last, {1, 1, 1}},
                        {Contiguous, Contiguous, Last, {2, 2, 2}},
                        {Apart, Contiguous, Contiguous, {1, 1, 1}},
                        {Contiguous, Apart, Contiguous, {1, 1, 1}},
                        {Contiguous, Contiguous, Apart, {1, 1, 1}}};
  for (const Case& c : cases)
    for (const Use use : kUses) {
      SCOPED_TRACE(::testing::Message() << &c - cases << ' ' << static_cast<int>(use));
      listen();
      check(*s, convolution(kPlain, use, c.x, c.w, c.y), DType::F32);
      auto count = counted();
      std::remove(log.c_str());
      EXPECT_EQ(count[kWork], 1);
      EXPECT_EQ(count["cuLaunchKernel"], c.copies[static_cast<int>(use)]);
      if (::testing::Test::HasFatalFailure()) return;
    }
  check(*s, convolution(kPlain, Use::Forward, Repeated), DType::F32);
  check(*s, convolution(kShapes[4], Use::Weight, Last, Last, Last), DType::F16);
  listen();
  check(*s, convolution(kPlain, Use::Forward, Last, Last, Last), DType::F64);
  auto count = counted();
  EXPECT_EQ(count[kWork], 1) << "of float64 there is no such layout: copies";
  EXPECT_EQ(count["cuLaunchKernel"], 3);
}

TEST_F(CudaConvolution, a_bias_is_added_behind_it) {
  const auto s = stream();
  listen();
  for (const Use use : {Use::Forward, Use::Input})
    for (const Format format : {Format::Contiguous, Format::Last, Format::Apart})
      check(*s, convolution(kShapes[2], use, format, format, format), DType::F32, true);
  Convolution q = convolution(kPlain, Use::Forward);
  q.bias_stride = 3;
  check(*s, q, DType::F32, true);
  EXPECT_EQ(counted()[kWork], 7);
}

TEST_F(CudaConvolution, what_is_not_for_the_library_is_done_by_own_kernels) {
  const auto s = stream();
  Convolution deterministic = convolution(kPlain, Use::Forward), uneven = deterministic;
  deterministic.precision.deterministic = true;
  uneven.result[1] += 1;  // more padding at the end than at the start
  uneven.y = laid(uneven.sizes_of_y(), Format::Contiguous);
  listen();
  for (const Convolution& q : {deterministic, uneven}) {
    EXPECT_FALSE(dense_convolution(q, false));
    check(*s, q, DType::F32);
  }
  EXPECT_FALSE(counted().contains(kWork));
  Convolution q = convolution(kPlain, Use::Forward);
  EXPECT_TRUE(dense_convolution(q, false));
  q.dtype = DType::I32;
  EXPECT_FALSE(dense_convolution(q, false));
  q.dtype = DType::F32, q.batch = int64_t{1} << 28;
  EXPECT_FALSE(dense_convolution(q, false)) << "more elements than it counts";
}

TEST_F(CudaConvolution, an_algorithm_is_asked_for_once_a_shape_and_a_handle_once_a_device) {
  const auto a = stream(), b = stream(), other = stream(1);
  const int before = descriptors();
  const Convolution q = placed(convolution(kPlain, Use::Forward), filled(*a, DType::F32), false);
  const Convolution there = placed(convolution(kPlain, Use::Forward), filled(*other, DType::F32, 1), false);
  listen();
  for (int i = 0; i < 3; ++i) a->submit(q, {}), b->submit(q, {}), other->submit(there, {});
  for (auto* s : {a.get(), b.get(), other.get()}) s->synchronize(s->submitted());
  auto count = counted();
  EXPECT_EQ(count["cudnnCreate"], 2);
  EXPECT_EQ(count[kWork], 9);
  EXPECT_EQ(descriptors(), before + 2 * kOfOnePlan);
}

TEST_F(CudaConvolution, each_stream_has_memory_of_its_own_to_work_in) {
  const auto a = stream(), b = stream();
  const Convolution one = placed(convolution(kPlain, Use::Forward), filled(*a, DType::F32), false),
                    two = placed(convolution(kPlain, Use::Forward), filled(*b, DType::F32), false);
  for (int i = 0; i < 4; ++i) a->submit(one, {}), b->submit(two, {});
  // Each call of completed() lets the stream do one step of work, so the two alternate.
  for (int i = 0; i < 1000; ++i) a->completed(), b->completed();
  float first = 0, second = 0;
  a->synchronize(down(*a, &first, one.y.data, 4)), b->synchronize(down(*b, &second, two.y.data, 4));
  EXPECT_FALSE(std::isnan(first));
  EXPECT_EQ(first, second);
}

TEST_F(CudaConvolution, factors_are_rounded_to_tf32_only_where_that_is_allowed) {
  const auto s = stream();
  Convolution q = convolution(kPlain, Use::Forward);
  check(*s, q, DType::F32);
  q.precision.tf32 = true;
  q.x.data = q.y.data = q.w.data = nullptr;
  const Memory at = filled(*s, DType::F32);
  std::vector<float> exact(kSize), coarse(kSize);
  const auto result = [&](const Convolution& c, std::vector<float>& to) {
    s->submit(placed(c, at, false), {});
    s->synchronize(down(*s, to.data(), at.y, to.size() * 4));
  };
  result(convolution(kPlain, Use::Forward), exact), result(q, coarse);
  double error = 0;
  for (size_t i = 0; i < exact.size(); ++i) error = std::max(error, std::abs(double{exact[i]} - double{coarse[i]}));
  EXPECT_GT(error, 1e-5);
  EXPECT_LT(error, 1e-2);
}

TEST_F(CudaConvolution, without_the_library_an_algorithm_or_memory_to_work_in_own_kernels_do_it) {
  const std::pair<const char*, const char*> troubles[] = {{"NARU_CUDNN_LIBRARY", "/nowhere/libcudnn.so"},
                                                          {"NARU_CUDNN_LIBRARY", NARU_FAKES "/libnvrtc.so"},
                                                          {"NARU_FAKE_ERROR", "cudnnCreate=1001"},
                                                          {"NARU_FAKE_VERSION", "11080"},
                                                          {"NARU_FAKE_ERROR", "cudnnBackendFinalize=3000"},
                                                          {"NARU_FAKE_ERROR", "cudnnBackendFinalize=2000"},
                                                          {"NARU_FAKE_ERROR", "cudnnBackendGetAttribute=3004"},
                                                          {"NARU_FAKE_ERROR", "cudnnBackendSetAttribute=3000"},
                                                          {"NARU_FAKE_CONV_REFUSES", "all"},
                                                          {"NARU_FAKE_ERROR", "cudnnBackendExecute=3002"},
                                                          {"NARU_FAKE_ERROR", "cudnnBackendExecute=2003"}};
  for (const auto& [variable, value] : troubles) {
    SCOPED_TRACE(value);
    set(variable, value);
    backend = backends::make_cuda();
    const auto s = stream();
    check(*s, convolution(kPlain, Use::Forward), DType::F32, true);
    unsetenv(variable);
    set("NARU_CUDNN_LIBRARY", NARU_FAKES "/libcudnn.so");
  }
}

TEST_F(CudaConvolution, an_algorithm_without_memory_or_that_is_refused_in_the_end_leaves_it_to_the_next) {
  for (const auto& [variable, value] : {std::pair{"NARU_FAKE_CONV_WORKSPACE", "99999999999"}, {"NARU_FAKE_CONV_REFUSES", "run"}}) {
    SCOPED_TRACE(value);
    set(variable, value);
    backend = backends::make_cuda();
    const auto s = stream(1);
    listen();
    for (int i = 0; i < 2; ++i) check(*s, convolution(kPlain, Use::Weight), DType::F32, false, 1);
    auto count = counted();
    std::remove(log.c_str());
    EXPECT_EQ(count["cuLaunchKernel"], 0);
    EXPECT_EQ(count[kWork], std::string(value) == "run" ? 3 : 2);
    unsetenv(variable);
  }
  backend = backends::make_cuda();
  // The library refuses channels last, so copies are needed.
  set("NARU_FAKE_CONV_REFUSES", "nhwc");
  const auto s = stream();
  listen();
  check(*s, convolution(kPlain, Use::Forward, Format::Last, Format::Last, Format::Last), DType::F32);
  EXPECT_EQ(counted()[kWork], 1);
}

TEST_F(CudaConvolution, where_no_memory_is_left_for_copies_own_kernels_do_it_and_say_so_once) {
  const Device small(DeviceType::Cuda, 1);
  const auto s = stream(1);
  const auto of = [&](Format x) {
    Convolution q = placed(convolution(kPlain, Use::Forward, x), filled(*s, DType::F32, 1), false);
    q.dtype = DType::F32;
    return q;
  };
  const Convolution q = of(Format::Apart);
  s->synchronize(s->submitted());
  const size_t rest = backend->free_memory(small);
  std::vector<std::pair<void*, size_t>> taken;
  for (size_t bytes = rest; bytes > 0; bytes /= 2)
    while (void* const p = memory(bytes, 1)) taken.emplace_back(p, bytes);
  listen();
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) s->synchronize(s->submit(q, {}));
  const std::string told = ::testing::internal::GetCapturedStderr();
  auto count = counted();
  EXPECT_EQ(count[kWork], 0);
  EXPECT_EQ(count["cuLaunchKernel"], 2);
  EXPECT_NE(told.find("cuda:1 has no memory left for cuDNN to work in: convolutions are done by"), std::string::npos) << told;
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << "it is told once";
  for (const auto& [p, bytes] : taken) backend->release(small, MemoryKind::Device, p, bytes);
  s->synchronize(s->submit(q, {}));
}

TEST_F(CudaConvolution, a_failure_of_any_call_is_an_error_that_names_it_and_leaves_nothing_behind) {
  const char* const calls[] = {"cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute", "cudnnBackendFinalize",
                               "cudnnBackendGetAttribute",     "cudnnSetStream",           "cudnnBackendExecute"};
  const auto s = stream();
  const int before = descriptors();
  for (const char* call : calls) {
    SCOPED_TRACE(call);
    set("NARU_FAKE_ERROR", std::string(call) + "=5000@1");
    Convolution q = placed(convolution(kPlain, Use::Forward), filled(*s, DType::F32), false);
    s->submit(q, {});
    try {
      s->synchronize(s->submitted());
      ADD_FAILURE() << "nothing was said";
    } catch (const RuntimeError& e) {
      EXPECT_EQ(std::string(e.what()), std::string("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED, when calling `") + call +
                                           "` on cuda:0 for convolution of x 2 x 3 x 6 x 5, w 4 x 3 x 3 x 3 and y 2 x 4 x 6 x 5. "
                                           "`use_deterministic_algorithms(True)` takes naru's own kernels");
    }
    unsetenv("NARU_FAKE_ERROR");
  }
  EXPECT_EQ(descriptors(), before + kOfOnePlan) << "those of the plan that was made in the end";
  check(*s, convolution(kPlain, Use::Forward), DType::F32);
  set("NARU_FAKE_ERROR", "cudnnBackendExecute=4004@1");
  Convolution q = placed(convolution(kPlain, Use::Forward), filled(*s, DType::F32), false);
  s->submit(q, {});
  EXPECT_THROW(s->synchronize(s->submitted()), OutOfMemoryError);
}

TEST(CudaRealLibrary, nvidias_own_cudnn_has_an_exact_way_for_every_convolution) {
  const VendorLibrary<Cudnn> library(13000);
  if (!library.get() || library.get()->version() < testing::kWithoutDevice)
    GTEST_SKIP() << "no cuDNN that tells without a device: " << library.text();
  const Cudnn& f = *library.get();
  const DnnCheck check = [](int status, const char* function) { ASSERT_EQ(status, 0) << function; };
  const DnnDescriptor device = testing::h100(f, check);
  for (const Shape& shape : kShapes)
    for (const Use use : kUses)
      for (const DType type : {DType::F32, DType::F64, DType::F16, DType::BF16})
        for (const bool last : {false, true}) {
          Convolution q = convolution(shape, use);
          q.dtype = type;
          const auto c = dense_convolution(q, last);
          ASSERT_TRUE(c.has_value());
          if (last && type == DType::F64) continue;  // it is not asked for these
          DnnGraph operations(f, check, 100);
          add_convolution(operations, *c);
          const DnnDescriptor graph = operations.finish(nullptr);
          int exact = 0;
          for (DnnEngine& way : engines_of(f, {nullptr, &device}, graph, check))
            exact += exact == 0 && is_exact(*c, way.notes()) && way.usable(f, {nullptr, &device}, check);
          EXPECT_EQ(exact, 1) << &shape - kShapes << ' ' << static_cast<int>(use) << ' ' << naru::name_of(type) << ' ' << last;
        }
}

}  // namespace
}  // namespace naru::runtime
