#include "runtime/queue/deferred_reduction.h"

#include <array>
#include <cstdlib>
#include <utility>

#include "ir/program_builder.h"
#include "naru/error.h"

namespace naru::runtime {
namespace {

using ir::ProgramBuilder;
using Arg = ir::Program::Arg;
using From = ir::Program::From;

// The dimension with the smallest stride; the number of dimensions if there is none.
size_t narrowest_dim(const Dims& shape, const Dims& strides) {
  size_t narrowest = shape.size();
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] > 1 && strides[d] != 0 && (narrowest == shape.size() || std::abs(strides[d]) < std::abs(strides[narrowest])))
      narrowest = d;
  return narrowest;
}

const Piece* result_in(const Group& g, const Piece& p) {
  const auto found = std::find_if(g.outputs.begin(), g.outputs.end(), [&](const Piece& o) { return o.storage.get() == p.storage.get(); });
  return found == g.outputs.end() ? nullptr : &*found;
}

// Merges the nodes computed inside and the reduction's own nodes into one program.
class Merge {
 public:
  Merge(DeferredReduction& d, const DeferredReduction::Plan& plan, Accesses& accesses)
      : d_(d),
        plan_(plan),
        accesses_(accesses),
        own_(d.reduce.program),
        own_params_(std::exchange(d.reduce.params, {})),
        reduce_(std::move(d.reduce)),
        many_(product(d.group.shape) > 1) {
    builder_.clear();
    reduce_.inputs.clear();
  }
  Merge(const Merge&) = delete;

  ir::Reduce run() {
    const ir::Program& group = d_.group.program;
    for (size_t n = 0; n < group.nodes_count; ++n)
      if (plan_.inside[n]) number_[n] = add(group.nodes[n], [this](Arg a) { return of_group(a); });
    first_own_ = reduce_.program.nodes_count;
    uint8_t last = 0;
    for (size_t n = 0; n < own_.nodes_count; ++n) last = add(own_.nodes[n], [this](Arg a) { return of_reduction(a); });
    builder_.output(last);
    return std::move(reduce_);
  }

 private:
  template <class Translate>
  uint8_t add(const ir::Program::Node& node, Translate translate) {
    std::array<Arg, ir::kMaxArgs> args;
    for (size_t k = 0; k < node.args_count; ++k) args[k] = translate(node.args[k]);
    return builder_.node(node.op, node.out, {args.data(), node.args_count});
  }

  Arg of_group(Arg a) {
    switch (a.from) {
      case From::Node:
        return value(a.index, a.as);
      case From::Input:
        return input(d_.group.inputs[a.index], a.as);
      default:
        return param(d_.group.params[a.index], a.as);
    }
  }
  Arg of_reduction(Arg a) {
    if (a.from == From::Node) return builder_.result(first_own_ + a.index, a.as);
    if (a.from == From::Param) return param(own_params_[a.index], a.as);
    const Piece& read = d_.reads[a.index];
    const Piece* const made = result_in(d_.group, read);
    return made ? value(made->node, a.as) : input(read, a.as);
  }

  // A value of the group: computed inside, or read from memory.
  Arg value(size_t node, DType as) {
    if (plan_.inside[node]) return builder_.result(number_[node], as);
    for (const Piece& p : d_.group.outputs)
      if (p.node == node) return input(p, as);
    throw RuntimeError("a reduction reads a node that is neither computed nor stored");
  }
  Arg input(const Piece& p, DType as) {
    Dims strides;
    for (const int64_t d : d_.order) strides.push_back(p.strides[static_cast<size_t>(d)]);
    void* const data = p.address();
    auto& inputs = reduce_.inputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].data == data && inputs[i].dtype == p.dtype && inputs[i].strides == strides) return builder_.input_at(i, as);
    const bool one = many_ && is_one_element(strides);
    inputs.push_back({data, p.dtype, std::move(strides)});
    accesses_.reads.push_back(p.storage.get());
    return builder_.input(p.dtype, as, one);
  }
  Arg param(uint64_t bits, DType as) {
    reduce_.params.push_back(bits);
    return builder_.param(as);
  }

  DeferredReduction& d_;
  const DeferredReduction::Plan& plan_;
  Accesses& accesses_;
  const ir::Program own_;
  const std::vector<uint64_t> own_params_;
  ir::Reduce reduce_;
  ProgramBuilder builder_{reduce_.program};
  const bool many_;
  std::array<uint8_t, ir::kMaxNodes> number_{};  // index of the group's node in the merged program
  size_t first_own_ = 0;
};

// The nodes that the `wanted` ones depend on, including themselves; stops at nodes whose values are in memory.
DeferredReduction::Nodes needed(const ir::Program& program, DeferredReduction::Nodes wanted, const DeferredReduction::Nodes& in_memory) {
  wanted &= ~in_memory;
  for (size_t n = program.nodes_count; n-- > 0;) {
    if (!wanted[n]) continue;
    const ir::Program::Node& node = program.nodes[n];
    for (size_t k = 0; k < node.args_count; ++k)
      if (node.args[k].from == From::Node && !in_memory[node.args[k].index]) wanted.set(node.args[k].index);
  }
  return wanted;
}

}  // namespace

std::optional<std::vector<Piece>> reducible(const Group& g, const ir::Reduce& reduce, const Dims& shape,
                                            std::span<const TensorImpl* const> reads) {
  if (g.empty() || !(g.shape == shape) || g.program.uses_index()) return {};
  if (g.program.nodes_count + reduce.program.nodes_count > ir::kMaxNodes || g.params.size() + reduce.params.size() > ir::kMaxParams ||
      g.inputs.size() + g.outputs.size() + reads.size() > ir::kMaxInputs)
    return {};
  const Piece* reduced = nullptr;
  std::vector<Piece> pieces;
  for (const TensorImpl* t : reads) {
    pieces.push_back({t->storage, t->offset, expanded_strides(*t, shape), t->dtype, 0});
    for (const Piece& p : g.outputs) {
      if (p.storage.get() != t->storage.get()) continue;
      if (!p.same_view(*t, pieces.back().strides)) return {};
      reduced = &p;
    }
  }
  if (!reduced) return {};
  // Operands with another innermost dimension are better reordered by a cache-blocked map than read element by element in a reduction.
  if (const size_t d = narrowest_dim(shape, reduced->strides); d < shape.size())
    for (const Piece& p : g.inputs)
      if (p.strides[d] != 0 && p.strides[d] != reduced->strides[d]) return {};
  return pieces;
}

DeferredReduction::Plan DeferredReduction::plan() const {
  Group::Chosen stored, read;
  Nodes in_memory, wanted;
  for (size_t i = 0; i < group.outputs.size(); ++i) {
    const Piece& o = group.outputs[i];
    const auto handles = std::count_if(reads.begin(), reads.end(), [&](const Piece& p) { return p.storage.get() == o.storage.get(); });
    stored[i] = o.storage->use_count() > static_cast<size_t>(1 + handles);
    read[i] = handles > 0;
    if (stored[i]) in_memory.set(o.node);
    if (read[i]) wanted.set(o.node);
  }
  const Nodes inside = needed(group.program, wanted, in_memory);
  // Inputs that the group overwrites can't be read again.
  bool overwritten = false;
  for (size_t n = 0; n < group.program.nodes_count; ++n)
    for (int k = 0; inside[n] && k < group.program.nodes[n].args_count; ++k)
      if (const Arg& arg = group.program.nodes[n].args[k]; arg.from == From::Input)
        for (size_t i = 0; i < group.outputs.size(); ++i)
          overwritten |= stored[i] && group.outputs[i].storage.get() == group.inputs[arg.index].storage.get();
  return overwritten ? Plan{stored | read, {}} : Plan{stored, inside};
}

bool DeferredReduction::computed_inside(const Piece& read, const Plan& plan) const {
  const Piece* const made = result_in(group, read);
  return made && !plan.stored[static_cast<size_t>(made - group.outputs.data())];
}

ir::Reduce DeferredReduction::merge(const Plan& plan, Accesses& accesses) {
  ir::Reduce merged = Merge(*this, plan, accesses).run();
  merged.out.data = static_cast<char*>(out->data) + out_offset * static_cast<int64_t>(size_of(merged.out.dtype));
  accesses.writes.push_back(out.get());
  return merged;
}

}  // namespace naru::runtime
