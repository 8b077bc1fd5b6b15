// Program: elementwise operators of the table, one after another, over shared operands. It is what fusion builds and
// what kernels are known by; lower() expands it to primitives.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include "ir/expr.h"

namespace naru::ir {

using RowId = uint16_t;

// One operator of the elementwise table in scalar form. Arguments arrive as values of vtype_of(the step's argument type).
struct Row {
  const char* name;
  uint8_t arity;
  V (*expr)(std::span<const V> args);
};
// The rows of the table (ir/rows.cpp), then internal ones. Ids are dense and fixed for a build.
std::span<const Row> rows();

constexpr int kMaxArgs = 6, kMaxSteps = 48, kMaxInputs = 12, kMaxParams = 24, kMaxOutputs = 12;

struct Program {
  enum class From : uint8_t { Input, Step, Param };
  struct Arg {
    From from;
    DType as;  // the value is converted to this type before the operator sees it
    uint16_t index;
  };
  struct Step {
    RowId row;
    DType out;  // the result is converted to this type
    uint8_t args_count;
    std::array<Arg, kMaxArgs> args;
  };
  struct Input {
    DType dtype;
    bool scalar;  // one element for the whole run
  };

  uint8_t steps_count = 0, inputs_count = 0, params_count = 0, outputs_count = 0;
  std::array<Input, kMaxInputs> inputs;
  std::array<VType, kMaxParams> params;
  std::array<uint8_t, kMaxOutputs> outputs;  // step numbers
  std::array<Step, kMaxSteps> steps;

  Program() = default;
  // Most programs have a few steps: only those are copied.
  Program(const Program& o) noexcept { *this = o; }
  Program& operator=(const Program& o) noexcept {
    if (this != &o) std::memcpy(static_cast<void*>(this), &o, offsetof(Program, steps) + o.steps_count * sizeof(Step));
    return *this;
  }

  uint64_t hash() const noexcept;
  bool same(const Program& other) const noexcept;
  // Whether an element depends on its position.
  bool uses_index() const noexcept;
  // The kernel that computes it.
  MapKernel lower() const;
};

}  // namespace naru::ir
