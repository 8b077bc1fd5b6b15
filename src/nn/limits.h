// Limits of floating-point types, as torch.finfo has them.
#pragma once

#include <cmath>

#include "naru/dtype.h"

namespace naru::nn {

// The distance from 1 to the next number, and the smallest number of full precision.
inline double epsilon_of(DType t) { return std::ldexp(1.0, 1 - traits_of(traits_of(t).real).digits); }
inline double smallest_normal(DType t) { return 2 / std::exp2(std::ilogb(traits_of(traits_of(t).real).greatest)); }

}  // namespace naru::nn
