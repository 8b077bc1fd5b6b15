// The elementwise table as data: what bindings and tests walk over.
#pragma once

#include <span>
#include <string_view>

#include "ir/program.h"
#include "naru/tensor.h"
#include "ops/rules.h"

namespace naru::ops {

struct TableEntry {
  const char* name;
  int arity;
  Rule rule;
  double lo, hi;  // range tests draw operands from
  const char* doc;
  bool differentiable[3];
};
// Entry i has OpId i.
std::span<const TableEntry> table();
// The OpId of that name; ir::op::kCount where the table has none.
ir::OpId id_of(std::string_view op);

// Operator `id`; operands as many as its arity, at least one a tensor.
Tensor run_op(ir::OpId id, std::span<const Operand> operands);
// target = op(target, others...) in place; `others` are the operands behind the first.
void run_op_in_place(ir::OpId id, const Tensor& target, std::span<const Operand> others);

// Sums `g` down to `shape`, from which it was broadcast.
Tensor sum_to(const Tensor& g, const Dims& shape);
// What PyTorch calls the node of an operator with these operands: "AddBackward0".
const char* backward_name(ir::OpId id, std::span<const Operand> operands);
// Which operand PyTorch's node calls so ("self", "other", "exponent"); too great a number where none.
size_t operand_called(ir::OpId id, std::string_view name);

}  // namespace naru::ops
