#include "runtime/device/registry.h"

#include <gtest/gtest.h>

#include <thread>

#include "backends/support.h"
#include "naru/error.h"
#include "ops/checks.h"

namespace naru::runtime {
namespace {

using testing::text_of;
using testing::Virtual;

TEST(Registry, the_cpu_is_always_there) {
  EXPECT_EQ(device_count(DeviceType::Cpu), 1);
  EXPECT_TRUE(availability(DeviceType::Cpu).available);
  EXPECT_EQ(resolve(Device("cpu")), Device("cpu"));
  EXPECT_EQ(resolve(Device("cpu:0")), Device("cpu"));
  const Properties p = properties(Device("cpu"));
  EXPECT_TRUE(p.synchronous);
#if defined(__x86_64__)
  EXPECT_TRUE(p.tested_on_hardware);
#else
  EXPECT_FALSE(p.tested_on_hardware);  // on other processors the tests have run only in an emulator
#endif
  const Capabilities can = backend_of(DeviceType::Cpu).capabilities(Device("cpu"));
  EXPECT_TRUE(can.unified_memory && can.supports_everything());
  EXPECT_GT(p.total_memory, size_t{64} << 20);
  EXPECT_FALSE(p.name.empty());
  EXPECT_FALSE(p.libraries.empty());
  EXPECT_NE(text_of<RuntimeError>([] { resolve(Device("cpu:3")); }).find("got 3"), std::string::npos);
}

TEST(Registry, an_absent_kind_says_why_and_what_to_do) {
  const Virtual none("");
  EXPECT_EQ(device_count(DeviceType::Mps), 0);
  const Availability a = availability(DeviceType::Mps);
  EXPECT_FALSE(a.available);
  const std::string text = text_of<DeviceUnavailableError>([] { resolve(Device("mps")); });
  EXPECT_EQ(text, "device 'mps' is not available: " + a.reason + ". " + a.remedy);
  EXPECT_NE(a.remedy.find("NARU_VIRTUAL=mps:1"), std::string::npos);
  EXPECT_THROW(backend_of(DeviceType::Xpu), DeviceUnavailableError);
}

TEST(Registry, virtual_devices_come_and_go) {
  {
    const Virtual some("cuda:3, mps:1");
    EXPECT_EQ(device_count(DeviceType::Cuda), 3);
    EXPECT_EQ(device_count(DeviceType::Mps), 1);
    EXPECT_EQ(device_count(DeviceType::Xpu), 0);
    EXPECT_EQ(resolve(Device("cuda")), Device("cuda:0"));
    EXPECT_EQ(properties(Device("cuda:1")).name, "Virtual cuda");
    EXPECT_TRUE(availability(DeviceType::Cuda).available);
    EXPECT_NE(text_of<DeviceUnavailableError>([] { resolve(Device("cuda:3")); }).find("wanted an index below 3, got 3"), std::string::npos);
    const auto kept = make_storage(Device("cuda:2"), 4096);
    set_virtual_devices("cuda:1");
    EXPECT_THROW(resolve(Device("cuda:2")), DeviceUnavailableError);
    EXPECT_NE(kept->data, nullptr);
  }
  EXPECT_EQ(device_count(DeviceType::Cuda), 0);
}

TEST(Registry, the_current_device_is_the_threads_own) {
  const Virtual some("cuda:2");
  set_current_device(DeviceType::Cuda, 1);
  EXPECT_EQ(resolve(Device("cuda")), Device("cuda:1"));
  std::thread([] { EXPECT_EQ(resolve(Device("cuda")), Device("cuda:0")); }).join();
  EXPECT_THROW(set_current_device(DeviceType::Cuda, 2), DeviceUnavailableError);
  EXPECT_THROW(set_current_device(DeviceType::Cuda, -1), DeviceUnavailableError);
  EXPECT_EQ(current_device(DeviceType::Cuda), 1);
  set_current_device(DeviceType::Cuda, 0);
}

TEST(VirtualDevices, a_specification_that_cannot_be_read_is_an_error_that_says_what_is_wrong) {
  const Virtual before("cuda:1");
  for (const char* bad : {"cuda:", "cuda:x", "cuda:-1", "cuda:99", "gpu:1", "cpu:2", "cuda:1,,mps:1", "cuda:1:2", ":3", "cuda 2"}) {
    const std::string text = text_of<RuntimeError>([&] { set_virtual_devices(bad); });
    EXPECT_NE(text.find(std::string("got '") + bad + "'"), std::string::npos) << text;
    EXPECT_NE(text.find("cuda:4,mps:1"), std::string::npos) << text;
  }
  EXPECT_EQ(device_count(DeviceType::Cuda), 1) << "a bad specification changed the devices";
}

TEST(Memory, small_storages_on_cpu_come_from_the_pool_and_are_not_counted) {
  const size_t before = memory_stats(Device("cpu")).allocated();
  const auto small = make_storage(Device("cpu"), 100);
  EXPECT_EQ(memory_stats(Device("cpu")).allocated(), before);
  const auto large = make_storage(Device("cpu"), 100000);
  // Rounded up, unless NARU_CACHING=0 passes requests through unchanged.
  EXPECT_GE(memory_stats(Device("cpu")).allocated(), before + 100000);
  EXPECT_LE(memory_stats(Device("cpu")).allocated(), before + 100352);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large->data) % 64, 0u);
}

TEST(Memory, lazy_storages_take_memory_when_they_are_allocated_and_refuse_what_no_device_holds) {
  const Virtual some("cuda:1");
  const size_t before = memory_stats(Device("cuda:0")).allocated();
  const auto s = make_lazy_storage(Device("cuda:0"), 1 << 20);
  EXPECT_EQ(s->data, nullptr);
  EXPECT_EQ(memory_stats(Device("cuda:0")).allocated(), before);
  allocate_storage(*s);
  void* const data = s->data;
  EXPECT_NE(data, nullptr);
  allocate_storage(*s);
  EXPECT_EQ(s->data, data);
  EXPECT_EQ(memory_stats(Device("cuda:0")).allocated(), before + (1 << 20));
  EXPECT_THROW(make_lazy_storage(Device("cuda:0"), size_t{1} << 45), OutOfMemoryError);
  EXPECT_THROW(make_lazy_storage(Device("cpu"), size_t{1} << 60), OutOfMemoryError);
}

TEST(Memory, external_memory_goes_back_to_its_owner_when_the_last_view_is_gone) {
  static int released = 0;
  int value = 5;
  {
    const auto s = make_external_storage(
        Device("cpu"), &value, sizeof value, [](void* owner) { released += *static_cast<int*>(owner); }, &value);
    const Ref<Storage> again = s;
    EXPECT_EQ(s->data, &value);
    EXPECT_FALSE(s->resizable);
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 5);
}

TEST(Memory, pinned_storages_are_host_memory) {
  const Virtual some("cuda:1");
  const auto s = make_pinned_storage(5000);
  EXPECT_TRUE(s->pinned);
  EXPECT_TRUE(s->device.is_cpu());
  std::memset(s->data, 1, 5000);
}

}  // namespace
}  // namespace naru::runtime
