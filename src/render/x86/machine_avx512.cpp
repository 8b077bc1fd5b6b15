#if defined(__x86_64__)

#include "render/x86/machine_avx512.h"

namespace naru::render {
namespace {

namespace I = x86::Inst;
using asmjit::imm;

x86::Mem part_of(x86::Mem at, int part) {
  at.addOffset(part * 64);
  return at;
}

x86::KReg mask_of(const Value& v) { return v.part[0].as<x86::KReg>(); }

}  // namespace

void MachineAvx512::set_tail(const Register& lanes_left) {
  const x86::Gp count = gp(lanes_left);
  x86::Gp n = cc_.newInt32(), bits = cc_.newInt32(), most = cc_.newInt32();
  mask_[0] = cc_.newKw();
  mask_[1] = cc_.newKw();
  cc_.mov(most, imm(lanes()));
  cc_.mov(n, count.r32());
  cc_.cmp(count, imm(lanes()));
  cc_.cmovg(n, most);
  cc_.mov(bits, imm(-1));
  cc_.bzhi(bits, bits, n);
  cc_.kmovw(mask_[0], bits);
  cc_.kshiftrw(mask_[1], mask_[0], imm(8));
}

Value MachineAvx512::load(DType dtype, const Address& address, bool tail) {
  x86::Mem at = memory(address);
  Value v;
  const auto masked = [&](int part) {
    if (tail) cc_.k(mask_[part]).z();
  };
  switch (dtype) {
    case DType::Bool: {
      x86::Vec bytes = cc_.newXmm();
      x86::KReg k = cc_.newKw();
      masked(0);
      cc_.vmovdqu8(bytes, at);
      cc_.vptestmb(k, bytes, bytes);
      v.part[0] = k;
      return v;
    }
    case DType::I64:
    case DType::F64:
      for (int p = 0; p < 2; ++p) {
        x86::Vec d = vec();
        masked(p);
        cc_.vmovupd(d, part_of(at, p));
        v.part[p] = d;
      }
      return v;
    default:
      break;
  }
  x86::Vec d = vec();
  v.part[0] = d;
  masked(0);
  switch (dtype) {
    case DType::U8:
      cc_.vpmovzxbd(d, at);
      break;
    case DType::I8:
      cc_.vpmovsxbd(d, at);
      break;
    case DType::I16:
      cc_.vpmovsxwd(d, at);
      break;
    case DType::F16:
      cc_.vcvtph2ps(d, at);
      break;
    case DType::BF16:
      cc_.vpmovzxwd(d, at);
      break;
    default:
      cc_.vmovups(d, at);
      break;
  }
  if (dtype == DType::BF16) cc_.vpslld(d, d, imm(16));
  return v;
}

void MachineAvx512::store(DType dtype, const Value& value, const Address& address, StoreMode mode) {
  const x86::Mem at = memory(address);
  const bool tail = mode == StoreMode::Tail;
  const bool streaming = mode == StoreMode::Streaming;
  const auto masked = [&](int part) {
    if (tail) cc_.k(mask_[part]);
  };
  switch (dtype) {
    case DType::Bool: {
      const x86::Xmm bytes = bytes_of_mask(value);
      masked(0);
      cc_.vmovdqu8(at, bytes);
      return;
    }
    case DType::U8:
    case DType::I8: {
      x86::Xmm bytes = cc_.newXmm();
      cc_.vpmovdb(bytes, vec_of(value.part[0]));
      masked(0);
      cc_.vmovdqu8(at, bytes);
      return;
    }
    case DType::I16:
    case DType::F16:
    case DType::BF16: {
      x86::Ymm words = cc_.newYmm();
      x86::Vec source = vec_of(value.part[0]);
      if (dtype == DType::F16) {
        cc_.vcvtps2ph(words, source, imm(8));
      } else if (dtype == DType::BF16) {
        x86::Vec high = vec();
        cc_.vpsrld(high, source, imm(16));
        cc_.vpmovdw(words, high);
      } else {
        cc_.vpmovdw(words, source);
      }
      masked(0);
      cc_.vmovdqu16(at, words);
      return;
    }
    default:
      for (int p = 0; p < parts_of(ir::vtype_of(dtype)); ++p) {
        const x86::Vec source = vec_of(value.part[p]);
        masked(p);
        if (parts_of(ir::vtype_of(dtype)) == 2)
          cc_.emit(streaming ? I::kIdVmovntpd : I::kIdVmovupd, part_of(at, p), source);
        else
          cc_.emit(streaming ? I::kIdVmovntps : I::kIdVmovups, part_of(at, p), source);
      }
  }
}

Value MachineAvx512::blend_tail(VType type, const Value& yes, const Value& no) {
  Value v;
  if (type == VType::Bool) {
    x86::KReg taken = cc_.newKw(), left = cc_.newKw();
    cc_.kandw(taken, mask_[0], mask_of(yes));
    cc_.kandnw(left, mask_[0], mask_of(no));
    cc_.korw(taken, taken, left);
    v.part[0] = taken;
    return v;
  }
  for (int p = 0; p < parts_of(type); ++p) {
    x86::Vec d = vec();
    cc_.k(mask_[p]).emit(parts_of(type) == 2 ? I::kIdVblendmpd : I::kIdVblendmps, d, no.part[p], yes.part[p]);
    v.part[p] = d;
  }
  return v;
}

Value MachineAvx512::broadcast_bool(x86::Gp zero_or_one) {
  x86::Gp bits = cc_.newInt32();
  x86::KReg k = cc_.newKw();
  cc_.mov(bits, zero_or_one.r32());
  cc_.neg(bits);
  cc_.kmovw(k, bits);
  return Value{{k}};
}

x86::Vec MachineAvx512::broadcast_narrow(DType dtype, x86::Mem at) {
  x86::Vec d = vec();
  if (dtype == DType::F16) {
    x86::Ymm words = cc_.newYmm();
    cc_.vpbroadcastw(words, at);
    cc_.vcvtph2ps(d, words);
    return d;
  }
  x86::Gp element = cc_.newInt32();
  load_narrow(dtype, element, at);
  cc_.vpbroadcastd(d, element);
  return d;
}

Arg MachineAvx512::constant_arg(VType type, uint64_t bits) {
  x86::Mem at = new_constant(cc_, &bits, parts_of(type) == 2 ? 8 : 4);  // little-endian: the lower half begins
  Arg arg = broadcast_memory(type, at);
  arg.constant = true;
  arg.bits = bits;
  return arg;
}

Arg MachineAvx512::broadcast_arg(VType type, const Address& at) { return broadcast_memory(type, memory(at)); }

Arg MachineAvx512::broadcast_memory(VType type, x86::Mem at) {
  at.setSize(0);
  at.setBroadcast(parts_of(type) == 2 ? x86::Mem::Broadcast::k1To8 : x86::Mem::Broadcast::k1To16);
  return Arg(type, at, at);
}

void MachineAvx512::load_operand(VType type, x86::Vec to, x86::Mem from) {
  if (from.hasBroadcast()) {
    from.resetBroadcast();
    cc_.emit(parts_of(type) == 2 ? I::kIdVbroadcastsd : I::kIdVbroadcastss, to, from);
  } else {
    cc_.vmovups(to, from);
  }
}

Value MachineAvx512::index(const Register& base, int offset) {
  x86::Vec all = vec();
  cc_.vpbroadcastq(all, gp(base));
  Value v;
  for (int p = 0; p < 2; ++p) {
    int64_t lane[8];
    for (int i = 0; i < 8; ++i) lane[i] = offset + p * 8 + i;
    x86::Vec d = vec();
    cc_.vpaddq(d, all, new_constant(cc_, lane, sizeof lane));
    v.part[p] = d;
  }
  return v;
}

void MachineAvx512::spill(VType type, const Value& value, const Address& address) {
  const x86::Mem to = memory(address);
  if (type == VType::Bool) {
    cc_.kmovw(to, mask_of(value));
    return;
  }
  for (int p = 0; p < parts_of(type); ++p) cc_.vmovups(part_of(to, p), vec_of(value.part[p]));
}

Value MachineAvx512::fill(VType type, const Address& address) {
  const x86::Mem from = memory(address);
  Value v;
  if (type == VType::Bool) {
    x86::KReg k = cc_.newKw();
    cc_.kmovw(k, from);
    v.part[0] = k;
    return v;
  }
  for (int p = 0; p < parts_of(type); ++p) {
    x86::Vec d = vec();
    cc_.vmovups(d, part_of(from, p));
    v.part[p] = d;
  }
  return v;
}

Value MachineAvx512::shift_down(VType type, const Value& value, int by) {
  if (type == VType::Bool) {
    x86::KReg k = cc_.newKw();
    cc_.kshiftrw(k, mask_of(value), imm(by));
    return Value{{k}};
  }
  if (parts_of(type) == 2 && by == 8) return Value{{value.part[1], value.part[1]}};
  const x86::Vec s = vec_of(value.part[0]);
  const int lanes_of_128 = parts_of(type) == 2 ? by / 2 : by / 4;  // moves whole 128-bit lanes, if any
  x86::Vec d = vec();
  if (lanes_of_128 == 2)
    cc_.vshuff64x2(d, s, s, imm(0b1110));
  else if (lanes_of_128 == 1)
    cc_.vshuff64x2(d, s, s, imm(0b01));
  else if (parts_of(type) == 2)
    cc_.vpermilpd(d, s, imm(0x55));
  else
    cc_.vpermilps(d, s, imm(by == 2 ? 0b1110 : 0b01));
  return Value{{d, d}};
}

x86::Xmm MachineAvx512::bytes_of_mask(const Value& value) {
  x86::Xmm bytes = cc_.newXmm();
  const uint8_t ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  cc_.k(mask_of(value)).z().vmovdqu8(bytes, new_constant(cc_, ones, 16));
  return bytes;
}

void MachineAvx512::store_first(VType type, const Value& value, const Address& address) {
  const x86::Mem at = memory(address);
  if (type == VType::Bool) {
    // Not kmovw to a general register: of a spilled mask asmjit would make a load into a mask.
    cc_.vpextrb(at, bytes_of_mask(value), imm(0));
  } else if (parts_of(type) == 2) {
    cc_.vmovlpd(at, vec_of(value.part[0]).xmm());
  } else {
    cc_.vmovss(at, vec_of(value.part[0]).xmm());
  }
}

}  // namespace naru::render

#endif
