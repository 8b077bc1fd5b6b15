// main() of every C++ test program.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // Re-execute the program for death tests: a forked copy of a process with threads lacks the threads, while locks that they held stay locked.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  return RUN_ALL_TESTS();
}
