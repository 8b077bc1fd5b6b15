// Expressions over IEEE primitives: a graph of nodes that computes one element of a result.
// Every primitive is exact (correctly rounded) on every device, so the same graph gives the same bits everywhere.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "naru/dtype.h"

namespace naru::ir {

// The types of values inside an expression. Narrow element types are widened when they are loaded: bool -> Bool; uint8, int8, int16 -> I32;
// float16, bfloat16 -> F32.
enum class VType : uint8_t { Bool, I32, I64, F32, F64 };

constexpr VType vtype_of(DType t) noexcept {
  constexpr PerDType<VType> kOf{VType::Bool, VType::I32, VType::I32, VType::I32, VType::I32,
                                VType::I64,  VType::F32, VType::F32, VType::F32, VType::F64};
  return kOf[t];
}
constexpr bool is_float(VType t) noexcept { return t >= VType::F32; }
constexpr size_t size_of(VType t) noexcept { return t == VType::Bool ? 1 : t == VType::I32 || t == VType::F32 ? 4 : 8; }

// Unless noted otherwise, operands and result have the same type.
// clang-format off
enum class Prim : uint8_t {
  Input,   // element of input `bits`, loaded as vtype_of(dtype)
  Param,   // run-time scalar number `bits`, of type `type` (stored in the low bytes of a uint64)
  Const,   // the value whose bits are `bits` (low bytes)
  Index,   // I64: row-major position of the element in the iteration space
  Add, Sub, Mul,  // integers wrap; Bool not allowed
  Fma,     // floats: a*b+c, rounded once
  Div,     // floats: correctly rounded. Integers: truncates; x/0 = 0; MIN/-1 = MIN
  Rem,     // floats: C's fmod (exact). Integers: sign of the dividend; x rem 0 = 0; MIN rem -1 = 0
  Neg,     // floats: flips the sign bit. Integers: wraps
  Abs,     // floats: clears the sign bit. Integers: wraps at MIN
  Sqrt,    // floats, correctly rounded
  Min,     // a < b ? a : b  (so b where either is NaN or both are zero: what x86 minps does)
  Max,     // a > b ? a : b
  Floor, Ceil, Trunc, Round,  // floats; Round is to nearest, ties to even
  Scale,   // floats: a * 2^b rounded once; b is a float with an integral value, |b| <= 250 (F32), 2040 (F64); defined for an a that is zero,
           // infinite, NaN, or 1/4 <= |a| <= 4
  Lt, Le, Eq, Ne,  // -> Bool; floats: false with NaN, but Ne: true. Also on integers (signed); Eq, Ne on Bool
  Select,  // a (Bool) ? b : c
  And, Or, Xor, Not,  // Bool, integers (bitwise)
  Shl, Shr, ShrU,     // integers; b an integer of the same type in [0, width); Shr keeps the sign, ShrU fills with zeros
  MulHiU,  // I32: high 32 bits of the product of both as unsigned numbers
  Convert, // to element type `dtype`: the result has type vtype_of(dtype) and a value that the element type can hold.
           //   float -> int: truncates; NaN and values outside int32 (for targets up to 32 bits) or int64 give its minimum; then
           //     wraps to the width
           //   int -> narrower int: wraps.  anything -> Bool: x != 0 (NaN is true).  Bool -> number: 0 or 1
           //   float -> float16/bfloat16/float32: rounds to nearest even once (F64 -> F16/BF16 goes through F32); the
           //     result is F32
           //   int -> float: rounds to nearest even (int -> F16/BF16 goes through F32)
  Bitcast, // I32 <-> F32, I64 <-> F64: the same bits as `type`
};
// clang-format on
constexpr int kPrims = static_cast<int>(Prim::Bitcast) + 1;

constexpr uint32_t kNoNode = ~0u;

struct Node {
  Prim prim;
  VType type;                // of the result
  DType dtype = DType::F32;  // Input, Convert
  uint32_t a = kNoNode, b = kNoNode, c = kNoNode;
  uint64_t bits = 0;  // Const: value; Input, Param: slot; Select: 1 if the condition is true for nearly all elements, else 0
  friend bool operator==(const Node&, const Node&) = default;
};

// Nodes in topological order: operands come before their users. Equal nodes are stored once.
class Graph {
 public:
  // Returns the id of an equal node if there is one, else of a new one. Conversions that change nothing are dropped.
  uint32_t add(const Node& node);
  const std::vector<Node>& nodes() const noexcept { return nodes_; }
  const Node& operator[](uint32_t i) const noexcept { return nodes_[i]; }

 private:
  std::vector<Node> nodes_;
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
};

// A value in a graph, for writing expressions as formulas. Cheap to copy; the graph must outlive it.
class V {
 public:
  V() = default;
  V(Graph& graph, uint32_t id) : graph_(&graph), id_(id) {}
  Graph& graph() const noexcept { return *graph_; }
  uint32_t id() const noexcept { return id_; }
  VType type() const noexcept { return (*graph_)[id_].type; }
  // A constant of this value's type.
  V lit(double value) const;
  // The constant of this value's type with these bits.
  V lit_bits(uint64_t bits) const;

 private:
  Graph* graph_ = nullptr;
  uint32_t id_ = kNoNode;
};

V make(Prim prim, VType type, V a);
V make(Prim prim, VType type, V a, V b);
V make(Prim prim, VType type, V a, V b, V c);
V input(Graph& g, uint64_t slot, DType dtype);
V param(Graph& g, uint64_t slot, VType type);
V constant(Graph& g, VType type, double value);
V constant_bits(Graph& g, VType type, uint64_t bits);
V index(Graph& g);

// A literal gets the type of the other operand.
V operator+(V a, V b);
V operator-(V a, V b);
V operator*(V a, V b);
V operator/(V a, V b);
V operator-(V a);
V operator+(V a, double b);
V operator-(V a, double b);
V operator*(V a, double b);
V operator/(V a, double b);
V operator+(double a, V b);
V operator-(double a, V b);
V operator*(double a, V b);
V operator/(double a, V b);
V operator&(V a, V b);
V operator|(V a, V b);
V operator^(V a, V b);
V operator~(V a);
V operator<(V a, V b);
V operator<=(V a, V b);
V operator>(V a, V b);
V operator>=(V a, V b);
V operator==(V a, V b);
V operator!=(V a, V b);
V operator<(V a, double b);
V operator<=(V a, double b);
V operator>(V a, double b);
V operator>=(V a, double b);
V operator==(V a, double b);
V operator!=(V a, double b);

V fma(V a, V b, V c);
V fma(V a, V b, double c);
V fma(V a, double b, V c);
V fma(V a, double b, double c);
V rem(V a, V b);
V abs(V a);
V sqrt(V a);
V prim_min(V a, V b);
V prim_max(V a, V b);
V floor(V a);
V ceil(V a);
V trunc(V a);
V round(V a);
V scale(V a, V exponent);
V where(V condition, V a, V b);
V where(V condition, V a, double b);
V where(V condition, double a, V b);
// where(), for conditions that are true for nearly all elements: renderers may leave out b for a whole vector.
V where_usually(V condition, V a, V b);
V shl(V a, int count);
V shr(V a, int count);
V shr_unsigned(V a, int count);
V mul_hi_unsigned(V a, V b);
V convert(V a, DType to);
V bitcast(V a, VType to);
V isnan(V a);  // a != a

// An elementwise kernel: the graph, its operands, and which nodes are stored to which outputs.
struct MapKernel {
  struct Operand {
    DType dtype;
    bool scalar = false;   // one element for the whole run (stride 0); otherwise elements are consecutive
    bool per_row = false;  // in strided reductions, with scalar: one element per row
  };
  Graph graph;
  std::vector<Operand> inputs;
  std::vector<VType> params;
  std::vector<DType> outputs;     // consecutive elements
  std::vector<uint32_t> results;  // results[i]: the node stored to output i; outputs[i] can hold its value
};

// Runs a kernel over `n` consecutive elements. operands: pointers to the first elements of the inputs, then of the outputs; an output may be
// exactly an input. params: one uint64 per parameter. index0: the value of Index at the first element.
using MapFunction = void (*)(void* const* operands, const uint64_t* params, int64_t n, int64_t index0);

}  // namespace naru::ir
