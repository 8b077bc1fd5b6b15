#include "ir/instruction.h"
#include "ir/op_ids.h"

namespace naru::ir {

Map copy_of(Dims shape, View from, View to) {
  Map map;
  Program& p = map.program;
  p.nodes_count = p.inputs_count = p.outputs_count = 1;
  p.inputs[0] = {from.dtype, false};
  p.outputs[0] = 0;
  p.nodes[0].op = op::copy;
  p.nodes[0].out = to.dtype;
  p.nodes[0].args_count = 1;
  p.nodes[0].args[0] = {Program::From::Input, to.dtype, 0};
  map.shape = std::move(shape);
  map.inputs.push_back(std::move(from));
  map.outputs.push_back(std::move(to));
  return map;
}

}  // namespace naru::ir
