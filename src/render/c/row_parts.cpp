#include "render/c/row_parts.h"

namespace naru::render::c {

using ir::Space;

std::optional<RowPart> part_of(const ir::RowFused::Part& p, int64_t rows, int64_t longest) {
  RowPart part;
  part.kept = p.kept;
  Dims shape, out_strides;
  if (const auto* reduce = std::get_if<ir::Reduce>(&p.work)) {
    if (!reduce->contiguous) return {};
    part.reduce = reduce, part.program = &reduce->program, part.params = reduce->params, part.views = reduce->inputs;
    part.type = ir::vtype_of(reduce->program.nodes[reduce->program.outputs[0]].out);
    shape = reduce->shape;
    // The result stays where it is along the reduced dimensions.
    part.views.push_back(reduce->out);
    while (part.views.back().strides.size() < shape.size()) part.views.back().strides.push_back(0);
  } else {
    const auto& map = std::get<ir::Map>(p.work);
    part.program = &map.program, part.params = map.params, part.views = map.inputs, shape = map.shape;
    part.views.insert(part.views.end(), map.outputs.begin(), map.outputs.end());
  }
  part.inputs = static_cast<int>(part.program->inputs_count);
  part.length = product(shape) / rows;
  if (part.length * rows != product(shape) || part.length > longest) return {};
  // Leading dimensions are rows, the others lie along them.
  size_t split = 0;
  for (int64_t n = 1; n < rows; ++split) n *= shape[split];
  if (product(std::span<const int64_t>(shape).first(split)) != rows) return {};
  Space outer(std::span<const int64_t>(shape).first(split)), inner(std::span<const int64_t>(shape).subspan(split));
  Space whole{std::span<const int64_t>(shape)};
  for (const ir::View& v : part.views) {
    const auto item = static_cast<int64_t>(size_of(v.dtype));
    outer.add(static_cast<char*>(v.data), item, v.strides.data());
    inner.add(static_cast<char*>(v.data), item, v.strides.data() + split);
    whole.add(v);
  }
  part.wide = is_wide(whole);
  for (Space* s : {&outer, &inner}) s->drop_ones(), s->merge();
  if (outer.rank > 1 || inner.rank > 1) return {};
  for (int k = 0; k < whole.count; ++k) {
    const int64_t item = outer.operands[k].item;
    part.operands.push_back({0, false, last_step(inner, k), outer.rank ? outer.operands[k].strides[0] / item : 0,
                             inner.rank ? inner.operands[k].strides[0] / item : 0});
  }
  return part;
}

}  // namespace naru::render::c
