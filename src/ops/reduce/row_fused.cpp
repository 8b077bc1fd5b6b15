#include "ops/reduce/row_fused.h"

#include "ops/tensor/common.h"

namespace naru::ops {
namespace {

// Are the dimensions of `set` the last ones?
bool trailing(const DimSet& set, int64_t rank) {
  bool reduced = false;
  for (int64_t d = 0; d < rank; ++d) {
    if (reduced && !set[static_cast<size_t>(d)]) return false;
    reduced |= set[static_cast<size_t>(d)];
  }
  return reduced;
}

// Step by step, so that the steps fuse with what comes before and after.
std::vector<Tensor> run_steps(const FusedProducer& producer, const Dims& shape, Device device, DType out, const char* op) {
  ForceFusion fuse;
  std::vector<Tensor> results;
  results.reserve(producer.nodes().size());
  for (const FusedProducer::Node& step : producer.nodes()) {
    SmallVector<OpOperand, 4> operands;
    for (const FusedProducer::Arg& a : step.args)
      operands.push_back({a.node >= 0 ? &results[static_cast<size_t>(a.node)] : a.tensor, a.number, a.as});
    const bool last = results.size() + 1 == producer.nodes().size();
    results.push_back(make_result(shape, last ? out : step.out, device, op, true));
    apply_into(step.op, {operands.begin(), operands.size()}, results.back());
  }
  return results;
}

}  // namespace

RowFused::RowFused(const Tensor& x, const DimSet& set, const char* op, const Tensor& only)
    : sizes_(x.sizes()), inner_(set), device_(x.impl()->storage->device), op_(op) {
  for (size_t d = 0; d < static_cast<size_t>(x.dim()); ++d) outer_.set(d, !set[d]);
  // Rows of one element have no direction.
  const int64_t n = reduced_count(sizes_, inner_);
  together_ = x.is_contiguous() && x.numel() > 0 && n > 1 && trailing(set, x.dim()) && runtime::queue_of(device_).capabilities().row_fused;
  if (!together_) return;
  work_.rows = x.numel() / n;
  if (!only.defined() || n > runtime::queue_of(device_).capabilities().longest_chosen_row) return;
  work_.only = view_of(only, only.sizes()).data;
  reads_.push_back(only);
}

void RowFused::add(ir::RowFused::Part part, const Reads& reads, const Tensor& out) {
  for (const Tensor* t : reads) reads_.push_back(*t);
  writes_.push_back(out);
  work_.parts.push_back(std::move(part));
}

Tensor RowFused::reduce_over(ir::ReduceOp op, const FusedProducer& producer, const DimSet& set, bool keepdim, DType out,
                             const Tensor* kept) {
  if (!together_) return ops::reduce(op, producer, sizes_, set, keepdim, out, op_);
  ir::Reduce reduce;
  Reads reads;
  Tensor result = make_reduction(op, producer, sizes_, set, keepdim, out, op_, reduce, reads);
  // Results of a strided reduction that lie in several dimensions are not reduced row by row.
  const int64_t cols = reduce.contiguous ? 0 : reduce.shape[reduce.shape.size() - static_cast<size_t>(reduce.reduced) - 1];
  if (reduce.contiguous != keepdim || (!reduce.contiguous && cols != result.numel())) {
    if (kept) throw RuntimeError("{}: strided reductions of rows keep nothing", op_);
    run();
    const Tensor* writes[] = {&result};
    submit(std::move(reduce), {reads.begin(), reads.size()}, writes);
    return result;
  }
  add({std::move(reduce), kept ? view_of(*kept, sizes_).data : nullptr}, reads, result);
  return result;
}

Tensor RowFused::reduce(ir::ReduceOp op, const FusedProducer& producer, DType out, const Tensor* kept) {
  return reduce_over(op, producer, inner_, true, out, kept);
}

Tensor RowFused::reduce_rows(ir::ReduceOp op, const FusedProducer& producer, DType out) {
  return reduce_over(op, producer, outer_, false, out, nullptr);
}

Tensor RowFused::map_over(const Dims& shape, const FusedProducer& producer, DType out) {
  if (!together_) return run_steps(producer, shape, device_, out, op_).back();
  Tensor result = make_result(shape, out, device_, op_);
  map_into(producer, result);
  return result;
}

void RowFused::map_into(const FusedProducer& producer, const Tensor& out) {
  ir::Map map;
  map.shape = out.sizes();
  const Reads reads = build(producer, map.shape, device_, map);
  map.program.nodes[map.program.nodes_count - 1].out = out.dtype();
  map.outputs.push_back(view_of(out, map.shape));
  add({std::move(map), nullptr}, reads, out);
}

std::vector<Tensor> RowFused::map_reduced(const FusedProducer& producer, std::span<const int> nodes) {
  const Dims shape = reduced_shape(sizes_, inner_, true);
  std::vector<Tensor> results;
  if (!together_) {
    const std::vector<Tensor> all = run_steps(producer, shape, device_, producer.nodes().end()[-1].out, op_);
    for (const int n : nodes) results.push_back(all[static_cast<size_t>(n)]);
    return results;
  }
  for (const int n : nodes) results.push_back(make_result(shape, producer.nodes()[static_cast<size_t>(n)].out, device_, op_));
  map_reduced_into(producer, nodes, results);
  return results;
}

void RowFused::map_reduced_into(const FusedProducer& producer, std::span<const int> nodes, std::span<const Tensor> results) {
  ir::Map map;
  map.shape = reduced_shape(sizes_, inner_, true);
  const Reads reads = build(producer, map.shape, device_, map);
  map.program.outputs_count = 0;
  for (const int n : nodes) map.program.outputs[map.program.outputs_count++] = static_cast<uint8_t>(n);
  for (const Tensor& t : results) map.outputs.push_back(view_of(t, map.shape));
  writes_.insert(writes_.end(), results.begin(), results.end() - 1);
  add({std::move(map), nullptr}, reads, results.back());
}

void RowFused::run() {
  if (work_.parts.empty()) return;
  std::vector<const Tensor*> reads, writes;
  for (const Tensor& t : reads_) reads.push_back(&t);
  for (const Tensor& t : writes_) writes.push_back(&t);
  ir::RowFused work{work_.rows, std::move(work_.parts), work_.only};
  work_.parts.clear();
  submit(std::move(work), reads, writes);
  reads_.clear(), writes_.clear();
}

}  // namespace naru::ops
