#include "ops/fold.h"

#include <algorithm>
#include <cstdlib>

#include "ops/common.h"

namespace naru::ops {

DimSet dim_set(const OptionalDims& dims, int64_t rank, bool empty_is_none) {
  DimSet set;
  if (!dims || (dims->empty() && !empty_is_none)) {
    for (int64_t d = 0; d < rank; ++d) set.set(static_cast<size_t>(d));
    return set;
  }
  for (int64_t d : *dims) {
    const auto wrapped = static_cast<size_t>(wrap_dim(d, rank));
    if (set[wrapped]) throw RuntimeError("dim {} appears multiple times in the list of dims", wrapped);
    set.set(wrapped);
  }
  return set;
}

DimSet dim_set(int64_t dim, int64_t rank) { return DimSet().set(static_cast<size_t>(wrap_dim(dim, rank))); }

Dims folded_shape(const Dims& sizes, const DimSet& set, bool keepdim) {
  Dims shape;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!set[d])
      shape.push_back(sizes[d]);
    else if (keepdim)
      shape.push_back(1);
  return shape;
}

int64_t folded_count(const Dims& sizes, const DimSet& set) {
  int64_t n = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (set[d]) n *= sizes[d];
  return n;
}

Tensor restore_dims(const Tensor& t, const DimSet& set, bool keepdim) {
  // Without dimensions it broadcasts as it is.
  if (keepdim || t.dim() == 0) return t;
  Tensor r = t;
  for (size_t d = 0; d < set.size(); ++d)
    if (set[d]) r = r.unsqueeze(static_cast<int64_t>(d));
  return r;
}

DType accumulator_of(DType t) noexcept {
  if (!is_floating(t)) return DType::I64;
  return t == DType::F64 ? DType::F64 : DType::F32;
}

namespace {

// The iteration space's dimensions in the order of the instruction: kept ones, then folded ones. Sizes of 1 are left out.
struct Order {
  SmallVector<size_t, 6> kept, folded;
  bool along = true;
};

// Chosen from the shape and the first tensor's strides alone, so that every device folds in the same order: folded dimensions from
// the widest stride to the narrowest, so that memory is read in order; repeated ones (stride 0) outermost.
Order order_of(const Dims& shape, const Dims& strides, const DimSet& set) {
  Order order;
  const auto width = [&](size_t d) { return strides[d] == 0 ? INT64_MAX : std::abs(strides[d]); };
  bool found = false;
  size_t narrowest = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    (set[d] ? order.folded : order.kept).push_back(d);
    if (!found || width(d) <= width(narrowest)) narrowest = d;
    found = true;
  }
  if (order.folded.size() > 1)
    std::stable_sort(order.folded.begin(), order.folded.end(), [&](size_t a, size_t b) { return width(a) > width(b); });
  order.along = !found || set[narrowest];
  if (!order.along) {
    const auto at = std::find(order.kept.begin(), order.kept.end(), narrowest);
    std::rotate(at, at + 1, order.kept.end());
  }
  return order;
}

Dims pick(const Dims& from, const Order& order) {
  Dims to;
  for (size_t d : order.kept) to.push_back(from[d]);
  for (size_t d : order.folded) to.push_back(from[d]);
  return to;
}

// `open`: addresses are left out, and what is held back stays so.
template <class Instruction>
Reads build_into(const Prologue& prologue, const Dims& shape, Device device, Instruction& r, bool open = false) {
  const bool many = product(shape) > 1;
  Reads reads;
  ir::Program& program = r.program;
  for (const auto& step : prologue.steps()) {
    ir::Program::Step& s = program.steps[program.steps_count];
    s = {step.row, step.out, static_cast<uint8_t>(step.args.size()), {}};
    for (size_t k = 0; k < step.args.size(); ++k) {
      const Prologue::Arg& a = step.args[k];
      if (a.step >= 0) {
        s.args[k] = {ir::Program::From::Step, a.as, static_cast<uint16_t>(a.step)};
        continue;
      }
      if (!a.tensor || a.tensor->impl()->storage->device != device) {
        s.args[k] = {ir::Program::From::Param, a.as, program.params_count};
        program.params[program.params_count++] = ir::vtype_of(a.as);
        r.params.push_back(param_bits(a.tensor ? read_scalar(*a.tensor) : a.number, a.as));
        continue;
      }
      const auto seen = std::find(reads.begin(), reads.end(), a.tensor);
      s.args[k] = {ir::Program::From::Input, a.as, static_cast<uint16_t>(seen - reads.begin())};
      if (seen != reads.end()) continue;
      ir::View view = open ? ir::View{nullptr, a.tensor->impl()->dtype, runtime::expanded_strides(*a.tensor->impl(), shape)}
                           : view_of(*a.tensor, shape);
      const bool one = std::all_of(view.strides.begin(), view.strides.end(), [](int64_t d) { return d == 0; });
      program.inputs[program.inputs_count++] = {view.dtype, many && one};
      r.inputs.push_back(std::move(view));
      reads.push_back(a.tensor);
    }
    ++program.steps_count;
  }
  program.outputs_count = 1;
  program.outputs[0] = static_cast<uint8_t>(program.steps_count - 1);
  return reads;
}

}  // namespace

const Tensor& Prologue::first() const {
  for (const Step& step : steps_)
    for (const Arg& a : step.args)
      if (a.tensor) return *a.tensor;
  throw RuntimeError("a reduction needs a tensor");
}

Device Prologue::device() const {
  Device device;
  bool found = false;
  for (const Step& step : steps_)
    for (const Arg& a : step.args) {
      if (!a.tensor) continue;
      const Device d = a.tensor->impl()->storage->device;
      if (!found || (device.is_cpu() && !d.is_cpu())) device = d;
      found = true;
    }
  return device;
}

Reads build(const Prologue& prologue, const Dims& shape, Device device, ir::Map& map) { return build_into(prologue, shape, device, map); }
Reads build(const Prologue& prologue, const Dims& shape, Device device, ir::Reduce& reduce) {
  return build_into(prologue, shape, device, reduce);
}

namespace {

Tensor plan_fold(ir::ReduceOp op, const Prologue& prologue, const Dims& shape, const DimSet& set, bool keepdim, DType out_type,
                 const char* name, bool open, ir::Reduce& r, Reads& reads, Order& order) {
  const Device device = prologue.device();
  Tensor out = make_result(folded_shape(shape, set, keepdim), out_type, device, name, open);
  if (out.numel() == 0) return out;
  order = order_of(shape, runtime::expanded_strides(*prologue.first().impl(), shape), set);
  r.op = op;
  r.along = order.along;
  r.folded = static_cast<int>(order.folded.size());
  r.shape = pick(shape, order);
  reads = build_into(prologue, shape, device, r, open);
  for (ir::View& view : r.inputs) view.strides = pick(view.strides, order);
  const Dims with_ones = folded_shape(shape, set, true), strides = contiguous_strides(with_ones);
  r.out = {open ? nullptr : view_of(out, out.sizes()).data, out_type, {}};
  for (size_t d : order.kept) r.out.strides.push_back(strides[d]);
  return out;
}

// Whether work on one of the prologue's tensors is held back in the queue that the reduction goes to.
bool follows_held(const Prologue& prologue) {
  const runtime::Queue* queue = nullptr;
  for (const Prologue::Step& step : prologue.steps())
    for (const Prologue::Arg& a : step.args) {
      if (!a.tensor) continue;
      const Storage& s = *a.tensor->impl()->storage;
      const runtime::Queue* const q = s.pending.load(std::memory_order_acquire);
      if (!q) continue;
      if (!queue) queue = &runtime::queue_of(prologue.device());
      if (q == queue) return true;
    }
  return false;
}

}  // namespace

Tensor make_fold(ir::ReduceOp op, const Prologue& prologue, const Dims& shape, const DimSet& set, bool keepdim, DType out_type,
                 const char* name, ir::Reduce& r, Reads& reads) {
  Order order;
  return plan_fold(op, prologue, shape, set, keepdim, out_type, name, false, r, reads, order);
}

Tensor fold(ir::ReduceOp op, const Prologue& prologue, const Dims& shape, const DimSet& set, bool keepdim, DType out_type,
            const char* name) {
  ir::Reduce r;
  Reads reads;
  Order order;
  const bool open = follows_held(prologue);
  Tensor out = plan_fold(op, prologue, shape, set, keepdim, out_type, name, open, r, reads, order);
  if (out.numel() == 0) return out;
  if (open) {
    Dims dims;
    for (const auto* list : {&order.kept, &order.folded})
      for (const size_t d : *list) dims.push_back(static_cast<int64_t>(d));
    SmallVector<const TensorImpl*, 4> operands;
    for (const Tensor* t : reads) operands.push_back(t->impl());
    if (runtime::queue_of(out.impl()->storage->device).hold(r, shape, dims, {operands.begin(), operands.size()}, *out.impl())) return out;
    for (size_t k = 0; k < reads.size(); ++k) r.inputs[k].data = view_of(*reads[k], shape).data;
    r.out.data = view_of(out, out.sizes()).data;
  }
  const Tensor* writes[] = {&out};
  submit(std::move(r), {reads.begin(), reads.size()}, writes);
  return out;
}

Tensor fold_sum(const Tensor& t, const DimSet& set, bool keepdim, DType as, DType out, const char* name) {
  // All elements of a small tensor at rest: no instruction.
  constexpr int64_t kSmall = 4096;
  const TensorImpl& i = *t.impl();
  const Storage& s = *i.storage;
  if (i.numel > 0 && i.numel <= kSmall && i.contiguous && s.device.is_cpu() && as == i.dtype && out == as &&
      set.count() == i.sizes.size() && s.data && !runtime::busy(s)) {
    Tensor result = make_result(folded_shape(i.sizes, set, keepdim), out, s.device, name);
    if (runtime::backend_of(DeviceType::Cpu).small_sum(out, i.numel, i.address(), result.impl()->address())) return result;
  }
  return fold(ir::ReduceOp::Sum, Prologue::copy(t, as, accumulator_of(as)), t.sizes(), set, keepdim, out, name);
}

}  // namespace naru::ops
