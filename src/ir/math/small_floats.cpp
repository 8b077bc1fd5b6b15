#include "ir/math/small_floats.h"

#include <bit>
#include <cmath>

namespace naru::ir {
namespace {

// float32: mantissa bits, bias, and the bits of infinity.
constexpr int kMantissa = 23, kBias = 127, kInfinity = 0x7f800000;

V as_float(V bits) { return bitcast(bits, VType::F32); }
V quiet_nan(V like) { return like.lit_bits(0x7fc00000); }

// Powers of two without a sign: the code is float32's exponent.
V decoded_power(V code) {
  // 2^-127 is subnormal in float32.
  const V bits = where(code == 0.0, code.lit_bits(0x00400000), shl(code, kMantissa));
  return as_float(where(code == 255.0, quiet_nan(bits), bits));
}
V encoded_power(V x) {
  const V bits = bitcast(x, VType::I32), half = bits.lit_bits(1u << (kMantissa - 1));
  const V exponent = shr_unsigned(bits, kMantissa) & bits.lit_bits(0xff);
  const V beyond = (bits & half) != 0.0, more = (bits & bits.lit_bits((1u << (kMantissa - 1)) - 1)) != 0.0;
  const V up = where(beyond & (more | (exponent > 0.0)), 1.0, exponent.lit(0));
  return where(exponent == 255.0, exponent, exponent + up);
}

}  // namespace

V decoded(const FloatFormat& f, V code) {
  if (!f.has_sign_and_zero) return decoded_power(code);
  const int wider = kMantissa - f.mantissa_bits;
  const V sign = shl(code & code.lit_bits(0x80), 24), magnitude = code & code.lit_bits(0x7f);
  const V normal = shl(magnitude, wider) + static_cast<double>((kBias - f.bias) << kMantissa);
  const V subnormal = bitcast(convert(magnitude, DType::F32) * std::exp2(1 - f.bias - f.mantissa_bits), VType::I32);
  V bits = where(magnitude < static_cast<double>(1 << f.mantissa_bits), subnormal, normal);
  const double greatest = f.greatest_code();
  if (f.has_infinity) bits = where(magnitude == greatest + 1, code.lit_bits(kInfinity), bits);
  if (f.has_infinity || f.has_negative_zero) bits = where(magnitude > greatest + (f.has_infinity ? 1 : 0), quiet_nan(bits), bits);
  bits = bits | sign;
  return as_float(f.has_negative_zero ? bits : where(code == 128.0, quiet_nan(bits), bits));
}

V encoded(const FloatFormat& f, V x) {
  if (!f.has_sign_and_zero) return encoded_power(x);
  const int narrower = kMantissa - f.mantissa_bits;
  const V bits = bitcast(x, VType::I32), sign = shr_unsigned(bits, 24) & bits.lit_bits(0x80);
  const V magnitude = bits & bits.lit_bits(0x7fffffff);
  // Normal numbers: round the bits to nearest even, then change the bias of the exponent.
  const V odd = shr_unsigned(magnitude, narrower) & bits.lit_bits(1);
  const V rounded = shr_unsigned(magnitude + static_cast<double>((1 << (narrower - 1)) - 1) + odd, narrower);
  const V normal = rounded - static_cast<double>((kBias - f.bias) << f.mantissa_bits);
  // Subnormal numbers are multiples of one step: adding a number whose last bit is worth that step rounds to one.
  const auto shift = static_cast<float>(std::exp2(1 - f.bias - f.mantissa_bits + kMantissa));
  const V subnormal =
      bitcast(as_float(magnitude) + static_cast<double>(shift), VType::I32) - static_cast<double>(std::bit_cast<int32_t>(shift));
  const auto least_normal = static_cast<double>((kBias - f.bias + 1) << kMantissa);
  V code = where(magnitude < least_normal, subnormal, normal);
  const int greatest = f.greatest_code();
  // Greater numbers become the code behind the greatest: infinity, or the NaN of formats without -0. e4m3fn saturates, as in PyTorch.
  const bool saturates = !f.has_infinity && f.has_negative_zero;
  const double beyond = saturates ? greatest : greatest + 1;
  code = where((code > static_cast<double>(greatest)) | (magnitude >= static_cast<double>(kInfinity)), beyond, code);
  if (f.has_negative_zero) return sign | where(magnitude > static_cast<double>(kInfinity), code.lit_bits(0x7f), code);
  // Without -0: its code is the NaN.
  return where((code > static_cast<double>(greatest)), code.lit_bits(0x80), where(code == 0.0, code, sign | code));
}

}  // namespace naru::ir
