// Rejects operators on the meta device whose result depends on element values, with PyTorch's text.
#pragma once

#include "naru/error.h"
#include "naru/tensor.h"

namespace naru::ops {

// NotImplementedError for a meta tensor.
inline void require_elements(const Tensor& t, const char* op) {
  if (t.device().is_meta()) [[unlikely]]
    throw NotImplementedError(
        "aten::{}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel registered. (What it gives "
        "depends on elements, and a meta tensor has none)",
        op);
}

// RuntimeError unless the slices along `dim` have elements: empty slices cannot be compared.
inline void require_unique_dim(const Tensor& t, int64_t dim) {
  if (t.numel() != 0 || t.dim() == 0) return;
  int64_t empty = 0;
  for (int64_t n : t.sizes()) empty += n == 0;
  if (empty > 1)
    throw RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be applied (shape {}, dim {})", t.sizes().str(),
                       dim);
  if (t.size(dim) != 0)
    throw RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied (shape {}, dim {})",
                       t.sizes().str(), dim);
}

}  // namespace naru::ops
