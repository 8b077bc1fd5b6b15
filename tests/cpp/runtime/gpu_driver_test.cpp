#include "runtime/device/gpu_driver.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "runtime/os/child.h"

namespace naru::runtime {
namespace {

using Indices = std::vector<int>;
const std::vector<std::string> kUuids{"GPU-11aa0000", "GPU-22bb0000", "GPU-22cc0000"};

TEST(VisibleDevices, are_chosen_and_ordered_by_index) {
  EXPECT_EQ(visible_devices("0", kUuids), Indices{0});
  EXPECT_EQ(visible_devices(" 2, 0 ,1", kUuids), (Indices{2, 0, 1}));
  EXPECT_EQ(visible_devices("", kUuids), Indices{});
  EXPECT_EQ(visible_devices("-1", kUuids), Indices{});
}

TEST(VisibleDevices, are_chosen_by_uuid_or_by_a_beginning_that_only_one_of_them_has) {
  EXPECT_EQ(visible_devices("GPU-22cc0000,GPU-11", kUuids), (Indices{2, 0}));
  EXPECT_EQ(visible_devices("GPU-22", kUuids), Indices{});
  EXPECT_EQ(visible_devices("GPU-22b,0", kUuids), (Indices{1, 0}));
  EXPECT_EQ(visible_devices("GPU-99", kUuids), Indices{});
}

TEST(VisibleDevices, end_before_the_first_entry_that_names_none) {
  EXPECT_EQ(visible_devices("1,-1,0", kUuids), Indices{1});
  EXPECT_EQ(visible_devices("1,3,0", kUuids), Indices{1});
  EXPECT_EQ(visible_devices("1,x,0", kUuids), Indices{1});
  EXPECT_EQ(visible_devices("1,,0", kUuids), Indices{1});
  EXPECT_EQ(visible_devices("0x1", kUuids), Indices{});
}

TEST(VisibleDevices, are_none_where_one_is_named_twice) {
  EXPECT_EQ(visible_devices("0,1,0", kUuids), Indices{});
  EXPECT_EQ(visible_devices("1,GPU-22bb", kUuids), Indices{});
}

TEST(AskingInAChild, gives_its_words_and_leaves_this_process_as_it_was) {
  int asked = 0;
  const std::string long_text(1 << 20, 'x');
  const ChildAnswer answer = ask_in_child(
      [&] {
        ++asked;
        return long_text;
      },
      std::chrono::seconds(60));
  EXPECT_EQ(answer.text, long_text);
  EXPECT_EQ(asked, 0);
}

TEST(AskingInAChild, a_child_that_crashes_throws_or_hangs_is_an_answer_too) {
  const ChildAnswer crashed = ask_in_child([]() -> std::string { ::raise(SIGKILL), ::_exit(0); }, std::chrono::seconds(60));
  EXPECT_FALSE(crashed.text);
  EXPECT_EQ(crashed.trouble.substr(0, 8), "signal 9") << crashed.trouble;
  const ChildAnswer threw = ask_in_child([]() -> std::string { throw std::runtime_error("no"); }, std::chrono::seconds(60));
  EXPECT_FALSE(threw.text);
  EXPECT_EQ(threw.trouble, "an exception");
  const ChildAnswer hung = ask_in_child(
      []() -> std::string {
        for (;;) ::pause();
      },
      std::chrono::milliseconds(50));
  EXPECT_FALSE(hung.text);
  EXPECT_EQ(hung.trouble, "no answer within 0.05 s");
}

}  // namespace
}  // namespace naru::runtime
