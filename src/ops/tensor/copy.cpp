// Copies: clone, contiguous, copy_, to: within a device, between types, and between devices.
#include <algorithm>

#include "autograd/history/history.h"
#include "naru/ops.h"
#include "ops/call/wrapped.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/elementwise.h"
#include "ops/shape/strides.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"
#include "ops/tensor/numbers.h"
#include "runtime/device/peer.h"
#include "runtime/memory/memory.h"
#include "runtime/queue/streams.h"
#include "runtime/queue/sync.h"

namespace naru {
namespace {

using Grads = std::vector<Tensor>&;

// target = source on one device, converted and broadcast. Not recorded.
void copy_elements(const Tensor& target, const Tensor& source) {
  const ops::OpOperand operand{&source, {}, target.dtype()};
  ops::apply_into(ir::op::copy, {&operand, 1}, target);
}

// Returns t, or a contiguous copy of it without history.
Tensor dense(const Tensor& t) {
  if (t.is_contiguous()) return t;
  Tensor out = ops::make_result(t.sizes(), t.dtype(), t.device(), "contiguous");
  copy_elements(out, t);
  return out;
}

Tensor page_locked(const Dims& sizes, const Dims& strides, DType dtype) {
  Tensor t(new TensorImpl(runtime::make_pinned_storage(static_cast<size_t>(product(sizes)) * size_of(dtype)), dtype));
  t.impl()->set_geometry(sizes, strides, 0);
  return t;
}

// A 1-d view of a dense tensor's elements, in memory order.
Tensor in_memory_order(const Tensor& t) { return ops::make_view(t, {t.numel()}, {1}, t.storage_offset(), "copy_"); }

// Copies between two devices. Both tensors are dense, with equal dtypes, sizes and strides.
void transfer(const Tensor& target, const Tensor& source, bool non_blocking) {
  if (source.numel() == 0) return;
  const TensorImpl &t = *target.impl(), &s = *source.impl();
  const Device to = t.storage->device, from = s.storage->device;
  if (!to.is_cpu() && !from.is_cpu() && !runtime::peer_works(from, to)) {
    const Tensor host = page_locked(source.sizes(), source.strides(), source.dtype());
    transfer(host, source, true);
    return transfer(target, host, true);
  }
  const Dims flat{t.numel};
  const ir::View out = ops::view_of(in_memory_order(target), flat), in = ops::view_of(in_memory_order(source), flat);
  ir::CopyBytes copy{out.data, in.data, static_cast<size_t>(t.numel) * size_of(t.dtype), to, from};
  // The device's queue performs copies to and from the host, not the host's.
  runtime::Queue& queue = runtime::queue_of(to.is_cpu() ? from : to);
  // As in CUDA, a copy that involves pageable host memory has finished when the call returns; for a copy to a device it is enough that the source has
  // been read.
  const bool host_pinned = (to.is_cpu() ? t.storage : s.storage)->pinned;
  const bool read = from.is_cpu() && !queue.recording() && queue.stream().reads_at_once(copy);
  const bool waits = (to.is_cpu() || from.is_cpu()) && !(non_blocking && host_pinned) && !read;
  if (waits) runtime::note_synchronization("copy", queue.device());
  const runtime::Accesses accesses{{s.storage.get()}, {t.storage.get()}};
  if (waits && queue.capabilities().unified_memory) {
    const Device host(DeviceType::Cpu, 0);
    runtime::Queue& here = runtime::queue_of(host, 0);
    // The host does the copy. To read device memory it first waits for the device, which also reports the device's errors.
    if (to.is_cpu()) queue.synchronize();
    here.submit(ir::CopyBytes{copy.target, copy.source, copy.bytes, host, host}, accesses);
    return;
  }
  const uint64_t seq = queue.submit(copy, accesses);
  if (read) s.storage->pending_uses.reached({&queue.stream(), seq});
  if (!waits) return;
  queue.stream().synchronize(seq);
  (to.is_cpu() ? t : s).storage->pending_uses.reached({&queue.stream(), seq});
}

// Returns a copy of dtype `type` on the source's device, without history.
Tensor converted_here(const Tensor& source, DType type) {
  Tensor out = ops::make_result(source.sizes(), ops::strides_like(source.sizes(), source.strides(), MemoryFormat::Preserve), type,
                                source.device(), "to", true);
  copy_elements(out, source);
  return out;
}

void copy_into(const Tensor& target, const Tensor& source, bool non_blocking) {
  if (is_complex(source.dtype()) && !is_complex(target.dtype()) && target.dtype() != DType::Bool) [[unlikely]]
    warn("Casting complex values to real discards the imaginary part");
  const Device to = target.impl()->storage->device, from = source.impl()->storage->device;
  if (to == from) {
    if (target.numel() > 0) copy_elements(target, source);
    return;
  }
  if (from.is_meta()) throw NotImplementedError("Cannot copy out of meta tensor; no data!");
  if (target.numel() == 0 || to.is_meta()) return;
  // Transfer the narrower dtype: convert on the source's device if that makes fewer bytes, else on the target's.
  Tensor sent = source;
  if (size_of(target.dtype()) < size_of(source.dtype())) sent = converted_here(source, target.dtype());
  // Dense tensors with the same memory order need no contiguous copy.
  const bool alike = target.strides() == sent.strides() && target.sizes() == sent.sizes() && ops::is_dense(sent.sizes(), sent.strides());
  if (!alike) sent = dense(sent.detach());
  const bool direct = target.dtype() == sent.dtype() && (alike || (target.is_contiguous() && target.sizes() == sent.sizes()));
  Tensor landing = direct ? target : ops::make_result(sent.sizes(), sent.strides(), sent.dtype(), to, "copy_");
  transfer(landing, sent, non_blocking);
  if (!direct) copy_elements(target, landing);
}

Tensor converted(const Tensor& t, Device device, DType dtype, bool non_blocking, const char* name, MemoryFormat format) {
  const bool plain = t.is_contiguous() && format == MemoryFormat::Preserve;
  Tensor out = ops::make_result(t.sizes(), plain ? t.strides() : ops::strides_like(t.sizes(), t.strides(), format), dtype, device, name,
                                device == t.device());
  out.impl()->origin.where = current_line();
  out.impl()->storage->origin = out.impl()->origin;
  copy_into(out, t, non_blocking);
  return out;
}

// Records the copy of `source` (undefined: of a scalar) in the history of `target`.
void record_copy(const Tensor& target, const Tensor& source) {
  const bool from = source.defined() && autograd::requires_grad(source);
  // The gradient of target's former value is zero. A view needs no edge: CopySlices zeroes the view's part of the base's gradient.
  const bool zero = !target.impl()->base && autograd::requires_grad(target);
  auto backward = [from, zero, shape = from ? source.sizes() : Dims(), type = from ? source.dtype() : target.dtype(),
                   where = from ? source.device() : target.device()](Grads g, Grads, autograd::Needed needed) {
    std::vector<Tensor> r(2);
    if (zero && needed[0] && g[0].defined()) r[0] = zeros_like(g[0]);
    if (needed[1] && g[0].defined()) r[1] = ops::gradient_as(ops::sum_to(g[0], shape), type).to(where);
    return r;
  };
  auto f = autograd::WithJvp(backward, [](Grads t, Grads) { return t[1]; });
  auto node = make_ref<autograd::FunctionNode<decltype(f)>>("CopyBackwards", f);
  node->next().push_back(zero ? autograd::gradient_edge(target) : autograd::Edge{});
  node->next().push_back(from ? autograd::gradient_edge(source) : autograd::Edge{});
  autograd::rebase_history(target, Ref<autograd::Node>(node));
}

Device full_device(Device d) { return d.is_cpu() ? Device(DeviceType::Cpu) : runtime::resolve(d); }

}  // namespace

Tensor Tensor::to(std::optional<Device> device, std::optional<DType> type, bool non_blocking, bool copy, MemoryFormat format,
                  SourceLocation where) const {
  ops::require_defined(*this, "to", "input");
  const Device to = device ? full_device(*device) : this->device();
  const DType t = type.value_or(dtype());
  const auto again = [&](const Tensor& v) { return v.to(device, type, non_blocking, copy, format, where); };
  const auto sparse = [&] { return ops::sparse_to(*this, to, t, copy); };
  if (auto y = ops::wrapped(ops::kNoCasts, again, ops::Entries{*this}, ops::SparseRule{sparse})) return *std::move(y);
  if (!copy && to == this->device() && t == dtype() && (format == MemoryFormat::Preserve || is_contiguous(format))) return *this;
  const SourceLocationScope here(where);
  return autograd::record(converted(*this, to, t, non_blocking, "to", format), "ToCopyBackward0", {this}, {},
                          autograd::WithJvp(
                              [from = this->device(), old = dtype()](Grads g, Grads) {
                                return std::vector{g[0].defined() && is_inexact(old) ? ops::gradient_as(g[0], old).to(from) : Tensor()};
                              },
                              [](Grads tangents, Grads) { return tangents[0]; }));
}
Tensor Tensor::to(Device device, bool non_blocking, bool copy, SourceLocation where) const {
  return detail::with_location(where, [&] { return to(device, {}, non_blocking, copy, MemoryFormat::Preserve, where); });
}
Tensor Tensor::to(DType dtype, bool non_blocking, bool copy, SourceLocation where) const {
  return detail::with_location(where, [&] { return to({}, dtype, non_blocking, copy, MemoryFormat::Preserve, where); });
}

Tensor Tensor::clone(MemoryFormat format) const {
  ops::require_defined(*this, "clone", "input");
  if (auto y = ops::wrapped(ops::kNoCasts, &Tensor::clone, ops::Entries{*this}, format,
                            ops::SparseRule{[this] { return ops::sparse_clone(*this); }}))
    return *std::move(y);
  Tensor out = ops::make_result(sizes(), ops::strides_like(sizes(), strides(), format), dtype(), device(), "clone", true);
  copy_elements(out, *this);
  return autograd::record(out, "CloneBackward0", {this}, {},
                          autograd::WithJvp([](Grads g, Grads) { return std::vector{g[0]}; }, [](Grads t, Grads) { return t[0]; }));
}

Tensor Tensor::contiguous(MemoryFormat format) const {
  if (is_contiguous(format)) return *this;
  if (ops::has_sparse_form(*this)) ops::throw_no_sparse("contiguous", *this);
  if (format == MemoryFormat::Preserve) throw RuntimeError("preserve memory format is unsupported by the contiguous operator");
  return clone(format);
}

bool Tensor::is_contiguous(MemoryFormat format) const {
  if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve) return is_contiguous();
  const size_t rank = format == MemoryFormat::ChannelsLast ? 4 : 5;
  if (sizes().size() != rank) return false;
  const Dims wanted = ops::format_strides(sizes(), format);
  for (size_t d = 0; d < rank; ++d)
    if (sizes()[d] != 1 && strides()[d] != wanted[d] && numel() > 0) return false;
  return true;
}

const Tensor& Tensor::copy_(const Tensor& source, bool non_blocking) const {
  ops::require_defined(*this, "copy_", "input");
  ops::require_defined(source, "copy_", "source");
  if (ops::have_parts(*this, source)) [[unlikely]] {
    ops::are_batched(*this, source) ? ops::batched_copy_(*this, source) : ops::sparse_copy_(*this, source);
    return *this;
  }
  if (!(broadcast_shapes(sizes(), source.sizes()) == sizes()))
    throw RuntimeError("output with shape {} doesn't match the broadcast shape {} (copy_)", sizes().str(),
                       broadcast_shapes(sizes(), source.sizes()).str());
  ops::require_distinct_elements(*this, "copy_");
  const bool history = autograd::recording({&source}) || autograd::recording_write(*this);
  if (history) autograd::check_in_place(*this, "copy_");
  autograd::before_write(*this);
  copy_into(*this, source.sizes() == sizes() ? source : source.detach().expand(sizes()), non_blocking);
  ops::bump_version(*this);
  impl_->origin.op = "copy_";
  if (history) record_copy(*this, source);
  return *this;
}

Tensor Tensor::pin_memory() const {
  ops::refuse_parts(*this, "_pin_memory");
  if (!device().is_cpu()) throw RuntimeError("cannot pin '{}' tensor: only dense CPU tensors can be pinned", device().str());
  if (is_pinned()) return *this;
  const Tensor out = page_locked(sizes(), ops::strides_like(sizes(), strides(), MemoryFormat::Preserve), dtype());
  copy_elements(out, *this);
  return out;
}

bool Tensor::is_pinned() const {
  ops::require_defined(*this, "is_pinned", "input");
  return impl_->storage->pinned;
}

namespace {
// Fills all elements of a view. Memory that several elements share is written once: two threads must not write to one address, not even the same
// value.
void fill_elements(const Tensor& t, const ops::OpOperand& value) {
  const TensorImpl& i = *t.impl();
  if (t.is_contiguous() || !may_overlap(i.sizes, i.strides)) return ops::apply_into(ir::op::copy, {&value, 1}, t);
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (size_t d = 0; d < i.sizes.size(); ++d)
    if (i.strides[d] != 0 || i.sizes[d] == 0) dims.emplace_back(i.strides[d], i.sizes[d]);
  std::sort(dims.begin(), dims.end());
  Dims sizes, strides;
  for (const auto& [stride, size] : dims) {
    const int64_t steps = strides.empty() || strides.back() == 0 || stride % strides.back() != 0 ? 0 : stride / strides.back();
    if (steps > 0 && steps <= sizes.back() && size > 0) {
      sizes.back() += (size - 1) * steps;  // overlapping windows over a dimension cover that dimension
    } else {
      sizes.push_back(size), strides.push_back(stride);
    }
  }
  if (!may_overlap(sizes, strides)) return fill_elements(ops::make_view(t, sizes, strides, i.offset, "fill_"), value);
  const auto least = static_cast<size_t>(std::min_element(sizes.begin(), sizes.end()) - sizes.begin());
  const int64_t count = sizes[least], step = strides[least];
  sizes.erase(least), strides.erase(least);
  for (int64_t k = 0; k < count; ++k) fill_elements(ops::make_view(t, sizes, strides, i.offset + k * step, "fill_"), value);
}
}  // namespace

const Tensor& Tensor::fill_(const Operand& value) const {
  ops::require_defined(*this, "fill_", "input");
  if (ops::have_parts(*this)) [[unlikely]] {
    is_batched(*this) ? ops::batched_fill_(*this, value) : ops::sparse_fill_(*this, value);
    return *this;
  }
  if (value.is_tensor()) ops::require_defined(value.tensor(), "fill_", "value");
  const Tensor source = value.is_tensor() ? value.tensor() : Tensor();
  if (source.defined() && source.dim() != 0)
    throw RuntimeError("fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.", source.dim());
  const bool history = autograd::recording({&source}) || autograd::recording_write(*this);
  if (history) autograd::check_in_place(*this, "fill_");
  const ops::OpOperand operand =
      source.defined() ? ops::OpOperand{&source, {}, dtype()} : ops::OpOperand{nullptr, ops::converted(value.scalar(), dtype()), dtype()};
  autograd::before_write(*this);
  fill_elements(*this, operand);
  ops::bump_version(*this);
  impl_->origin.op = "fill_";
  if (history) record_copy(*this, source);
  return *this;
}

const Tensor& Tensor::zero_() const {
  if (!ops::has_sparse_form(*this)) return fill_(0);
  ops::sparse_zero_(*this);
  return *this;
}

}  // namespace naru
