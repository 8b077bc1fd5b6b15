#include "host/library_call.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace naru::host {
namespace {

TEST(LibraryCall, a_library_that_ends_the_process_is_not_waited_for) {
  EXPECT_EXIT(
      {
        static std::atomic<bool> known{false};
        { const LibraryCall first(known); }
        const LibraryCall second(known);
        std::exit(3);
      },
      testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace naru::host
