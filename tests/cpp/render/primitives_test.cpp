// Every primitive on every type that has it, compiled, against the interpreter, bit for bit.
#include <cmath>
#include <cstring>
#include <limits>

#include "render/kernel_support.h"

namespace naru::test {
namespace {

using ir::Prim;
using ir::V;
using ir::VType;

constexpr VType kNumbers[] = {VType::I32, VType::I64, VType::F32, VType::F64};

// The source of an operand.
enum class From : uint8_t { Input, Scalar, Param, Const };
constexpr From kSources[] = {From::Input, From::Scalar, From::Param, From::Const};

// Builds kernels of one operation with operands from the given sources, and runs them.
struct Trial {
  ir::MapKernel kernel;
  std::vector<std::vector<uint8_t>> inputs;
  std::vector<uint64_t> params;
  int64_t n = 0;

  V operand(DType t, From from, Bits& bits) {
    const VType type = ir::vtype_of(t);
    if (from == From::Input || from == From::Scalar) {
      kernel.inputs.push_back({t, from == From::Scalar});
      inputs.push_back(mixed_elements(t, from == From::Scalar ? 1 : n, bits));
      return ir::input(kernel.graph, kernel.inputs.size() - 1, t);
    }
    const uint64_t value = mixed_param(type, bits);
    if (from == From::Const) return ir::constant_bits(kernel.graph, type, value);
    kernel.params.push_back(type);
    params.push_back(value);
    return ir::param(kernel.graph, params.size() - 1, type);
  }
  void result(V v, DType t) {
    kernel.outputs.push_back(t);
    kernel.results.push_back(v.id());
  }
};

// f(trial, sources) adds results; called for all combinations of sources of `operands` operands.
template <class F>
void try_all(int operands, uint64_t seed, F f) {
  int combinations = 1;
  for (int i = 0; i < operands; ++i) combinations *= 4;
  for (int code = 0; code < combinations; ++code) {
    std::vector<From> sources;
    for (int i = 0, rest = code; i < operands; ++i, rest /= 4) sources.push_back(kSources[rest % 4]);
    Bits bits(seed * 1000 + static_cast<uint64_t>(code));
    Trial trial;
    trial.n = code == 0 ? 3000 : 203;
    f(trial, sources, bits);
    EXPECT_TRUE(agrees(trial.kernel, trial.inputs, trial.params, trial.n)) << "operands " << code << ", seed " << seed;
  }
}

std::string label(Prim prim, VType type) {
  return "primitive " + std::to_string(static_cast<int>(prim)) + " type " + std::to_string(static_cast<int>(type));
}

bool has(Prim prim, VType t) {
  switch (prim) {
    case Prim::Fma:
    case Prim::Sqrt:
    case Prim::Floor:
    case Prim::Ceil:
    case Prim::Trunc:
    case Prim::Round:
      return ir::is_float(t);
    case Prim::And:
    case Prim::Or:
    case Prim::Xor:
    case Prim::Not:
      return !ir::is_float(t);
    case Prim::Shl:
    case Prim::Shr:
    case Prim::ShrU:
      return t == VType::I32 || t == VType::I64;
    case Prim::MulHiU:
      return t == VType::I32;
    default:
      return t != VType::Bool;
  }
}

TEST(NativePrimitives, WithOneOperandEqualTheInterpreter) {
  for (const Prim prim : {Prim::Neg, Prim::Abs, Prim::Sqrt, Prim::Floor, Prim::Ceil, Prim::Trunc, Prim::Round, Prim::Not})
    for (const VType t : {VType::Bool, VType::I32, VType::I64, VType::F32, VType::F64}) {
      if (!has(prim, t)) continue;
      SCOPED_TRACE(label(prim, t));
      try_all(1, 1, [&](Trial& trial, const std::vector<From>& from, Bits& bits) {
        trial.result(ir::make(prim, t, trial.operand(dtype_of(t), from[0], bits)), dtype_of(t));
      });
    }
}

TEST(NativePrimitives, WithTwoOperandsEqualTheInterpreter) {
  for (const Prim prim :
       {Prim::Add, Prim::Sub, Prim::Mul, Prim::Div, Prim::Rem, Prim::Min, Prim::Max, Prim::And, Prim::Or, Prim::Xor, Prim::MulHiU})
    for (const VType t : {VType::Bool, VType::I32, VType::I64, VType::F32, VType::F64}) {
      if (!has(prim, t)) continue;
      SCOPED_TRACE(label(prim, t));
      try_all(2, 2, [&](Trial& trial, const std::vector<From>& from, Bits& bits) {
        const V a = trial.operand(dtype_of(t), from[0], bits), b = trial.operand(dtype_of(t), from[1], bits);
        trial.result(ir::make(prim, t, a, b), dtype_of(t));
      });
    }
}

TEST(NativePrimitives, OnOneValueTwiceEqualTheInterpreter) {
  for (const Prim prim : {Prim::Add, Prim::Sub, Prim::Mul, Prim::Div, Prim::Rem, Prim::Min, Prim::Max, Prim::Xor})
    for (const VType t : kNumbers) {
      if (!has(prim, t)) continue;
      SCOPED_TRACE(label(prim, t));
      try_all(1, 3, [&](Trial& trial, const std::vector<From>& from, Bits& bits) {
        const V a = trial.operand(dtype_of(t), from[0], bits);
        const V square = ir::make(prim, t, a, a);
        trial.result(square, dtype_of(t));
        if (ir::is_float(t)) trial.result(ir::fma(square, square, square), dtype_of(t));
      });
    }
}

TEST(NativePrimitives, ComparisonsEqualTheInterpreter) {
  for (const Prim prim : {Prim::Lt, Prim::Le, Prim::Eq, Prim::Ne})
    for (const VType t : {VType::Bool, VType::I32, VType::I64, VType::F32, VType::F64}) {
      if (t == VType::Bool && (prim == Prim::Lt || prim == Prim::Le)) continue;
      SCOPED_TRACE(label(prim, t));
      try_all(2, 4, [&](Trial& trial, const std::vector<From>& from, Bits& bits) {
        const V a = trial.operand(dtype_of(t), from[0], bits), b = trial.operand(dtype_of(t), from[1], bits);
        trial.result(ir::make(prim, VType::Bool, a, b), DType::Bool);
      });
    }
}

TEST(NativePrimitives, FmaAndSelectEqualTheInterpreterWhereverTheirOperandsStand) {
  for (const VType t : {VType::F32, VType::F64})
    try_all(3, 5, [&](Trial& trial, const std::vector<From>& from, Bits& bits) {
      const V a = trial.operand(dtype_of(t), from[0], bits), b = trial.operand(dtype_of(t), from[1], bits);
      trial.result(ir::fma(a, b, trial.operand(dtype_of(t), from[2], bits)), dtype_of(t));
    });
  for (const VType t : {VType::Bool, VType::I32, VType::I64, VType::F32, VType::F64})
    try_all(3, 6, [&](Trial& trial, const std::vector<From>& from, Bits& bits) {
      const V c = trial.operand(DType::Bool, from[0], bits), a = trial.operand(dtype_of(t), from[1], bits);
      trial.result(ir::where(c, a, trial.operand(dtype_of(t), from[2], bits)), dtype_of(t));
    });
}

TEST(NativePrimitives, ShiftsEqualTheInterpreterForEveryCount) {
  for (const VType t : {VType::I32, VType::I64}) {
    const int width = t == VType::I32 ? 32 : 64;
    for (const Prim prim : {Prim::Shl, Prim::Shr, Prim::ShrU}) {
      SCOPED_TRACE(label(prim, t));
      try_all(2, 7, [&](Trial& trial, const std::vector<From>& from, Bits& bits) {
        const V a = trial.operand(dtype_of(t), from[0], bits);
        const V count = trial.operand(dtype_of(t), from[1], bits) & ir::constant(trial.kernel.graph, t, width - 1);
        trial.result(ir::make(prim, t, a, count), dtype_of(t));
      });
      Bits bits(8);
      Trial trial;
      trial.n = 100;
      const V a = trial.operand(dtype_of(t), From::Input, bits);
      for (int count = 0; count < width; ++count)
        trial.result(ir::make(prim, t, a, ir::constant(trial.kernel.graph, t, count)), dtype_of(t));
      EXPECT_TRUE(agrees(trial.kernel, trial.inputs, trial.params, trial.n));
    }
  }
}

TEST(NativePrimitives, ScaleRoundsOnceOverItsWholeDomain) {
  for (const VType t : {VType::F32, VType::F64}) {
    Bits bits(9);
    Trial trial;
    trial.n = 40000;
    std::vector<uint8_t> a = mixed_elements(dtype_of(t), trial.n, bits);
    std::vector<uint8_t> b(a.size());
    const auto fill = [&]<class T>(T) {
      auto* x = reinterpret_cast<T*>(a.data());
      auto* e = reinterpret_cast<T*>(b.data());
      for (int64_t i = 0; i < trial.n; ++i) {
        const uint64_t kind = bits.below(8);
        const T fraction = 1 + static_cast<T>(static_cast<double>(bits.next() >> 11) * 0x1p-53);
        x[i] = kind == 0   ? std::numeric_limits<T>::infinity()
               : kind == 1 ? std::numeric_limits<T>::quiet_NaN()
               : kind == 2 ? T(0)
                           : std::ldexp(std::min(fraction, std::nextafter(T(2), T(1))), static_cast<int>(bits.below(120)) - 60);
        if (bits.below(2) != 0) x[i] = -x[i];
        // Mostly values for which results overflow or become denormal.
        const int range = bits.below(3) == 0 ? 2100 : sizeof(T) == 4 ? 220 : 1150;
        e[i] = static_cast<T>(static_cast<int64_t>(bits.below(static_cast<uint64_t>(2 * range + 1))) - range);
      }
    };
    if (t == VType::F32)
      fill(float{});
    else
      fill(double{});
    trial.kernel.inputs = {{dtype_of(t)}, {dtype_of(t)}};
    trial.inputs = {a, b};
    trial.result(ir::scale(ir::input(trial.kernel.graph, 0, dtype_of(t)), ir::input(trial.kernel.graph, 1, dtype_of(t))), dtype_of(t));
    EXPECT_TRUE(agrees(trial.kernel, trial.inputs, trial.params, trial.n));
  }
}

TEST(NativePrimitives, ConversionsBetweenAllElementTypesEqualTheInterpreter) {
  for (int from = 0; from < kDTypes; ++from)
    for (int to = 0; to < kDTypes; ++to) {
      const auto a = static_cast<DType>(from), b = static_cast<DType>(to);
      SCOPED_TRACE(std::string(name_of(a)) + " to " + std::string(name_of(b)));
      try_all(1, 10, [&](Trial& trial, const std::vector<From>& source, Bits& bits) {
        trial.result(ir::convert(trial.operand(a, source[0], bits), b), b);
      });
    }
}

TEST(NativePrimitives, BitcastsKeepTheBits) {
  for (const auto& [from, to] :
       {std::pair{VType::I32, VType::F32}, {VType::F32, VType::I32}, {VType::I64, VType::F64}, {VType::F64, VType::I64}})
    try_all(1, 11, [&, from = from, to = to](Trial& trial, const std::vector<From>& source, Bits& bits) {
      const V a = trial.operand(dtype_of(from), source[0], bits);
      const V as_other = ir::bitcast(a, to);
      trial.result(as_other, dtype_of(to));
      // The same registers under two types, each read again afterwards.
      trial.result(as_other + as_other, dtype_of(to));
      trial.result(a - a, dtype_of(from));
    });
}

TEST(NativePrimitives, EveryFloat16LoadsAndStoresExactly) {
  for (const DType t : {DType::F16, DType::BF16}) {
    Trial trial;
    trial.n = 65536;
    trial.kernel.inputs = {{t}};
    trial.inputs.emplace_back(2 * 65536);
    for (uint32_t i = 0; i < 65536; ++i) std::memcpy(&trial.inputs[0][2 * i], &i, 2);
    const V x = ir::input(trial.kernel.graph, 0, t);
    trial.result(x, t);
    trial.result(ir::convert(x, DType::F32), DType::F32);
    trial.result(ir::convert(x * 1.0009765625, t), t);
    EXPECT_TRUE(agrees(trial.kernel, trial.inputs, trial.params, trial.n));
  }
}

TEST(NativePrimitives, IndexCountsFromTheFirstElement) {
  for (const int64_t index0 : {int64_t{0}, int64_t{1} << 40, int64_t{-5}}) {
    Trial trial;
    trial.n = 1000;
    const V i = ir::index(trial.kernel.graph);
    trial.result(i, DType::I64);
    trial.result(ir::convert(i, DType::F32), DType::F32);
    EXPECT_TRUE(agrees(trial.kernel, trial.inputs, trial.params, trial.n, index0));
  }
}

}  // namespace
}  // namespace naru::test
