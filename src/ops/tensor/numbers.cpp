#include "ops/tensor/numbers.h"

#include <fmt/format.h>
#include <complex>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/math/small_floats.h"
#include "naru/error.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/half.h"
#include "ops/tensor/type_names.h"

namespace naru::ops {
namespace {

// The least and the greatest value of a dtype.
struct Range {
  double low, high;
};
constexpr Range range_of(DType type) noexcept {
  const DTypeTraits& t = traits_of(type);
  if (is_floating(type)) return {-t.greatest, t.greatest};
  const double beyond = 2.0 * static_cast<double>(uint64_t{1} << (t.digits - 1));
  return {t.is_signed ? -beyond : 0, beyond - 1};
}
// Type names in the error for a scalar that does not fit.
constexpr PerDType<const char*> kNames{"bool",    "uint8_t",   "int8_t",        "int16_t", "int",
                                       "int64_t", "c10::Half", "c10::BFloat16", "float",   "double"};

[[noreturn]] void fail(Scalar number, DType type) {
  const Range r = range_of(type);
  const std::string text = number.is_float()      ? fmt::format("{}", number.to_double())
                           : number.is_unsigned() ? fmt::format("{}", number.to_bits())
                                                  : fmt::format("{}", number.to_int());
  throw RuntimeError("value cannot be converted to type {} without overflow (got {}; {} holds {} to {})",
                     in_programs(type) ? kNames[type] : ops::c_name(type), text, name_of(type), r.low, r.high);
}

// A limit outside the dtype's range that excludes nothing is clamped to the range; one that no element could satisfy is an error.
Scalar limit(Scalar number, DType type, bool lower) {
  const Range r = range_of(type);
  const double v = number.to_double();
  if (lower ? v > r.high : v < r.low)
    throw RuntimeError("Clamp {} value {} is outside the representable range of {}", lower ? "min" : "max", v, torch_name(type));
  return v < r.low ? Scalar(static_cast<int64_t>(r.low)) : v > r.high ? Scalar(static_cast<int64_t>(r.high)) : number;
}

}  // namespace

Scalar converted(Scalar number, DType type) {
  if (type == DType::Bool) return number.to_bool();
  if (is_complex(type)) return number.to<std::complex<double>>();
  if (number.is_complex()) return converted(number.to_double(), type);
  const Range r = range_of(type);
  if (is_floating(type)) {
    const bool holds_infinity = !is_float8(type) || ir::kFloatFormats[float8_number(type)].has_infinity;
    if (const double v = number.to_double(); (std::isfinite(v) || !holds_infinity) && (v < r.low || v > r.high)) fail(number, type);
    return number;
  }
  if (number.is_float()) {
    const double v = number.to_double();
    if (!(v >= r.low && v <= r.high) || v >= (type == kUInt64 ? 0x1p64 : 0x1p63)) fail(number, type);
    return type == kUInt64 ? Scalar::of_unsigned(static_cast<uint64_t>(v)) : Scalar(static_cast<int64_t>(v));
  }
  if (type == kUInt64) return Scalar::of_unsigned(number.to_bits());
  if (number.is_unsigned()) fail(number, type);
  const int64_t v = number.to_int();
  if (type == DType::I64) return v;
  const auto high = static_cast<int64_t>(r.high), low = is_signed(type) ? static_cast<int64_t>(r.low) : -high;
  if (v < low || v > high) fail(number, type);
  return is_signed(type) ? v : v & high;
}

Scalar rounded(Scalar number, DType type) {
  if (is_complex(type) || number.is_complex()) return converted(number, type);
  const Range r = range_of(type);
  if (is_float8(type)) return number;  // the conversion says what becomes of numbers beyond the range
  const double v = number.to_double();
  if (!is_floating(type) || !std::isfinite(v) || (v >= r.low && v <= r.high)) return is_floating(type) ? number : converted(number, type);
  return v < 0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

Scalar as_half(Scalar number, DType type) {
  if (!is_half(type) || number.is_complex()) return number;
  const auto v = static_cast<float>(number.to_double());
  const float held = type == DType::F16 ? half_to_float(float_to_half(v)) : bfloat_to_float(float_to_bfloat(v));
  return static_cast<double>(held) == number.to_double() ? number : Scalar(static_cast<double>(held));
}

bool rounds_number(ir::OpId id, size_t operand) noexcept {
  const operators::Rounded rounded = record_of(id).rounded;
  return rounded == operators::Rounded::All || (rounded == operators::Rounded::First && operand == 0);
}

void fit_numbers(ir::OpId id, Types types, std::span<OpOperand> operands) {
  namespace r = ir::op;
  const bool choice = id == r::where;
  if (is_half(types.compute))
    for (size_t i = 0; i < operands.size(); ++i)
      if (!operands[i].tensor && rounds_number(id, i)) operands[i].scalar = as_half(operands[i].scalar, types.compute);
  if (is_complex(types.compute) || is_float8(types.compute) || (is_floating(types.compute) && !choice)) return;
  const bool writes = choice || ir::op::is_one_of(id, {r::threshold, r::pow});
  for (size_t i = 1; i < operands.size(); ++i) {
    if (operands[i].tensor) continue;
    Scalar& number = operands[i].scalar;
    if (writes || (id == r::add_scaled && i == 2))
      number = converted(number, types.compute);
    else if (ir::op::is_one_of(id, {r::clamp, r::clamp_min, r::clamp_max}) && is_integral(types.compute) && types.compute != DType::I64)
      number = limit(number, types.compute, id == r::clamp_min || (id == r::clamp && i == 1));
  }
}

void require_factor(DType result, const Scalar& factor, const char* name) {
  if (factor.is_bool() && result != DType::Bool)
    throw RuntimeError("Boolean {} only supported for Boolean results. (got {})", name, name_of(result));
  if (factor.is_complex() && !is_complex(result))
    throw RuntimeError("For non-complex input tensors, argument {0} must not be a complex number. (the result is {1})", name,
                       name_of(result));
  if (factor.is_float() && !is_inexact(result))
    throw RuntimeError("For integral input tensors, argument {} must not be a floating point number. (got {})", name, factor.to_double());
}

bool is_exact_number(ir::OpId id, const Operand& o, DType compute) {
  if (!is_half(compute) || (id != ir::op::mul && id != ir::op::div)) return false;
  const TensorImpl& t = *o.tensor().impl();
  return t.sizes.empty() && is_floating(t.dtype) && size_of(t.dtype) > 2 && t.storage->device.is_cpu() && is_host_ready(t) &&
         !recording_host();
}

}  // namespace naru::ops
