#if defined(__x86_64__)

#include "render/x86/machine_avx2.h"

namespace naru::render {
namespace {

namespace I = x86::Inst;
using asmjit::imm;

x86::Mem part_at(x86::Mem at, int part) {
  at.addOffset(part * 32);
  return at;
}

}  // namespace

x86::Vec MachineAvx2::ones() {
  x86::Vec d = vec();
  cc_.vpcmpeqd(d, d, d);
  return d;
}

x86::Vec MachineAvx2::zeros() {
  x86::Vec d = vec();
  cc_.vpxor(d, d, d);
  return d;
}

x86::Vec MachineAvx2::wide_mask(x86::Vec mask, int part) {
  x86::Vec d = vec();
  x86::Xmm half = mask.xmm();
  if (part == 1) {
    half = cc_.newXmm();
    cc_.vextracti128(half, mask, imm(1));
  }
  cc_.vpmovsxdq(d, half);
  return d;
}

x86::Vec MachineAvx2::narrow(x86::Vec low, x86::Vec high) {
  x86::Vec d = vec();
  cc_.vshufps(d, low, high, imm(0x88));
  cc_.vpermq(d, d, imm(0xd8));
  return d;
}

void MachineAvx2::set_tail(const Register& lanes_left) {
  const x86::Gp count = gp(lanes_left);
  x86::Gp most = cc_.newInt64();
  x86::Xmm n = cc_.newXmm();
  count_ = cc_.newInt64();
  mask_ = vec();
  cc_.mov(most, imm(lanes()));
  cc_.mov(count_, count);
  cc_.cmp(count, imm(lanes()));
  cc_.cmovg(count_, most);
  cc_.vmovd(n, count_.r32());
  cc_.vpbroadcastd(mask_, n);
  const int32_t lane[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  cc_.vpcmpgtd(mask_, mask_, new_constant(cc_, lane, sizeof lane));
  for (int p = 0; p < 2; ++p) wide_mask_[p] = wide_mask(mask_, p);
}

x86::Mem MachineAvx2::tail_scratch() { return scratch(0); }

void MachineAvx2::copy_tail(Direction direction, x86::Mem at, int size) {
  x86::Gp done = cc_.newInt64(), source = cc_.newIntPtr();
  x86::Gp piece = cc_.newInt64();
  x86::Gp buffer = cc_.newIntPtr();
  cc_.lea(source, at);
  cc_.lea(buffer, tail_scratch());
  const x86::Gp from = direction == Direction::In ? source : buffer;
  const x86::Gp to = direction == Direction::In ? buffer : source;
  cc_.xor_(done, done);
  for (int n : {8, 4, 2, 1}) {
    const asmjit::Label next = cc_.newLabel();
    cc_.test(count_, imm(n));
    cc_.jz(next);
    for (int offset = 0; offset < n * size; offset += 8) {
      const x86::Mem a = x86::ptr(from, done, 0, offset), b = x86::ptr(to, done, 0, offset);
      switch (n * size) {
        case 1:
          cc_.mov(piece.r8(), a);
          cc_.mov(b, piece.r8());
          break;
        case 2:
          cc_.mov(piece.r16(), a);
          cc_.mov(b, piece.r16());
          break;
        case 4:
          cc_.mov(piece.r32(), a);
          cc_.mov(b, piece.r32());
          break;
        default:
          cc_.mov(piece, a);
          cc_.mov(b, piece);
          break;
      }
    }
    cc_.add(done, imm(n * size));
    cc_.bind(next);
  }
}

Value MachineAvx2::load(DType dtype, const Address& address, bool tail) {
  x86::Mem at = memory(address);
  Value v;
  if (tail && size_of(dtype) < 4) {
    cc_.vmovups(tail_scratch(), zeros());
    copy_tail(Direction::In, at, static_cast<int>(size_of(dtype)));
    at = tail_scratch();
  }
  for (int p = 0; p < parts_of(ir::vtype_of(dtype)); ++p) {
    x86::Vec d = vec();
    const x86::Mem from = part_at(at, p);
    v.part[p] = d;
    switch (dtype) {
      case DType::Bool:
        cc_.vpmovzxbd(d, from);
        cc_.vpcmpgtd(d, d, zeros());
        break;
      case DType::U8:
        cc_.vpmovzxbd(d, from);
        break;
      case DType::I8:
        cc_.vpmovsxbd(d, from);
        break;
      case DType::I16:
        cc_.vpmovsxwd(d, from);
        break;
      case DType::F16:
        cc_.vcvtph2ps(d, from);
        break;
      case DType::BF16:
        cc_.vpmovzxwd(d, from);
        cc_.vpslld(d, d, imm(16));
        break;
      case DType::I32:
      case DType::F32:
        if (tail)
          cc_.vmaskmovps(d, mask_, from);
        else
          cc_.vmovups(d, from);
        break;
      case DType::I64:
      case DType::F64:
        if (tail)
          cc_.vmaskmovpd(d, wide_mask_[p], from);
        else
          cc_.vmovupd(d, from);
        break;
    }
  }
  return v;
}

void MachineAvx2::store(DType dtype, const Value& value, const Address& address, StoreMode mode) {
  const x86::Mem at = memory(address);
  const bool tail = mode == StoreMode::Tail;
  const x86::Vec s = vec_of(value.part[0]);
  const int size = static_cast<int>(size_of(dtype));
  if (size >= 4) {
    for (int p = 0; p < parts_of(ir::vtype_of(dtype)); ++p) {
      const x86::Mem to = part_at(at, p);
      const x86::Vec part = vec_of(value.part[p]);
      if (tail && size == 4)
        cc_.vmaskmovps(to, mask_, part);
      else if (tail)
        cc_.vmaskmovpd(to, wide_mask_[p], part);
      else if (mode == StoreMode::Streaming)
        cc_.vmovntps(to, part);
      else
        cc_.vmovups(to, part);
    }
    return;
  }

  const x86::Mem to = tail ? tail_scratch() : at;
  x86::Xmm low = cc_.newXmm();
  if (dtype == DType::F16) {
    cc_.vcvtps2ph(low, s, imm(8));
    cc_.vmovdqu(to, low);
  } else {
    x86::Xmm high = cc_.newXmm();
    x86::Vec words = s;
    if (dtype == DType::BF16) {
      words = vec();
      cc_.vpsrld(words, s, imm(16));
    }
    cc_.vextracti128(high, words, imm(1));
    if (dtype == DType::BF16)
      cc_.vpackusdw(low, words.xmm(), high);
    else
      cc_.vpackssdw(low, words.xmm(), high);
    if (size == 2) {
      cc_.vmovdqu(to, low);
    } else {
      if (dtype == DType::U8)
        cc_.vpackuswb(low, low, low);
      else
        cc_.vpacksswb(low, low, low);
      if (dtype == DType::Bool) {
        const uint8_t ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
        cc_.vpand(low, low, new_constant(cc_, ones, 16));
      }
      cc_.vmovq(to, low);
    }
  }
  if (tail) copy_tail(Direction::Out, at, size);
}

Value MachineAvx2::blend_tail(VType type, const Value& yes, const Value& no) {
  Value v;
  for (int p = 0; p < parts_of(type); ++p) {
    x86::Vec d = vec();
    if (parts_of(type) == 2)
      cc_.vblendvpd(d, vec_of(no.part[p]), vec_of(yes.part[p]), wide_mask_[p]);
    else
      cc_.vblendvps(d, vec_of(no.part[p]), vec_of(yes.part[p]), mask_);
    v.part[p] = d;
  }
  return v;
}

Value MachineAvx2::broadcast_bool(x86::Gp zero_or_one) {
  x86::Gp bits = cc_.newInt32();
  x86::Xmm one = cc_.newXmm();
  x86::Vec d = vec();
  cc_.mov(bits, zero_or_one.r32());
  cc_.neg(bits);
  cc_.vmovd(one, bits);
  cc_.vpbroadcastd(d, one);
  return Value{{d}};
}

x86::Vec MachineAvx2::broadcast_narrow(DType dtype, x86::Mem at) {
  x86::Gp element = cc_.newInt32();
  x86::Xmm one = cc_.newXmm();
  x86::Vec d = vec();
  if (dtype == DType::F16) {
    cc_.vpbroadcastw(one, at);
    cc_.vcvtph2ps(d, one);
    return d;
  }
  load_narrow(dtype, element, at);
  cc_.vmovd(one, element);
  cc_.vpbroadcastd(d, one);
  return d;
}

Arg MachineAvx2::constant_arg(VType type, uint64_t bits) {
  uint64_t lanes64[4];
  const uint64_t whole = parts_of(type) == 2 ? bits : (bits & 0xffffffff) | bits << 32;
  for (uint64_t& lane : lanes64) lane = whole;
  const x86::Mem at = new_constant(cc_, lanes64, sizeof lanes64);
  Arg arg(type, at, at);
  arg.constant = true;
  arg.bits = bits;
  return arg;
}

Arg MachineAvx2::broadcast_arg(VType type, const Address& at) {
  return Arg(type, broadcast(parts_of(type) == 2 ? DType::F64 : DType::F32, at), false);
}

void MachineAvx2::load_operand(VType, x86::Vec to, x86::Mem from) { cc_.vmovups(to, from); }

Value MachineAvx2::index(const Register& base, int offset) {
  x86::Xmm one = cc_.newXmm();
  x86::Vec all = vec();
  cc_.vmovq(one, gp(base));
  cc_.vpbroadcastq(all, one);
  Value v;
  for (int p = 0; p < 2; ++p) {
    int64_t lane[4];
    for (int i = 0; i < 4; ++i) lane[i] = offset + p * 4 + i;
    x86::Vec d = vec();
    cc_.vpaddq(d, all, new_constant(cc_, lane, sizeof lane));
    v.part[p] = d;
  }
  return v;
}

void MachineAvx2::spill(VType type, const Value& value, const Address& address) {
  const x86::Mem to = memory(address);
  for (int p = 0; p < parts_of(type); ++p) cc_.vmovups(part_at(to, p), vec_of(value.part[p]));
}

Value MachineAvx2::fill(VType type, const Address& address) {
  const x86::Mem from = memory(address);
  Value v;
  for (int p = 0; p < parts_of(type); ++p) {
    x86::Vec d = vec();
    cc_.vmovups(d, part_at(from, p));
    v.part[p] = d;
  }
  return v;
}

Value MachineAvx2::shift_down(VType type, const Value& value, int by) {
  if (parts_of(type) == 2 && by == 4) return Value{{value.part[1], value.part[1]}};
  const x86::Vec s = vec_of(value.part[0]);
  x86::Vec d = vec();
  if ((parts_of(type) == 2 ? by * 2 : by) == 4)
    cc_.vperm2f128(d, s, s, imm(0x01));
  else if (parts_of(type) == 2)
    cc_.vpermilpd(d, s, imm(0x5));
  else
    cc_.vpermilps(d, s, imm(by == 2 ? 0b1110 : 0b01));
  return Value{{d, d}};
}

void MachineAvx2::store_first(VType type, const Value& value, const Address& address) {
  const x86::Mem at = memory(address);
  const x86::Xmm s = vec_of(value.part[0]).xmm();
  if (type == VType::Bool) {
    x86::Gp bit = cc_.newInt32();
    // Not vmovd: of a spilled register asmjit would make a load into a vector register.
    cc_.vmovmskps(bit, s);
    cc_.and_(bit, imm(1));
    cc_.mov(at, bit.r8());
  } else if (parts_of(type) == 2) {
    cc_.vmovlpd(at, s);
  } else {
    cc_.vmovss(at, s);
  }
}

InstId MachineAvx2::bitwise(Prim prim, VType type) const noexcept {
  const bool flt = ir::is_float(type);
  switch (prim) {
    case Prim::And:
      return flt ? I::kIdVandps : I::kIdVpand;
    case Prim::Or:
      return flt ? I::kIdVorps : I::kIdVpor;
    default:
      return flt ? I::kIdVxorps : I::kIdVpxor;
  }
}

InstId MachineAvx2::rounding(VType type) const noexcept { return type == VType::F32 ? I::kIdVroundps : I::kIdVroundpd; }

}  // namespace naru::render

#endif
