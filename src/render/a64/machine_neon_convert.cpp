// Conversions of NEON.
#if defined(__aarch64__)

#include <bit>

#include "render/a64/machine_neon.h"

namespace naru::render {
namespace {

using I = a64::Inst;
using asmjit::imm;

}  // namespace

MachineNeon::Vec MachineNeon::wide_mask(const Vec& mask, int part) {
  const Vec d = vec();
  if (part == 0)
    cc_.zip1(d.s4(), mask.s4(), mask.s4());
  else
    cc_.zip2(d.s4(), mask.s4(), mask.s4());
  return d;
}

MachineNeon::Vec MachineNeon::narrow_mask(const Vec& low, const Vec& high) {
  const Vec d = vec();
  cc_.uzp1(d.s4(), low.s4(), high.s4());
  return d;
}

Value MachineNeon::to_bool(VType from, const Taken& a) {
  if (from == VType::Bool) return copy(from, a.value);
  if (ir::is_float(from)) return compare(Prim::Ne, from, a, {constant(from, 0), false});
  Vec part[2];
  for (int p = 0; p < parts_of(from); ++p) {
    part[p] = vec();
    cc_.cmtst(lanes_of(from, part[p]), lanes_of(from, a.part(p)), lanes_of(from, a.part(p)));
  }
  return Value{{parts_of(from) == 2 ? narrow_mask(part[0], part[1]) : part[0]}};
}

Value MachineNeon::from_bool(VType to, const Taken& a) {
  const uint64_t one = to == VType::F32 ? 0x3f800000 : to == VType::F64 ? 0x3ff0000000000000 : 1;
  const Vec ones = bits_everywhere(to, one);
  Value v;
  for (int p = 0; p < parts_of(to); ++p) {
    const Vec d = vec();
    const Vec mask = parts_of(to) == 2 ? wide_mask(a.part(0), p) : a.part(0);
    cc_.and_(d.b16(), mask.b16(), ones.b16());
    v.part[p] = d;
  }
  return v;
}

// The instruction saturates, and gives 0 for NaN; the primitive gives the minimum for everything that the integer cannot hold. Too small values
// already have it.
Value MachineNeon::lowest_where_too_large(VType from, VType to, const Value& converted, const Taken& a) {
  const double limit = to == VType::I64 ? 0x1p63 : 0x1p31;
  const uint64_t bits = from == VType::F32 ? std::bit_cast<uint32_t>(static_cast<float>(limit)) : std::bit_cast<uint64_t>(limit);
  const Vec above = bits_everywhere(from, bits), lowest = bits_everywhere(to, to == VType::I64 ? uint64_t{1} << 63 : uint64_t{1} << 31);
  Vec fits[2];
  for (int p = 0; p < parts_of(from); ++p) {
    fits[p] = vec();
    cc_.fcmgt(lanes_of(from, fits[p]), lanes_of(from, above), lanes_of(from, a.part(p)));
  }
  if (parts_of(from) > parts_of(to)) fits[0] = narrow_mask(fits[0], fits[1]);
  for (int p = 0; p < parts_of(to); ++p) cc_.bif(vec_of(converted.part[p]).b16(), lowest.b16(), fits[p].b16());
  return converted;
}

// One at a time: going through float64 would round twice.
Value MachineNeon::longs_to_floats(const Taken& a) {
  const Vec d = vec();
  for (uint32_t lane = 0; lane < 4; ++lane) {
    const a64::Gp x = cc_.newInt64();
    const Vec one = vec();
    cc_.umov(x, a.part(static_cast<int>(lane / 2)).d(lane % 2));
    cc_.scvtf(one.s(), x);
    if (lane == 0)
      cc_.mov(d.b16(), one.b16());
    else
      cc_.ins(d.s(lane), one.s(0));
  }
  return Value{{d}};
}

// Between two different numeric types.
Value MachineNeon::change_type(VType from, VType to, const Taken& a) {
  const auto halves = [&](InstId low, InstId high) {  // one vector becomes two
    const Vec d0 = vec(), d1 = vec();
    cc_.emit(low, d0.d2(), a.part(0).s2());
    cc_.emit(high, d1.d2(), a.part(0).s4());
    return Value{{d0, d1}};
  };
  if (from == VType::I32 && to == VType::F32) return unary(I::kIdScvtf_v, VType::F32, a);
  if (from == VType::I64 && to == VType::F64) return unary(I::kIdScvtf_v, VType::F64, a);
  if (from == VType::I32 && to == VType::I64) return halves(I::kIdSxtl_v, I::kIdSxtl2_v);
  if (from == VType::F32 && to == VType::F64) return halves(I::kIdFcvtl_v, I::kIdFcvtl2_v);
  if (from == VType::I64 && to == VType::I32) return Value{{narrow_mask(a.part(0), a.part(1))}};
  if (from == VType::I64) return longs_to_floats(a);
  if (from == VType::I32) {  // to float64
    const Value wide = change_type(VType::I32, VType::I64, a);
    return change_type(VType::I64, VType::F64, {wide, true});
  }
  if (from == VType::F64 && to == VType::F32) {
    const Vec d = vec();
    cc_.fcvtn(d.s2(), a.part(0).d2());
    cc_.fcvtn2(d.s4(), a.part(1).d2());
    return Value{{d}};
  }
  if (from == VType::F32 && to == VType::I64) {
    const Value wide = change_type(VType::F32, VType::F64, a);
    return change_type(VType::F64, VType::I64, {wide, false});
  }
  // float -> an integer of the same width, or float64 -> int32
  Value v = unary(I::kIdFcvtzs_v, from, {a.value, false});
  if (parts_of(from) > parts_of(to)) {
    const Vec d = vec();
    cc_.sqxtn(d.s2(), vec_of(v.part[0]).d2());
    cc_.sqxtn2(d.s4(), vec_of(v.part[1]).d2());
    v = Value{{d}};
  }
  return lowest_where_too_large(from, to, v, a);
}

Value MachineNeon::round_to_bfloat(const Taken& a) {
  const VType t = VType::I32;
  const Vec x = a.part(0), upper = vec(), up = vec(), quiet = vec(), number = vec();
  cc_.ushr(up.s4(), x.s4(), imm(16));
  cc_.and_(up.b16(), up.b16(), bits_everywhere(t, 1).b16());
  cc_.add(up.s4(), up.s4(), x.s4());
  cc_.add(up.s4(), up.s4(), bits_everywhere(t, 0x7fff).s4());
  // NaN stays NaN, made quiet.
  cc_.orr(quiet.b16(), x.b16(), bits_everywhere(t, 0x00400000).b16());
  cc_.fcmeq(number.s4(), x.s4(), x.s4());
  cc_.bsl(number.b16(), up.b16(), quiet.b16());
  cc_.ushr(upper.s4(), number.s4(), imm(16));
  cc_.shl(upper.s4(), upper.s4(), imm(16));
  return Value{{upper}};
}

// A value of the element type's value type, rounded or wrapped to what the element type can hold.
Value MachineNeon::narrow_to(DType to, const Taken& a) {
  const VType t = ir::vtype_of(to);
  const Vec d = vec();
  switch (to) {
    case DType::U8:
      cc_.and_(d.b16(), a.part(0).b16(), bits_everywhere(t, 0xff).b16());
      return Value{{d}};
    case DType::I8:
    case DType::I16: {
      const int unused = to == DType::I8 ? 24 : 16;
      cc_.shl(d.s4(), a.part(0).s4(), imm(unused));
      cc_.sshr(d.s4(), d.s4(), imm(unused));
      return Value{{d}};
    }
    case DType::F16:
      cc_.fcvtn(d.h4(), a.part(0).s4());
      cc_.fcvtl(d.s4(), d.h4());
      return Value{{d}};
    case DType::BF16:
      return round_to_bfloat(a);
    default:
      return a.free ? a.value : copy(t, a.value);
  }
}

Value MachineNeon::convert(const Arg& arg, DType to) {
  const VType from = arg.type, type = ir::vtype_of(to);
  const Taken a = take(arg);
  if (to == DType::Bool) return to_bool(from, a);
  if (from == VType::Bool) return from_bool(type, a);
  if (from == type) return narrow_to(to, a);
  return narrow_to(to, {change_type(from, type, a), true});
}

}  // namespace naru::render

#endif
