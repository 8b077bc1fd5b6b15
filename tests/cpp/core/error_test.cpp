#include "naru/error.h"

#include <gtest/gtest.h>

namespace naru {
namespace {

TEST(Errors, WhatPythonCallsARuntimeErrorIsOne) {
  static_assert(std::is_base_of_v<RuntimeError, NotImplementedError> && std::is_base_of_v<RuntimeError, OutOfMemoryError>);
  static_assert(std::is_base_of_v<RuntimeError, DeviceMismatchError> && std::is_base_of_v<RuntimeError, DeviceUnavailableError>);
  static_assert(std::is_base_of_v<RuntimeError, DeviceLostError> && std::is_base_of_v<RuntimeError, SynchronizationError>);
  static_assert(!std::is_base_of_v<RuntimeError, TypeError> && std::is_base_of_v<Error, TypeError>);
  try {
    throw_error(ErrorKind::OutOfMemory, "full");
  } catch (const RuntimeError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::OutOfMemory);
    EXPECT_STREQ(e.what(), "full");
  }
}

TEST(Errors, MessagesHaveTheirValues) {
  const std::string text = "text";
  EXPECT_STREQ(RuntimeError("{} {} {}", text, std::string_view("view"), "chars").what(), "text view chars");
  EXPECT_STREQ(RuntimeError("{} {} {}", int8_t{-1}, ~uint64_t{0}, size_t{3}).what(), "-1 18446744073709551615 3");
  EXPECT_STREQ(RuntimeError("{} {} {} {}", 0.1F, 2.5, true, 'x').what(), "0.1 2.5 true x");
  EXPECT_STREQ(RuntimeError("{1} {0} {1}", 1, 2).what(), "2 1 2");
  EXPECT_STREQ(RuntimeError("{{{}}} {:.2f}", 1, 2.0).what(), "{1} 2.00");
  EXPECT_STREQ(RuntimeError("a {brace} of its own").what(), "a {brace} of its own");
}

}  // namespace
}  // namespace naru
