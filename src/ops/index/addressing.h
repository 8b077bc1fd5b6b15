// Addressing: how positions held in tensors reach into another tensor. Every gather, scatter and index is one of these,
// and so are their derivatives: the gradient of a gather is an accumulation under the same addressing, and the other
// way round.
#pragma once

#include <vector>

#include "autograd/history/history.h"
#include "ops/tensor/common.h"

namespace naru::ops {

// Over the iteration space `shape`, dimension d moves along dimension from[d] of the indexed tensor, or along none
// (-1). Besides, dimension dims[i] of the indexed tensor is addressed by the i-th positions tensor, which broadcasts to
// `shape`.
struct Addressing {
  Dims sizes;  // of the indexed tensor
  Dims shape;
  Dims from;
  std::vector<int> dims;
  ir::IndexName op = "index";
  bool from_end = true;  // negative positions count from the end; else they are errors
  ir::BadIndex raises = ir::BadIndex::IndexError;
};
// int64, on the indexed tensor's device.
using Positions = std::vector<Tensor>;

// out[p] = source[addressed(p)], a new tensor.
Tensor gather_at(const Tensor& source, const Addressing& at, const Positions& positions, const char* node);
// A tensor of zeros of at.sizes to which g has been added at the addressed places.
Tensor accumulate_at(const Tensor& g, const Addressing& at, const Positions& positions);
// In place: target[addressed(p)] = value[p], or += with `add`. value broadcasts to at.shape and is converted to the
// target's type.
void scatter_at(const Tensor& target, const Addressing& at, const Positions& positions, const Operand& value, bool add, const char* node);

// scatter, or scatter_add with `add`, as part of another operator, whose name an index out of bounds is reported with.
Tensor scatter_for(ir::IndexName op, const Tensor& t, int64_t dim, const Tensor& index, const Operand& value, bool add = false);

// Positions as instructions want them: int64 on `device`. Throws RuntimeError for tensors of other types than int64 and int32.
Tensor as_positions(const Tensor& index, Device device, const char* op);
// Positions of the elements that are not 0, in row-major order, on the tensor's device: one int64 dimension. Waits for how many there are.
Tensor flat_nonzero(const Tensor& t);
// The same, one tensor of positions for each dimension.
Positions nonzero_columns(const Tensor& t);
// As the rows of one tensor (n, dimensions).
Tensor nonzero_rows(const Tensor& t);

// autograd::record with a list of saved tensors.
template <class F>
Tensor record_saving(Tensor out, const char* name, std::initializer_list<const Tensor*> inputs, const Positions& saves, F f) {
  if (!autograd::recording(inputs)) return out;
  auto node = make_ref<autograd::FunctionNode<F>>(name, std::move(f));
  autograd::connect(*node, inputs);
  for (const Tensor& t : saves) node->saved.emplace_back(t);
  autograd::set_history(out, Ref<autograd::Node>(node));
  return out;
}

// An in-place operator with a history: `write` does the work, f(grads, saved) gives the gradients of the target (as it
// was) and of `others`.
template <class W, class F>
void write_in_place(const Tensor& target, const char* op, const char* name, std::initializer_list<const Tensor*> others,
                    const Positions& saves, W write, F f) {
  Ref<autograd::FunctionNode<F>> node;
  if (autograd::recording_write(target) || autograd::recording(others)) {
    autograd::check_in_place(target, op);
    node = make_ref<autograd::FunctionNode<F>>(name, std::move(f));
    autograd::connect(*node, {&target});
    autograd::connect(*node, others);
    for (const Tensor& t : saves) node->saved.emplace_back(t);
  }
  autograd::before_write(target);
  write();
  bump_version(target);
  target.impl()->origin.op = op;
  if (node) autograd::rebase_history(target, Ref<autograd::Node>(node));
}

// masked_fill_ under the name of the function that it is called for.
void fill_masked(const Tensor& t, const Tensor& mask, const Operand& value, const char* op);

}  // namespace naru::ops
