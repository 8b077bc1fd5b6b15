// Each allocation of host memory fails in turn.
#include <gtest/gtest.h>

#include "host_memory.h"
#include "naru/device/devices.h"
#include "sweep.h"

namespace naru::faults {
namespace {

Fault request_by(Callers callers) {
  return {[callers](uint64_t n) { fail_request(n, callers); }, [](const std::string&) { return stop_failing(); }};
}

class EachHostAllocation : public ::testing::TestWithParam<Step> {};

TEST_P(EachHostAllocation, fails_once_on_cpu) { EXPECT_GT(sweep(GetParam(), Device("cpu"), request_by(Callers::AndStandardLibrary)), 0u); }

TEST_P(EachHostAllocation, fails_once_on_a_virtual_device) {
  set_virtual_devices("mps:1");
  EXPECT_GT(sweep(GetParam(), Device("mps:0"), request_by(Callers::AndStandardLibrary)), 0u);
  set_virtual_devices("");
}

INSTANTIATE_TEST_SUITE_P(Steps, EachHostAllocation, ::testing::ValuesIn(steps()), [](const auto& info) { return info.param.name; });

// Only the streams' own allocations, not those of the drivers.
class EachHostAllocationOfAStream : public ::testing::TestWithParam<const char*> {};

TEST_P(EachHostAllocationOfAStream, fails_once_on_opencl) {
  if (device_count(DeviceType::Xpu) == 0) GTEST_SKIP() << why_unavailable(DeviceType::Xpu) << "; ./run test installs pocl-opencl-icd";
  EXPECT_GT(sweep(step(GetParam()), Device("xpu:0"), request_by(Callers::Program)), 0u);
}

TEST_P(EachHostAllocationOfAStream, fails_once_on_cuda) {
  EXPECT_GT(sweep(step(GetParam()), Device("cuda:0"), request_by(Callers::Program)), 0u);
}

INSTANTIATE_TEST_SUITE_P(Steps, EachHostAllocationOfAStream,
                         ::testing::Values("copies", "elementwise", "indexing", "graph_replays", "graph_captures", "user_kernel"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace naru::faults
