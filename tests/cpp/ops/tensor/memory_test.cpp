// Queries and settings of devices and their memory.
#include "naru/device/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "naru/device/devices.h"
#include "naru/device/threads.h"
#include "naru/ops.h"

namespace naru {
namespace {

struct DeviceMemory : ::testing::Test {
  DeviceMemory() { set_virtual_devices("cuda:2(memory=64MiB)"); }
  ~DeviceMemory() override { set_virtual_devices(""); }
  const Device device{"cuda:0"};
};

TEST_F(DeviceMemory, FiguresFollowTensors) {
  empty_cache(device);
  const size_t before = memory_allocated(device);
  {
    const Tensor t = ones({1 << 18}, device);
    EXPECT_EQ(memory_allocated(device), before + (size_t{1} << 20));
    EXPECT_GE(memory_reserved(device), size_t{1} << 20);
    const auto s = memory_stats(device);
    EXPECT_EQ(s.at("allocated_bytes.all.current"), static_cast<int64_t>(memory_allocated(device)));
    EXPECT_EQ(s.at("driver_used_bytes"), s.at("allocated_bytes.all.current") + s.at("cached_bytes") + s.at("other_bytes"));
  }
  EXPECT_EQ(memory_allocated(device), before);
  EXPECT_GE(max_memory_allocated(device), before + (size_t{1} << 20));
  reset_peak_memory_stats(device);
  EXPECT_EQ(max_memory_allocated(device), before);
  synchronize(device);
  empty_cache(device);
  EXPECT_EQ(memory_reserved(device), before);
  const auto [free, total] = mem_get_info(device);
  EXPECT_LE(free, total);
  EXPECT_EQ(total, size_t{64} << 20);
}

TEST_F(DeviceMemory, ALimitHolds) {
  set_per_process_memory_fraction(0.25, device);
  EXPECT_EQ(memory_stats(device).at("limit_bytes"), int64_t{16} << 20);
  EXPECT_THROW(empty({32 << 20}, device).data_ptr(), OutOfMemoryError);
  set_memory_limit(device, 0);
  EXPECT_NO_THROW(empty({8 << 20}, device).data_ptr());
  EXPECT_THROW(set_per_process_memory_fraction(1.5, device), ValueError);
}

TEST_F(DeviceMemory, TheSummaryIsATable) {
  const Tensor t = ones({1 << 18}, device);
  const std::string text = memory_summary(device);
  EXPECT_NE(text.find("PyTorch CUDA memory summary, device ID 0"), std::string::npos);
  EXPECT_NE(text.find("| Allocated memory      |   1024 KiB |"), std::string::npos) << text;
  EXPECT_LT(memory_summary(device, true).size(), text.size());
}

TEST_F(DeviceMemory, AHistoryTellsWhoHeldHowMuch) {
  const MemoryHistory history(device);
  {
    const Tensor a = zeros({1 << 16}, device), b = zeros({1 << 16}, device);
    synchronize(device);
  }
  const auto events = history.events();
  ASSERT_GE(events.size(), 4u);
  EXPECT_EQ(events[0].bytes, 1 << 18);
  const auto holders = memory_holders(events);
  ASSERT_FALSE(holders.empty());
  EXPECT_EQ(holders[0].most, 2 << 18);
  EXPECT_EQ(holders[0].allocations, 2);
  const std::string page = memory_page(device, events), path = ::testing::TempDir() + "naru_memory_" + std::to_string(::getpid()) + ".html";
  for (const char* mark : {"$TITLE", "$DATA"}) EXPECT_EQ(page.find(mark), std::string::npos);
  EXPECT_NE(page.find("\"device\":\"" + device.str() + "\""), std::string::npos);
  EXPECT_NE(page.find(",262144,"), std::string::npos);
  EXPECT_EQ(events[0].role, "other");
  history.save_page(path);
  EXPECT_EQ(std::remove(path.c_str()), 0);
}

TEST_F(DeviceMemory, TheCurrentDeviceIsTheThreadsAndAGuardPutsItBack) {
  EXPECT_EQ(current_device(DeviceType::Cuda), 0);
  {
    const DeviceGuard guard("cuda:1");
    EXPECT_EQ(ones({1}, Device("cuda")).device().str(), "cuda:1");
  }
  EXPECT_EQ(ones({1}, Device("cuda")).device().str(), "cuda:0");
  set_device("cuda:1");
  EXPECT_EQ(current_device(DeviceType::Cuda), 1);
  set_device("cuda:0");
  EXPECT_THROW(set_device("cuda:7"), DeviceUnavailableError);
  EXPECT_TRUE(can_access_peer("cuda:0", "cuda:1"));
  EXPECT_FALSE(can_access_peer("cuda:0", "cuda:0"));
}

TEST_F(DeviceMemory, PropertiesSayWhatADeviceIsLike) {
  const DeviceProperties p = get_device_properties(device);
  EXPECT_TRUE(p.simulated && p.float64);
  EXPECT_EQ(p.total_memory, size_t{64} << 20);
  EXPECT_FALSE(get_device_properties("cpu").simulated);
  EXPECT_NE(virtual_devices().find("cuda:2"), std::string::npos);
}

TEST(ThreadCount, TheirNumberIsSetForTheProcess) {
  const int before = get_num_threads();
  set_num_threads(3);
  EXPECT_EQ(get_num_threads(), 3);
  set_num_threads(before);
  EXPECT_THROW(set_num_threads(0), RuntimeError);
}

}  // namespace
}  // namespace naru
