// Limits of floating-point types, as in torch.finfo.
#pragma once

#include <cmath>

#include "naru/dtype.h"

namespace naru::nn {

// torch.finfo's eps and tiny: the distance from 1 to the next number, and the smallest normal number.
inline double epsilon_of(DType t) { return std::ldexp(1.0, 1 - traits_of(traits_of(t).real).digits); }
inline double smallest_normal(DType t) { return 2 / std::exp2(std::ilogb(traits_of(traits_of(t).real).greatest)); }

}  // namespace naru::nn
