// Limits of floating-point types, as in torch.finfo.
#pragma once

#include <cmath>

#include "naru/dtype.h"

namespace naru::ops {

// torch.finfo's eps: the distance from 1 to the next number.
inline double epsilon_of(DType t) { return std::ldexp(1.0, 1 - traits_of(traits_of(t).real).digits); }

}  // namespace naru::ops
