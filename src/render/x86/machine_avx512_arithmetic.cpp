// Comparisons, selections, Bools and conversions of AVX-512.
#if defined(__x86_64__)

#include "render/x86/machine_avx512.h"

namespace naru::render {
namespace {

namespace I = x86::Inst;
using asmjit::imm;

}  // namespace

Value MachineAvx512::compare(Prim prim, const Arg& a, const Arg& b) {
  const bool flt = ir::is_float(a.type);
  int predicate = 0;
  switch (prim) {
    case Prim::Lt:
      predicate = flt ? 0x11 : 1;
      break;
    case Prim::Le:
      predicate = flt ? 0x12 : 2;
      break;
    case Prim::Eq:
      predicate = 0;
      break;
    default:
      predicate = 4;
      break;
  }
  InstId id = I::kIdVcmpps;
  if (a.type == VType::F64) id = I::kIdVcmppd;
  if (a.type == VType::I32) id = I::kIdVpcmpd;
  if (a.type == VType::I64) id = I::kIdVpcmpq;
  x86::KReg k = cc_.newKw();
  cc_.emit(id, k, reg(a, 0), b.part[0], imm(predicate));
  if (parts_of(a.type) == 2) {
    x86::KReg upper = cc_.newKw();
    cc_.emit(id, upper, reg(a, 1), b.part[1], imm(predicate));
    cc_.kunpckbw(k, upper, k);
  }
  return Value{{k}};
}

Value MachineAvx512::select(const Arg& condition, const Arg& yes, const Arg& no) {
  const bool wide = parts_of(yes.type) == 2;
  const x86::KReg k = condition.part[0].as<x86::KReg>();
  Value d;
  for (int p = 0; p < parts_of(yes.type); ++p) {
    x86::KReg lanes = k;
    if (p == 1) {
      lanes = cc_.newKw();
      cc_.kshiftrw(lanes, k, imm(8));
    }
    const x86::Vec otherwise = reg(no, p);
    const x86::Vec to = no.part[p].isMem() || no.dying ? otherwise : target(yes, p);
    cc_.k(lanes).emit(wide ? I::kIdVblendmpd : I::kIdVblendmps, to, otherwise, yes.part[p]);
    d.part[p] = to;
  }
  return d;
}

Value MachineAvx512::bool_logic(const ir::Node& node, const Arg* args) {
  const auto k = [&](int i) { return args[i].part[0].as<x86::KReg>(); };
  x86::KReg d = cc_.newKw();
  switch (node.prim) {
    case Prim::And:
      cc_.kandw(d, k(0), k(1));
      break;
    case Prim::Or:
      cc_.korw(d, k(0), k(1));
      break;
    case Prim::Not:
      cc_.knotw(d, k(0));
      break;
    case Prim::Eq:
      cc_.kxnorw(d, k(0), k(1));
      break;
    case Prim::Select: {
      x86::KReg otherwise = cc_.newKw();
      cc_.kandnw(otherwise, k(0), k(2));
      cc_.kandw(d, k(0), k(1));
      cc_.korw(d, d, otherwise);
      break;
    }
    default:
      cc_.kxorw(d, k(0), k(1));
      break;  // Xor, Ne
  }
  return Value{{d}};
}

Value MachineAvx512::scale(const Arg& a, const Arg& b) {
  return binary(a.type == VType::F32 ? I::kIdVscalefps : I::kIdVscalefpd, a, b, false);
}

// The even lanes' products are 64-bit; so are the odd lanes', after a shift; then blend the upper halves.
Value MachineAvx512::mul_hi_unsigned(const Arg& a, const Arg& b) {
  const x86::Vec x = reg(a, 0), y = reg(b, 0);
  x86::Vec even = vec(), odd = vec(), other = vec();
  cc_.vpmuludq(even, x, y);
  cc_.vpsrlq(odd, x, imm(32));
  cc_.vpsrlq(other, y, imm(32));
  cc_.vpmuludq(odd, odd, other);
  cc_.vpsrlq(even, even, imm(32));
  const Arg upper = constant_arg(VType::I64, 0xffffffff00000000);
  cc_.vpternlogq(odd, even, upper.part[0].as<x86::Mem>(), imm(0xec));  // (odd & upper) | even
  return Value{{odd}};
}

Value MachineAvx512::join(x86::Vec low, x86::Vec high) {
  x86::Vec d = vec();
  cc_.vinsertf64x4(d, low.zmm(), high, imm(1));
  return Value{{d}};
}

Value MachineAvx512::change_width(VType from, VType to, const Arg& a) {
  const Value s = in_registers(a);
  if (parts_of(from) == 1) {  // one vector becomes two
    const bool integer = from == VType::I32;
    InstId id = I::kIdVpmovsxdq;
    if (to == VType::F64) id = integer ? I::kIdVcvtdq2pd : I::kIdVcvtps2pd;
    if (to == VType::I64 && !integer) id = I::kIdVcvttps2qq;
    x86::Ymm high = cc_.newYmm();
    cc_.vextractf64x4(high, vec_of(s.part[0]), imm(1));
    x86::Vec d0 = vec(), d1 = vec();
    cc_.emit(id, d0, low_half(s, 0));
    cc_.emit(id, d1, high);
    return Value{{d0, d1}};
  }
  if (parts_of(to) == 1) {  // two vectors become one
    InstId id = I::kIdVpmovqd;
    if (from == VType::F64) id = to == VType::I32 ? I::kIdVcvttpd2dq : I::kIdVcvtpd2ps;
    if (from == VType::I64 && to == VType::F32) id = I::kIdVcvtqq2ps;
    x86::Ymm low = cc_.newYmm(), high = cc_.newYmm();
    cc_.emit(id, low, s.part[0]);
    cc_.emit(id, high, s.part[1]);
    return join(low, high);
  }
  const InstId id = from == VType::I64 ? I::kIdVcvtqq2pd : I::kIdVcvttpd2qq;
  x86::Vec d0 = vec(), d1 = vec();
  cc_.emit(id, d0, s.part[0]);
  cc_.emit(id, d1, s.part[1]);
  return Value{{d0, d1}};
}

Value MachineAvx512::round_to_half(const Arg& a) {
  x86::Ymm half = cc_.newYmm();
  x86::Vec d = vec();
  cc_.vcvtps2ph(half, reg(a, 0), imm(8));
  cc_.vcvtph2ps(d, half);
  return Value{{d}};
}

InstId MachineAvx512::bitwise(Prim prim, VType type) const noexcept {
  const bool wide = parts_of(type) == 2;
  switch (prim) {
    case Prim::And:
      return wide ? I::kIdVpandq : I::kIdVpandd;
    case Prim::Or:
      return wide ? I::kIdVporq : I::kIdVpord;
    default:
      return wide ? I::kIdVpxorq : I::kIdVpxord;
  }
}

InstId MachineAvx512::rounding(VType type) const noexcept { return type == VType::F32 ? I::kIdVrndscaleps : I::kIdVrndscalepd; }

}  // namespace naru::render

#endif
