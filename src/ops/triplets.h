// What the losses of triplets ask of their arguments.
#pragma once

#include "naru/tensor.h"

namespace naru::ops {

// ValueError for a margin of 0 or less, RuntimeError for ranks that differ.
void check_triplet(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin);

}  // namespace naru::ops
