// New tensors and views for operators, and their storages.
#include <algorithm>
#include <limits>

#include "autograd/graph/node.h"
#include "core/language.h"
#include "core/uninitialized.h"
#include "naru/device/precision.h"
#include "naru/ops.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"
#include "runtime/memory/memory.h"
#include "runtime/queue/fallback.h"

namespace naru {
namespace {
thread_local std::optional<Device> chosen_device;
}
Device default_device() noexcept { return chosen_device.value_or(Device(DeviceType::Cpu)); }
void set_default_device(std::optional<Device> device) { chosen_device = device; }

namespace ops {

namespace {

// Results above this size in bytes record the source location that made them. Results on devices always do: there it costs nothing compared with a
// launch.
constexpr int64_t kRemember = 16384;

size_t checked_bytes(const Dims& sizes, DType dtype, const char* op) {
  auto n = static_cast<int64_t>(size_of(dtype));
  bool overflow = false, none = false;
  for (int64_t s : sizes) {
    if (s < 0) throw RuntimeError("Trying to create tensor with negative dimension {}: {} ({})", s, sizes.str(), op);
    none |= s == 0;
    overflow |= __builtin_mul_overflow(n, s, &n);
  }
  if (overflow && !none)
    throw RuntimeError("Storage size calculation overflowed with sizes={} ({}: wanted fewer than 2^63 bytes)", sizes.str(), op);
  return none ? 0 : static_cast<size_t>(n);
}

Scalar greatest_integer(DType t) {
  const auto bits = 8 * static_cast<int>(size_of(t));
  if (t != DType::U8 && !is_wide_unsigned(t)) return std::numeric_limits<int64_t>::max() >> (64 - bits);
  const uint64_t most = std::numeric_limits<uint64_t>::max() >> (64 - bits);
  return bits == 64 ? Scalar::of_unsigned(most) : Scalar(static_cast<int64_t>(most));
}

}  // namespace

Tensor make_result(const Dims& sizes, DType dtype, Device device, const char* op, bool lazy) {
  const size_t bytes = checked_bytes(sizes, dtype, op);
  const Device d = device.is_cpu() ? Device(DeviceType::Cpu, 0) : device.has_index() ? device : runtime::resolve(device);
  if (!d.is_cpu()) runtime::require_type(d, dtype, op);
  Origin origin{op, 0};
  if (Language* const l = language(); l && (bytes > kRemember || !d.is_cpu())) origin.where = l->line(), origin.context = l->call_stack();
  Dims strides = contiguous_strides(sizes);
  auto* impl = new TensorImpl(lazy ? runtime::make_lazy_storage(d, bytes, origin) : runtime::make_result_storage(d, bytes, origin), dtype);
  Tensor t(impl);
  impl->sizes = sizes;
  impl->strides = std::move(strides);
  impl->numel = product(sizes);
  impl->origin = origin;
  return t;
}

Tensor make_result(const Dims& sizes, const Dims& strides, DType dtype, Device device, const char* op, bool lazy) {
  Tensor t = make_result(sizes, dtype, device, op, lazy);
  TensorImpl& impl = *t.impl();
  if (impl.strides == strides) return t;
  impl.strides = strides;
  impl.contiguous = is_contiguous(sizes, strides);
  return t;
}

Tensor make_view(const Tensor& base, Dims sizes, Dims strides, int64_t offset, const char* op) {
  refuse_parts(base, op);
  const TensorImpl& b = *base.impl();
  auto* impl = new TensorImpl(b.storage, b.dtype);
  Tensor t(impl);
  impl->set_geometry(std::move(sizes), std::move(strides), offset);
  impl->base = b.base ? b.base : Ref<TensorImpl>::share(base.impl());
  impl->origin = b.origin;
  impl->silent_version = b.silent_version;
  impl->view_kind = b.view_kind;
  if (!grad_enabled()) {
    impl->view_kind = ViewKind::MadeWithoutGrad;
    if (impl->base->autograd) autograd::see_history(t);
  }
  if (!impl->origin.op) impl->origin.op = op;
  return t;
}

void bump_version(const Tensor& t) {
  Storage& s = *t.impl()->storage;
  if (s.inference && !inference_enabled) [[unlikely]]
    throw RuntimeError(
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor before doing "
        "inplace update.");
  (t.impl()->silent_version ? s.silent_writes : s.version).fetch_add(1, std::memory_order_relaxed);
}

void fill_unwritten(const Tensor& t) {
  if (!deterministic_algorithms() || !fills_uninitialized_memory() || t.numel() == 0) return;
  const DType type = t.dtype();
  const NoGrad off;
  if (is_inexact(type))
    t.fill_(Operand(std::numeric_limits<double>::quiet_NaN()));
  else if (type == DType::Bool)
    t.fill_(Operand(true));
  else
    t.fill_(Operand(greatest_integer(type)));
}

void grow_storage(const Tensor& t, int64_t elements) {
  Storage& old = *t.impl()->storage;
  const auto room = static_cast<int64_t>(old.bytes / size_of(t.dtype()));
  if (elements <= room) return;
  if (!old.resizable) throw RuntimeError("Trying to resize storage that is not resizable");
  const Tensor larger = zeros({elements}, Options(t.dtype(), t.device()));
  fill_unwritten(larger.narrow(0, room, elements - room));
  if (room > 0) larger.narrow(0, 0, room).copy_(make_view(t.detach(), {room}, {1}, 0, "resize_"));
  runtime::take_memory(old, *larger.impl()->storage);
}

void replace_storage(const Tensor& t, Ref<Storage> storage) {
  Ref<Storage>& own = t.impl()->storage;
  storage->version.store(std::max(own->version.load(std::memory_order_relaxed), storage->version.load(std::memory_order_relaxed)) + 1,
                         std::memory_order_relaxed);
  own = std::move(storage);
}

}  // namespace ops
}  // namespace naru
