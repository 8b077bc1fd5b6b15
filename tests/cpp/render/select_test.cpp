// How many kernels a device starts for the first elements of rows, and to sort the rows of a scatter.
#include <gtest/gtest.h>

#include "render/c/launch.h"

namespace naru::render::c {
namespace {

// Counts what it is to start.
class CountingLauncher final : public Launcher {
 public:
  CountingLauncher() { target_.dialect = &cuda(), target_.largest_group = 1024; }
  const Target& target() const override { return target_; }
  void start(const Launch& launch) override {
    ++launches, group = launch.group;
    counts += launch.key.kind == Kind::SortCount;
    last = launch.key.kind;
    EXPECT_NE(launch.text(), "");
  }
  void* scratch(size_t) override { return reinterpret_cast<void*>(uintptr_t{1} << 40); }
  void* faults(int, render::c::FaultError) override { return nullptr; }
  Target target_;
  int launches = 0, group = 0, counts = 0;
  Kind last = Kind::User;
};

constexpr uintptr_t kIn = uintptr_t{1} << 30, kValues = uintptr_t{2} << 30, kIndices = uintptr_t{3} << 30;

ir::View view_at(uintptr_t address, DType t, Dims strides) { return {reinterpret_cast<void*>(address), t, std::move(strides)}; }

// The launches for the first k of 64 rows of n elements.
int launches_of(int64_t n, int64_t k, CountingLauncher launcher = {}, uintptr_t values = kValues) {
  run(
      ir::Sort{
          {64, n}, k, true, view_at(kIn, DType::F32, {n, 1}), view_at(values, DType::F32, {k, 1}), view_at(kIndices, DType::I64, {k, 1})},
      launcher);
  if (launcher.launches == 1) {
    EXPECT_EQ(launcher.last, Kind::SortSelect);
    EXPECT_EQ(launcher.group, n == 50257 ? 1024 : 256);
  }
  return launcher.launches;
}

TEST(Selection, takes_one_kernel_for_a_few_of_long_rows) {
  EXPECT_EQ(launches_of(50257, 50), 1);
  EXPECT_EQ(launches_of(2049, 1024), 1);
  EXPECT_GT(launches_of(50257, 1025), 10);
  EXPECT_GT(launches_of(2049, 2049), 10);
}

TEST(Selection, leaves_to_the_sort_what_a_group_cannot_do) {
  CountingLauncher small;
  small.target_.local = 16384;
  EXPECT_GT(launches_of(50257, 50, small), 10);
  EXPECT_GT(launches_of(65 << 18, 50), 10);  // a few long rows
  // What is written lies where other groups read.
  EXPECT_EQ(launches_of(50257, 50, {}, kIn + 4 * 64 * 50257), 1);
  EXPECT_GT(launches_of(50257, 50, {}, kIn + 4 * 64 * 50257 - 4), 10);
  EXPECT_GT(launches_of(50257, 50, {}, kIn), 10);
}

// Digits by which the places of 3000 rows of `width` are sorted that are added to some of `places` rows.
int digits_of(int64_t places, int64_t width) {
  CountingLauncher launcher;
  ir::Scatter s;
  s.add = true, s.shape = {3000, width};
  s.value = view_at(kIn, DType::F32, {width, 1}), s.target = view_at(kValues, DType::F32, {0, 1});
  s.indices = {{view_at(kIndices, DType::I64, {1, 0}), places, width}};
  run(s, launcher);
  return launcher.counts;
}

TEST(SortedScatter, takes_no_digits_that_are_0_in_all_places) {
  EXPECT_EQ(digits_of(50000, 64), 2);
  EXPECT_EQ(digits_of(65536, 64), 2);
  EXPECT_EQ(digits_of(65537, 64), 3);
  EXPECT_EQ(digits_of(256, 4096), 1);
  EXPECT_EQ(digits_of(50000, 63), 3);
  EXPECT_EQ(digits_of(1, 64), 0);
}

}  // namespace
}  // namespace naru::render::c
