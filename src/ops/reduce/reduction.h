// Building reductions: from tensors, an elementwise producer and the dimensions to reduce, to one ir::Reduce.
#pragma once

#include <bitset>
#include <initializer_list>
#include <span>
#include <vector>

#include "autograd/graph/node.h"
#include "core/small_vector.h"
#include "ir/instruction.h"
#include "ir/op_ids.h"
#include "naru/ops.h"
#include "naru/tensor.h"

namespace naru::ops {

// A set of dimensions.
using DimSet = std::bitset<64>;

// The dimensions named, all of them where none are. Throws IndexError for one out of range, RuntimeError for one named twice.
// An empty list means all, as in torch.sum, unless empty_is_none (torch.any).
DimSet dim_set(const OptionalDims& dims, int64_t rank, bool empty_is_none = false);
DimSet dim_set(int64_t dim, int64_t rank);
// The shape left when the dimensions of `set` are reduced.
Dims reduced_shape(const Dims& sizes, const DimSet& set, bool keepdim);
// How many elements are reduced to one.
int64_t reduced_count(const Dims& sizes, const DimSet& set);
// A result of reducing seen with the dimensions of `set` put back, of size 1 (differentiable).
Tensor restore_dims(const Tensor& t, const DimSet& set, bool keepdim);
// The dimensions of `set`, in order.
Dims dims_of(const DimSet& set);

// The backward of a reduction of one real tensor over `set`, with its rule of forward derivatives: each element has a part in one result, so the
// gradients for results of gradient 1 are the weights that its tangent is added up with.
template <class Backward>
auto reducing(const DimSet& set, bool keepdim, Backward backward) {
  return autograd::WithJvp(backward, [set, keepdim, backward](std::vector<Tensor>& tangents, std::vector<Tensor>& saved) {
    const Tensor& t = tangents[0];
    std::vector<Tensor> one{ones(reduced_shape(t.sizes(), set, keepdim), Options(t.dtype(), t.device()))};
    const Tensor weighted = backward(one, saved)[0] * t;
    return t.dim() == 0 ? weighted : sum(weighted, dims_of(set), keepdim);
  });
}

// The type sums are accumulated in: float32 for the 16-bit types, int64 for integers and bool.
DType accumulator_of(DType t) noexcept;

// What is reduced, or computed for each element: operators, one after another, over tensors, numbers and each other's results; the last one's counts. Tensors must outlive it.
class FusedProducer {
 public:
  struct Arg {
    const Tensor* tensor = nullptr;
    Scalar number;
    DType as;
    int node = -1;
  };
  static Arg of(const Tensor& t, DType as) { return {&t, {}, as, -1}; }
  static Arg of(Scalar s, DType as) { return {nullptr, s, as, -1}; }
  // The result of an earlier node.
  static Arg node(int number, DType as) { return {nullptr, {}, as, number}; }

  FusedProducer() = default;
  FusedProducer(ir::OpId id, DType out, std::initializer_list<Arg> args) { then(id, out, args); }
  FusedProducer& then(ir::OpId id, DType out, std::initializer_list<Arg> args) {
    steps_.push_back({id, out, args});
    return *this;
  }
  // The number of the last node.
  int last() const { return static_cast<int>(steps_.size()) - 1; }
  struct Node {
    ir::OpId op;
    DType out;
    SmallVector<Arg, 3> args;
  };
  const SmallVector<Node, 2>& nodes() const noexcept { return steps_; }
  // The first tensor.
  const Tensor& first() const;
  // The device of its tensors; one on the cpu may stand beside any.
  Device device() const;
  // t itself, converted to `as`, then to `accumulator`.
  static FusedProducer copy(const Tensor& t, DType as, DType accumulator) { return FusedProducer(ir::op::copy, accumulator, {of(t, as)}); }

 private:
  SmallVector<Node, 2> steps_;
};

using Reads = SmallVector<const Tensor*, 4>;

// The producer as the program of an instruction over `shape`, with its one output, inputs and parameters. Returns the tensors read.
Reads build(const FusedProducer& producer, const Dims& shape, Device device, ir::Map& map);
Reads build(const FusedProducer& producer, const Dims& shape, Device device, ir::Reduce& reduce);
// A reduction that is not submitted yet: see reduce().
Tensor make_reduction(ir::ReduceOp op, const FusedProducer& producer, const Dims& shape, const DimSet& set, bool keepdim, DType out,
                      const char* name, ir::Reduce& reduce, Reads& reads);

// Reduces the producer's values over `shape`, to which its tensors broadcast, along the dimensions of `set`. The last node's type is the
// accumulators'. Strides of the first tensor choose the order (ir/reduce.h). Records nothing for autograd.
Tensor reduce(ir::ReduceOp op, const FusedProducer& producer, const Dims& shape, const DimSet& set, bool keepdim, DType out,
              const char* name);

// The same of several nodes of the producer, all of one type, in one instruction: on devices that reduce several results together each tensor is read
// once. Deferred work that it reads is done first.
std::vector<Tensor> reduce_several(ir::ReduceOp op, const FusedProducer& producer, std::span<const int> nodes, const Dims& shape,
                                   const DimSet& set, bool keepdim, DType out, const char* name);

// Sum of t, in its own type for floating point (rounded once), int64 else. No autograd.
Tensor reduce_sum(const Tensor& t, const DimSet& set, bool keepdim, DType as, DType out, const char* name);

}  // namespace naru::ops
