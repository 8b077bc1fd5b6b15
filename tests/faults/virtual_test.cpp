// Each allocation, copy and launch of virtual devices fails in turn.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "naru/device/devices.h"
#include "runtime/memory/memory.h"
#include "sweep.h"

namespace naru::faults {
namespace {

const char* const kOptions[] = {"fail_allocation", "fail_driver_allocation", "fail_copy", "fail_launch"};

class EachRequestOfAVirtualDevice : public ::testing::TestWithParam<std::tuple<Step, const char*>> {
 protected:
  void TearDown() override { set_virtual_devices(""); }
};

TEST_P(EachRequestOfAVirtualDevice, fails_once) {
  const auto [step, option] = GetParam();
  const Device device("mps:0");
  const Fault fault{[name = option](uint64_t n) { set_virtual_devices(fmt::format("mps:1({}={})", name, n)); },
                    [&](const std::string& said) {
                      const runtime::MemoryStats stats = runtime::memory_stats(device);
                      return !said.empty() || stats.failures > 0 || stats.driver_failures > 0;
                    }};
  set_virtual_devices("mps:1");
  const uint64_t failures = sweep(step, device, fault);
  EXPECT_TRUE(failures > 0 || option == kOptions[2]);  // not every step copies
}

INSTANTIATE_TEST_SUITE_P(Steps, EachRequestOfAVirtualDevice,
                         ::testing::Combine(::testing::ValuesIn(steps()), ::testing::ValuesIn(kOptions)),
                         [](const auto& info) { return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param); });

}  // namespace
}  // namespace naru::faults
