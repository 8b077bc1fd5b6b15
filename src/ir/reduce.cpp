#include "ir/reduce.h"

#include <limits>

namespace naru::ir {
namespace {

// The greater or lesser of both; if either is NaN, NaN. a wins ties: the first of equal values stays.
V extreme(bool greatest, V a, V b) {
  if (a.type() == VType::Bool) return greatest ? a | b : a & b;
  const V taken = greatest ? prim_max(b, a) : prim_min(b, a);  // a where equal or NaN
  return is_float(a.type()) ? where(isnan(b), b, taken) : taken;
}

template <class T>
uint64_t limit(bool greatest) noexcept {
  using L = std::numeric_limits<T>;
  if constexpr (L::has_infinity) {
    const T value = greatest ? -L::infinity() : L::infinity();
    if constexpr (sizeof(T) == 4)
      return std::bit_cast<uint32_t>(value);
    else
      return std::bit_cast<uint64_t>(value);
  } else if constexpr (sizeof(T) == 4) {
    return static_cast<uint32_t>(greatest ? L::min() : L::max());
  } else {
    return static_cast<uint64_t>(greatest ? L::min() : L::max());
  }
}

}  // namespace

V combine(ReduceOp op, V a, V b) {
  switch (op) {
    case ReduceOp::Sum:
      return a + b;
    case ReduceOp::Prod:
      return a * b;
    case ReduceOp::Max:
      return extreme(true, a, b);
    case ReduceOp::Min:
      return extreme(false, a, b);
    case ReduceOp::Any:
      return a | b;
    case ReduceOp::All:
      return a & b;
  }
  return a;
}

uint64_t identity_bits(ReduceOp op, VType type) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Any:
      return 0;
    case ReduceOp::All:
      return 1;
    case ReduceOp::Prod:
      switch (type) {
        case VType::F32:
          return std::bit_cast<uint32_t>(1.0f);
        case VType::F64:
          return std::bit_cast<uint64_t>(1.0);
        default:
          return 1;
      }
    case ReduceOp::Max:
    case ReduceOp::Min:
      break;
  }
  const bool greatest = op == ReduceOp::Max;
  switch (type) {
    case VType::Bool:
      return greatest ? 0 : 1;
    case VType::I32:
      return limit<int32_t>(greatest);
    case VType::I64:
      return limit<int64_t>(greatest);
    case VType::F32:
      return limit<float>(greatest);
    case VType::F64:
      return limit<double>(greatest);
  }
  return 0;
}

}  // namespace naru::ir
