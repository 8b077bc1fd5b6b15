// Which operators on float32, int32 and bool compute in float64: only those are slow on devices without it, which do that in integers
// (render/c/soft_float64.cpp).
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include "ir/op_ids.h"
#include "ir/program.h"
#include "render/c/expressions.h"

namespace naru::render::c {
namespace {

using Names = std::set<std::string>;

// The statements of an operator on operands of one type, for a device without float64; "" if there is no such operator.
std::string text_of(const ir::ElementwiseOp& op, DType type) {
  if (!op.expr) return "";
  ir::Graph graph;
  std::vector<ir::V> operands;
  for (int k = 0; k < op.arity; ++k) operands.push_back(ir::input(graph, static_cast<uint64_t>(k), type));
  Target target;
  target.dialect = &opencl();
  target.arithmetic.fp64 = false;
  try {
    const uint32_t result = op.expr(operands).id();
    const Leaves leaves{[](uint64_t slot, DType) { return "operand" + std::to_string(slot); }, {}, "index"};
    return expressions(graph, {&result, 1}, leaves, target, "v", "  ");
  } catch (const std::logic_error&) {
    return "";  // no derivative
  }
}

Names in_float64(DType type, const std::map<std::string, std::string>* rules, const Names& allowed) {
  Names found;
  for (const ir::ElementwiseOp& op : ir::op_table()) {
    if (rules && (!rules->contains(op.name) || !allowed.contains(rules->at(op.name)))) continue;
    if (mentions_float64(text_of(op, type))) found.insert(op.name);
  }
  return found;
}

// The rows of the table, with the rules that say which types they compute in.
const std::map<std::string, std::string>& rules() {
  static const std::map<std::string, std::string> all = {
#define NARU_OP1(name, rule, ...) {#name, #rule},
#define NARU_OP2(name, rule, ...) {#name, #rule},
#define NARU_OP3(name, rule, ...) {#name, #rule},
#include "naru/elementwise.inc"
#undef NARU_OP1
#undef NARU_OP2
#undef NARU_OP3
  };
  return all;
}

TEST(TextsWithoutFloat64, SpecialFunctionsOfFloat32Alone) {
  // Their formulas cancel near zeros or multiply long polynomials: pairs of float32 would be slower on processors than float64, which is exact
  // enough to be rounded once (docs/opencl.md).
  const Names wanted = {"erfc",     "lgamma", "lgamma'a", "digamma", "digamma'a", "zeta",      "zeta'b",     "erfcx",
                        "log_ndtr", "ndtri",  "ndtr",     "entr",    "bessel_i0", "bessel_i1", "bessel_i0e", "bessel_i1e"};
  EXPECT_EQ(in_float64(DType::F32, nullptr, {}), wanted);
}

TEST(TextsWithoutFloat64, NothingOfIntegersAndBools) {
  EXPECT_EQ(in_float64(DType::I32, &rules(), {"Arith", "ArithNoBool", "Power", "Rounding", "Compare", "Predicate", "Bits", "Shift"}),
            Names{});
  EXPECT_EQ(in_float64(DType::Bool, &rules(), {"Arith", "Compare", "Logical", "Predicate", "Where"}), Names{});
}

TEST(TextsWithoutFloat64, AreFullOfItWhereOperandsAre) {
  EXPECT_NE(text_of(ir::op_table()[ir::op::exp], DType::F64).find("fma_f64"), std::string::npos);
  EXPECT_EQ(text_of(ir::op_table()[ir::op::exp], DType::F64).find(" * v"), std::string::npos) << "its operators are functions";
}

TEST(TextsWithoutFloat64, DivideAndTakeRootsInIntegersWhereFloat32IsInexact) {
  ir::Graph graph;
  const ir::V x = ir::input(graph, 0, DType::F32), y = sqrt(x / 3.0);
  Target target;
  target.dialect = &opencl();
  target.arithmetic.fp64 = target.arithmetic.exact_division = target.arithmetic.exact_root = false;
  const uint32_t result = y.id();
  const Leaves leaves{[](uint64_t, DType) { return "x"; }, {}, {}};
  const std::string text = complete(target, expressions(graph, {&result, 1}, leaves, target, "v", "  "));
  EXPECT_NE(text.find("f64_to_f32(div_f64(f32_to_f64("), std::string::npos);
  EXPECT_NE(text.find("f64_to_f32(sqrt_f64(f32_to_f64("), std::string::npos);
  EXPECT_NE(text.find("typedef u64 f64;"), std::string::npos);
  EXPECT_EQ(text.find("double"), std::string::npos);
}

}  // namespace
}  // namespace naru::render::c
