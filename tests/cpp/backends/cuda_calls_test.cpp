// The number of driver calls that operations need, counted by the fake libcuda.
#include <gtest/gtest.h>

#include <thread>

#include "backends/cuda_fixture.h"
#include "core/storage.h"
#include "naru/error.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/foreign.h"

namespace naru::runtime {
namespace {

using CudaCalls = CudaFixture;
using Counts = std::map<std::string, int>;

// The device that the driver numbers 0.
int first_of_driver(Backend& backend) {
  int zero = 0;
  while (backend.shared_name(Device(DeviceType::Cuda, zero))->number != 0) ++zero;
  return zero;
}

TEST_F(CudaCalls, memory_that_goes_round_on_one_stream_asks_the_driver_nothing) {
  const Device device(DeviceType::Cuda, 0);
  const auto s = stream();
  CachingAllocator cache(*backend, device, MemoryKind::Device);
  const auto once = [&] {
    Storage holder(device, 400);
    void* const x = cache.allocate(400, &holder, s.get());
    holder.pending_uses.set_written({s.get(), doubled(*s, x, 100)});
    cache.release(x, holder.pending_uses.take());
    return x;
  };
  void* const first = once();
  for (int i = 0; i < 24; ++i) once();  // so that events exist for reuse
  s->synchronize(s->submitted());
  listen();
  for (int i = 0; i < 24; ++i) EXPECT_EQ(once(), first);
  EXPECT_EQ(counted(), (Counts{{"cuLaunchKernel", 24}, {"cuEventRecord", 3}}));
  // If another stream gets the same block, it must wait for that work: the storage has a pending use.
  Storage holder(device, 400);
  const auto other = stream();
  void* const y = cache.allocate(400, &holder, other.get());
  EXPECT_TRUE(y != first || !holder.pending_uses.empty());
  cache.release(y, holder.pending_uses.take());
  s->synchronize(s->submitted());
}

TEST_F(CudaCalls, events_are_made_once_and_used_again) {
  const auto s = stream(), other = stream();
  void* const x = memory(400);
  const auto round = [&] {
    doubled(*s, x, 100);
    other->wait(*s, s->submitted());
    doubled(*other, x, 100);
    s->wait(*other, other->submitted());
    s->synchronize(doubled(*s, x, 100));
  };
  for (int i = 0; i < 3; ++i) round();
  listen();
  for (int i = 0; i < 20; ++i) round();
  const Counts count = counted();
  EXPECT_EQ(count.count("cuEventCreate"), 0u);
  EXPECT_EQ(count.count("cuEventDestroy_v2"), 0u);
  EXPECT_GE(count.at("cuEventRecord"), 60);
}

TEST_F(CudaCalls, an_event_that_is_recorded_anew_leaves_those_alone_who_wait_for_the_earlier_record) {
  const auto a = stream(), b = stream();
  const std::vector<float> ones(100, 1);
  void *const x = memory(400), *const y = memory(400);
  up(*a, x, ones.data(), 400), up(*b, y, ones.data(), 400);
  for (int i = 0; i < 5; ++i) {
    doubled(*a, x, 100);
    b->wait(*a, a->submitted());
    copy(*b, y, x, 400, 0, 0);
    a->reach(a->submitted());  // its event is recycled and recorded again while the other stream's wait is still pending
    doubled(*a, x, 100);
    a->reach(a->submitted());
  }
  std::vector<float> got(100);
  a->synchronize(down(*a, got.data(), x, 400));
  EXPECT_EQ(got[99], 1024);
  b->synchronize(down(*b, got.data(), y, 400));
}

TEST_F(CudaCalls, the_context_of_a_thread_stays_what_others_made_it) {
  const auto current = fake<int(void**)>("cuCtxGetCurrent");
  const auto push = fake<int(void*)>("cuCtxPushCurrent_v2");
  const auto pop = fake<int(void**)>("cuCtxPopCurrent_v2");
  void *none = this, *first = nullptr;
  const int zero = first_of_driver(*backend), one = zero == 0 ? 1 : 0;
  // On a new thread, which has no current context: the first device's context stays current, as with the CUDA runtime; no other one does.
  std::thread([&] {
    const auto other = stream(one);
    current(&none);
    const auto s = stream(zero);
    current(&first);
  }).join();
  EXPECT_EQ(none, nullptr);
  ASSERT_NE(first, nullptr);
  const auto s = stream(one);
  void *const x = memory(400, one), *now = nullptr;
  push(first);
  s->synchronize(doubled(*s, x, 100));
  current(&now);
  EXPECT_EQ(now, first);
  pop(&now);
  EXPECT_EQ(now, first);
}

// Sizes below, at and far above the size of the staging rings.
TEST_F(CudaCalls, copies_of_plain_memory_pass_through_page_locked_memory_in_order_and_whole) {
  const auto s = stream();
  auto* const waited = fake<size_t()>("fake_waited_in_copies");
  const size_t before = waited();
  for (const size_t bytes : {size_t{1}, size_t{4000}, size_t{32} << 10, (size_t{32} << 10) + 1, 3 * kMiB + 7, 16 * kMiB, 45 * kMiB + 4}) {
    std::vector<unsigned char> plain(bytes), got(bytes), wanted(bytes);
    for (size_t i = 0; i < bytes; ++i) plain[i] = static_cast<unsigned char>(i * 2654435761u >> 24);
    wanted = plain;
    void* const x = memory(bytes);
    EXPECT_TRUE(s->reads_at_once(ir::CopyBytes{x, plain.data(), bytes, Device(DeviceType::Cuda, 0), Device(DeviceType::Cpu, 0)}));
    for (int i = 0; i < 3; ++i) doubled(*s, memory(400), 100);
    const uint64_t seq = up(*s, x, plain.data(), bytes);
    EXPECT_EQ(seq, s->submitted());
    if (bytes < 16 * kMiB) {
      EXPECT_LT(s->completed(), seq) << "the stream is not waited for";
    }
    plain.assign(bytes, 0xee);  // the source was read
    const uint64_t end = down(*s, got.data(), x, bytes);
    EXPECT_EQ(got, wanted) << bytes;  // the copy is complete
    EXPECT_NO_THROW(s->synchronize(end));
    backend->release(Device(DeviceType::Cuda, 0), MemoryKind::Device, x, bytes);
  }
  EXPECT_EQ(waited(), before);
}

TEST_F(CudaCalls, a_number_is_read_with_one_copy_and_one_event) {
  const auto s = stream();
  void* const x = memory(400);
  float got = 0;
  const float wanted = 5;
  up(*s, x, &wanted, 4);
  s->synchronize(down(*s, &got, x, 4));
  EXPECT_EQ(got, 5);
  listen();
  s->synchronize(down(*s, &got, x, 4));
  Counts count = counted();
  EXPECT_EQ(count["cuMemcpyDtoHAsync_v2"], 1);
  EXPECT_EQ(count["cuEventRecord"], 1);
  EXPECT_EQ(count["cuStreamSynchronize"], 0);
  EXPECT_EQ(count["cuMemHostAlloc"], 0);
}

TEST_F(CudaCalls, without_page_locked_memory_plain_memory_is_copied_by_the_driver) {
  const auto s = stream();
  void* const x = memory(400);
  std::vector<float> ones(100, 1), got(100);
  set("NARU_FAKE_ERROR", "cuMemHostAlloc=2");
  up(*s, x, ones.data(), 400);
  ones.assign(100, 3);
  doubled(*s, x, 100);
  s->synchronize(down(*s, got.data(), x, 400));
  EXPECT_EQ(got, std::vector<float>(100, 2));
}

TEST_F(CudaCalls, threads_that_copy_on_one_stream_do_not_meet_in_its_memory) {
  const auto s = stream();
  const auto work = [&](int number) {
    const size_t count = 300000 + 1000 * static_cast<size_t>(number);
    std::vector<int> plain(count, number), got(count);
    void* const x = memory(count * 4);
    for (int i = 0; i < 5; ++i) {
      up(*s, x, plain.data(), count * 4);
      s->synchronize(down(*s, got.data(), x, count * 4));
      EXPECT_EQ(got, plain);
      int one = -1;
      s->synchronize(down(*s, &one, static_cast<int*>(x) + number, 4));
      EXPECT_EQ(one, number);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work, i + 1);
  for (std::thread& t : threads) t.join();
}

using CudaForeign = CudaFixture;

TEST_F(CudaForeign, work_of_another_library_goes_before_what_comes_behind_its_point) {
  const int n = first_of_driver(*backend);
  const Device device(DeviceType::Cuda, n);
  auto* const foreign = dynamic_cast<ForeignStreams*>(backend.get());
  ASSERT_NE(foreign, nullptr);
  const auto s = stream(n);
  const std::vector<float> ones(100, 1);
  std::vector<float> got(100);
  void *const x = memory(400, n), *const borrowed = memory(400, n);
  up(*s, x, ones.data(), 400, n), s->synchronize(up(*s, borrowed, ones.data(), 400, n));
  // The other library reads x on the default stream, as late as possible; naru overwrites x next.
  const auto copy = fake<int(void*, const void*, size_t, void*)>("cuMemcpyDtoDAsync_v2");
  void* const legacy = reinterpret_cast<void*>(1);
  ASSERT_EQ(copy(borrowed, x, 400, legacy), 0);
  listen();
  const StreamPoint point = foreign->behind(device, 1, {});
  EXPECT_EQ(counted().count("cuCtxSynchronize"), 0u) << "the host does not wait";
  s->wait(*point.stream, point.seq);
  for (int i = 0; i < 5; ++i) doubled(*s, x, 100);
  s->synchronize(down(*s, got.data(), x, 400, n));
  EXPECT_EQ(got[99], 32);
  s->synchronize(down(*s, got.data(), borrowed, 400, n));
  EXPECT_EQ(got[99], 1) << "it read what was overwritten";
  // A library that uses the handle of naru's own stream works in order there, and naru waits for it.
  auto* const own = reinterpret_cast<void*>(static_cast<uintptr_t>(foreign->handle_of(*s)));
  s->synchronize(s->submitted());
  ASSERT_EQ(copy(borrowed, x, 400, own), 0);
  s->synchronize(s->submitted());
  const auto other = stream(n);
  other->synchronize(down(*other, got.data(), borrowed, 400, n));
  EXPECT_EQ(got[99], 32);
}

}  // namespace
}  // namespace naru::runtime
