#include "runtime/memory/allocator.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "naru/error.h"
#include "support/toy_memory.h"

namespace naru::runtime {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

using Meter = testing::ToyMemory;
const Device kDevice("cuda:0");

// Sets NARU_CACHING for the duration of a test (sanitizers run the other tests without a cache).
class Caching {
 public:
  explicit Caching(const char* value) {
    if (const char* text = std::getenv("NARU_CACHING")) before_ = text;
    setenv("NARU_CACHING", value, 1);
  }
  Caching(const Caching&) = delete;
  ~Caching() {
    if (before_)
      setenv("NARU_CACHING", before_->c_str(), 1);
    else
      unsetenv("NARU_CACHING");
  }

 private:
  std::optional<std::string> before_;
};

TEST(CachingAllocator, counts_requests_rounded_to_512_bytes) {
  const Caching on("1");
  Meter meter(100 * kMiB);
  CachingAllocator a(meter, kDevice);
  void* x = a.allocate(1);
  void* y = a.allocate(513);
  EXPECT_EQ(a.stats().allocated(), 512u + 1024u);
  EXPECT_EQ(a.stats().reserved(), meter.used);
  EXPECT_EQ(a.stats().all.allocations.added, 2);
  a.release(x);
  EXPECT_EQ(a.stats().allocated(), 1024u);
  EXPECT_EQ(a.stats().peak_allocated(), 1536u);
  a.reset_peak();
  EXPECT_EQ(a.stats().peak_allocated(), 1024u);
  a.release(y);
  EXPECT_EQ(a.stats().allocated(), 0u);
  EXPECT_EQ(a.stats().all.allocations.removed, 2);
  EXPECT_EQ(a.allocate(0), nullptr);
  a.release(nullptr);
}

TEST(CachingAllocator, counts_by_pool_what_is_requested_and_what_is_split) {
  const Caching on("1");
  Meter meter(100 * kMiB);
  CachingAllocator a(meter, kDevice);
  void* small = a.allocate(100);
  void* large = a.allocate(3 * kMiB);
  MemoryStats s = a.stats();
  EXPECT_EQ(s.all.requested_bytes.current, static_cast<int64_t>(100 + 3 * kMiB));
  EXPECT_EQ(s.small.allocated_bytes.current, 512);
  EXPECT_EQ(s.large.allocated_bytes.current, static_cast<int64_t>(3 * kMiB));
  EXPECT_EQ(s.all.slabs.current, 2);
  EXPECT_EQ(s.small.splits.current, 1);  // the remainder of the small slab
  EXPECT_EQ(s.small.split_bytes.current, s.small.reserved_bytes.current - 512);
  a.release(small), a.release(large);
  s = a.stats();
  EXPECT_EQ(s.all.splits.current, 0);  // merged: the slabs could be freed
  EXPECT_EQ(s.all.split_bytes.current, 0);
  EXPECT_GT(s.all.splits.peak, 0);
  a.reset_accumulated();
  EXPECT_EQ(a.stats().all.allocations.added, 0);
  a.empty_cache();
  EXPECT_EQ(a.stats().driver_allocations, a.stats().driver_releases);
  EXPECT_EQ(a.stats().all.slabs.current, 0);
}

TEST(CachingAllocator, a_released_block_serves_the_next_request_of_its_size) {
  const Caching on("1");
  Meter meter(1000 * kMiB);
  CachingAllocator a(meter, kDevice);
  for (size_t size : {size_t{100}, size_t{70000}, 5 * kMiB, 64 * kMiB}) {
    void* x = a.allocate(size);
    const size_t asked = a.stats().driver_allocations;
    a.release(x);
    void* y = a.allocate(size);
    EXPECT_EQ(x, y);
    EXPECT_EQ(a.stats().driver_allocations, asked);
    a.release(y);
  }
}

TEST(CachingAllocator, takes_the_best_fitting_block_and_merges_neighbours) {
  const Caching on("1");
  Meter meter(1000 * kMiB);
  CachingAllocator a(meter, kDevice);
  void* big = a.allocate(40 * kMiB);
  void* small = a.allocate(20 * kMiB);
  a.release(big), a.release(small);
  EXPECT_EQ(a.allocate(18 * kMiB), small);
  void* first = a.allocate(10 * kMiB);  // a part of the 40 MiB block
  EXPECT_EQ(first, big);
  void* second = a.allocate(10 * kMiB);
  EXPECT_EQ(second, static_cast<char*>(first) + 10 * kMiB);
  a.release(first), a.release(second);
  EXPECT_EQ(a.allocate(40 * kMiB), big) << "the parts did not become one again";
  a.release(big), a.release(small);
  a.empty_cache();
  EXPECT_EQ(meter.used, 0u);
  EXPECT_EQ(a.stats().reserved(), 0u);
}

TEST(CachingAllocator, random_requests_never_overlap_and_are_all_given_back) {
  const Caching on("1");
  Meter meter(4000 * kMiB);
  CachingAllocator a(meter, kDevice);
  std::mt19937_64 random(1);
  std::map<char*, size_t> live;
  size_t expected = 0;
  for (int step = 0; step < 20000; ++step) {
    if (live.empty() || random() % 100 < 52) {
      const size_t shift = random() % 24;
      const size_t bytes = 1 + random() % (size_t{1} << shift);
      if (live.size() > 200) continue;
      char* p = static_cast<char*>(a.allocate(bytes));
      ASSERT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u);
      const auto next = live.lower_bound(p);
      ASSERT_TRUE(next == live.end() || p + bytes <= next->first);
      ASSERT_TRUE(next == live.begin() || std::prev(next)->first + std::prev(next)->second <= p);
      live[p] = bytes;
      p[0] = p[bytes - 1] = 1;
      expected += (bytes + 511) / 512 * 512;
    } else {
      auto it = std::next(live.begin(), static_cast<long>(random() % live.size()));
      expected -= (it->second + 511) / 512 * 512;
      a.release(it->first);
      live.erase(it);
    }
    const MemoryStats s = a.stats();
    ASSERT_EQ(s.allocated(), expected);
    ASSERT_GE(s.reserved(), s.allocated());
    ASSERT_EQ(s.reserved(), meter.used);
  }
  for (auto& [p, bytes] : live) a.release(p);
  a.empty_cache();
  EXPECT_EQ(meter.used, 0u);
}

TEST(CachingAllocator, empties_its_cache_before_it_gives_up) {
  const Caching on("1");
  Meter meter(100 * kMiB);
  CachingAllocator a(meter, kDevice);
  void* x = a.allocate(30 * kMiB);
  void* y = a.allocate(30 * kMiB);
  void* z = a.allocate(30 * kMiB);
  a.release(x), a.release(y);
  void* w = a.allocate(60 * kMiB);  // fits only after both slabs are freed
  EXPECT_NE(w, nullptr);
  a.release(z), a.release(w);
}

TEST(CachingAllocator, out_of_memory_says_what_was_wanted_and_what_there_is_and_the_program_goes_on) {
  const Caching on("1");
  Meter meter(100 * kMiB);
  CachingAllocator a(meter, kDevice);
  void* x = a.allocate(70 * kMiB);
  try {
    a.allocate(50 * kMiB);
    FAIL();
  } catch (const OutOfMemoryError& e) {
    const std::string text = e.what();
    EXPECT_EQ(text.rfind("CUDA out of memory. Tried to allocate 50.00 MiB.", 0), 0u) << text;
    EXPECT_NE(text.find("cuda:0 has 100.00 MiB in all"), std::string::npos) << text;
    EXPECT_NE(text.find("70.00 MiB are allocated"), std::string::npos) << text;
    EXPECT_NE(text.find("The largest holders:\n  70.00 MiB"), std::string::npos) << text;
  }
  void* y = a.allocate(20 * kMiB);
  EXPECT_NE(y, nullptr);
  EXPECT_THROW(a.check_plausible(101 * kMiB), OutOfMemoryError);
  a.check_plausible(99 * kMiB);
  a.release(x), a.release(y);
}

TEST(CachingAllocator, out_of_memory_adds_up_what_a_line_holds) {
  const Caching on("1");
  Meter meter(100 * kMiB);
  CachingAllocator a(meter, kDevice);
  const auto holder = [&](const char* op) {
    auto s = make_ref<Storage>(kDevice, size_t{0});
    s->origin.op = op;
    return s;
  };
  const auto many = holder("zeros"), one = holder("ones");
  std::vector<void*> memory;
  for (int i = 0; i < 12; ++i) memory.push_back(a.allocate(4 * kMiB, many.get()));
  memory.push_back(a.allocate(30 * kMiB, one.get()));
  try {
    a.allocate(50 * kMiB);
    FAIL();
  } catch (const OutOfMemoryError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("The largest holders:\n  48.00 MiB in 12 tensors made by zeros\n  30.00 MiB made by ones\n"), std::string::npos)
        << text;
  }
  for (void* m : memory) a.release(m);
}

TEST(CachingAllocator, keeps_to_its_limit) {
  const Caching on("1");
  Meter meter(100 * kMiB);
  CachingAllocator a(meter, kDevice);
  a.set_limit(20 * kMiB);
  EXPECT_EQ(a.stats().limit, 20 * kMiB);
  EXPECT_THROW(a.check_plausible(21 * kMiB), OutOfMemoryError);
  EXPECT_THROW(a.allocate(21 * kMiB), OutOfMemoryError);
  void* x = a.allocate(15 * kMiB);
  EXPECT_THROW(a.allocate(10 * kMiB), OutOfMemoryError);
  a.set_limit(0);
  void* y = a.allocate(50 * kMiB);
  a.release(x), a.release(y);
}

TEST(CachingAllocator, a_few_bytes_are_taken_from_a_large_block_that_is_in_use_in_part_before_it_gives_up) {
  const Caching on("1");
  Meter meter(100 * kMiB);
  CachingAllocator a(meter, kDevice);
  a.set_limit(64 * kMiB);
  a.release(a.allocate(64 * kMiB));
  void *x = a.allocate(16 * kMiB), *few = a.allocate(4);
  EXPECT_EQ(a.stats().reserved(), 64 * kMiB);
  a.release(x), a.release(few);
  EXPECT_EQ(a.stats().allocated(), 0u);
  a.release(a.allocate(64 * kMiB));
}

TEST(CachingAllocator, several_threads_share_it) {
  const Caching on("1");
  Meter meter(1000 * kMiB);
  CachingAllocator a(meter, kDevice);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&a, t] {
      std::mt19937_64 random(t);
      std::vector<std::pair<char*, size_t>> mine;
      for (int step = 0; step < 3000; ++step) {
        if (mine.size() < 20 && random() % 2) {
          const size_t bytes = 1 + random() % 100000;
          char* p = static_cast<char*>(a.allocate(bytes));
          std::memset(p, static_cast<int>(t), bytes);
          mine.emplace_back(p, bytes);
        } else if (!mine.empty()) {
          const auto [p, bytes] = mine.back();
          EXPECT_EQ(p[0], static_cast<char>(t));
          EXPECT_EQ(p[bytes - 1], static_cast<char>(t));
          a.release(p);
          mine.pop_back();
        }
      }
      for (auto& [p, bytes] : mine) a.release(p);
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(a.stats().allocated(), 0u);
}

TEST(CachingAllocator, passes_every_request_through_when_caching_is_off) {
  Meter meter(100 * kMiB);
  const Caching off("0");
  CachingAllocator a(meter, kDevice);
  void* x = a.allocate(100);
  EXPECT_EQ(meter.given.at(x), 100u);
  a.release(x);
  EXPECT_EQ(meter.used, 0u);
  EXPECT_EQ(a.stats().reserved(), 0u);
}

#if !defined(__SANITIZE_THREAD__)
TEST(CachingAllocator, a_child_forked_while_others_allocate_can_allocate) {
  const Caching on("1");
  Meter meter(1000 * kMiB);
  CachingAllocator a(meter, kDevice);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) a.release(a.allocate(5000));
  });
  for (int round = 0; round < 50; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      a.release(a.allocate(3000));
      _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "the child hung";
  }
  stop = true;
  other.join();
}
#endif

TEST(SizeText, picks_a_unit) {
  EXPECT_EQ(size_text(512), "512 bytes");
  EXPECT_EQ(size_text(1536), "1.50 KiB");
  EXPECT_EQ(size_text(size_t{2} << 30), "2.00 GiB");
}

}  // namespace
}  // namespace naru::runtime
