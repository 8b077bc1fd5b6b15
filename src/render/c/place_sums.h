// Sums of floating-point values that go to equal places, in the order of ir/place_sums.h: blocks of a place's values side by side, then their sums.
#pragma once

#include <string>

#include "render/c/launch.h"

namespace naru::render::c {

// a + b as elements of a type, rounded as the type is.
std::string sum_text(DType t, const std::string& a, const std::string& b);

// Rows of `run` values each, sorted by the place that they go to.
struct SortedRows {
  int64_t rows, run;
  int64_t value_step, target_step;  // elements from one value of a row to the next
  void* offsets;                    // of each row: its place in the target, or -1, and where its values begin
  void* order;                      // the rows' numbers, sorted
  bool wide;
};
void add_sorted(const ir::Scatter& s, const SortedRows& r, Launcher& launcher);

}  // namespace naru::render::c
