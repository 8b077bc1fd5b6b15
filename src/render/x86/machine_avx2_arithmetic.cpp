// Primitives without an AVX2 instruction: 64-bit integers, selections by a vector, scaling, conversions.
#if defined(__x86_64__)

#include "render/x86/machine_avx2.h"

namespace naru::render {
namespace {

namespace I = x86::Inst;
using asmjit::imm;

}  // namespace

Value MachineAvx2::compare(Prim prim, const Arg& a, const Arg& b) {
  const bool wide = parts_of(a.type) == 2;
  Value parts;
  for (int p = 0; p < parts_of(a.type); ++p) {
    x86::Vec d = vec();
    parts.part[p] = d;
    if (ir::is_float(a.type)) {
      const int predicate = prim == Prim::Lt ? 0x11 : prim == Prim::Le ? 0x12 : prim == Prim::Eq ? 0 : 4;
      cc_.emit(wide ? I::kIdVcmppd : I::kIdVcmpps, d, reg(a, p), b.part[p], imm(predicate));
    } else if (prim == Prim::Eq || prim == Prim::Ne) {
      cc_.emit(wide ? I::kIdVpcmpeqq : I::kIdVpcmpeqd, d, reg(a, p), b.part[p]);
    } else if (prim == Prim::Lt) {  // b > a
      cc_.emit(wide ? I::kIdVpcmpgtq : I::kIdVpcmpgtd, d, reg(b, p), a.part[p]);
    } else {  // not a > b
      cc_.emit(wide ? I::kIdVpcmpgtq : I::kIdVpcmpgtd, d, reg(a, p), b.part[p]);
    }
  }
  x86::Vec d = wide ? narrow(vec_of(parts.part[0]), vec_of(parts.part[1])) : vec_of(parts.part[0]);
  if (!ir::is_float(a.type) && (prim == Prim::Ne || prim == Prim::Le)) cc_.vpxor(d, d, ones());
  return Value{{d}};
}

Value MachineAvx2::select(const Arg& condition, const Arg& yes, const Arg& no) {
  const bool wide = parts_of(yes.type) == 2;
  const x86::Vec mask = vec_of(condition.part[0]);
  Value v;
  for (int p = 0; p < parts_of(yes.type); ++p) {
    const x86::Vec otherwise = reg(no, p);
    x86::Vec d = no.part[p].isMem() || no.dying ? otherwise : target(yes, p);
    const x86::Vec lanes = wide ? wide_mask(mask, p) : mask;
    cc_.emit(wide ? I::kIdVblendvpd : I::kIdVblendvps, d, otherwise, yes.part[p], lanes);
    v.part[p] = d;
  }
  return v;
}

Value MachineAvx2::bool_logic(const ir::Node& node, const Arg* args) {
  const auto m = [&](int i) { return vec_of(args[i].part[0]); };
  x86::Vec d = vec();
  switch (node.prim) {
    case Prim::And:
      cc_.vpand(d, m(0), m(1));
      break;
    case Prim::Or:
      cc_.vpor(d, m(0), m(1));
      break;
    case Prim::Not:
      cc_.vpxor(d, m(0), ones());
      break;
    case Prim::Eq:
      cc_.vpcmpeqd(d, m(0), m(1));
      break;
    case Prim::Select:
      cc_.vblendvps(d, m(2), m(1), m(0));
      break;
    default:
      cc_.vpxor(d, m(0), m(1));
      break;  // Xor, Ne
  }
  return Value{{d}};
}

Value MachineAvx2::arithmetic64(const ir::Node& node, const Arg* args) {
  const Arg &a = args[0], &b = args[1];
  if (node.prim == Prim::Shl || node.prim == Prim::ShrU) return shift(node.prim, a, b);
  Value v;
  for (int p = 0; p < 2; ++p) {
    const x86::Vec x = reg(a, p);
    x86::Vec d = vec();
    v.part[p] = d;
    switch (node.prim) {
      case Prim::Mul: {  // low * low + ((low * high + high * low) << 32)
        const x86::Vec y = reg(b, p);
        x86::Vec cross = vec(), other = vec();
        cc_.vpsrlq(cross, x, imm(32));
        cc_.vpmuludq(cross, cross, y);
        cc_.vpsrlq(other, y, imm(32));
        cc_.vpmuludq(other, other, x);
        cc_.vpaddq(cross, cross, other);
        cc_.vpsllq(cross, cross, imm(32));
        cc_.vpmuludq(d, x, y);
        cc_.vpaddq(d, d, cross);
        break;
      }
      case Prim::Min:
      case Prim::Max: {
        const x86::Vec y = reg(b, p);
        x86::Vec greater = vec();
        cc_.vpcmpgtq(greater, x, y);
        if (node.prim == Prim::Min)
          cc_.vblendvpd(d, x, y, greater);
        else
          cc_.vblendvpd(d, y, x, greater);
        break;
      }
      case Prim::Abs: {
        x86::Vec sign = zeros();
        cc_.vpcmpgtq(sign, sign, x);
        cc_.vpxor(d, x, sign);
        cc_.vpsubq(d, d, sign);
        break;
      }
      default: {  // Shr: the shifted sign bit gives the fill
        x86::Vec sign = vec();
        cc_.vmovups(sign, constant_arg(VType::I64, uint64_t{1} << 63).part[0].as<x86::Mem>());
        if (b.constant) {
          const int by = static_cast<int>(b.bits & 63);
          cc_.vpsrlq(d, x, imm(by));
          cc_.vpsrlq(sign, sign, imm(by));
        } else {
          const x86::Vec by = reg(b, p);
          cc_.vpsrlvq(d, x, by);
          cc_.vpsrlvq(sign, sign, by);
        }
        cc_.vpxor(d, d, sign);
        cc_.vpsubq(d, d, sign);
        break;
      }
    }
  }
  return v;
}

Value MachineAvx2::mul_hi_unsigned(const Arg& a, const Arg& b) {
  const x86::Vec x = reg(a, 0), y = reg(b, 0);
  x86::Vec even = vec(), odd = vec(), other = vec();
  cc_.vpmuludq(even, x, y);
  cc_.vpsrlq(odd, x, imm(32));
  cc_.vpsrlq(other, y, imm(32));
  cc_.vpmuludq(odd, odd, other);
  cc_.vpsrlq(even, even, imm(32));
  cc_.vpblendd(odd, even, odd, imm(0b10101010));
  return Value{{odd}};
}

Value MachineAvx2::scale(const Arg& a, const Arg& b) { return a.type == VType::F32 ? scale32(a, b) : scale64(a, b); }

// a * 2^b as (a * 2^h) * 2^(b - h). h >= -66 keeps the first product normal, so that only the second one rounds. Its factor may be denormal; then
// it is a shifted bit.
Value MachineAvx2::scale32(const Arg& a, const Arg& b) {
  const auto constant = [&](VType t, uint64_t bits) { return constant_arg(t, bits).part[0].as<x86::Mem>(); };
  const auto flt = [&](float x) { return constant(VType::F32, std::bit_cast<uint32_t>(x)); };
  const x86::Vec n = reg(b, 0);
  x86::Vec h = vec(), rest = vec(), shifted = vec(), d = vec();
  cc_.vmaxps(h, n, flt(-66));
  cc_.vminps(h, h, flt(127));
  cc_.vsubps(rest, n, h);
  cc_.vmaxps(rest, rest, flt(-149));
  cc_.vminps(rest, rest, flt(127));
  cc_.vcvtps2dq(h, h);
  cc_.vpaddd(h, h, constant(VType::I32, 127));
  cc_.vpslld(h, h, imm(23));
  cc_.vmulps(d, reg(a, 0), h);
  cc_.vcvtps2dq(rest, rest);
  cc_.vpaddd(rest, rest, constant(VType::I32, 127));  // the biased exponent, 1 or more if 2^rest is normal
  const x86::Vec zero = zeros();
  x86::Vec below = vec();
  cc_.vpsubd(below, zero, rest);
  cc_.vmovups(shifted, constant(VType::I32, 0x00400000));
  cc_.vpsrlvd(shifted, shifted, below);  // 0 if `below` is negative, that is, a large count
  cc_.vpmaxsd(rest, rest, zero);
  cc_.vpslld(rest, rest, imm(23));
  cc_.vpor(rest, rest, shifted);
  cc_.vmulps(d, d, rest);
  return Value{{d}};
}

// The same with h >= -960, where the second factor is always normal. The exponents are taken from the low bits of a sum.
Value MachineAvx2::scale64(const Arg& a, const Arg& b) {
  const auto flt = [&](double x) { return constant_arg(VType::F64, std::bit_cast<uint64_t>(x)).part[0].as<x86::Mem>(); };
  Value v;
  for (int p = 0; p < 2; ++p) {
    const x86::Vec n = reg(b, p);
    x86::Vec h = vec(), rest = vec(), d = vec();
    cc_.vmaxpd(h, n, flt(-960));
    cc_.vminpd(h, h, flt(1023));
    cc_.vsubpd(rest, n, h);
    cc_.vmaxpd(rest, rest, flt(-1000));
    cc_.vminpd(rest, rest, flt(1000));
    for (x86::Vec* e : {&h, &rest}) {
      cc_.vaddpd(*e, *e, flt(0x1.8p52 + 1023));
      cc_.vpsllq(*e, *e, imm(52));
    }
    cc_.vmulpd(d, reg(a, p), h);
    cc_.vmulpd(d, d, rest);
    v.part[p] = d;
  }
  return v;
}

Value MachineAvx2::round_to_half(const Arg& a) {
  x86::Xmm half = cc_.newXmm();
  x86::Vec d = vec();
  cc_.vcvtps2ph(half, reg(a, 0), imm(8));
  cc_.vcvtph2ps(d, half);
  return Value{{d}};
}

// float -> int64 and int64 -> float32, one lane at a time, with the scalar instructions.
Value MachineAvx2::convert_by_lane(VType from, VType to, const Value& s) {
  for (int p = 0; p < 2; ++p) cc_.vmovups(scratch(p * 32), vec_of(s.part[p]));
  x86::Gp word = cc_.newInt64();
  x86::Xmm one = cc_.newXmm();
  cc_.vpxor(one, one, one);
  for (int lane = 0; lane < lanes(); ++lane) {
    x86::Mem at = scratch(lane * 8);
    at.setSize(8);
    if (from == VType::F64) {
      cc_.vcvttsd2si(word, at);
      cc_.mov(at, word);
    } else {
      cc_.vcvtsi2ss(one, one, at);
      at = scratch(lane * 4);
      at.setSize(4);
      cc_.vmovss(at, one);
    }
  }
  Value v;
  for (int p = 0; p < parts_of(to); ++p) {
    x86::Vec d = vec();
    cc_.vmovups(d, scratch(p * 32));
    v.part[p] = d;
  }
  return v;
}

Value MachineAvx2::change_width(VType from, VType to, const Arg& a) {
  const Value s = in_registers(a);
  const x86::Vec s0 = vec_of(s.part[0]);
  if (parts_of(from) == 1) {  // one vector becomes two
    if (from == VType::F32 && to == VType::I64) return convert_by_lane(VType::F64, to, change_width(from, VType::F64, kept(from, s)));
    const InstId id = to == VType::I64 ? I::kIdVpmovsxdq : from == VType::I32 ? I::kIdVcvtdq2pd : I::kIdVcvtps2pd;
    x86::Xmm high = cc_.newXmm();
    cc_.vextractf128(high, s0, imm(1));
    x86::Vec d0 = vec(), d1 = vec();
    cc_.emit(id, d0, s0.xmm());
    cc_.emit(id, d1, high);
    return Value{{d0, d1}};
  }
  const x86::Vec s1 = vec_of(s.part[1]);
  if (parts_of(to) == 1) {  // two vectors become one
    if (from == VType::I64 && to == VType::I32) return Value{{narrow(s0, s1)}};
    if (from == VType::I64) return convert_by_lane(from, to, s);
    const InstId id = to == VType::I32 ? I::kIdVcvttpd2dq : I::kIdVcvtpd2ps;
    x86::Xmm low = cc_.newXmm(), high = cc_.newXmm();
    cc_.emit(id, low, s0);
    cc_.emit(id, high, s1);
    x86::Vec d = vec();
    cc_.vinsertf128(d, low.ymm(), high, imm(1));
    return Value{{d}};
  }
  if (from == VType::F64) return convert_by_lane(from, to, s);

  // int64 -> float64: the upper 16 bits and the lower 48 bits each become a float64 by placing an exponent above them; subtracting both
  // exponents' values from the sum rounds once.
  const auto bits = [&](double x) { return constant_arg(VType::F64, std::bit_cast<uint64_t>(x)).part[0].as<x86::Mem>(); };
  Value v;
  for (int p = 0; p < 2; ++p) {
    const x86::Vec x = vec_of(s.part[p]);
    x86::Vec high = vec(), low = vec(), exponent = vec();
    cc_.vpsrad(high, x, imm(16));
    cc_.vpblendw(high, high, zeros(), imm(0x33));
    cc_.vpaddq(high, high, bits(0x3p67));
    cc_.vmovups(exponent, bits(0x1p52));
    cc_.vpblendw(low, x, exponent, imm(0x88));
    cc_.vsubpd(high, high, bits(0x3p67 + 0x1p52));
    cc_.vaddpd(high, high, low);
    v.part[p] = high;
  }
  return v;
}

}  // namespace naru::render

#endif
