#include "runtime/device/availability.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "naru/error.h"
#include "runtime/os/library.h"

namespace naru::runtime {
namespace {

TEST(Availability, each_state_says_which_facts_its_reason_and_remedy_want) {
  for (int i = 1; i < kDriverStates; ++i) {
    const auto state = static_cast<DriverState>(i);
    const std::string wanted = facts_of(state);
    ASSERT_FALSE(wanted.empty());
    try {
      unavailable(state, {});
      FAIL() << name_of(state) << " took no facts";
    } catch (const RuntimeError& e) {
      EXPECT_NE(std::string(e.what()).find(wanted), std::string::npos) << e.what();
    }
  }
  const Availability old = unavailable(
      DriverState::DriverTooOld, {{"driver", "the NVIDIA driver"}, {"have", "CUDA 10.2"}, {"need", "CUDA 11.2"}, {"version", "460.27"}});
  EXPECT_FALSE(old.available);
  EXPECT_EQ(old.state, DriverState::DriverTooOld);
  EXPECT_EQ(old.reason, "the NVIDIA driver is too old: it supports CUDA 10.2, naru needs CUDA 11.2");
  EXPECT_EQ(old.remedy, "Update the NVIDIA driver to 460.27 or newer");
}

TEST(Library, one_that_is_not_there_says_which_was_looked_for) {
  Library none = Library::open(nullptr, {"libnaru-no-such.so.1", "libnaru-nor-this.so"});
  EXPECT_FALSE(none);
  EXPECT_NE(none.trouble().find("libnaru-no-such.so.1"), std::string::npos) << none.trouble();
  void (*f)() = nullptr;
  EXPECT_FALSE(none.find(f, "anything"));
}

TEST(Library, functions_are_found_by_name_and_the_first_missing_one_is_named) {
  Library c = Library::open(nullptr, {"libnaru-no-such.so.1", "libc.so.6"});
  ASSERT_TRUE(c) << c.trouble();
  EXPECT_EQ(c.name(), "libc.so.6");
  EXPECT_EQ(c.path().front(), '/');
  int (*absolute)(int) = nullptr;
  ASSERT_TRUE(c.find(absolute, "abs"));
  EXPECT_EQ(absolute(-3), 3);
  EXPECT_EQ(c.trouble(), "");
  EXPECT_FALSE(c.find(absolute, "naru_no_such_function"));
  EXPECT_EQ(absolute, nullptr);
  EXPECT_FALSE(c.find(absolute, "naru_nor_this"));
  EXPECT_EQ(c.trouble(), "libc.so.6 has no function naru_no_such_function");
}

TEST(Library, a_file_named_in_the_environment_is_taken_instead) {
  ::setenv("NARU_TEST_LIBRARY", "/nowhere/libc.so.6", 1);
  const Library named = Library::open("NARU_TEST_LIBRARY", {"libc.so.6"});
  ::unsetenv("NARU_TEST_LIBRARY");
  EXPECT_FALSE(named);
  EXPECT_NE(named.trouble().find("/nowhere/libc.so.6"), std::string::npos);
}

}  // namespace
}  // namespace naru::runtime
