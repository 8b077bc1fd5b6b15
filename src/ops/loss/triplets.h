// Argument checks of the triplet losses.
#pragma once

#include "naru/tensor.h"

namespace naru::ops {

// ValueError unless margin > 0; RuntimeError if the ranks differ.
void check_triplet(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin);

}  // namespace naru::ops
