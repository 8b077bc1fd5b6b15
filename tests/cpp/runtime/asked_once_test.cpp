#include "runtime/os/asked_once.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace naru::runtime {
namespace {

TEST(AskedOnce, all_threads_get_one_answer_and_the_next_question_is_asked_again_once_it_was_taken) {
  AskedOnce<int> once;
  std::atomic<int> asked{0};
  const auto ask = [&] { return ++asked; };
  EXPECT_EQ(once.take(), nullptr);
  std::vector<const int*> got(8);
  std::vector<std::thread> threads;
  for (const int*& to : got) threads.emplace_back([&] { to = &once.get(ask); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(std::set<const int*>(got.begin(), got.end()).size(), 1u);
  const int questions = asked;
  EXPECT_EQ(&once.get(ask), got[0]);
  EXPECT_EQ(asked, questions);
  const std::unique_ptr<const int> taken(once.take());
  EXPECT_EQ(taken.get(), got[0]);
  EXPECT_EQ(once.get(ask), questions + 1);
  delete once.take();
}

}  // namespace
}  // namespace naru::runtime
