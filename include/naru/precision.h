// Precision: how exactly products (and convolutions) are computed. The settings hold for the process; an operator reads them once, where it is
// called, and the value goes with its instruction.
#pragma once

#include "naru/dtype.h"

namespace naru {

struct Precision {
  bool tf32 = false;                 // float32 factors may be rounded to TF32, where the device has units for it
  bool reduced_accumulation = true;  // a library may add parts of sums up in the factors' own 16-bit type
  bool deterministic = false;        // naru's own kernel: one chain of fma in the order of k for each element
  bool operator==(const Precision&) const = default;
};
// What the settings say for factors of a type.
Precision precision_of(DType factors) noexcept;

void use_deterministic_algorithms(bool on) noexcept;
bool deterministic_algorithms() noexcept;
// Whether devices with units for it may round float32 factors to TF32 (10 bits of mantissa) before they multiply: several times as fast. At first not.
void allow_tf32(bool on) noexcept;
bool tf32_allowed() noexcept;
// Whether a device's library may add parts of a product's sums up in float16 (bfloat16), where its factors are of that type. At first it may.
void allow_reduced_precision_reduction(DType half, bool on) noexcept;
bool reduced_precision_reduction_allowed(DType half) noexcept;

}  // namespace naru
