#include "naru/interop/interop.h"

namespace naru {

Tensor detail::blob(void* data, const Dims& sizes, const Dims* strides, Deleter deleter, const Options& o, DType type) {
  if (o.device && !o.device->is_cpu())
    throw RuntimeError("from_blob: wanted memory of the host, got options for {}; copy it there: from_blob(...).to(device)",
                       o.device->str());
  if (o.pin_memory) throw RuntimeError("from_blob: memory of others can't be pinned; pin a copy: from_blob(...).pin_memory()");
  for (const int64_t n : sizes)
    if (n < 0) throw RuntimeError("from_blob: wanted sizes of 0 or more, got {}", sizes.str());
  if (strides && strides->size() != sizes.size())
    throw RuntimeError("from_blob: sizes {} and strides {} differ in length", sizes.str(), strides->str());
  std::function<void()> release;
  if (deleter) release = [data, deleter = std::move(deleter)] { deleter(data); };
  const Tensor t = from_blob(data, sizes, strides ? *strides : contiguous_strides(sizes), type, std::move(release));
  return o.requires_grad ? t.requires_grad_() : t;
}

}  // namespace naru
