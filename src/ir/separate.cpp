#include <bitset>

#include "ir/instruction.h"
#include "ir/program_builder.h"

namespace naru::ir {
namespace {

// The reduction of `reduce` to one output of its program, with only the nodes, inputs and parameters that it needs.
Reduce of_output(const Reduce& reduce, size_t output) {
  const Program& from = reduce.program;
  std::bitset<kMaxNodes> wanted;
  wanted.set(from.outputs[output]);
  for (size_t n = from.nodes_count; n-- > 0;)
    for (size_t k = 0; wanted[n] && k < from.nodes[n].args_count; ++k)
      if (from.nodes[n].args[k].from == Program::From::Node) wanted.set(from.nodes[n].args[k].index);
  Reduce one{{}, reduce.op, reduce.shape, reduce.reduced, reduce.contiguous, {}, {}, output == 0 ? reduce.out : reduce.others[output - 1],
             {}};
  ProgramBuilder b(one.program);
  std::array<int, kMaxInputs> input_at;
  input_at.fill(-1);
  std::array<size_t, kMaxNodes> node_at{};
  for (size_t n = 0; n < from.nodes_count; ++n) {
    if (!wanted[n]) continue;
    const Program::Node& node = from.nodes[n];
    std::array<Program::Arg, kMaxArgs> args;
    for (size_t k = 0; k < node.args_count; ++k) {
      const Program::Arg& a = node.args[k];
      if (a.from == Program::From::Node) {
        args[k] = ProgramBuilder::result(node_at[a.index], a.as);
      } else if (a.from == Program::From::Param) {
        one.params.push_back(reduce.params[a.index]);
        args[k] = b.param(a.as);
      } else if (input_at[a.index] >= 0) {
        args[k] = ProgramBuilder::input_at(static_cast<size_t>(input_at[a.index]), a.as);
      } else {
        input_at[a.index] = static_cast<int>(one.inputs.size());
        one.inputs.push_back(reduce.inputs[a.index]);
        args[k] = b.input(from.inputs[a.index].dtype, a.as, from.inputs[a.index].scalar);
      }
    }
    node_at[n] = b.node(node.op, node.out, {args.data(), node.args_count});
  }
  b.output(node_at[from.outputs[output]]);
  return one;
}

}  // namespace

std::vector<Reduce> separate(const Reduce& reduce) {
  std::vector<Reduce> all;
  for (size_t i = 0; i < reduce.program.outputs_count; ++i) all.push_back(of_output(reduce, i));
  return all;
}

Map MapEach::one(size_t list) const {
  Map map;
  map.program = program;
  map.params = params;
  map.shape = {counts[list]};
  for (size_t k = 0; k < operands(); ++k)
    (k < inputs() ? map.inputs : map.outputs).push_back({addresses[list * operands() + k], dtype(k), {is_scalar(k) ? 0 : 1}});
  return map;
}

}  // namespace naru::ir
