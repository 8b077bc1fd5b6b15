// Mathematics over pairs of real tensors, (real part, imaginary part): formulas of public operators. Special values are those of C99's Annex G.
#pragma once

#include <span>

#include "ir/op_ids.h"
#include "naru/tensor.h"

namespace naru::ops {

struct Pair {
  Tensor re, im;
};

// An operator of the table over complex numbers. One of the two is set.
struct PairFunction {
  Pair (*value)(std::span<const Pair>) = nullptr;
  Tensor (*real_value)(std::span<const Pair>) = nullptr;
  bool half = false;  // PyTorch has it for complex32, too
  explicit operator bool() const noexcept { return value || real_value; }
};
PairFunction pair_function(ir::OpId id) noexcept;

}  // namespace naru::ops
