// Parts of row programs, as far as one kernel can do them (rows.cpp).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "render/c/launch.h"

namespace naru::render::c {

// An operand of a part: along a row by nothing, to the next or by its stride; elements from row to row.
struct RowOperand {
  int memory = 0;
  bool kept = false;  // the values that an earlier part kept
  Step step = kStays;
  int64_t row_stride = 0, stride = 0;
};

struct RowPart {
  const ir::Program* program = nullptr;
  const ir::Reduce* reduce = nullptr;  // null: a map
  int inputs = 0;
  int64_t length = 1;  // positions of a row
  bool wide = false;
  ir::VType type = ir::VType::F32;  // what is reduced
  void* kept = nullptr;
  std::span<const uint64_t> params;
  std::vector<ir::View> views;  // inputs, then results
  std::vector<RowOperand> operands;
  bool fours = false;  // an item takes four neighbouring positions at once
  // Whether a chain may be cut into pieces that are combined in their order, as no sum or product of floats may.
  bool associative() const { return reduce && !(is_float(type) && (reduce->op == ir::ReduceOp::Sum || reduce->op == ir::ReduceOp::Prod)); }
  DType kept_dtype() const { return program->nodes[program->outputs[0]].out; }
};

// A part over `rows` rows of at most `longest` positions, as long as each of its operands goes from row to row and along a row by one stride.
std::optional<RowPart> part_of(const ir::RowFused::Part& p, int64_t rows, int64_t longest);

}  // namespace naru::render::c
