// Building reductions: from tensors, an elementwise prologue and the dimensions to fold, to one ir::Reduce.
#pragma once

#include <bitset>
#include <initializer_list>
#include <vector>

#include "core/small_vector.h"
#include "ir/instruction.h"
#include "ir/row_ids.h"
#include "naru/ops.h"
#include "naru/tensor.h"

namespace naru::ops {

// A set of dimensions.
using DimSet = std::bitset<64>;

// The dimensions named, all of them where none are. Throws IndexError for one out of range, RuntimeError for one named twice.
// An empty list means all, as in torch.sum, unless empty_is_none (torch.any).
DimSet dim_set(const OptionalDims& dims, int64_t rank, bool empty_is_none = false);
DimSet dim_set(int64_t dim, int64_t rank);
// The shape left when the dimensions of `set` are folded.
Dims folded_shape(const Dims& sizes, const DimSet& set, bool keepdim);
// How many elements fold into one.
int64_t folded_count(const Dims& sizes, const DimSet& set);
// A result of folding seen with the dimensions of `set` put back, of size 1 (differentiable).
Tensor restore_dims(const Tensor& t, const DimSet& set, bool keepdim);

// The type sums are accumulated in: float32 for the 16-bit types, int64 for integers and bool.
DType accumulator_of(DType t) noexcept;

// What is folded, or computed for each element: rows, one after another, over tensors, numbers and each other's results; the last one's counts. Tensors must outlive it.
class Prologue {
 public:
  struct Arg {
    const Tensor* tensor = nullptr;
    Scalar number;
    DType as;
    int step = -1;
  };
  static Arg of(const Tensor& t, DType as) { return {&t, {}, as, -1}; }
  static Arg of(Scalar s, DType as) { return {nullptr, s, as, -1}; }
  // The result of an earlier step.
  static Arg step(int number, DType as) { return {nullptr, {}, as, number}; }

  Prologue(ir::RowId row, DType out, std::initializer_list<Arg> args) { then(row, out, args); }
  Prologue& then(ir::RowId row, DType out, std::initializer_list<Arg> args) {
    steps_.push_back({row, out, args});
    return *this;
  }
  // The number of the last step.
  int last() const { return static_cast<int>(steps_.size()) - 1; }
  struct Step {
    ir::RowId row;
    DType out;
    SmallVector<Arg, 3> args;
  };
  const SmallVector<Step, 2>& steps() const noexcept { return steps_; }
  // The first tensor.
  const Tensor& first() const;
  // The device of its tensors; one on the cpu may stand beside any.
  Device device() const;
  // t itself, converted to `as`, then to `accumulator`.
  static Prologue copy(const Tensor& t, DType as, DType accumulator) { return Prologue(ir::row::copy, accumulator, {of(t, as)}); }

 private:
  SmallVector<Step, 2> steps_;
};

using Reads = SmallVector<const Tensor*, 4>;

// The prologue as the program of an instruction over `shape`, with its one output, inputs and parameters. Returns the tensors read.
Reads build(const Prologue& prologue, const Dims& shape, Device device, ir::Map& map);
Reads build(const Prologue& prologue, const Dims& shape, Device device, ir::Reduce& reduce);
// A reduction that is not submitted yet: see fold().
Tensor make_fold(ir::ReduceOp op, const Prologue& prologue, const Dims& shape, const DimSet& set, bool keepdim, DType out, const char* name,
                 ir::Reduce& reduce, Reads& reads);

// Folds the prologue's values over `shape`, to which its tensors broadcast, along the dimensions of `set`. The last step's type is the
// accumulators'. Strides of the first tensor choose the order (ir/reduce.h). Records nothing for autograd.
Tensor fold(ir::ReduceOp op, const Prologue& prologue, const Dims& shape, const DimSet& set, bool keepdim, DType out, const char* name);

// Sum of t, in its own type for floating point (rounded once), int64 else. No autograd.
Tensor fold_sum(const Tensor& t, const DimSet& set, bool keepdim, DType as, DType out, const char* name);

}  // namespace naru::ops
