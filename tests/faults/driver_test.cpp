// Each call of the drivers' libraries fails in turn: OpenCL's in a wrapper of the machine's own (PoCL), CUDA's in a fake.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "naru/device/devices.h"
#include "naru/device/fallback.h"
#include "naru/device/precision.h"
#include "sweep.h"

namespace naru::faults {
namespace {

// A test-only function of a fake library.
template <class F>
F* fake(const char* library, const char* name) {
  return reinterpret_cast<F*>(dlsym(dlopen(library, RTLD_NOW | RTLD_NOLOAD), name));
}

// `code`: the value that the failing call returns.
Fault call_of(const char* library, int code) {
  return {[=](uint64_t n) { fake<void(int64_t, int)>(library, "fake_fail_call")(static_cast<int64_t>(n), code); },
          [=](const std::string&) {
            const char* const failed = fake<const char*()>(library, "fake_failed_call")();
            fake<void(int64_t, int)>(library, "fake_fail_call")(0, 0);
            return failed != nullptr;
          }};
}

class EachCallOfADriver : public ::testing::TestWithParam<Step> {};

TEST_P(EachCallOfADriver, of_opencl_fails_once) {
  constexpr int kOutOfResources = -5;
  const Device device("xpu:0");
  if (device_count(DeviceType::Xpu) == 0) GTEST_SKIP() << why_unavailable(DeviceType::Xpu) << "; ./run test installs pocl-opencl-icd";
  // Each needs a compilation; 20 cover all calls of the first kernel.
  const std::optional<uint64_t> last = GetParam().name == std::string_view("new_programs") ? std::optional<uint64_t>(20) : std::nullopt;
  EXPECT_GT(sweep(GetParam(), device, call_of(NARU_FAKES "/libopencl.so", kOutOfResources), last), 0u);
}

TEST_P(EachCallOfADriver, of_cuda_fails_once) {
  constexpr int kOutOfMemory = 2;
  const Device device("cuda:0");
  ASSERT_EQ(device_count(DeviceType::Cuda), 1) << why_unavailable(DeviceType::Cuda);
  if (std::string_view(GetParam().name) == "new_programs") GTEST_SKIP() << "the stand-in's compiler is the machine's, and takes as long";
  const std::string_view name = GetParam().name;
  use_deterministic_algorithms(name != "products" && name != "convolutions" && name != "factors");
  set_fallback_policy(FallbackPolicy::Error);  // libraries' own fallbacks are not tested
  EXPECT_GT(sweep(GetParam(), device, call_of(NARU_FAKES "/libcuda.so", kOutOfMemory)), 0u);
  use_deterministic_algorithms(true);
  set_fallback_policy(FallbackPolicy::Count);
}

// Without SGD: the two optimizers make the same calls.
std::vector<Step> but_sgd() {
  std::vector<Step> list = steps();
  std::erase_if(list, [](const Step& s) { return s.name == std::string_view("sgd"); });
  return list;
}
INSTANTIATE_TEST_SUITE_P(Steps, EachCallOfADriver, ::testing::ValuesIn(but_sgd()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace naru::faults
