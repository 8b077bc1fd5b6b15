#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cuda/driver.h"

namespace naru::runtime {
namespace {

// Sets an environment variable for the duration of a test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name), had_(std::getenv(name) != nullptr) {
    if (had_) before_ = std::getenv(name);
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { had_ ? ::setenv(name_, before_.c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;

 private:
  const char* name_;
  bool had_;
  std::string before_;
};

TEST(GpuProbe, reads_what_the_driver_says_of_each_device_in_the_order_of_pci_addresses) {
  const Variable library("NARU_CUDA_LIBRARY", NARU_FAKES "/libcuda.so");
  const Variable order("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  const Variable visible("CUDA_VISIBLE_DEVICES", "0,1,2");
  const Variable gpus("NARU_FAKE_GPUS", "0001:02:00.0 3 8.6 24000 C;0000:E1:00.0 2 12.0 32000 B;0000:3B:00.0 1a2b 9.0 141000 NVIDIA H200");
  const GpuProbe found = probe_gpus(backends::cuda::kDriver);
  EXPECT_TRUE(found.state.available) << found.state.reason;
  EXPECT_EQ(found.driver, "CUDA 12.8");
  ASSERT_EQ(found.gpus.size(), 3u);
  const Gpu& first = found.gpus[0];
  EXPECT_EQ(first.name, "NVIDIA H200");
  EXPECT_EQ(first.pci, "0000:3b:00.0");
  EXPECT_EQ(first.uuid, "GPU-00001a2b-0000-0000-0000-000000000000");
  EXPECT_EQ(std::pair(first.major, first.minor), std::pair(9, 0));
  EXPECT_EQ(first.multiprocessors, 108);
  EXPECT_EQ(first.memory, size_t{141000} << 20);
  EXPECT_EQ(found.gpus[1].name, "B");
  EXPECT_EQ(found.gpus[2].name, "C");
}

TEST(GpuProbe, one_device_that_is_new_enough_suffices) {
  const Variable library("NARU_CUDA_LIBRARY", NARU_FAKES "/libcuda.so");
  const Variable order("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  const Variable gpus("NARU_FAKE_GPUS", "0000:01:00.0 1 3.5 12000 Old;0000:02:00.0 2 8.0 40000 New");
  {
    const Variable visible("CUDA_VISIBLE_DEVICES", "0,1");
    EXPECT_TRUE(probe_gpus(backends::cuda::kDriver).state.available);
  }
  const Variable visible("CUDA_VISIBLE_DEVICES", "0");
  const GpuProbe found = probe_gpus(backends::cuda::kDriver);
  EXPECT_EQ(found.state.state, DriverState::UnsupportedArch);
  EXPECT_EQ(found.gpus.size(), 1u);
}

}  // namespace
}  // namespace naru::runtime
