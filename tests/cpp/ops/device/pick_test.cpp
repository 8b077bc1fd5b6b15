#include <gtest/gtest.h>

#include "backends/support.h"
#include "naru/device/devices.h"
#include "naru/error.h"
#include "ops/checks.h"

namespace naru {
namespace {

using testing::text_of;
using testing::Virtual;

TEST(BestDevice, is_the_first_kind_that_there_is_with_reasons_for_the_others) {
  const Virtual some("mps:2,xpu:1");
  const BestDevice best = best_device();
  EXPECT_EQ(best.device, Device("xpu:0"));
  ASSERT_EQ(best.others.size(), 3u);
  EXPECT_EQ(best.others[0].first, DeviceType::Cuda);
  EXPECT_EQ(best.others[0].second, why_unavailable(DeviceType::Cuda));
  EXPECT_EQ(best.others[2].second, "available, but xpu comes before it");
  const Device device = best_device();
  EXPECT_EQ(device, best.device);
}

TEST(Pick, takes_the_device_that_has_what_is_wanted) {
  const Virtual some("cuda:3,mps:1");
  EXPECT_EQ(pick(), Device("cuda:0"));
  EXPECT_EQ(pick({.kind = DeviceType::Mps}), Device("mps:0"));
  EXPECT_EQ(pick({.kind = DeviceType::Cpu}), Device("cpu"));
  const auto held = runtime::make_storage(Device("cuda:0"), 1 << 20);
  EXPECT_EQ(pick({.free_memory = 1}), Device("cuda:1"));
  for (int i = 0; i < 3; ++i) {
    const runtime::Properties p = runtime::properties(Device(DeviceType::Cuda, i));
    EXPECT_EQ(pick({.uuid = p.uuid}), Device(DeviceType::Cuda, i));
    EXPECT_EQ(pick({.pci = p.pci}), Device(DeviceType::Cuda, i));
  }
}

TEST(Pick, says_what_each_device_has_where_none_fits) {
  const Virtual some("cuda:2");
  const std::string text = text_of<DeviceUnavailableError>([] { pick({.kind = DeviceType::Cuda, .free_memory = size_t{1} << 50}); });
  EXPECT_NE(text.find("wanted a cuda device with 1.00 PiB of free memory"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  cuda:0 (Virtual cuda) has "), std::string::npos) << text;
  EXPECT_NE(text.find("\n  cuda:1 (Virtual cuda) has "), std::string::npos) << text;
  EXPECT_NE(text_of<DeviceUnavailableError>([] { pick({.kind = DeviceType::Mps}); }).find(why_unavailable(DeviceType::Mps)),
            std::string::npos);
  EXPECT_NE(text_of<ValueError>([] { pick({.pci = "bus 3"}); }).find("got 'bus 3'"), std::string::npos);
}

}  // namespace
}  // namespace naru
