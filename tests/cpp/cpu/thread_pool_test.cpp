#include "backends/cpu/exec/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "cpu/switches.h"
#include "naru/error.h"

namespace naru::cpu {
namespace {

using testing::Threads;

TEST(ThreadPool, runs_every_item_exactly_once) {
  const Threads four(4);
  for (int64_t count : {0, 1, 2, 3, 7, 100, 1000}) {
    std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
    parallel_for(count, [&](int64_t i) { ++seen[static_cast<size_t>(i)]; });
    for (auto& s : seen) EXPECT_EQ(s.load(), 1);
  }
}

TEST(ThreadPool, many_short_jobs_in_a_row_lose_no_item) {
  const Threads three(3);
  int64_t total = 0;
  for (int round = 0; round < 20000; ++round) {
    int64_t parts[5] = {};
    parallel_for(5, [&](int64_t i) { parts[i] = i + round; });
    for (int i = 0; i < 5; ++i) total += parts[i] - round;
  }
  EXPECT_EQ(total, 20000 * 10);
}

TEST(ThreadPool, wakes_again_after_sleeping) {
  const Threads two(2);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> n{0};
    parallel_for(8, [&](int64_t) { ++n; });
    EXPECT_EQ(n.load(), 8);
  }
}

TEST(ThreadPool, uses_more_than_one_thread_when_items_take_time) {
  const Threads one(1);
  set_num_threads(2);
  std::atomic<int> inside{0}, most{0};
  parallel_for(2, [&](int64_t) {
    const int now = ++inside;
    if (now > most) most = now;
    for (int i = 0; i < 2000 && most < 2; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (inside > most) most = inside.load();
    }
    --inside;
  });
  EXPECT_EQ(most.load(), 2);
}

TEST(ThreadPool, rests_when_its_threads_do_not_get_to_run_and_comes_back) {
  const Threads one(1);
  set_num_threads(2);
  const auto caller = std::this_thread::get_id();
  std::atomic<int> elsewhere{0};
  const auto job = [&](std::chrono::milliseconds worker, std::chrono::milliseconds self) {
    elsewhere = 0;
    parallel_for(2, [&](int64_t) {
      const bool here = std::this_thread::get_id() == caller;
      if (!here) ++elsewhere;
      std::this_thread::sleep_for(here ? self : worker);
    });
    return elsewhere.load();
  };
  // The caller's item takes a moment, so that the worker gets the other item, and takes long for it.
  using std::chrono::milliseconds;
  for (int tries = 0; job(milliseconds(60), milliseconds(20)) == 0; ++tries) ASSERT_LT(tries, 100);
  EXPECT_EQ(job(milliseconds(0), milliseconds(1)), 0) << "the late thread was asked again at once";
  std::this_thread::sleep_for(milliseconds(200));
  int tries = 0;
  while (job(milliseconds(0), milliseconds(20)) == 0 && tries < 100) ++tries;
  EXPECT_LT(tries, 100) << "the pool never came back";
}

TEST(ThreadPool, nested_loops_run_on_the_thread_that_meets_them) {
  const Threads four(4);
  std::atomic<int> n{0};
  std::atomic<bool> strayed{false};
  parallel_for(6, [&](int64_t) {
    const auto self = std::this_thread::get_id();
    parallel_for(5, [&](int64_t) {
      ++n;
      if (std::this_thread::get_id() != self) strayed = true;
    });
  });
  EXPECT_EQ(n.load(), 30);
  EXPECT_FALSE(strayed.load());
}

TEST(ThreadPool, several_callers_at_once_all_get_their_work_done) {
  const Threads three(3);
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum{0};
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round) parallel_for(10, [&](int64_t i) { sum += i; });
    });
  for (auto& c : callers) c.join();
  EXPECT_EQ(sum.load(), 4 * 500 * 45);
}

TEST(ThreadPool, the_first_exception_reaches_the_caller_and_the_pool_goes_on) {
  const Threads four(4);
  EXPECT_THROW(parallel_for(100,
                            [](int64_t i) {
                              if (i == 57) throw std::invalid_argument("57");
                            }),
               std::invalid_argument);
  std::atomic<int> n{0};
  parallel_for(100, [&](int64_t) { ++n; });
  EXPECT_EQ(n.load(), 100);
}

TEST(ThreadPool, the_number_of_threads_can_change_between_jobs) {
  const Threads before(1);
  for (int n : {1, 5, 2, 8, 1, 3}) {
    set_num_threads(n);
    EXPECT_EQ(num_threads(), n);
    std::atomic<int> items{0};
    parallel_for(64, [&](int64_t) { ++items; });
    EXPECT_EQ(items.load(), 64);
  }
  EXPECT_THROW(set_num_threads(0), RuntimeError);
}

#if !defined(__SANITIZE_THREAD__)
TEST(ThreadPool, a_forked_child_makes_its_own_threads) {
  const Threads two(2);
  parallel_for(4, [](int64_t) {});
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> n{0};
    for (int round = 0; round < 100; ++round) parallel_for(16, [&](int64_t) { ++n; });
    _exit(n == 1600 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

}  // namespace
}  // namespace naru::cpu
