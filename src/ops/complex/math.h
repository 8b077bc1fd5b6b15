// Complex mathematics over pairs of real tensors (real part, imaginary part), by public operators. Special values follow C99 Annex G.
#pragma once

#include <span>

#include "ir/op_ids.h"
#include "naru/tensor.h"

namespace naru::ops {

struct Pair {
  Tensor re, im;
};

// The complex version of an elementwise operator. Exactly one of the two pointers is set; both are null if there is none.
struct PairFunction {
  Pair (*value)(std::span<const Pair>) = nullptr;
  Tensor (*real_value)(std::span<const Pair>) = nullptr;
  bool half = false;  // PyTorch supports complex32, too
  explicit operator bool() const noexcept { return value || real_value; }
};
PairFunction pair_function(ir::OpId id) noexcept;

}  // namespace naru::ops
