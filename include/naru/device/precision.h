// Numerical precision of matrix products and convolutions. The settings are per process; an operator reads them once when it is called and
// stores them in its instruction.
#pragma once

#include "naru/dtype.h"

namespace naru {

struct Precision {
  bool tf32 = false;                 // float32 factors may be rounded to TF32 if the device has units for it
  bool reduced_accumulation = true;  // a library may accumulate partial sums in the factors' 16-bit type
  bool deterministic = false;        // naru's own kernel: one chain of fma in the order of k for each element
  bool operator==(const Precision&) const = default;
};
// The current settings for factors of a dtype.
Precision precision_of(DType factors) noexcept;

void use_deterministic_algorithms(bool on) noexcept;
bool deterministic_algorithms() noexcept;
// Allows devices with TF32 units to round float32 factors to TF32 (10 bits of mantissa), which is several times faster. Off by default.
void allow_tf32(bool on) noexcept;
bool tf32_allowed() noexcept;
// Allows a device's library to accumulate partial sums in float16 (bfloat16) for factors of that dtype. On by default.
void allow_reduced_precision_reduction(DType half, bool on) noexcept;
bool reduced_precision_reduction_allowed(DType half) noexcept;

}  // namespace naru
