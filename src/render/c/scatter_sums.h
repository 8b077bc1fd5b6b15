// Scatter-adds of floating-point values in the order of ir/scatter_sums.h: the blocks of a target element's values in parallel, then their sums.
#pragma once

#include <string>

#include "render/c/launch.h"

namespace naru::render::c {

// a + b as elements of a type, rounded to the type.
std::string sum_text(DType t, const std::string& a, const std::string& b);

// Rows of `run` values each, sorted by target offset.
struct SortedRows {
  int64_t rows, run;
  int64_t value_step, target_step;  // elements from one value of a row to the next
  void* offsets;                    // of each row: its offset in the target, or -1, and the offset of its values
  void* order;                      // the rows' indices, sorted
  bool wide;
};
void add_sorted(const ir::Scatter& s, const SortedRows& r, Launcher& launcher);

}  // namespace naru::render::c
