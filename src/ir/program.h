// Program: elementwise operators of the table, one after another, over shared operands. Fusion builds programs, and they identify kernels;
// lower() expands one to primitives.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include "ir/expr.h"

namespace naru::ir {

using OpId = uint16_t;

// One operator of the elementwise table in scalar form. Arguments are values of vtype_of(the node's argument type).
struct ElementwiseOp {
  const char* name;
  uint8_t arity;
  V (*expr)(std::span<const V> args);
};
// The operators of the table (ir/op_table.cpp), then the internal ones. Ids are dense and fixed for a build.
std::span<const ElementwiseOp> op_table();

constexpr int kMaxArgs = 6, kMaxNodes = 48, kMaxInputs = 12, kMaxParams = 24, kMaxOutputs = 12;

struct Program {
  enum class From : uint8_t { Input, Node, Param };
  struct Arg {
    From from;
    DType as;  // the value is converted to this type before the operator sees it
    uint16_t index;
  };
  struct Node {
    OpId op;
    DType out;  // the result is converted to this type
    uint8_t args_count;
    std::array<Arg, kMaxArgs> args;
  };
  // An input operand. Values inside programs are real: an input from a complex operand has to name a component (re or im), of its real type.
  struct Input {
    DType dtype;
    bool scalar;  // one element for the whole run
  };

  uint8_t nodes_count = 0, inputs_count = 0, params_count = 0, outputs_count = 0;
  std::array<Input, kMaxInputs> inputs;
  std::array<VType, kMaxParams> params;
  std::array<uint8_t, kMaxOutputs> outputs;  // node numbers
  std::array<Node, kMaxNodes> nodes;

  Program() = default;
  // Most programs have few nodes; copy only those.
  Program(const Program& o) noexcept { *this = o; }
  Program& operator=(const Program& o) noexcept {
    if (this != &o) std::memcpy(static_cast<void*>(this), &o, offsetof(Program, nodes) + o.nodes_count * sizeof(Node));
    return *this;
  }

  uint64_t hash() const noexcept;
  bool same(const Program& other) const noexcept;
  // True if an element depends on its position.
  bool uses_index() const noexcept;
  // The kernel that computes it.
  MapKernel lower() const;
};

}  // namespace naru::ir
