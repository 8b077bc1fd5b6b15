#include "ops/row_wise.h"

#include "ops/common.h"

namespace naru::ops {
namespace {

// Are the dimensions of `set` the last ones?
bool trailing(const DimSet& set, int64_t rank) {
  bool folded = false;
  for (int64_t d = 0; d < rank; ++d) {
    if (folded && !set[static_cast<size_t>(d)]) return false;
    folded |= set[static_cast<size_t>(d)];
  }
  return folded;
}

// Step by step, so that the steps fuse with what comes before and after.
Tensor run_steps(const Prologue& prologue, const Dims& shape, Device device, DType out, const char* op) {
  FuseScope fuse;
  std::vector<Tensor> results;
  results.reserve(prologue.steps().size());
  for (const Prologue::Step& step : prologue.steps()) {
    SmallVector<StepOperand, 4> operands;
    for (const Prologue::Arg& a : step.args)
      operands.push_back({a.step >= 0 ? &results[static_cast<size_t>(a.step)] : a.tensor, a.number, a.as});
    const bool last = results.size() + 1 == prologue.steps().size();
    results.push_back(make_result(shape, last ? out : step.out, device, op, true));
    run_step(step.row, {operands.begin(), operands.size()}, results.back());
  }
  return results.back();
}

}  // namespace

RowWise::RowWise(const Tensor& x, const DimSet& set, const char* op)
    : sizes_(x.sizes()), inner_(set), device_(x.impl()->storage->device), op_(op) {
  for (size_t d = 0; d < static_cast<size_t>(x.dim()); ++d) outer_.set(d, !set[d]);
  // Rows of one element have no direction.
  const int64_t n = folded_count(sizes_, inner_);
  together_ = x.is_contiguous() && x.numel() > 0 && n > 1 && trailing(set, x.dim()) && runtime::backend_of(device_.type).row_wise();
  if (together_) work_.rows = x.numel() / n;
}

void RowWise::add(ir::RowWise::Part part, const Reads& reads, const Tensor& out) {
  for (const Tensor* t : reads) reads_.push_back(*t);
  writes_.push_back(out);
  work_.parts.push_back(std::move(part));
}

Tensor RowWise::fold_over(ir::ReduceOp op, const Prologue& prologue, const DimSet& set, bool keepdim, DType out, const Tensor* kept) {
  if (!together_) return ops::fold(op, prologue, sizes_, set, keepdim, out, op_);
  ir::Reduce reduce;
  Reads reads;
  Tensor result = make_fold(op, prologue, sizes_, set, keepdim, out, op_, reduce, reads);
  // Results of a reduction across that lie in several dimensions are not folded row by row.
  const int64_t cols = reduce.along ? 0 : reduce.shape[reduce.shape.size() - static_cast<size_t>(reduce.folded) - 1];
  if (reduce.along != keepdim || (!reduce.along && cols != result.numel())) {
    if (kept) throw RuntimeError("{}: rows that are folded across keep nothing", op_);
    run();
    const Tensor* writes[] = {&result};
    submit(std::move(reduce), {reads.begin(), reads.size()}, writes);
    return result;
  }
  add({std::move(reduce), kept ? view_of(*kept, sizes_).data : nullptr}, reads, result);
  return result;
}

Tensor RowWise::fold(ir::ReduceOp op, const Prologue& prologue, DType out, const Tensor* kept) {
  return fold_over(op, prologue, inner_, true, out, kept);
}

Tensor RowWise::fold_rows(ir::ReduceOp op, const Prologue& prologue, DType out) {
  return fold_over(op, prologue, outer_, false, out, nullptr);
}

Tensor RowWise::map_over(const Dims& shape, const Prologue& prologue, DType out) {
  if (!together_) return run_steps(prologue, shape, device_, out, op_);
  Tensor result = make_result(shape, out, device_, op_);
  map_into(prologue, result);
  return result;
}

void RowWise::map_into(const Prologue& prologue, const Tensor& out) {
  ir::Map map;
  map.shape = out.sizes();
  const Reads reads = build(prologue, map.shape, device_, map);
  map.program.steps[map.program.steps_count - 1].out = out.dtype();
  map.outputs.push_back(view_of(out, map.shape));
  add({std::move(map), nullptr}, reads, out);
}

void RowWise::run() {
  if (work_.parts.empty()) return;
  std::vector<const Tensor*> reads, writes;
  for (const Tensor& t : reads_) reads.push_back(&t);
  for (const Tensor& t : writes_) writes.push_back(&t);
  ir::RowWise work{work_.rows, std::move(work_.parts)};
  work_.parts.clear();
  submit(std::move(work), reads, writes);
  reads_.clear(), writes_.clear();
}

}  // namespace naru::ops
