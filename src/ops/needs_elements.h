// What can't be said from shapes alone is refused on the meta device, in PyTorch's words.
#pragma once

#include "naru/error.h"
#include "naru/tensor.h"

namespace naru::ops {

// Throws NotImplementedError for a tensor without elements.
inline void require_elements(const Tensor& t, const char* op) {
  if (t.device().is_meta()) [[unlikely]]
    throw NotImplementedError(
        "aten::{}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel registered. (What it gives "
        "depends on elements, and a meta tensor has none)",
        op);
}

}  // namespace naru::ops
