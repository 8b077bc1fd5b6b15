// Work on rows: reductions over the last dimensions, and elementwise work with their results. All of it is one instruction, done for a few rows
// at a time, where the device takes such (runtime::Backend::row_wise); elsewhere, and for rows that do not lie behind one another, it is one after
// another. The bits are the same.
#pragma once

#include "ops/fold.h"

namespace naru::ops {

class RowWise {
 public:
  // `x` is folded over the dimensions of `set`. The first tensor of every prologue is contiguous where x is, and of x's shape: its strides choose the
  // order of folding. Records nothing for autograd.
  RowWise(const Tensor& x, const DimSet& set, const char* op);
  RowWise(const RowWise&) = delete;

  // Whether nothing is done before run().
  bool together() const noexcept { return together_; }
  // Folds over the dimensions of `set`, which stay as ones. kept (where together()): stands for the folded values in later calls, until one writes
  // to it, as one must; it has x's shape and the accumulators' type.
  Tensor fold(ir::ReduceOp op, const Prologue& prologue, DType out, const Tensor* kept = nullptr);
  // Folds over all other dimensions, which vanish.
  Tensor fold_rows(ir::ReduceOp op, const Prologue& prologue, DType out);
  // Elementwise work over x's shape; over the shape of what fold() gives.
  Tensor map(const Prologue& prologue, DType out) { return map_over(sizes_, prologue, out); }
  Tensor map_folded(const Prologue& prologue, DType out) { return map_over(folded_shape(sizes_, inner_, true), prologue, out); }
  // The same into `out`, of x's shape (where together()).
  void map_into(const Prologue& prologue, const Tensor& out);
  // Does what has not been done. Results may be read afterwards.
  void run();

 private:
  Tensor map_over(const Dims& shape, const Prologue& prologue, DType out);
  Tensor fold_over(ir::ReduceOp op, const Prologue& prologue, const DimSet& set, bool keepdim, DType out, const Tensor* kept);
  void add(ir::RowWise::Part part, const Reads& reads, const Tensor& out);

  Dims sizes_;
  DimSet inner_, outer_;
  Device device_;
  const char* op_;
  bool together_ = false;
  ir::RowWise work_;
  std::vector<Tensor> reads_, writes_;
};

}  // namespace naru::ops
