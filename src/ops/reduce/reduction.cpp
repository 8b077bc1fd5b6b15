#include "ops/reduce/reduction.h"

#include <algorithm>
#include <cstdlib>

#include "core/sizes.h"
#include "ir/program_builder.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/float8.h"
#include "ops/elementwise/unsigned.h"
#include "ops/tensor/common.h"
#include "runtime/queue/host_work.h"

namespace naru::ops {

namespace {
size_t place_in_set(int64_t dim, int64_t rank) {
  const auto place = static_cast<size_t>(wrap_dim(dim, rank));
  if (place >= DimSet().size()) throw RuntimeError("only tensors with up to {} dims are supported (got {})", DimSet().size(), rank);
  return place;
}
}  // namespace

DimSet dim_set(const OptionalDims& dims, int64_t rank, bool empty_is_none) {
  DimSet set;
  if (rank > 0) place_in_set(rank - 1, rank);
  if (!dims || (dims->empty() && !empty_is_none)) {
    for (int64_t d = 0; d < rank; ++d) set.set(static_cast<size_t>(d));
    return set;
  }
  for (int64_t d : *dims) {
    const auto wrapped = place_in_set(d, rank);
    if (set[wrapped]) throw RuntimeError("dim {} appears multiple times in the list of dims", wrapped);
    set.set(wrapped);
  }
  return set;
}

DimSet dim_set(int64_t dim, int64_t rank) { return DimSet().set(place_in_set(dim, rank)); }

Dims reduced_shape(const Dims& sizes, const DimSet& set, bool keepdim) {
  Dims shape;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!set[d])
      shape.push_back(sizes[d]);
    else if (keepdim)
      shape.push_back(1);
  return shape;
}

int64_t reduced_count(const Dims& sizes, const DimSet& set) {
  int64_t n = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (set[d]) n = times(n, sizes[d]);
  return n;
}

Tensor restore_dims(const Tensor& t, const DimSet& set, bool keepdim) {
  // A 0-d tensor broadcasts as it is.
  if (keepdim || t.dim() == 0) return t;
  Tensor r = t;
  for (size_t d = 0; d < set.size(); ++d)
    if (set[d]) r = r.unsqueeze(static_cast<int64_t>(d));
  return r;
}

Dims dims_of(const DimSet& set) {
  Dims dims;
  for (size_t d = 0; d < set.size(); ++d)
    if (set[d]) dims.push_back(static_cast<int64_t>(d));
  return dims;
}

DType accumulator_of(DType t) noexcept { return traits_of(t).accumulator; }

namespace {

// The iteration space's dimensions in the instruction's order: kept ones, then reduced ones. Dimensions of size 1 are left out.
struct Order {
  SmallVector<size_t, 6> kept, reduced;
  bool contiguous = true;
};

// The order depends only on the shape and the first tensor's strides, so that every device sums in the same order. Reduced dimensions go from the
// widest stride to the narrowest, so that memory is read in order; broadcast ones (stride 0) are outermost.
Order order_of(const Dims& shape, const Dims& strides, const DimSet& set) {
  Order order;
  const auto width = [&](size_t d) { return strides[d] == 0 ? INT64_MAX : std::abs(strides[d]); };
  bool found = false;
  size_t narrowest = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    (set[d] ? order.reduced : order.kept).push_back(d);
    if (!found || width(d) <= width(narrowest)) narrowest = d;
    found = true;
  }
  if (order.reduced.size() > 1)
    std::stable_sort(order.reduced.begin(), order.reduced.end(), [&](size_t a, size_t b) { return width(a) > width(b); });
  order.contiguous = !found || set[narrowest];
  if (!order.contiguous) {
    const auto at = std::find(order.kept.begin(), order.kept.end(), narrowest);
    std::rotate(at, at + 1, order.kept.end());
  }
  return order;
}

Dims pick(const Dims& from, const Order& order) {
  Dims to;
  for (size_t d : order.kept) to.push_back(from[d]);
  for (size_t d : order.reduced) to.push_back(from[d]);
  return to;
}

// `open`: leaves addresses null and does not flush deferred work.
template <class Instruction>
Reads build_into(const FusedProducer& producer, const Dims& shape, Device device, Instruction& r, bool open = false) {
  const bool many = product(shape) > 1;
  Reads reads;
  ir::ProgramBuilder b(r.program);
  // The index of a tensor among the inputs; adds it if it is new.
  const auto input = [&](const Tensor& t) {
    const auto seen = std::find(reads.begin(), reads.end(), &t) - reads.begin();
    if (static_cast<size_t>(seen) < reads.size()) return seen;
    ir::View view = open ? ir::View{nullptr, t.impl()->dtype, runtime::expanded_strides(*t.impl(), shape)} : view_of(t, shape);
    const bool one = std::all_of(view.strides.begin(), view.strides.end(), [](int64_t d) { return d == 0; });
    b.input(view.dtype, view.dtype, many && one);
    r.inputs.push_back(std::move(view));
    reads.push_back(&t);
    return seen;
  };
  uint8_t last = 0;
  for (const auto& node : producer.nodes()) {
    std::array<ir::Program::Arg, ir::kMaxArgs> args;
    size_t count = 0;
    for (const FusedProducer::Arg& a : node.args) {
      if (a.node >= 0) {
        args[count++] = b.result(static_cast<size_t>(a.node), a.as);
      } else if (a.tensor && a.tensor->impl()->storage->device == device) {
        args[count++] = b.input_at(static_cast<size_t>(input(*a.tensor)), a.as);
      } else {
        args[count++] = b.param(a.as);
        r.params.push_back(param_bits(a.tensor ? read_scalar(*a.tensor) : a.number, a.as));
      }
    }
    last = b.node(node.op, node.out, {args.data(), count});
  }
  b.output(last);
  return reads;
}

}  // namespace

const Tensor& FusedProducer::first() const {
  for (const Node& node : steps_)
    for (const Arg& a : node.args)
      if (a.tensor) return *a.tensor;
  throw RuntimeError("a reduction needs a tensor");
}

Device FusedProducer::device() const {
  Device device;
  bool found = false;
  for (const Node& node : steps_)
    for (const Arg& a : node.args) {
      if (!a.tensor) continue;
      const Device d = a.tensor->impl()->storage->device;
      if (!found || (device.is_cpu() && !d.is_cpu())) device = d;
      found = true;
    }
  return device;
}

Reads build(const FusedProducer& producer, const Dims& shape, Device device, ir::Map& map) {
  return build_into(producer, shape, device, map);
}
Reads build(const FusedProducer& producer, const Dims& shape, Device device, ir::Reduce& reduce) {
  return build_into(producer, shape, device, reduce);
}

namespace {

Tensor plan_reduction(ir::ReduceOp op, const FusedProducer& producer, const Dims& shape, const DimSet& set, bool keepdim, DType out_type,
                      const char* name, bool open, ir::Reduce& r, Reads& reads, Order& order) {
  for (const FusedProducer::Node& node : producer.nodes())
    for (const FusedProducer::Arg& a : node.args)
      if (a.tensor) refuse_unknown(*a.tensor, name);
  const Device device = producer.device();
  Tensor out = make_result(reduced_shape(shape, set, keepdim), out_type, device, name, open);
  if (out.numel() == 0) return out;
  order = order_of(shape, runtime::expanded_strides(*producer.first().impl(), shape), set);
  r.op = op;
  r.contiguous = order.contiguous;
  r.reduced = static_cast<int>(order.reduced.size());
  r.shape = pick(shape, order);
  reads = build_into(producer, shape, device, r, open);
  for (ir::View& view : r.inputs) view.strides = pick(view.strides, order);
  const Dims with_ones = reduced_shape(shape, set, true), strides = contiguous_strides(with_ones);
  r.out = {open ? nullptr : view_of(out, out.sizes()).data, out_type, {}};
  for (size_t d : order.kept) r.out.strides.push_back(strides[d]);
  return out;
}

// True if one of the producer's tensors has deferred work in the queue that the reduction goes to.
bool follows_deferred(const FusedProducer& producer) {
  const runtime::Queue* queue = nullptr;
  for (const FusedProducer::Node& node : producer.nodes())
    for (const FusedProducer::Arg& a : node.args) {
      if (!a.tensor) continue;
      const Storage& s = *a.tensor->impl()->storage;
      const runtime::Queue* const q = s.pending.load(std::memory_order_acquire);
      if (!q) continue;
      if (!queue) queue = &runtime::queue_of(producer.device());
      if (q == queue) return true;
    }
  return false;
}

}  // namespace

Tensor make_reduction(ir::ReduceOp op, const FusedProducer& producer, const Dims& shape, const DimSet& set, bool keepdim, DType out_type,
                      const char* name, ir::Reduce& r, Reads& reads) {
  Order order;
  return plan_reduction(op, producer, shape, set, keepdim, out_type, name, false, r, reads, order);
}

Tensor reduce(ir::ReduceOp op, const FusedProducer& producer, const Dims& shape, const DimSet& set, bool keepdim, DType out_type,
              const char* name) {
  ir::Reduce r;
  Reads reads;
  Order order;
  const bool open = follows_deferred(producer);
  Tensor out = plan_reduction(op, producer, shape, set, keepdim, out_type, name, open, r, reads, order);
  if (out.numel() == 0) return out;
  if (open) {
    Dims dims;
    for (const auto* list : {&order.kept, &order.reduced})
      for (const size_t d : *list) dims.push_back(static_cast<int64_t>(d));
    SmallVector<const TensorImpl*, 4> operands;
    for (const Tensor* t : reads) operands.push_back(t->impl());
    if (runtime::queue_of(out.impl()->storage->device).defer(r, shape, dims, {operands.begin(), operands.size()}, *out.impl())) return out;
    for (size_t k = 0; k < reads.size(); ++k) r.inputs[k].data = view_of(*reads[k], shape).data;
    r.out.data = view_of(out, out.sizes()).data;
  }
  const Tensor* writes[] = {&out};
  submit(std::move(r), {reads.begin(), reads.size()}, writes);
  return out;
}

std::vector<Tensor> reduce_several(ir::ReduceOp op, const FusedProducer& producer, std::span<const int> nodes, const Dims& shape,
                                   const DimSet& set, bool keepdim, DType out_type, const char* name) {
  ir::Reduce r;
  Reads reads;
  std::vector<Tensor> results{make_reduction(op, producer, shape, set, keepdim, out_type, name, r, reads)};
  while (results.size() < nodes.size()) results.push_back(make_result(results[0].sizes(), out_type, results[0].device(), name));
  if (results[0].numel() == 0) return results;
  r.program.outputs_count = 0;
  for (const int n : nodes) r.program.outputs[r.program.outputs_count++] = static_cast<uint8_t>(n);
  std::vector<const Tensor*> writes;
  for (const Tensor& t : results) {
    writes.push_back(&t);
    if (writes.size() > 1) r.others.push_back({view_of(t, t.sizes()).data, out_type, r.out.strides});
  }
  submit(std::move(r), {reads.begin(), reads.size()}, writes);
  return results;
}

Tensor reduce_sum(const Tensor& t, const DimSet& set, bool keepdim, DType as, DType out, const char* name) {
  if (is_wide_unsigned(as)) refuse("sum", as);
  if (is_float8(t.dtype()) && !is_float8(as)) return reduce_sum(as_float32(t), set, keepdim, as, out, name);
  if (is_wide_unsigned(t.dtype())) return reduce_sum(as_computed(t, as), set, keepdim, as, out, name);
  if (is_complex(t.dtype()) || is_complex(as)) [[unlikely]] {
    if (t.dim() == 0 && set.any()) return reduce_sum(t, {}, false, as, out, name);  // as_real's dimension for the parts must not be reduced
    refuse_complex(as == kComplex32 ? as : DType::F32, "sum_cpu");
    // Convert each element, not the sum: 0.5 counts as 0 in an integer sum.
    const Tensor x = t.dtype() == as ? t : apply(ir::op::copy, {{&t, {}, as}}, as, name);
    if (!is_complex(as)) return reduce_sum(x, set, keepdim, as, out, name);
    return as_complex(reduce_sum(as_real(x), set, keepdim, real_of(as), real_of(out), name));
  }
  // The whole of a small tensor that is ready on the host: sum it here, without an instruction.
  const TensorImpl& i = *t.impl();
  if (i.numel > 0 && i.numel <= kSmall && as == i.dtype && out == as && set.count() == i.sizes.size() && is_host_ready(i)) {
    Tensor result = make_result(reduced_shape(i.sizes, set, keepdim), out, i.storage->device, name);
    if (runtime::host_work().add_up(out, i.numel, i.address(), result.impl()->address())) return result;
  }
  return reduce(ir::ReduceOp::Sum, FusedProducer::copy(t, as, accumulator_of(as)), t.sizes(), set, keepdim, out, name);
}

}  // namespace naru::ops
