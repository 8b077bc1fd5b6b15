// What the tensor of a vmap is made of. Its sizes are those of one entry; the batch is the first dimension of `value`, which has the history.
#pragma once

#include "autograd/graph/node.h"
#include "core/tensor_impl.h"
#include "naru/tensor.h"

namespace naru {

struct BatchParts final : LayoutParts {
  BatchParts(Tensor v, int64_t l) : value(std::move(v)), level(l) {}
  Tensor value;
  int64_t level;  // the number of the vmap: 1 is the outermost
};

// How many calls of vmap this thread is in.
extern thread_local int64_t vmaps_entered;

inline bool is_batched(const Tensor& t) noexcept { return t.defined() && (t.impl()->special & kBatched) != 0; }
// For batched tensors only.
inline const BatchParts& batch_parts(const Tensor& t) noexcept { return static_cast<const BatchParts&>(*t.impl()->parts); }
// The tensor that a function sees of a value whose first dimension is the batch. It requires grad if the value does, so that an operator that would
// record it is refused (accumulator_of).
Tensor make_batched(const Tensor& value, int64_t level);
// Makes a batched tensor one of another value, or sees what was written to its value.
void set_batched(const Tensor& t, const Tensor& value);

}  // namespace naru
