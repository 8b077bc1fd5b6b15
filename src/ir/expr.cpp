#include "ir/expr.h"

namespace naru::ir {
namespace {

uint64_t hash_of(const Node& n) noexcept {
  uint64_t h = static_cast<uint64_t>(n.prim) | static_cast<uint64_t>(n.type) << 8 | static_cast<uint64_t>(n.dtype) << 16;
  for (const uint64_t part : {uint64_t{n.a}, uint64_t{n.b}, uint64_t{n.c}, n.bits}) {
    h = (h ^ part) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
  }
  return h;
}

// Keeps only the low bytes that a value of this type has.
uint64_t low_bits(VType type, uint64_t bits) noexcept {
  switch (size_of(type)) {
    case 1:
      return bits & 1;
    case 4:
      return bits & 0xffffffffu;
    default:
      return bits;
  }
}

uint64_t bits_of(VType type, double value) noexcept {
  switch (type) {
    case VType::Bool:
      return value != 0;
    case VType::I32:
      return static_cast<uint32_t>(static_cast<int32_t>(value));
    case VType::I64:
      return static_cast<uint64_t>(static_cast<int64_t>(value));
    case VType::F32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case VType::F64:
      return std::bit_cast<uint64_t>(value);
  }
  return 0;
}

// True if every value of element type `from` is a value of `to`, both widened to one value type.
bool holds(DType to, DType from) noexcept {
  return to == from || to == DType::I32 || to == DType::F32 || (to == DType::I16 && (from == DType::U8 || from == DType::I8));
}

}  // namespace

uint32_t Graph::add(const Node& node) {
  if (node.prim == Prim::Convert) {
    const Node& from = nodes_[node.a];
    if (from.type == node.type) {
      const bool known = from.prim == Prim::Input || from.prim == Prim::Convert;
      // I64, F64 and Bool each correspond to one element type.
      if (node.type == VType::I64 || node.type == VType::F64 || node.type == VType::Bool) return node.a;
      if (node.dtype == DType::I32 || node.dtype == DType::F32 || (known && holds(node.dtype, from.dtype))) return node.a;
    }
    // Bool -> number -> Bool
    if (node.type == VType::Bool && from.prim == Prim::Convert && nodes_[from.a].type == VType::Bool) return from.a;
  }
  const uint64_t h = hash_of(node);
  for (auto [it, end] = by_hash_.equal_range(h); it != end; ++it)
    if (nodes_[it->second] == node) return it->second;
  const auto id = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back(node);
  by_hash_.emplace(h, id);
  return id;
}

V V::lit(double value) const { return constant(*graph_, type(), value); }
V V::lit_bits(uint64_t bits) const { return constant_bits(*graph_, type(), bits); }

V make(Prim prim, VType type, V a) { return {a.graph(), a.graph().add({.prim = prim, .type = type, .a = a.id()})}; }
V make(Prim prim, VType type, V a, V b) { return {a.graph(), a.graph().add({.prim = prim, .type = type, .a = a.id(), .b = b.id()})}; }
V make(Prim prim, VType type, V a, V b, V c) {
  return {a.graph(), a.graph().add({.prim = prim, .type = type, .a = a.id(), .b = b.id(), .c = c.id()})};
}
V input(Graph& g, uint64_t slot, DType dtype) {
  return {g, g.add({.prim = Prim::Input, .type = vtype_of(dtype), .dtype = dtype, .bits = slot})};
}
V param(Graph& g, uint64_t slot, VType type) { return {g, g.add({.prim = Prim::Param, .type = type, .bits = slot})}; }
V constant(Graph& g, VType type, double value) { return constant_bits(g, type, bits_of(type, value)); }
V constant_bits(Graph& g, VType type, uint64_t bits) {
  return {g, g.add({.prim = Prim::Const, .type = type, .bits = low_bits(type, bits)})};
}
V index(Graph& g) { return {g, g.add({.prim = Prim::Index, .type = VType::I64})}; }

V operator+(V a, V b) { return make(Prim::Add, a.type(), a, b); }
V operator-(V a, V b) { return make(Prim::Sub, a.type(), a, b); }
V operator*(V a, V b) { return make(Prim::Mul, a.type(), a, b); }
V operator/(V a, V b) { return make(Prim::Div, a.type(), a, b); }
V operator-(V a) { return make(Prim::Neg, a.type(), a); }
V operator+(V a, double b) { return a + a.lit(b); }
V operator-(V a, double b) { return a - a.lit(b); }
V operator*(V a, double b) { return a * a.lit(b); }
V operator/(V a, double b) { return a / a.lit(b); }
V operator+(double a, V b) { return b.lit(a) + b; }
V operator-(double a, V b) { return b.lit(a) - b; }
V operator*(double a, V b) { return b.lit(a) * b; }
V operator/(double a, V b) { return b.lit(a) / b; }
V operator&(V a, V b) { return make(Prim::And, a.type(), a, b); }
V operator|(V a, V b) { return make(Prim::Or, a.type(), a, b); }
V operator^(V a, V b) { return make(Prim::Xor, a.type(), a, b); }
V operator~(V a) { return make(Prim::Not, a.type(), a); }
V operator<(V a, V b) { return make(Prim::Lt, VType::Bool, a, b); }
V operator<=(V a, V b) { return make(Prim::Le, VType::Bool, a, b); }
V operator>(V a, V b) { return b < a; }
V operator>=(V a, V b) { return b <= a; }
V operator==(V a, V b) { return make(Prim::Eq, VType::Bool, a, b); }
V operator!=(V a, V b) { return make(Prim::Ne, VType::Bool, a, b); }
V operator<(V a, double b) { return a < a.lit(b); }
V operator<=(V a, double b) { return a <= a.lit(b); }
V operator>(V a, double b) { return a > a.lit(b); }
V operator>=(V a, double b) { return a >= a.lit(b); }
V operator==(V a, double b) { return a == a.lit(b); }
V operator!=(V a, double b) { return a != a.lit(b); }

V fma(V a, V b, V c) { return make(Prim::Fma, a.type(), a, b, c); }
V fma(V a, V b, double c) { return fma(a, b, a.lit(c)); }
V fma(V a, double b, V c) { return fma(a, a.lit(b), c); }
V fma(V a, double b, double c) { return fma(a, a.lit(b), a.lit(c)); }
V rem(V a, V b) { return make(Prim::Rem, a.type(), a, b); }
V abs(V a) { return make(Prim::Abs, a.type(), a); }
V sqrt(V a) { return make(Prim::Sqrt, a.type(), a); }
V prim_min(V a, V b) { return make(Prim::Min, a.type(), a, b); }
V prim_max(V a, V b) { return make(Prim::Max, a.type(), a, b); }
// Integers are already integral.
V floor(V a) { return is_float(a.type()) ? make(Prim::Floor, a.type(), a) : a; }
V ceil(V a) { return is_float(a.type()) ? make(Prim::Ceil, a.type(), a) : a; }
V trunc(V a) { return is_float(a.type()) ? make(Prim::Trunc, a.type(), a) : a; }
V round(V a) { return is_float(a.type()) ? make(Prim::Round, a.type(), a) : a; }
V scale(V a, V exponent) { return make(Prim::Scale, a.type(), a, exponent); }
V where(V condition, V a, V b) { return make(Prim::Select, a.type(), condition, a, b); }
V where_usually(V condition, V a, V b) {
  return {a.graph(), a.graph().add({.prim = Prim::Select, .type = a.type(), .a = condition.id(), .b = a.id(), .c = b.id(), .bits = 1})};
}
V where(V condition, V a, double b) { return where(condition, a, a.lit(b)); }
V where(V condition, double a, V b) { return where(condition, b.lit(a), b); }
V shl(V a, int count) { return make(Prim::Shl, a.type(), a, a.lit_bits(static_cast<uint64_t>(count))); }
V shr(V a, int count) { return make(Prim::Shr, a.type(), a, a.lit_bits(static_cast<uint64_t>(count))); }
V shr_unsigned(V a, int count) { return make(Prim::ShrU, a.type(), a, a.lit_bits(static_cast<uint64_t>(count))); }
V mul_hi_unsigned(V a, V b) { return make(Prim::MulHiU, a.type(), a, b); }
V convert(V a, DType to) { return {a.graph(), a.graph().add({.prim = Prim::Convert, .type = vtype_of(to), .dtype = to, .a = a.id()})}; }
V bitcast(V a, VType to) { return make(Prim::Bitcast, to, a); }
V isnan(V a) { return a != a; }

}  // namespace naru::ir
