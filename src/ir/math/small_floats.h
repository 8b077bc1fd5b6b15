// Conversions between float32 and the floating-point formats of one byte, as formulas: every device computes them, and fusion puts them into the
// kernels around them. A format is described by its numbers of bits; kFloatFormats has one row for each.
#pragma once

#include <array>

#include "ir/expr.h"

namespace naru::ir {

struct FloatFormat {
  DType dtype;
  int exponent_bits, mantissa_bits, bias;
  bool has_infinity;       // the greatest exponent stands for infinity and NaN, as in IEEE formats
  bool has_negative_zero;  // otherwise the code of -0 is the only NaN
  bool has_sign_and_zero = true;

  constexpr int greatest_code() const noexcept {
    const int codes = 1 << (exponent_bits + mantissa_bits);
    return has_infinity ? codes - (1 << mantissa_bits) - 1 : has_negative_zero ? codes - 2 : codes - 1;
  }
};

// In the order of the dtypes. Sources: OCP 8-bit Floating Point Specification (e4m3fn, e5m2), Noune et al. 2022 (fnuz), OCP Microscaling
// Formats (e8m0fnu: powers of two). Numbers too large for e4m3fn become 448, also infinity.
inline constexpr std::array kFloatFormats{
    FloatFormat{kFloat8E4M3FN, 4, 3, 7, false, true},           FloatFormat{kFloat8E5M2, 5, 2, 15, true, true},
    FloatFormat{kFloat8E4M3FNUZ, 4, 3, 8, false, false},        FloatFormat{kFloat8E5M2FNUZ, 5, 2, 16, false, false},
    FloatFormat{kFloat8E8M0FNU, 8, 0, 127, false, true, false},
};

// The number that a code (I32, 0 to 255) stands for, exactly: F32.
V decoded(const FloatFormat& format, V code);
// The code (I32, 0 to 255) of the number nearest to x (F32), ties to even. Formats without sign and zero: of |x|, ties up.
V encoded(const FloatFormat& format, V x);

}  // namespace naru::ir
