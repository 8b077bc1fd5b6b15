// Settings out of range.
#pragma once

#include "naru/error.h"

namespace naru::optim {

inline void require(bool good, const char* what, double got) {
  if (!good) throw ValueError("Invalid {}: {}", what, got);
}

}  // namespace naru::optim
