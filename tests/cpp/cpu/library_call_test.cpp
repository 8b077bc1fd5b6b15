#include "backends/cpu/libraries/library_call.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "backends/cpu/libraries/matmul_libraries.h"

namespace naru::cpu {
namespace {

TEST(LibraryCall, a_library_that_ends_the_process_is_not_waited_for) {
  EXPECT_EXIT(
      {
        static std::atomic<bool> known{false};
        { const LibraryCall first(known); }
        const LibraryCall second(known);
        std::exit(3);
      },
      ::testing::ExitedWithCode(3), "");
}

// Row-major {1, 2; 3, 4} times {5, 6; 7, 8}, by the installed library; checks the corners.
int product_of_corners() {
  const Products& p = products();
  const float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8};
  float c[4] = {19, 22, 43, 50};
  if (p.small_sgemm) p.small_sgemm(false, false, 2, 2, 2, a, 2, b, 2, 0, c, 2);
  return c[0] == 19 && c[1] == 22 && c[2] == 43 && c[3] == 50;
}

TEST(LibraryCall, products_are_computed_when_the_library_is_gone) {
  EXPECT_EXIT(
      {
        std::atexit([] { std::fprintf(stderr, "right: %d\n", product_of_corners()); });  // runs after the library's destructors
        product_of_corners();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "right: 1");
}

TEST(LibraryCall, whoever_ends_the_process_may_wait_for_another_threads_products) {
  EXPECT_EXIT(
      {
        static std::atomic<int> done{0};
        std::atexit([] {
          const int before = done;
          while (done < before + 3) std::this_thread::yield();
          std::fprintf(stderr, "done\n");
        });
        std::thread([] {
          for (;;) done += product_of_corners();
        }).detach();
        while (done < 3) std::this_thread::yield();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "done");
}

}  // namespace
}  // namespace naru::cpu
