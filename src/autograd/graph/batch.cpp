#include "autograd/graph/batch.h"

namespace naru {

thread_local int64_t vmaps_entered = 0;

namespace {
// Storages without memory, by which batched tensors know their device: code that looks for elements there finds none.
Ref<Storage> empty_storage(Device device) {
  if (!device.is_cpu() || inference_enabled) return make_ref<Storage>(device, 0);
  static Storage& cpu = *make_ref<Storage>(device, 0).leak();
  return Ref<Storage>::share(&cpu);
}
}  // namespace

Tensor make_batched(const Tensor& value, int64_t level) {
  const TensorImpl& v = *value.impl();
  auto* impl = new TensorImpl(empty_storage(v.storage->device), v.dtype);
  Tensor t(impl);
  impl->origin = v.origin;
  impl->set_parts(make_ref<BatchParts>(value, level), kBatched);
  set_batched(t, value);
  return t;
}

void set_batched(const Tensor& t, const Tensor& value) {
  const TensorImpl& v = *value.impl();
  TensorImpl& impl = *t.impl();
  auto& parts = static_cast<BatchParts&>(*impl.parts);
  if (!parts.value.is(value)) parts.value = value;
  if (impl.storage->device != v.storage->device) impl.storage = empty_storage(v.storage->device);
  impl.set_dtype(v.dtype);
  impl.set_geometry(Dims(std::span<const int64_t>(v.sizes).subspan(1)), Dims(std::span<const int64_t>(v.strides).subspan(1)), v.offset);
  if (value.requires_grad() || impl.autograd) autograd::ensure_meta(t).requires_grad = value.requires_grad();
}

}  // namespace naru
