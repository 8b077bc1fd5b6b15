// EventStream on a toy driver: an event is the number of work items submitted when it was recorded.
#include "runtime/device/event_stream.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <thread>

#include "naru/error.h"
#include "runtime/memory/allocator.h"
#include "support/toy_memory.h"

namespace naru::runtime {
namespace {

const Device kDeviceOfStream("cuda:0");

using testing::ToyMemory;

class Numbers final : public EventStream {
 public:
  explicit Numbers(ToyMemory& memory) : EventStream(kDeviceOfStream, 4), memory_(memory) {}
  ~Numbers() override { close(!is_lost); }

  uint64_t submit(ir::Instruction, std::vector<Ref<Storage>> hold) override {
    return submit([] {}, std::move(hold));
  }
  uint64_t submit(const std::function<void()>& work, std::vector<Ref<Storage>> hold = {}) {
    return give(std::move(hold), false, [&] {
      ++handed_over;
      work();
    });
  }
  std::unique_ptr<TimeStamp> stamp() override { return nullptr; }
  using EventStream::take_faults;
  using EventStream::take_scratch;

  uint64_t handed_over = 0, done = 0;  // counted by the toy driver
  int recorded = 0, destroyed = 0, queries = 0, host_waits = 0, device_waits = 0;
  bool is_lost = false, is_forked = false, fails = false, waits_for_others = true;

 private:
  Event record_event() override {
    if (fails) throw RuntimeError("the driver has failed");
    ++recorded;
    return {new uint64_t(handed_over), [this](const uint64_t* e) {
              ++destroyed;
              delete e;
            }};
  }
  bool query_event(const Event& e) override {
    ++queries;
    if (fails) throw RuntimeError("the driver has failed");
    return *static_cast<const uint64_t*>(e.get()) <= done;
  }
  void host_wait(const Event& e) override {
    ++host_waits;
    done = std::max(done, *static_cast<const uint64_t*>(e.get()));
  }
  bool can_wait_for(const EventStream&) const noexcept override { return waits_for_others; }
  void device_wait(const Event&) override { ++device_waits; }
  void drain() override { done = handed_over; }
  void* allocate(size_t bytes) override { return memory_.take(bytes); }
  void release(void* memory) noexcept override { memory_.give_back(memory); }
  void read(void* host, const void* memory, size_t bytes) override { std::memcpy(host, memory, bytes); }
  void write(void* memory, const void* host, size_t bytes) override { std::memcpy(memory, host, bytes); }
  void check_usable() const override {
    if (is_lost) throw DeviceLostError("lost");
  }
  bool forked() const noexcept override { return is_forked; }
  bool lost() const noexcept override { return is_lost; }

  ToyMemory& memory_;
};

// A storage that counts its destruction.
Ref<Storage> counting(int& deaths) {
  auto s = make_ref<Storage>(kDeviceOfStream, 4);
  s->owner = &deaths;
  s->release_memory = [](Storage& dying) noexcept { ++*static_cast<int*>(dying.owner); };
  return s;
}

TEST(EventStream, an_event_is_recorded_behind_every_fourth_instruction_and_when_somebody_asks) {
  ToyMemory memory(1 << 20);
  Numbers s(memory);
  for (int i = 1; i <= 9; ++i) EXPECT_EQ(s.submit([] {}), static_cast<uint64_t>(i));
  EXPECT_EQ(s.recorded, 2);
  EXPECT_EQ(s.submitted(), 9u);
  s.done = 5;
  EXPECT_EQ(s.completed(), 4u) << "no event stands behind the fifth";
  EXPECT_EQ(s.recorded, 2);
  s.reach(9);
  EXPECT_EQ(s.recorded, 3);
  EXPECT_EQ(s.host_waits, 1);
  EXPECT_EQ(s.completed(), 9u);
  EXPECT_EQ(s.destroyed, 3);
  s.reach(9);
  EXPECT_EQ(s.host_waits, 1) << "it had been reached";
}

TEST(EventStream, whoever_asks_again_and_again_sees_the_end) {
  ToyMemory memory(1 << 20);
  Numbers s(memory);
  s.submit([] {});
  EXPECT_EQ(s.completed(), 0u);
  s.done = 1;
  EXPECT_EQ(s.completed(), 1u);
}

TEST(EventStream, what_an_instruction_needs_is_kept_alive_until_it_is_reached) {
  ToyMemory memory(1 << 20);
  Numbers s(memory);
  int deaths = 0;
  std::vector<Ref<Storage>> hold;
  hold.push_back(counting(deaths));
  s.submit([] {}, std::move(hold));
  EXPECT_EQ(s.completed(), 0u);
  EXPECT_EQ(deaths, 0);
  s.done = 1;
  EXPECT_EQ(s.completed(), 1u);
  EXPECT_EQ(deaths, 1);
}

TEST(EventStream, asking_how_far_it_is_never_waits_for_who_hands_something_over) {
  ToyMemory memory(1 << 20);
  Numbers s(memory);
  s.submit([] {});
  std::promise<void> started, over;
  std::thread other([&] {
    s.submit([&] {
      started.set_value();
      over.get_future().wait();
    });
  });
  started.get_future().wait();
  EXPECT_EQ(s.completed(), 0u);  // returns without blocking
  over.set_value();
  other.join();
  s.reach(2);
  EXPECT_EQ(s.completed(), 2u);
}

TEST(EventStream, errors_of_work_are_kept_for_who_waits_and_the_stream_goes_on) {
  ToyMemory memory(1 << 20);
  Numbers s(memory);
  const uint64_t seq = s.submit([] { throw RuntimeError("a bad kernel"); });
  EXPECT_THROW(s.synchronize(seq), RuntimeError);
  EXPECT_NO_THROW(s.synchronize(s.submit([] {})));
}

TEST(EventStream, where_the_driver_fails_all_counts_as_reached_and_who_waits_hears_of_it) {
  ToyMemory memory(1 << 20);
  Numbers s(memory);
  int deaths = 0;
  std::vector<Ref<Storage>> hold;
  hold.push_back(counting(deaths));
  s.submit([] {}, std::move(hold));
  s.fails = true;
  EXPECT_EQ(s.completed(), 1u);
  EXPECT_EQ(deaths, 1);
  EXPECT_THROW(s.synchronize(1), RuntimeError);
}

TEST(EventStream, on_a_lost_device_nothing_is_asked_of_the_driver_and_nothing_kept) {
  ToyMemory memory(1 << 20);
  Numbers s(memory);
  int deaths = 0;
  std::vector<Ref<Storage>> hold;
  hold.push_back(counting(deaths));
  s.submit([] {}, std::move(hold));
  const int asked = s.queries + s.recorded;
  s.is_lost = true;
  EXPECT_EQ(s.submit([] {}), 2u);
  EXPECT_EQ(s.handed_over, 1u) << "the second was not handed over";
  EXPECT_EQ(s.completed(), 2u);
  EXPECT_EQ(deaths, 1);
  EXPECT_EQ(s.queries + s.recorded, asked);
  EXPECT_THROW(s.synchronize(2), DeviceLostError);
}

TEST(EventStream, a_stream_waits_for_another_on_the_device_where_the_driver_can_and_else_on_the_host) {
  ToyMemory memory(1 << 20);
  Numbers a(memory), b(memory);
  const uint64_t seq = a.submit([] {});
  b.wait(a, seq);
  EXPECT_EQ(b.device_waits, 1);
  EXPECT_EQ(a.host_waits, 0);
  b.waits_for_others = false;
  b.wait(a, seq);
  EXPECT_EQ(b.device_waits, 1);
  EXPECT_EQ(a.host_waits, 1);
  b.wait(a, seq);
  EXPECT_EQ(a.host_waits, 1) << "it had been reached";
}

TEST(EventStream, memory_for_intermediate_values_is_used_again_and_counts_as_reserved_until_the_cache_is_emptied) {
  ToyMemory memory(1 << 20);
  CachingAllocator cache(memory, kDeviceOfStream);
  Numbers s(memory);
  s.use_cache(cache);
  void *first = nullptr, *again = nullptr;
  s.submit([&] { first = s.take_scratch(1000); });
  s.submit([&] { again = s.take_scratch(900); });
  EXPECT_EQ(first, again);
  EXPECT_EQ(cache.stats().allocated(), 0u);
  EXPECT_EQ(cache.stats().reserved(), memory.used);
  EXPECT_EQ(cache.stats().peak_reserved(), memory.used);
  cache.empty_cache();
  EXPECT_EQ(memory.used, 0u);
  EXPECT_EQ(s.done, s.handed_over) << "what used it was waited for";
  EXPECT_EQ(cache.stats().reserved(), 0u);
}

TEST(EventStream, where_the_device_has_no_memory_left_the_cache_is_emptied_before_an_instruction_fails) {
  constexpr size_t kMiB = size_t{1} << 20;
  ToyMemory memory(8 * kMiB);
  CachingAllocator cache(memory, kDeviceOfStream);
  Numbers s(memory), other(memory);
  s.use_cache(cache), other.use_cache(cache);
  other.submit([&] { other.take_scratch(kMiB); });
  void* const block = cache.allocate(4 * kMiB);
  cache.release(block, {{&s, s.submit([] {})}, {}});  // still in use by the stream itself
  const uint64_t seq = s.submit([&] {
    void* const first = s.take_scratch(1000);
    s.take_scratch(4 * kMiB);
    EXPECT_TRUE(memory.given.contains(first)) << "an instruction that is being handed over keeps what it has";
  });
  EXPECT_NO_THROW(s.synchronize(seq));
  void* const kept = cache.allocate(256);
  ASSERT_THROW(s.synchronize(s.submit([&] { s.take_scratch(20 * kMiB); })), OutOfMemoryError);
  cache.release(kept);
  cache.empty_cache();
  EXPECT_EQ(memory.used, 0u);
}

TEST(EventStream, what_kernels_find_wrong_is_told_to_who_waits_for_them) {
  using Fault = FaultRecords::Fault;
  ToyMemory memory(1 << 20);
  Numbers s(memory);
  const auto error = [](int, uint32_t found, int64_t value) { return std::make_exception_ptr(IndexError("{}: {}", found, value)); };
  Fault* record = nullptr;
  const uint64_t seq = s.submit([&] {
    record = static_cast<Fault*>(s.take_faults(1, error));
    record->found = 3, record->value = 70;
  });
  try {
    s.synchronize(seq);
    FAIL() << "nothing was thrown";
  } catch (const IndexError& e) {
    EXPECT_STREQ(e.what(), "3: 70");
  }
  EXPECT_EQ(record->found, Fault::kNothing);
  // As many as there are records, and more.
  for (int i = 0; i < 2 * FaultRecords::kCount + 3; ++i) EXPECT_NO_THROW(s.synchronize(s.submit([&] { s.take_faults(1, error); })));
}

}  // namespace
}  // namespace naru::runtime
