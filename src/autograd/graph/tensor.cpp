// Tensor::requires_grad(), detach() and data().
#include "autograd/graph/batch.h"
#include "autograd/graph/node.h"

namespace naru {

bool Tensor::requires_grad() const { return autograd::takes_part(*this); }

Tensor Tensor::detach() const {
  if (!impl_) throw RuntimeError("detach: input is an undefined tensor; wanted a tensor");
  if (is_batched(*this)) [[unlikely]]
    return make_batched(batch_parts(*this).value.detach(), batch_parts(*this).level);
  const TensorImpl& i = *impl_;
  auto* impl = new TensorImpl(i.storage, i.dtype);
  Tensor t(impl);
  impl->sizes = i.sizes;
  impl->strides = i.strides;
  impl->offset = i.offset;
  impl->numel = i.numel;
  impl->contiguous = i.contiguous;
  impl->origin = i.origin;
  if (i.parts) impl->set_parts(i.parts, kSparse);
  return t;
}

Tensor Tensor::data() const {
  Tensor t = detach();
  t.impl()->silent_version = true;
  return t;
}

}  // namespace naru
