// DLPack import and export. The structures follow the DLPack specification, version 1.0 and earlier.
#include "naru/interop/dlpack.h"

#include <algorithm>
#include <memory>

#include "core/device_kinds.h"
#include "core/storage.h"
#include "core/tensor_impl.h"
#include "naru/ops.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"
#include "ops/tensor/from_external_memory.h"
#include "ops/tensor/lending.h"
#include "runtime/memory/foreign.h"
#include "runtime/queue/streams.h"
#include "runtime/queue/sync.h"

namespace naru {
namespace {

struct DlDevice {
  int32_t type, id;
};
constexpr int32_t kDlCpu = 1, kDlCudaHost = 3, kDlExtension = 12;

struct DlType {
  uint8_t code, bits;
  uint16_t lanes;
};
enum : uint8_t { kDlInt = 0, kDlUInt = 1, kDlFloat = 2, kDlBfloat = 4, kDlComplex = 5, kDlBool = 6 };
// In the order of the dtypes.
constexpr uint8_t kDlFloat8[] = {10, 12, 11, 13, 14};

struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major without gaps
  uint64_t byte_offset;
};
struct DlManaged {
  using Public = DLManagedTensor;
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManaged*);
};
struct DlManagedVersioned {
  using Public = DLManagedTensorVersioned;
  uint32_t major, minor;
  void* context;
  void (*deleter)(DlManagedVersioned*);
  uint64_t flags;
  DlTensor tensor;
};
constexpr uint64_t kReadOnly = 1, kCopied = 2;

DlType dl_type(DType t) {
  const auto bits = static_cast<uint8_t>(size_of(t) * 8);
  if (t == DType::Bool) return {kDlBool, 8, 1};
  if (t == DType::BF16) return {kDlBfloat, 16, 1};
  if (is_float8(t)) return {kDlFloat8[float8_number(t)], 8, 1};
  if (is_complex(t)) return {kDlComplex, bits, 1};
  if (is_floating(t)) return {kDlFloat, bits, 1};
  return {is_signed(t) ? kDlInt : kDlUInt, bits, 1};
}

DType type_of(DlType t) {
  if (t.lanes == 1)
    for (const DType d : kAllDTypes)
      if (const DlType k = dl_type(d); k.code == t.code && k.bits == t.bits) return d;
  throw BufferError(
      "from_dlpack: there is no type for code {} with {} bits and {} lanes; convert the array to bool, an integer or a floating point type "
      "first",
      t.code, t.bits, t.lanes);
}

// An exported tensor: keeps alive the tensor, and the shape and strides that the consumer reads.
template <class M>
struct Export {
  M managed{};
  Tensor tensor;
  Dims shape, strides;
  std::optional<int64_t> stream;  // the consumer's
};

Device device_of(DlDevice d) {
  if (const auto found = device_of_dlpack(d.type, d.id)) return *found;
  throw BufferError(
      "from_dlpack: no device here shares memory of device type {}, number {}; copy the array to the host first, or name a device "
      "(device='cpu') to have it copied",
      d.type, d.id);
}

// The consumer released the tensor on the host, but its device may still use the memory. Order later work on the memory after that: if the consumer
// named the default stream, the device waits for that stream; otherwise wait for the whole device.
void order_behind_borrower(Storage& s, std::optional<int64_t> stream) noexcept {
  constexpr int64_t kDefault = 1;
  try {
    runtime::ForeignStreams* const others = runtime::foreign_streams(s.device.type);
    if (!others || stream != kDefault) return runtime::backend_of(s.device.type).wait_for_others(s.device);
    const auto before = s.pending_uses.points();
    const StreamPoint point = others->behind(s.device, kDefault, {before.data(), before.size()});
    if (point.stream) s.pending_uses.set_written(point);
  } catch (const std::exception&) {
    // The device is lost, or this is a forked process: the memory is not used again.
  }
}

// Consumers may call it from any thread.
template <class M>
void end_export(M* m) {
  auto* e = static_cast<Export<M>*>(m->context);
  Storage& s = *e->tensor.impl()->storage;
  if (!s.device.is_cpu()) order_behind_borrower(s, e->stream);
  --s.externally_aliased;
  delete e;
}

template <class M>
typename M::Public* lend(const Tensor& t, bool copy, std::optional<int64_t> stream) {
  ops::require_defined(t, "to_dlpack", "input");
  if (t.requires_grad()) throw BufferError("Can't export tensors that require gradient, use tensor.detach()");
  const auto [kind, number] = dlpack_device(t);
  if (kind == kDlExtension)
    throw BufferError("__dlpack__: the memory of {} has no address that other libraries can use; use tensor.cpu() first", t.device().str());
  auto e = std::make_unique<Export<M>>();
  e->stream = stream;
  e->tensor = (copy ? t.clone() : t).detach();
  const Tensor& source = e->tensor;
  e->shape = source.sizes(), e->strides = source.strides();
  // Strides of dimensions of size 1 are arbitrary; some consumers expect those of a row-major array.
  if (source.is_contiguous()) e->strides = contiguous_strides(source.sizes());
  M& m = e->managed;
  m.tensor = {source.data_ptr(),
              {kind, number},
              static_cast<int32_t>(source.dim()),
              dl_type(source.dtype()),
              e->shape.data(),
              e->strides.data(),
              0};
  if (kind != kDlCpu) runtime::synchronize(t.device());  // for any stream that the consumer may use
  m.context = e.get();
  m.deleter = end_export<M>;
  if constexpr (std::is_same_v<M, DlManagedVersioned>) m.major = 1, m.minor = 0, m.flags = copy ? kCopied : 0;
  ++source.impl()->storage->externally_aliased;
  source.impl()->storage->resizable = false;
  return reinterpret_cast<typename M::Public*>(&e.release()->managed);
}

template <class M>
Tensor take(typename M::Public* lent, std::function<void()> release) {
  auto* const m = reinterpret_cast<M*>(lent);
  if (!m) throw BufferError("from_dlpack: wanted a managed tensor, got null");
  if constexpr (std::is_same_v<M, DlManagedVersioned>) {
    if (m->major != 1) throw BufferError("from_dlpack: wanted DLPack of version 1, got version {}", m->major);
    if (m->flags & kReadOnly)
      warn("from_dlpack: the array is not writable, and tensors always are. Writing to this tensor is undefined; copy the array first");
  }
  const DlTensor& d = m->tensor;
  const Device device = device_of(d.device);
  const DType type = type_of(d.dtype);
  const auto rank = static_cast<size_t>(std::max(d.ndim, 0));
  const Dims sizes(std::span<const int64_t>(d.shape, rank));
  if (std::any_of(sizes.begin(), sizes.end(), [](int64_t n) { return n < 0; }))
    throw BufferError("from_dlpack: the array has a negative size");
  Dims strides = contiguous_strides(sizes);
  for (size_t i = 0; d.strides && i < rank; ++i) {
    if (d.strides[i] < 0 && sizes[i] > 1)
      throw BufferError("from_dlpack: tensors with negative strides are not supported; copy the array first");
    strides[i] = std::max<int64_t>(d.strides[i], 0);
  }
  if (!release) release = [lent] { end_dlpack(lent); };
  if (!device.is_cpu()) runtime::backend_of(device.type).wait_for_others(device);
  return ops::from_external_memory(device, static_cast<char*>(d.data) + d.byte_offset, sizes, strides, type, std::move(release));
}

template <class M>
void end(typename M::Public* lent) {
  auto* const m = reinterpret_cast<M*>(lent);
  if (m && m->deleter) m->deleter(m);
}

}  // namespace

std::optional<Device> device_of_dlpack(int32_t kind, int32_t number) {
  if (kind == kDlCpu || kind == kDlCudaHost) return Device(DeviceType::Cpu, 0);
  for (const DeviceKind& k : accelerator_kinds())
    for (int i = 0; i < runtime::device_count(k.type); ++i)
      if (const Device found(k.type, i); runtime::backend_of(k.type).shared_name(found) == runtime::SharedName{kind, number}) return found;
  return std::nullopt;
}
std::pair<int32_t, int32_t> dlpack_device(const Tensor& t) {
  if (t.device().is_cpu()) return {kDlCpu, 0};
  const auto name = t.device().is_meta() ? std::nullopt : runtime::backend_of(t.device().type).shared_name(t.device());
  return name ? std::pair(name->kind, name->number) : std::pair(kDlExtension, static_cast<int32_t>(t.device().index));
}
void end_dlpack(DLManagedTensorVersioned* m) { end<DlManagedVersioned>(m); }
void end_dlpack(DLManagedTensor* m) { end<DlManaged>(m); }
DLManagedTensorVersioned* to_dlpack(const Tensor& t, bool copy) { return lend<DlManagedVersioned>(t, copy, {}); }
DLManagedTensor* to_dlpack_unversioned(const Tensor& t, bool copy) { return lend<DlManaged>(t, copy, {}); }
Tensor from_dlpack(DLManagedTensorVersioned* m, std::function<void()> release) { return take<DlManagedVersioned>(m, std::move(release)); }
Tensor from_dlpack(DLManagedTensor* m, std::function<void()> release) { return take<DlManaged>(m, std::move(release)); }

namespace ops {

DLManagedTensorVersioned* lend(const Tensor& t, bool copy, std::optional<int64_t> stream) {
  return naru::lend<DlManagedVersioned>(t, copy, stream);
}
DLManagedTensor* lend_unversioned(const Tensor& t, bool copy, std::optional<int64_t> stream) {
  return naru::lend<DlManaged>(t, copy, stream);
}

void* address_for_others(const Tensor& t) {
  if (t.device().is_meta()) return nullptr;
  void* const address = t.data_ptr();
  Storage& s = *t.impl()->storage;
  if (s.device.is_cpu()) {
    ++s.externally_aliased;  // permanently: the caller may keep the address
    return address;
  }
  runtime::note_address_given(s.device);
  for (const StreamPoint m : s.pending_uses.points()) {
    if (m.stream->completed() < m.seq) runtime::note_synchronization("data_ptr", s.device);
    m.stream->synchronize(m.seq);
    s.pending_uses.reached(m);
  }
  return address;
}

Tensor seen_by_host(const Tensor& t) {
  require_defined(t, "seen_by_host", "input");
  if (t.device().is_cpu() || t.device().is_meta() || has_sparse_form(t) || !runtime::queue_of(t.device()).capabilities().unified_memory)
    return {};
  void* const address = t.data_ptr();
  runtime::synchronize(t.device());
  const Tensor kept = t.detach();
  Storage& s = *kept.impl()->storage;
  ++s.externally_aliased;
  s.resizable = false;
  return from_external_memory(Device(DeviceType::Cpu, 0), address, t.sizes(), t.strides(), t.dtype(),
                              [kept] { --kept.impl()->storage->externally_aliased; });
}

}  // namespace ops

}  // namespace naru
