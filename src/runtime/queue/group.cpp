#include "runtime/queue/group.h"

#include "ir/program_builder.h"

namespace naru::runtime {

using ir::ProgramBuilder;

Dims expanded_strides(const TensorImpl& t, const Dims& shape) {
  Dims strides;
  strides.resize(shape.size());
  const size_t shift = shape.size() - t.sizes.size();
  for (size_t i = 0; i < t.sizes.size(); ++i) strides[shift + i] = t.sizes[i] == 1 ? 0 : t.strides[i];
  return strides;
}

namespace {

bool same_view(const Source& a, const TensorImpl& t, const Dims& strides) noexcept {
  return a.tensor->storage.get() == t.storage.get() && a.tensor->offset == t.offset && a.tensor->dtype == t.dtype && a.strides == strides;
}

}  // namespace

// Finds a tensor in the group's program: the result of a node, or an input, added if new. False: it shares a storage with a result at
// another offset or strides.
bool Group::locate(const Source& s, NewInputs& added, ir::Program::Arg& arg) const {
  for (size_t i = outputs.size(); i-- > 0;) {
    if (outputs[i].storage.get() != s.tensor->storage.get()) continue;
    if (!outputs[i].same_view(*s.tensor, s.strides)) return false;
    arg = ProgramBuilder::result(outputs[i].node, s.as);
    return true;
  }
  size_t number = 0;
  while (number < inputs.size() && !inputs[number].same_view(*s.tensor, s.strides)) ++number;
  if (number == inputs.size()) {
    const auto found = std::find_if(added.begin(), added.end(), [&](const Source* o) { return same_view(*o, *s.tensor, s.strides); });
    number += static_cast<size_t>(found - added.begin());
    if (found == added.end()) added.push_back(&s);
  }
  arg = ProgramBuilder::input_at(number, s.as);
  return true;
}

// True if the group reads or writes the storage of `out` at another offset or other strides.
bool Group::overlaps(const NewInputs& added, const TensorImpl& out, const Dims& out_strides) const {
  const auto elsewhere = [&](const Piece& p) { return p.storage.get() == out.storage.get() && !p.same_view(out, out_strides); };
  return std::any_of(inputs.begin(), inputs.end(), elsewhere) || std::any_of(outputs.begin(), outputs.end(), elsewhere) ||
         std::any_of(added.begin(), added.end(),
                     [&](const Source* s) { return s->tensor->storage.get() == out.storage.get() && !same_view(*s, out, out_strides); });
}

bool Group::append(ir::OpId id, std::span<const Source> sources, const TensorImpl& out, const Dims& out_strides) {
  if (outputs.size() == ir::kMaxOutputs) return false;
  std::array<ir::Program::Arg, ir::kMaxArgs> args;
  NewInputs added;
  size_t numbers = 0;
  for (size_t k = 0; k < sources.size(); ++k) {
    if (!sources[k].tensor)
      ++numbers;
    else if (!locate(sources[k], added, args[k]))
      return false;
  }
  ProgramBuilder b(program);
  if (!b.has_room(1, added.size(), numbers) || overlaps(added, out, out_strides)) return false;

  // Do what may throw first, so that a group is never left half changed.
  make_room(inputs, added.size()), make_room(outputs, 1), make_room(params, numbers);
  if (empty()) shape = out.sizes;
  Piece result{out.storage, out.offset, out_strides, out.dtype, 0};
  const size_t known = inputs.size();
  try {
    for (const Source* s : added) inputs.push_back({s->tensor->storage, s->tensor->offset, s->strides, s->tensor->dtype, 0});
  } catch (...) {
    inputs.erase(inputs.begin() + static_cast<ptrdiff_t>(known), inputs.end());
    throw;
  }
  for (const Source* s : added) b.input(s->tensor->dtype, s->as, out.numel > 1 && is_one_element(s->strides));
  for (size_t k = 0; k < sources.size(); ++k) {
    if (sources[k].tensor) continue;
    args[k] = b.param(sources[k].as);
    params.push_back(sources[k].bits);
  }
  std::erase_if(outputs, [&](const Piece& p) { return p.storage.get() == out.storage.get(); });
  result.node = b.node(id, out.dtype, {args.data(), sources.size()});
  outputs.push_back(std::move(result));
  return true;
}

}  // namespace naru::runtime
