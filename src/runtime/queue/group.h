// Group: elementwise nodes of one shape that a queue has deferred, as one program over the storages they read and write.
#pragma once

#include <algorithm>
#include <bitset>
#include <span>
#include <vector>

#include "core/small_vector.h"
#include "core/tensor_impl.h"
#include "ir/program.h"

namespace naru::runtime {

// An operand of an elementwise node: a tensor expanded to the iteration shape, or a scalar.
struct Source {
  const TensorImpl* tensor = nullptr;
  Dims strides;       // over the iteration shape; unused for scalars
  DType as;           // dtype that the operator sees
  uint64_t bits = 0;  // the scalar's bits, of type vtype_of(as)
};

// Strides of `t` broadcast to `shape`: 0 in broadcast dimensions and in dimensions of size 1.
Dims expanded_strides(const TensorImpl& t, const Dims& shape);
inline bool is_one_element(const Dims& strides) noexcept {
  return std::all_of(strides.begin(), strides.end(), [](int64_t d) { return d == 0; });
}

// An operand of a group.
struct Piece {
  Ref<Storage> storage;
  int64_t offset;
  Dims strides;
  DType dtype;
  uint8_t node;  // outputs: index of the node stored
  bool same_view(const TensorImpl& t, const Dims& s) const noexcept {
    return storage.get() == t.storage.get() && offset == t.offset && dtype == t.dtype && strides == s;
  }
  // Valid once the storage has memory.
  void* address() const noexcept { return static_cast<char*>(storage->data) + offset * static_cast<int64_t>(size_of(dtype)); }
};

struct Group {
  using Chosen = std::bitset<ir::kMaxOutputs>;  // subset of its outputs

  ir::Program program;
  Dims shape;
  std::vector<Piece> inputs, outputs;
  std::vector<uint64_t> params;

  bool empty() const noexcept { return program.nodes_count == 0; }
  // Adds op(sources) -> out. Returns false and changes nothing if there is no room, or if an element would be read at an address where the
  // group writes a different element.
  bool append(ir::OpId id, std::span<const Source> sources, const TensorImpl& out, const Dims& out_strides);

 private:
  using NewInputs = SmallVector<const Source*, ir::kMaxArgs>;
  bool locate(const Source& s, NewInputs& added, ir::Program::Arg& arg) const;
  bool overlaps(const NewInputs& added, const TensorImpl& out, const Dims& out_strides) const;
};

}  // namespace naru::runtime
