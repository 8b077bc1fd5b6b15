// The elementwise table as data: what bindings and tests walk over.
#pragma once

#include <span>

#include "ir/program.h"
#include "naru/tensor.h"
#include "ops/rules.h"

namespace naru::ops {

struct TableRow {
  const char* name;
  int arity;
  Rule rule;
  double lo, hi;  // range tests draw operands from
  const char* doc;
  bool differentiable[3];
};
// Row i has RowId i.
std::span<const TableRow> table();

// The operator of row `row`; operands as many as its arity, at least one a tensor.
Tensor run_row(ir::RowId row, std::span<const Operand> operands);
// target = row(target, others...) in place; `others` are the operands behind the first.
void run_row_in_place(ir::RowId row, const Tensor& target, std::span<const Operand> others);

// Sums `g` down to `shape`, from which it was broadcast.
Tensor sum_to(const Tensor& g, const Dims& shape);

}  // namespace naru::ops
