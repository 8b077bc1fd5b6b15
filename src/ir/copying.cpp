#include "ir/instruction.h"
#include "ir/op_ids.h"
#include "ir/program_builder.h"

namespace naru::ir {

Map copy_of(Dims shape, View from, View to) {
  Map map;
  map.program = ProgramBuilder::single(op::copy, {from.dtype}, to.dtype, to.dtype);
  map.shape = std::move(shape);
  map.inputs.push_back(std::move(from));
  map.outputs.push_back(std::move(to));
  return map;
}

}  // namespace naru::ir
