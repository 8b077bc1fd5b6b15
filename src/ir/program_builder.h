// ProgramBuilder: assembles a program. Operands become the arguments of nodes. Inputs, params and nodes are numbered in the order of their
// creation, and a node may use any earlier one.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>

#include "ir/program.h"

namespace naru::ir {

class ProgramBuilder {
 public:
  using Arg = Program::Arg;
  // Appends to what `program` already holds.
  explicit ProgramBuilder(Program& program) noexcept : program_(program) {}

  // Removes everything.
  void clear() noexcept { program_.nodes_count = program_.inputs_count = program_.params_count = program_.outputs_count = 0; }
  // True if this many more fit. The functions below do not check.
  bool has_room(size_t nodes, size_t inputs, size_t params) const noexcept {
    return program_.nodes_count + nodes <= kMaxNodes && program_.inputs_count + inputs <= kMaxInputs &&
           program_.params_count + params <= kMaxParams;
  }

  // A new input of type `type`, converted to `as`. scalar: one element for the whole run.
  Arg input(DType type, DType as, bool scalar = false) noexcept {
    program_.inputs[program_.inputs_count] = {type, scalar};
    return {Program::From::Input, as, program_.inputs_count++};
  }
  // An existing input.
  static Arg input_at(size_t number, DType as) noexcept { return {Program::From::Input, as, static_cast<uint16_t>(number)}; }
  // A new parameter; the instruction supplies its bits.
  Arg param(DType as) noexcept {
    program_.params[program_.params_count] = vtype_of(as);
    return {Program::From::Param, as, program_.params_count++};
  }
  // The result of a node.
  static Arg result(size_t node, DType as) noexcept { return {Program::From::Node, as, static_cast<uint16_t>(node)}; }

  // A new node without arguments, converted to `out`. The caller must add its arguments before it begins the next node.
  Program::Node& begin_node(OpId op, DType out) noexcept {
    Program::Node& n = program_.nodes[program_.nodes_count++];
    n.op = op;
    n.out = out;
    n.args_count = 0;
    return n;
  }
  // Adds op(args), converted to `out`, and returns the node's number.
  uint8_t node(OpId op, DType out, std::span<const Arg> args) noexcept {
    Program::Node& n = begin_node(op, out);
    n.args_count = static_cast<uint8_t>(args.size());
    std::copy(args.begin(), args.end(), n.args.begin());
    return static_cast<uint8_t>(program_.nodes_count - 1);
  }
  uint8_t node(OpId op, DType out, std::initializer_list<Arg> args) noexcept {
    return node(op, out, std::span<const Arg>(args.begin(), args.size()));
  }
  void output(size_t node) noexcept { program_.outputs[program_.outputs_count++] = static_cast<uint8_t>(node); }

  // A program of one node: op(inputs), computed in one type.
  static Program single(OpId op, std::span<const DType> inputs, DType compute, DType out) noexcept {
    Program program;
    ProgramBuilder b(program);
    std::array<Arg, kMaxArgs> args;
    for (size_t k = 0; k < inputs.size(); ++k) args[k] = b.input(inputs[k], compute);
    b.output(b.node(op, out, {args.data(), inputs.size()}));
    return program;
  }
  static Program single(OpId op, std::initializer_list<DType> inputs, DType compute, DType out) noexcept {
    return single(op, std::span<const DType>(inputs.begin(), inputs.size()), compute, out);
  }

 private:
  Program& program_;
};

}  // namespace naru::ir
