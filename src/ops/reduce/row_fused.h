// Work on rows: reductions over the last dimensions, and elementwise work with their results. All of it is one instruction, done for a few rows
// at a time, where the device takes such (runtime::Backend::row_fused); elsewhere, and for rows that do not lie behind one another, it is one after
// another. The bits are the same.
#pragma once

#include "ops/reduce/reduction.h"

namespace naru::ops {

class RowFused {
 public:
  // `x` is reduced over the dimensions of `set`. The first tensor of every producer is contiguous where x is, and of x's shape: its strides choose the
  // order of reducing. Records nothing for autograd.
  // only: undefined, or one bool a row; where chosen(), the other rows' results stay as they are.
  RowFused(const Tensor& x, const DimSet& set, const char* op, const Tensor& only = {});
  RowFused(const RowFused&) = delete;

  // Whether nothing is done before run().
  bool together() const noexcept { return together_; }
  // Whether only the chosen rows are done; else all are.
  bool chosen() const noexcept { return work_.only != nullptr; }
  // Reduces over the dimensions of `set`, which stay as ones. kept (where together()): stands for the reduced values in later calls, until one writes
  // to it, as one must; it has x's shape and the accumulators' type.
  Tensor reduce(ir::ReduceOp op, const FusedProducer& producer, DType out, const Tensor* kept = nullptr);
  // Reduces over all other dimensions, which vanish.
  Tensor reduce_rows(ir::ReduceOp op, const FusedProducer& producer, DType out);
  // Elementwise work over x's shape; over the shape of what reduce() gives.
  Tensor map(const FusedProducer& producer, DType out) { return map_over(sizes_, producer, out); }
  Tensor map_reduced(const FusedProducer& producer, DType out) { return map_over(reduced_shape(sizes_, inner_, true), producer, out); }
  // The results of several nodes, each of its own type.
  std::vector<Tensor> map_reduced(const FusedProducer& producer, std::span<const int> nodes);
  // The same into `results` (where together()).
  void map_reduced_into(const FusedProducer& producer, std::span<const int> nodes, std::span<const Tensor> results);
  // The same into `out`, of x's shape (where together()).
  void map_into(const FusedProducer& producer, const Tensor& out);
  // Does what has not been done. Results may be read afterwards.
  void run();

 private:
  Tensor map_over(const Dims& shape, const FusedProducer& producer, DType out);
  Tensor reduce_over(ir::ReduceOp op, const FusedProducer& producer, const DimSet& set, bool keepdim, DType out, const Tensor* kept);
  void add(ir::RowFused::Part part, const Reads& reads, const Tensor& out);

  Dims sizes_;
  DimSet inner_, outer_;
  Device device_;
  const char* op_;
  bool together_ = false;
  ir::RowFused work_;
  std::vector<Tensor> reads_, writes_;
};

}  // namespace naru::ops
