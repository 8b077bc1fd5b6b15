// The sizes from which kernels use 64-bit counters: before a 32-bit counter would wrap.
#include <gtest/gtest.h>

#include <algorithm>

#include "render/c/launch.h"
#include "support/arrays.h"

namespace naru::render::c {
namespace {

using testing::unread;

// Collects the texts of the launches.
class Reader final : public Launcher {
 public:
  Reader() { target_.dialect = &cuda(); }
  const Target& target() const override { return target_; }
  void start(const Launch& launch) override { texts.push_back(launch.text()); }
  void* scratch(size_t) override { return reinterpret_cast<void*>(uintptr_t{1} << 30); }
  void* faults(int, render::c::FaultError) override { return scratch(0); }
  // The number of kernels with 64-bit counters.
  int64_t wide() const {
    return std::count_if(texts.begin(), texts.end(), [](const std::string& t) { return t.find("typedef i64 I;") != std::string::npos; });
  }
  std::vector<std::string> texts;

 private:
  Target target_;
};

Reader sorted(int64_t n) {
  Reader reader;
  run(ir::Sort{{n}, n, false, unread(DType::F32, {1}), unread(DType::F32, {1}), unread(DType::I64, {1})}, reader);
  return reader;
}

TEST(WideKernels, a_sort_counts_in_64_bits_before_places_of_pairs_leave_its_range) {
  constexpr int64_t kMost = int64_t{1} << 30;
  EXPECT_EQ(sorted(kMost - 1).wide(), 0);
  for (const int64_t n : {kMost, kMost + 1, 2 * kMost}) {
    const Reader reader = sorted(n);
    EXPECT_EQ(reader.wide(), static_cast<int64_t>(reader.texts.size())) << n;
  }
}

int64_t wide_of_scatter(int64_t rows) {
  Reader reader;
  ir::Scatter s;
  s.shape = {rows}, s.value = unread(DType::F32, {1}), s.target = unread(DType::F32, {0}), s.indices = {{unread(DType::I64, {1}), 11, 1}};
  run(s, reader);
  return reader.wide();
}

TEST(WideKernels, a_scatter_finds_both_offsets_of_its_last_row) {
  constexpr int64_t kHalf = int64_t{1} << 29;
  EXPECT_EQ(wide_of_scatter(kHalf - 1), 0);
  EXPECT_EQ(wide_of_scatter(kHalf), 2) << "the kernel that writes the offsets, and the one that reads them";
}

}  // namespace
}  // namespace naru::render::c
