// The cuda backend on the fake libcuda (tests/fakes/cuda.cpp), which does work as late as possible and faults if the host accesses device memory.
// tests/python/backends/test_cuda.py tests the results of kernels.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <numeric>

#include "backends/cuda/compiler.h"
#include "backends/cuda/libraries.h"
#include "backends/cuda_fixture.h"
#include "naru/error.h"
#include "runtime/device/registry.h"
#include "runtime/device/self_check.h"
#include "runtime/memory/memory.h"

namespace naru::runtime {
namespace {

using Cuda = CudaFixture;

TEST_F(Cuda, devices_come_in_pci_order_with_their_properties) {
  ASSERT_EQ(backend->device_count(DeviceType::Cuda), kDevices);
  EXPECT_EQ(backend->device_count(DeviceType::Xpu), 0);
  const Properties p = backend->properties(Device(DeviceType::Cuda, 0));
  EXPECT_EQ(p.name, "H100");
  EXPECT_EQ(p.total_memory, 512 * kMiB);
  EXPECT_EQ(std::pair(p.major, p.minor), std::pair(9, 0));
  EXPECT_EQ(p.multi_processor_count, 108);
  EXPECT_EQ(p.warp_size, 32);
  EXPECT_EQ(p.max_threads_per_block, 1024);
  EXPECT_EQ(p.shared_memory_per_block, 49152u);
  EXPECT_EQ(p.pci, "0000:01:00.0");
  EXPECT_EQ(p.uuid, "GPU-0000000a-0000-0000-0000-000000000000");
  EXPECT_TRUE(p.tested_on_hardware) << "an H100 was";
  EXPECT_FALSE(backend->properties(Device(DeviceType::Cuda, 3)).tested_on_hardware);
  EXPECT_FALSE(backend->capabilities(Device(DeviceType::Cuda, 0)).unified_memory);
  EXPECT_EQ(backend->properties(Device(DeviceType::Cuda, 3)).name, "T4");
}

TEST_F(Cuda, a_kernel_gives_the_right_bits_on_every_generation_and_on_one_newer_than_the_compiler) {
  for (int i = 0; i < kDevices; ++i) EXPECT_EQ(wrong_numbers(*backend, Device(DeviceType::Cuda, i)), "") << i;
}

TEST_F(Cuda, a_device_that_the_driver_does_not_find_by_its_address_is_found_among_those_it_lists) {
  set("NARU_FAKE_ERROR", "cuDeviceGetByPCIBusId=101");
  backend = backends::make_cuda();
  for (const int i : {0, 1}) EXPECT_EQ(wrong_numbers(*backend, Device(DeviceType::Cuda, i)), "") << i;
  EXPECT_LT(backend->free_memory(Device(DeviceType::Cuda, 1)), 65 * kMiB);
  EXPECT_GT(backend->free_memory(Device(DeviceType::Cuda, 0)), 65 * kMiB);
}

TEST_F(Cuda, copies_arrive_and_page_locked_memory_is_read_when_the_stream_gets_there) {
  const auto s = stream();
  constexpr size_t kBytes = 4000;
  auto* const host = static_cast<char*>(pinned(kBytes));
  std::memset(host, 1, kBytes);
  void* const there = memory(kBytes);
  const uint64_t first = up(*s, there, host, kBytes);
  std::memset(host, 2, kBytes);  // too early: the driver has not read it yet
  std::vector<char> got(kBytes);
  s->synchronize(down(*s, got.data(), there, kBytes));
  EXPECT_EQ(got[17], 2);
  EXPECT_EQ(s->completed(), first + 1);
  // Pageable memory may be reused as soon as the call returns.
  std::vector<char> plain(kBytes, 3);
  up(*s, there, plain.data(), kBytes);
  plain.assign(kBytes, 4);
  s->synchronize(down(*s, got.data(), there, kBytes));
  EXPECT_EQ(got[17], 3);
  backend->release(Device(DeviceType::Cuda, 0), MemoryKind::Device, there, kBytes);
  backend->release(Device(DeviceType::Cuda, 0), MemoryKind::Pinned, host, kBytes);
}

TEST_F(Cuda, overlapping_copies_within_a_device_move_whole) {
  const auto s = stream();
  std::vector<char> data(1000), got(1000);
  std::iota(data.begin(), data.end(), 0);
  auto* const there = static_cast<char*>(memory(1000));
  up(*s, there, data.data(), 1000);
  copy(*s, there + 10, there, 900, 0, 0);
  copy(*s, there, there + 100, 500, 0, 0);
  s->synchronize(down(*s, got.data(), there, 1000));
  std::memmove(data.data() + 10, data.data(), 900);
  std::memmove(data.data(), data.data() + 100, 500);
  EXPECT_EQ(got, data);
}

TEST_F(Cuda, the_host_faults_at_an_address_of_a_device) {
  auto* const there = static_cast<volatile char*>(memory(64));
  EXPECT_DEATH({ *there = 1; }, "");
}

TEST_F(Cuda, work_is_numbered_and_reached_in_order) {
  const auto s = stream();
  constexpr int64_t kCount = 1000;
  std::vector<float> x(kCount, 1), got(kCount);
  void* const there = memory(kCount * 4);
  EXPECT_EQ(up(*s, there, x.data(), kCount * 4), 1u);
  for (uint64_t i = 2; i < 22; ++i) EXPECT_EQ(doubled(*s, there, kCount), i);
  EXPECT_LT(s->completed(), 21u);
  s->reach(9);
  EXPECT_GE(s->completed(), 9u);
  // Polling sees the completion, even if no thread waits.
  for (int i = 0; i < 1000 && s->completed() < 21; ++i) {
  }
  EXPECT_EQ(s->completed(), 21u);
  s->synchronize(down(*s, got.data(), there, kCount * 4));
  EXPECT_EQ(got.back(), 1 << 20);
}

TEST_F(Cuda, a_stream_waits_for_another_one_also_of_another_device) {
  constexpr int64_t kCount = 100;
  for (const int other : {0, 1}) {
    const auto a = stream(0), b = stream(other);
    std::vector<float> x(kCount, 1), got(kCount);
    auto* const host = static_cast<float*>(pinned(kCount * 4));
    void *const there = memory(kCount * 4, 0), *const here = memory(kCount * 4, other);
    std::copy(x.begin(), x.end(), host);
    up(*a, there, host, kCount * 4);
    for (int i = 0; i < 5; ++i) doubled(*a, there, kCount);
    b->wait(*a, a->submitted());
    copy(*b, here, there, kCount * 4, other, 0);
    a->wait(*b, b->submitted());
    doubled(*a, there, kCount);
    b->synchronize(down(*b, got.data(), here, kCount * 4, other));
    EXPECT_EQ(got[7], 32);
    a->synchronize(down(*a, got.data(), there, kCount * 4));
    EXPECT_EQ(got[7], 64);
  }
}

TEST_F(Cuda, a_peer_copy_is_offered_where_the_driver_can_and_not_where_it_can_not) {
  const Device a(DeviceType::Cuda, 0), b(DeviceType::Cuda, 1);
  EXPECT_TRUE(backend->can_access_peer(a, b));
  EXPECT_TRUE(backend->can_access_peer(a, b));  // already enabled
  EXPECT_FALSE(backend->can_access_peer(a, a));
  set("NARU_FAKE_NO_PEER", "1");
  EXPECT_FALSE(backend->can_access_peer(b, a));
  unsetenv("NARU_FAKE_NO_PEER");
}

TEST_F(Cuda, time_stamps_tell_the_time_between_two_points_of_a_stream) {
  const auto s = stream();
  void* const x = memory(400);
  const std::vector<float> zeros(100);
  up(*s, x, zeros.data(), 400);
  const auto start = s->stamp();
  for (int i = 0; i < 3; ++i) doubled(*s, x, 100);
  const auto end = s->stamp();
  EXPECT_THROW(end->milliseconds_since(*start), RuntimeError);  // not reached yet
  s->synchronize(s->submitted());
  EXPECT_GT(end->milliseconds_since(*start), 0);
}

TEST_F(Cuda, no_memory_left_is_a_null_pointer_and_other_errors_are_thrown) {
  const Device last(DeviceType::Cuda, 1);
  EXPECT_EQ(memory(65 * kMiB, 1), nullptr);
  void* const most = memory(60 * kMiB, 1);
  ASSERT_NE(most, nullptr);
  EXPECT_EQ(memory(10 * kMiB, 1), nullptr);
  EXPECT_LT(backend->free_memory(last), 5 * kMiB);
  backend->release(last, MemoryKind::Device, most, 60 * kMiB);
  EXPECT_GT(backend->free_memory(last), 59 * kMiB);
  set("NARU_FAKE_ERROR", "cuMemAlloc_v2=801");
  EXPECT_THROW(memory(10, 1), RuntimeError);
  unsetenv("NARU_FAKE_ERROR");
}

TEST_F(Cuda, an_error_of_a_launch_is_heard_by_who_waits_and_the_device_goes_on) {
  const auto s = stream();
  void* const x = memory(400);
  const std::vector<float> ones(100, 1);
  up(*s, x, ones.data(), 400);
  set("NARU_FAKE_ERROR", "cuLaunchKernel=1@1");
  doubled(*s, x, 100);
  try {
    s->synchronize(s->submitted());
    ADD_FAILURE() << "nothing was thrown";
  } catch (const RuntimeError& e) {
    EXPECT_EQ(std::string(e.what()), "device cuda:0: cuLaunchKernel failed with 1 CUDA_ERROR_INVALID_VALUE (an error)");
  }
  std::vector<float> got(100);
  doubled(*s, x, 100);
  s->synchronize(down(*s, got.data(), x, 400));
  EXPECT_EQ(got[3], 2);
}

TEST_F(Cuda, work_is_not_taken_for_done_where_another_library_that_records_forbids_to_ask) {
  const auto s = stream();
  void* const x = memory(400);
  const std::vector<float> ones(100, 1);
  up(*s, x, ones.data(), 400);
  for (int i = 0; i < 5; ++i) doubled(*s, x, 100);
  set("NARU_FAKE_ERROR", "cuEventQuery=900");
  for (int i = 0; i < 30; ++i) EXPECT_LT(s->completed(), s->submitted());
  unsetenv("NARU_FAKE_ERROR");
  std::vector<float> got(100);
  s->synchronize(down(*s, got.data(), x, 400));
  EXPECT_EQ(got[99], 32);
}

TEST_F(Cuda, code_that_the_driver_does_not_take_is_an_error_that_says_which_compiler_does) {
  set("NARU_FAKE_ERROR", "cuModuleLoadData=222");
  const auto s = stream();
  void* const x = memory(400);
  const std::vector<float> ones(100, 1);
  up(*s, x, ones.data(), 400);
  doubled(*s, x, 100);
  try {
    s->synchronize(s->submitted());
    ADD_FAILURE() << "nothing was thrown";
  } catch (const RuntimeError& e) {
    EXPECT_EQ(
        std::string(e.what()),
        "device cuda:0: cuModuleLoadData failed with 222: the driver does not take what NVRTC 12.9 made for sm_90. Install one of the "
        "driver's own version (pip install nvidia-cuda-nvrtc-cu12, or the CUDA toolkit)");
  }
  unsetenv("NARU_FAKE_ERROR");
}

// Devices 2 and 3 stay lost for the rest of the process.
TEST_F(Cuda, a_device_that_is_lost_says_so_and_nobody_hangs) {
  set("NARU_FAKE_FAULT", "3");  // the driver's device 2
  const auto s = stream(2), other = stream(2), elsewhere = stream(0);
  void* const x = memory(400, 2);
  const auto hold = make_storage(Device("cpu"), 4096);
  EXPECT_EQ(hold->use_count(), 1);
  for (int i = 0; i < 20; ++i) doubled(*s, x, 100);
  s->submit(ir::CopyBytes{x, hold->data, 400, Device(DeviceType::Cuda, 2), Device("cpu")}, {hold});
  EXPECT_THROW(s->synchronize(s->submitted()), DeviceLostError);
  EXPECT_EQ(s->completed(), s->submitted());
  EXPECT_EQ(hold->use_count(), 1);
  // Later work fails as well, on each of its streams, and counts as done.
  const uint64_t later = doubled(*other, x, 100);
  EXPECT_EQ(other->completed(), later);
  EXPECT_THROW(other->synchronize(later), DeviceLostError);
  EXPECT_THROW(memory(10, 2), DeviceLostError);
  EXPECT_THROW(stream(2), DeviceLostError);
  EXPECT_THROW(other->stamp(), DeviceLostError);
  elsewhere->wait(*s, s->submitted());
  void* const fine = memory(400);
  elsewhere->synchronize(doubled(*elsewhere, fine, 100));
  backend->release(Device(DeviceType::Cuda, 2), MemoryKind::Device, x, 400);
}

TEST_F(Cuda, an_address_of_the_host_ends_the_device_and_not_the_process) {
  const auto s = stream(3);
  float on_host[100] = {};
  doubled(*s, on_host, 100);
  EXPECT_THROW(s->synchronize(s->submitted()), DeviceLostError);
  EXPECT_EQ(on_host[0], 0);
}

TEST_F(Cuda, a_position_out_of_bounds_is_an_error_where_somebody_waits_and_nothing_is_written) {
  const auto s = stream();
  constexpr int64_t kRows = 8;
  const std::vector<float> table(11 * 6, 5), values(kRows * 6, 7);
  std::vector<int64_t> good(kRows), bad(kRows);
  std::iota(good.begin(), good.end(), 0);
  bad = good;
  bad[3] = 11, bad[6] = -12;
  const auto put = [&](const auto& v) {
    void* const p = memory(v.size() * sizeof v[0]);
    up(*s, p, v.data(), v.size() * sizeof v[0]);
    return p;
  };
  void *const t = put(table), *const v = put(values), *const g = put(good), *const b = put(bad);
  const auto scatter = [&](void* positions) {
    ir::Scatter i;
    i.shape = {kRows, 6}, i.value = {v, DType::F32, {6, 1}}, i.target = {t, DType::F32, {0, 1}};
    i.indices = {{{positions, DType::I64, {1, 0}}, 11, 6, 0}};
    return s->submit(i, {});
  };
  try {
    s->synchronize(scatter(b));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const IndexError& e) {
    EXPECT_EQ(std::string(e.what()),
              "index 11 is out of bounds for dimension 0 with size 11 (index_put_: wanted -11 <= index < 11, got 11 at position [3, 0] of "
              "the indices)");
  }
  std::vector<float> got(11 * 6);
  s->synchronize(down(*s, got.data(), t, got.size() * 4));
  EXPECT_EQ(got, table);
  // More kernels than fault records; the device must still work.
  for (int i = 0; i < 1500; ++i) scatter(i == 700 ? b : g);
  EXPECT_THROW(s->synchronize(s->submitted()), IndexError);
  EXPECT_NO_THROW(s->synchronize(scatter(g)));
}

TEST_F(Cuda, an_instruction_costs_one_launch_and_an_event_now_and_then) {
  const auto s = stream();
  void* const x = memory(400);
  doubled(*s, x, 100);
  s->synchronize(1);
  listen();
  for (int i = 0; i < 32; ++i) doubled(*s, x, 100);
  auto count = counted();
  EXPECT_EQ(count["cuLaunchKernel"], 32);
  EXPECT_EQ(count["cuEventRecord"], 4);
  count.erase("cuLaunchKernel"), count.erase("cuEventRecord"), count.erase("cuEventCreate");
  EXPECT_TRUE(count.empty()) << count.begin()->first;
  s->synchronize(s->submitted());
}

TEST(CudaRealLibrary, nvidias_compiler_finds_its_own_headers) {
  const char* const named = std::getenv("NARU_NVRTC_LIBRARY");  // perhaps a fake
  const std::string before = named ? named : "";
  unsetenv("NARU_NVRTC_LIBRARY");
  const backends::cuda::Compiler compiler(13000);
  if (named) setenv("NARU_NVRTC_LIBRARY", before.c_str(), 1);
  if (const std::string trouble = compiler.trouble(); !trouble.empty()) GTEST_SKIP() << "no NVRTC on this machine: " << trouble;
  if (backends::cuda::include_folders(13000).empty()) GTEST_SKIP() << "the CUDA toolkit's headers are not on this machine";
  const std::string code =
      compiler.compile("#include <cuda_fp16.h>\nextern \"C\" __global__ void k(__half* x) { x[0] = __hadd(x[0], x[0]); }", "sm_90",
                       Device(DeviceType::Cuda, 0));
  EXPECT_NE(code.find("ELF"), std::string::npos);
}

TEST(CudaLibraries, those_of_the_drivers_version_are_tried_before_newer_ones_in_wheels_by_name_and_in_toolkits) {
  using backends::cuda::places_of;
  using backends::cuda::Product;
  Library::set_package_folders({"/site"});
  setenv("CUDA_HOME", "/toolkit", 1);
  const std::vector<std::string> places = places_of(Product::Nvrtc, 12040), blas = places_of(Product::CublasLt, 13000);
  unsetenv("CUDA_HOME");
  Library::set_package_folders({});
  const auto at = [](const std::vector<std::string>& list, const std::string& place) {
    const auto found = std::find(list.begin(), list.end(), place);
    EXPECT_NE(found, list.end()) << place;
    return found - list.begin();
  };
  EXPECT_EQ(at(places, "/site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"), 0);
  EXPECT_LT(at(places, "/site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"), at(places, "libnvrtc.so.12"));
  EXPECT_LT(at(places, "libnvrtc.so.12"), at(places, "/toolkit/lib64/libnvrtc.so.12"));
  EXPECT_LT(at(places, "/toolkit/lib64/libnvrtc.so.11.2"), at(places, "libnvrtc.so.13"));
  EXPECT_LT(at(places, "/site/nvidia/cu13/lib/libnvrtc.so.13"), at(places, "/usr/local/cuda/lib64/libnvrtc.so.13"));
  EXPECT_EQ(at(blas, "/site/nvidia/cu13/lib/libcublasLt.so.13"), 0);
  at(blas, "/site/nvidia/cublas/lib/libcublasLt.so.12");
}

TEST_F(Cuda, a_copy_to_pageable_memory_waits_for_earlier_work_before_it_takes_the_stream) {
  const auto s = stream();
  auto* const x = memory(400);
  const std::vector<float> ones(100, 1);
  up(*s, x, ones.data(), 400);
  auto* const waited = fake<size_t()>("fake_waited_in_copies");
  const size_t before = waited();
  for (int i = 0; i < 5; ++i) doubled(*s, x, 100);
  std::vector<float> got(100);
  s->synchronize(down(*s, got.data(), x, 400));
  EXPECT_EQ(got, std::vector<float>(100, 32));
  EXPECT_EQ(waited(), before);
  // No stream waits for page-locked memory.
  auto* const host = static_cast<float*>(pinned(400));
  doubled(*s, x, 100);
  const uint64_t seq = down(*s, host, x, 400);
  EXPECT_LT(s->completed(), seq);
  s->synchronize(seq);
  EXPECT_EQ(host[99], 64);
  backend->release(Device(DeviceType::Cuda, 0), MemoryKind::Pinned, host, 400);
  backend->release(Device(DeviceType::Cuda, 0), MemoryKind::Device, x, 400);
}

TEST_F(Cuda, memory_and_questions_do_not_disturb_a_capture_of_another_library) {
  const Device first(DeviceType::Cuda, 0);
  const auto s = stream();
  auto* const x = memory(400);
  const uint64_t seq = doubled(*s, x, 100);
  auto* const capture = fake<int(int)>("fake_capture_by_others");
  capture(1);
  void *const more = memory(400), *const host = pinned(400);
  EXPECT_NE(more, nullptr);
  EXPECT_NE(host, nullptr);
  for (int i = 0; i < 10 && s->completed() < seq; ++i) {
  }
  EXPECT_EQ(s->completed(), seq);
  backend->release(first, MemoryKind::Device, more, 400);
  backend->release(first, MemoryKind::Pinned, host, 400);
  EXPECT_TRUE(capture(0)) << "the capture was spoiled";
  EXPECT_NO_THROW(s->synchronize(seq));
  backend->release(first, MemoryKind::Device, x, 400);
}

}  // namespace
}  // namespace naru::runtime
