#include "ops/nn/update_batch.h"

#include <algorithm>

#include "autograd/graph/kept.h"
#include "autograd/history/history.h"
#include "ir/program_builder.h"
#include "naru/autograd.h"
#include "naru/ops.h"
#include "ops/shape/strides.h"
#include "ops/tensor/common.h"
#include "runtime/queue/streams.h"

namespace naru::ops {
namespace {

const Device& device_of(const Tensor& t) { return t.impl()->storage->device; }

// True if the elements of both lie in memory in the same order, without gaps.
bool same_order(const TensorImpl& t, const TensorImpl& first) {
  return t.numel == first.numel && t.sizes == first.sizes && ((t.contiguous && first.contiguous) || t.strides == first.strides);
}

// True if the tensors are dense and each in memory of its own.
bool is_batchable(const ir::Program& program, std::span<const Tensor* const> tensors) {
  const TensorImpl& first = *tensors[0]->impl();
  if (first.numel == 0 || !(first.contiguous || is_dense(first.sizes, first.strides))) return false;
  for (size_t k = 0; k < tensors.size(); ++k) {
    const TensorImpl& t = *tensors[k]->impl();
    if (!t.storage || t.special || !(t.storage->device == first.storage->device)) return false;
    if (program.inputs[k].scalar ? t.numel != 1 : !same_order(t, first)) return false;
    for (size_t i = 0; i < k; ++i)
      if (tensors[i]->impl()->storage.get() == t.storage.get()) return false;
  }
  return true;
}

}  // namespace

bool UpdateBatch::takes(const Tensor& tensor) {
  if (!tensor.impl()->storage) return false;
  if (const Device& device = device_of(tensor); !knows_ || !(known_ == device)) {
    known_ = device, knows_ = true;
    known_takes_ = !device.is_cpu() && runtime::queue_of(device).capabilities().maps_each;
  }
  return known_takes_;
}

bool UpdateBatch::add(const ir::Program& program, std::span<const uint64_t> params, std::span<const Tensor* const> tensors,
                      unsigned written, int variant) {
  if (!takes(*tensors[0]) || !is_batchable(program, tensors)) return false;
  all_.push_back({device_of(*tensors[0]), variant, written, {}, {}});
  all_.back().work.program = program;
  all_.back().work.params.assign(params.begin(), params.end());
  return put(all_.back(), tensors);
}

bool UpdateBatch::add_like_others(std::span<const Tensor* const> tensors, int variant) {
  for (Same& same : all_) {
    const ir::Program& program = same.work.program;
    bool fits = same.variant == variant && program.inputs_count == tensors.size();
    for (size_t k = 0; k < tensors.size() && fits; ++k) fits = tensors[k]->dtype() == program.inputs[k].dtype;
    if (fits && is_batchable(program, tensors) && device_of(*tensors[0]) == same.device) return put(same, tensors);
  }
  return false;
}

bool UpdateBatch::put(Same& same, std::span<const Tensor* const> tensors) {
  const int64_t count = tensors[0]->numel();
  std::vector<void*>& addresses = same.work.addresses;
  for (size_t k = 0; k < tensors.size(); ++k) {
    const bool written = same.written >> k & 1;
    if (written) autograd::before_write(*tensors[k]), bump_version(*tensors[k]);
    const TensorImpl& t = *tensors[k]->impl();
    addresses.push_back(view_of(*tensors[k], t.sizes).data);
    same.tensors.push_back(tensors[k]);
    if (same.work.program.inputs[k].scalar) continue;
    const auto begin = reinterpret_cast<uintptr_t>(addresses.back());
    ranges_.push_back({begin, begin + static_cast<size_t>(count) * size_of(t.dtype), written});
  }
  const size_t inputs = addresses.size() - tensors.size();
  for (size_t k = 0; k < tensors.size(); ++k)
    if (same.written >> k & 1) addresses.push_back(addresses[inputs + k]);
  same.work.counts.push_back(count);
  order_.push_back(static_cast<size_t>(&same - all_.data()));
  return true;
}

// True if no tensor that is written shares memory with another.
bool UpdateBatch::are_apart() {
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  uintptr_t all = 0, written = 0;  // the ends of what lies before
  for (const Range& r : ranges_) {
    if (r.begin < (r.written ? all : written)) return false;
    all = std::max(all, r.end);
    if (r.written) written = std::max(written, r.end);
  }
  return true;
}

void UpdateBatch::submit_together(Same& same) {
  const size_t inputs = same.work.inputs();
  std::vector<const Tensor*> reads, writes;
  for (size_t i = 0; i < same.tensors.size(); ++i) {
    const size_t k = i % inputs;
    if (i < inputs || !same.work.is_scalar(k)) reads.push_back(same.tensors[i]);
    if (same.written >> k & 1) writes.push_back(same.tensors[i]);
  }
  submit(std::move(same.work), reads, writes);
}

void UpdateBatch::submit_next(Same& same) {
  const size_t inputs = same.work.inputs();
  const std::span<const Tensor* const> tensors = std::span(same.tensors).subspan(same.done * inputs, inputs);
  std::vector<const Tensor*> writes;
  for (size_t k = 0; k < inputs; ++k)
    if (same.written >> k & 1) writes.push_back(tensors[k]);
  submit(same.work.one(same.done++), tensors, writes);
}

void UpdateBatch::finish() {
  if (order_.empty()) return;
  const bool apart = are_apart();
  for (const size_t i : order_)
    if (Same& same = all_[i]; !apart || same.tensors.size() == same.work.inputs())
      submit_next(same);
    else if (same.done++ == 0)
      submit_together(same);
  all_.clear(), order_.clear(), ranges_.clear();
}

void multiply_each(std::span<const Tensor> tensors, const Tensor& factor) {
  const NoGrad guard;
  UpdateBatch batch;
  for (const Tensor& t : tensors) {
    const DType type = t.dtype();
    // (mul_ itself knows about promotion, broadcasting and tangents.)
    if (type == factor.dtype() && is_floating(type) && factor.dim() == 0 && !autograd::tangents_carried && batch.takes(t)) {
      const Tensor* const both[] = {&t, &factor};
      if (batch.add_like_others(both, 0)) continue;
      ir::Program program = ir::ProgramBuilder::single(ir::op::mul, {type, type}, type, type);
      program.inputs[1].scalar = true;
      if (batch.add(program, {}, both, 1, 0)) continue;
    }
    batch.finish();
    t.mul_(factor.to(t.device()));
  }
  batch.finish();
}

}  // namespace naru::ops
