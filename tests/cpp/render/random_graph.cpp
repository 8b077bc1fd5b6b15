#include "render/random_graph.h"

namespace naru::test {
namespace {

using ir::Prim;
using ir::V;
using ir::VType;

constexpr VType kTypes[] = {VType::Bool, VType::I32, VType::I64, VType::F32, VType::F64};

class Grower {
 public:
  Grower(uint64_t seed, int64_t n, int64_t rows) : bits_(seed), n_(n), rows_(rows), common_(kTypes[1 + bits_.below(4)]) {}

  void leaves() {
    const uint64_t inputs = 1 + bits_.below(5);
    for (uint64_t i = 0; i < inputs; ++i) {
      const auto t = bits_.below(2) == 0 ? dtype_of(common_) : static_cast<DType>(bits_.below(kDTypes));
      const bool per_row = rows_ > 0 && bits_.below(3) == 0, scalar = per_row || bits_.below(5) == 0;
      made.kernel.inputs.push_back({t, scalar, per_row});
      made.inputs.push_back(mixed_elements(t, per_row ? rows_ : scalar ? 1 : n_, bits_));
      values_.push_back(ir::input(graph(), i, t));
    }
    const uint64_t params = bits_.below(3);
    for (uint64_t i = 0; i < params; ++i) {
      const VType t = kTypes[bits_.below(5)];
      made.kernel.params.push_back(t);
      made.params.push_back(mixed_param(t, bits_));
      values_.push_back(ir::param(graph(), i, t));
    }
    if (bits_.below(4) == 0) values_.push_back(ir::index(graph()));
  }

  // A value of type t: an earlier one, a conversion of one, or a constant.
  V of(VType t) {
    if (bits_.below(6) == 0) return ir::constant_bits(graph(), t, mixed_param(t, bits_));
    for (int attempt = 0; attempt < 4; ++attempt) {
      // Mostly recent values, so that graphs become deep.
      const uint64_t back = bits_.below(bits_.below(2) == 0 ? std::min<uint64_t>(4, values_.size()) : values_.size());
      const V v = values_[values_.size() - 1 - back];
      if (v.type() == t) return v;
    }
    return ir::convert(values_[bits_.below(values_.size())], dtype_of(t));
  }

  void grow() {
    const VType t = bits_.below(3) != 0 ? common_ : kTypes[bits_.below(5)];
    values_.push_back(t == VType::Bool ? boolean() : ir::is_float(t) ? floating(t) : integer(t));
  }

  Bits& bits() { return bits_; }
  ir::Graph& graph() { return made.kernel.graph; }
  RandomKernel made;

 private:
  V boolean() {
    const uint64_t kind = bits_.below(10);
    const VType t = kTypes[1 + bits_.below(4)];
    if (kind < 4) return ir::make(static_cast<Prim>(static_cast<int>(Prim::Lt) + static_cast<int>(kind)), VType::Bool, of(t), of(t));
    const V a = of(VType::Bool), b = of(VType::Bool);
    switch (kind) {
      case 4:
        return a & b;
      case 5:
        return a | b;
      case 6:
        return a ^ b;
      case 7:
        return ~a;
      case 8:
        return ir::make(bits_.below(2) == 0 ? Prim::Eq : Prim::Ne, VType::Bool, a, b);
      default:
        return ir::where(a, b, of(VType::Bool));
    }
  }

  V integer(VType t) {
    const int width = t == VType::I32 ? 32 : 64;
    const V a = of(t);
    switch (bits_.below(20)) {
      case 0:
        return a + of(t);
      case 1:
        return a - of(t);
      case 2:
        return a * of(t);
      case 3:
        return a / of(t);
      case 4:
        return ir::rem(a, of(t));
      case 5:
        return -a;
      case 6:
        return ir::abs(a);
      case 7:
        return ir::prim_min(a, of(t));
      case 8:
        return ir::prim_max(a, of(t));
      case 9:
        return a & of(t);
      case 10:
        return a | of(t);
      case 11:
        return a ^ of(t);
      case 12:
        return ~a;
      case 13:
        return ir::shl(a, static_cast<int>(bits_.below(static_cast<uint64_t>(width))));
      case 14:
        return ir::shr(a, static_cast<int>(bits_.below(static_cast<uint64_t>(width))));
      case 15:
        return ir::make(bits_.below(2) == 0 ? Prim::Shr : Prim::Shl, t, a, of(t) & ir::constant(graph(), t, width - 1));
      case 16:
        return t == VType::I32 ? ir::mul_hi_unsigned(a, of(t)) : ir::shr_unsigned(a, 13);
      case 17:
        return ir::where(of(VType::Bool), a, of(t));
      case 18:
        return ir::convert(a, static_cast<DType>(1 + bits_.below(t == VType::I32 ? 4 : 5))).type() == t ? a + a : a - of(t);
      default: {
        const V x = of(t == VType::I32 ? VType::F32 : VType::F64);
        // The bits of a NaN are unspecified.
        return ir::bitcast(ir::where(ir::isnan(x), 0.0, x), t);
      }
    }
  }

  V floating(VType t) {
    const V a = of(t);
    switch (bits_.below(20)) {
      case 0:
        return a + of(t);
      case 1:
        return a - of(t);
      case 2:
      case 3:
        return a * of(t);
      case 4:
        return a / of(t);
      case 5:
      case 6:
      case 7:
        return ir::fma(a, of(t), of(t));
      case 8:
        return -a;
      case 9:
        return ir::abs(a);
      case 10:
        return ir::sqrt(a);
      case 11:
        return ir::prim_min(a, of(t));
      case 12:
        return ir::prim_max(a, of(t));
      case 13:
        return ir::make(static_cast<Prim>(static_cast<int>(Prim::Floor) + static_cast<int>(bits_.below(4))), t, a);
      case 14: {  // within the domain of Scale
        const V base = ir::prim_min(ir::prim_max(ir::abs(a), a.lit(0x1p-60)), a.lit(0x1p60));
        return ir::scale(base, ir::round(ir::prim_min(ir::prim_max(of(t), a.lit(-2100)), a.lit(2100))));
      }
      case 15:
      case 16:
        return ir::where(of(VType::Bool), a, of(t));
      case 17:
        return bits_.below(4) == 0 ? ir::rem(a, of(t)) : a * 0.5;
      case 18:
        return ir::convert(ir::convert(a, bits_.below(2) == 0 ? DType::F16 : DType::BF16), dtype_of(t));
      default: {
        const V x = ir::bitcast(of(t == VType::F32 ? VType::I32 : VType::I64), t);
        return ir::where(ir::isnan(x), a, x);
      }
    }
  }

  Bits bits_;
  int64_t n_, rows_;
  VType common_;
  std::vector<V> values_;
};

}  // namespace

RandomKernel random_kernel(uint64_t seed, int size, int64_t n, int results, VType type, int64_t rows) {
  Grower grower(seed, n, rows);
  grower.leaves();
  for (int i = 0; i < size; ++i) grower.grow();
  for (int i = 0; i < results; ++i) {
    const auto t = static_cast<DType>(grower.bits().below(kDTypes));
    grower.made.kernel.outputs.push_back(t);
    grower.made.kernel.results.push_back(ir::convert(grower.of(ir::vtype_of(t)), t).id());
  }
  if (results == 0) grower.made.kernel.results.push_back(grower.of(type).id());
  return std::move(grower.made);
}

}  // namespace naru::test
