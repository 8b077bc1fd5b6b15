// Reduction of elements from several ranks.
#pragma once

#include <cstddef>

#include "naru/distributed/group.h"
#include "naru/dtype.h"

namespace naru::distributed {

struct Reduction {
  // out[i] = a[i] op b[i]; `out` may be a or b.
  void (*fold)(char* out, const char* a, const char* b, size_t elements) = nullptr;
  // out[i] = out[i] / ranks; null except for averages.
  void (*divide)(char* out, size_t elements, int ranks) = nullptr;
};

// TypeError for a dtype that op does not support.
Reduction reduction_of(ReduceOp op, DType type);
// "SUM"
const char* name_of(ReduceOp op) noexcept;

}  // namespace naru::distributed
