// The elementwise table as data, for bindings and tests.
#pragma once

#include <span>
#include <string_view>

#include "core/operators.h"
#include "ir/program.h"
#include "naru/tensor.h"
#include "ops/elementwise/rules.h"

namespace naru::ops {

struct TableEntry {
  const char* name;
  int arity;
  Rule rule;
  double lo, hi;  // range that tests draw operands from
  const char* doc;
  bool differentiable[3];
};
// Entry i has OpId i.
std::span<const TableEntry> table();
// The OpId of that name; ir::op::kCount if the table has none.
ir::OpId id_of(std::string_view op);
// What is known of an operator: the record of its name.
const operators::Record& record_of(ir::OpId id);

// Runs operator `id`. The number of operands is its arity; at least one is a tensor.
Tensor run_op(ir::OpId id, std::span<const Operand> operands);
// out = op(operands) without a temporary. Does nothing and returns false unless `out` is what run_op would make: of the result's dtype, shape and device,
// each element at an address of its own; and no history is recorded.
bool run_op_into(ir::OpId id, std::span<const Operand> operands, const Tensor& out);
// target = op(target, others...) in place; `others` are the operands after the first.
void run_op_in_place(ir::OpId id, const Tensor& target, std::span<const Operand> others);

// Sums `g` down to `shape`, which was broadcast to g's shape.
Tensor sum_to(const Tensor& g, const Dims& shape);
// PyTorch's name for the autograd node of an operator with these operands: "AddBackward0".
const char* backward_name(ir::OpId id, std::span<const Operand> operands);
// The index of the operand that PyTorch's node calls `name` ("self", "other", "exponent"); past the last operand if there is none.
size_t operand_called(ir::OpId id, std::string_view name);

}  // namespace naru::ops
