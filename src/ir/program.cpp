#include "ir/program.h"

#include "ir/op_ids.h"

namespace naru::ir {
namespace {

uint64_t mix(uint64_t h, uint64_t v) noexcept { return (h ^ v) * 0x9e3779b97f4a7c15u ^ (h >> 29); }

uint64_t pack(const Program::Arg& a) noexcept {
  return static_cast<uint64_t>(a.from) | static_cast<uint64_t>(a.as) << 8 | static_cast<uint64_t>(a.index) << 16;
}

}  // namespace

uint64_t Program::hash() const noexcept {
  uint64_t h = mix(0x51ed270b, nodes_count | inputs_count << 8 | params_count << 16 | static_cast<uint64_t>(outputs_count) << 24);
  for (int i = 0; i < nodes_count; ++i) {
    const Node& s = nodes[i];
    h = mix(h, s.op | static_cast<uint64_t>(s.out) << 16 | static_cast<uint64_t>(s.args_count) << 24);
    for (int k = 0; k < s.args_count; ++k) h = mix(h, pack(s.args[k]));
  }
  for (int i = 0; i < inputs_count; ++i) h = mix(h, static_cast<uint64_t>(inputs[i].dtype) << 1 | inputs[i].scalar);
  for (int i = 0; i < params_count; ++i) h = mix(h, static_cast<uint64_t>(params[i]));
  for (int i = 0; i < outputs_count; ++i) h = mix(h, outputs[i]);
  return h ^ (h >> 31);
}

bool Program::same(const Program& o) const noexcept {
  if (nodes_count != o.nodes_count || inputs_count != o.inputs_count || params_count != o.params_count || outputs_count != o.outputs_count)
    return false;
  for (int i = 0; i < nodes_count; ++i) {
    const Node &s = nodes[i], &t = o.nodes[i];
    if (s.op != t.op || s.out != t.out || s.args_count != t.args_count) return false;
    for (int k = 0; k < s.args_count; ++k)
      if (pack(s.args[k]) != pack(t.args[k])) return false;
  }
  for (int i = 0; i < inputs_count; ++i)
    if (inputs[i].dtype != o.inputs[i].dtype || inputs[i].scalar != o.inputs[i].scalar) return false;
  for (int i = 0; i < params_count; ++i)
    if (params[i] != o.params[i]) return false;
  for (int i = 0; i < outputs_count; ++i)
    if (outputs[i] != o.outputs[i]) return false;
  return true;
}

bool Program::uses_index() const noexcept {
  for (int i = 0; i < nodes_count; ++i)
    if (nodes[i].op >= op::arange && nodes[i].op <= op::exponential) return true;
  return false;
}

MapKernel Program::lower() const {
  MapKernel kernel;
  for (int i = 0; i < inputs_count; ++i) kernel.inputs.push_back({inputs[i].dtype, inputs[i].scalar});
  kernel.params.assign(params.begin(), params.begin() + params_count);
  std::vector<V> results;
  for (int i = 0; i < nodes_count; ++i) {
    const Node& s = nodes[i];
    std::array<V, kMaxArgs> args;
    for (int k = 0; k < s.args_count; ++k) {
      const Arg& a = s.args[k];
      const V value = a.from == From::Input  ? input(kernel.graph, a.index, inputs[a.index].dtype)
                      : a.from == From::Node ? results[a.index]
                                             : param(kernel.graph, a.index, params[a.index]);
      // A parameter has the precision of the compute type, not of the element type (like PyTorch's scalars).
      args[k] = a.from == From::Param && value.type() == vtype_of(a.as) ? value : convert(value, a.as);
    }
    results.push_back(convert(op_table()[s.op].expr({args.data(), s.args_count}), s.out));
  }
  for (int i = 0; i < outputs_count; ++i) {
    kernel.outputs.push_back(nodes[outputs[i]].out);
    kernel.results.push_back(results[outputs[i]].id());
  }
  return kernel;
}

}  // namespace naru::ir
