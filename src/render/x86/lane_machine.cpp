#if defined(__x86_64__)

#include "render/x86/lane_machine.h"

namespace naru::render {
namespace {

namespace I = x86::Inst;
using asmjit::imm;

InstId of_type(VType t, InstId i32, InstId i64, InstId f32, InstId f64) noexcept {
  switch (t) {
    case VType::I32:
      return i32;
    case VType::I64:
      return i64;
    case VType::F32:
      return f32;
    default:
      return f64;
  }
}

uint64_t sign_bit(VType t) noexcept { return parts_of(t) == 2 ? uint64_t{1} << 63 : uint64_t{1} << 31; }

}  // namespace

x86::Vec X86LaneMachine::reg(const Arg& a, int part) {
  if (a.part[part].isReg()) return a.part[part].as<x86::Vec>();
  x86::Vec to = vec();
  load_operand(a.type, to, a.part[part].as<x86::Mem>());
  return to;
}

x86::Vec X86LaneMachine::target(const Arg& a, int part) { return a.dying && a.part[part].isReg() ? a.part[part].as<x86::Vec>() : vec(); }

Value X86LaneMachine::constant(VType type, uint64_t bits) {
  if (type != VType::Bool) return in_registers(constant_arg(type, bits));
  x86::Gp value = cc_.newGpd();
  cc_.mov(value, imm(bits & 1));
  return broadcast_bool(value);
}

void X86LaneMachine::load_narrow(DType dtype, x86::Gp to, x86::Mem at) {
  at.setSize(static_cast<uint32_t>(size_of(dtype)));
  const bool is_signed = dtype == DType::I8 || dtype == DType::I16;
  cc_.emit(is_signed ? I::kIdMovsx : I::kIdMovzx, to, at);
  if (dtype == DType::BF16) cc_.shl(to, imm(16));
}

// One register is both parts of 64-bit types (see Arg).
Value X86LaneMachine::broadcast(DType dtype, const Address& address) {
  const x86::Mem at = memory(address);
  if (dtype == DType::Bool) {
    x86::Gp element = cc_.newInt32();
    load_narrow(dtype, element, at);
    cc_.test(element, element);
    cc_.setne(element.r8());
    cc_.movzx(element, element.r8());
    return broadcast_bool(element);
  }
  if (size_of(dtype) < 4) return Value{{broadcast_narrow(dtype, at)}};
  x86::Vec d = vec();
  if (size_of(dtype) == 4) {
    cc_.vbroadcastss(d, at);
    return Value{{d}};
  }
  cc_.vbroadcastsd(d, at);
  return Value{{d, d}};
}

Arg X86LaneMachine::load_arg(VType type, const Address& at) { return Arg(type, memory(at), memory(at.moved(lanes() * 4))); }

Value X86LaneMachine::in_registers(const Arg& arg) {
  Value v{{arg.part[0], arg.part[1]}};
  if (arg.type != VType::Bool && arg.part[0].isMem() && arg.constant && parts_of(arg.type) == 2) {
    v.part[0] = v.part[1] = reg(arg, 0);
    return v;
  }
  for (int p = 0; p < parts_of(arg.type); ++p)
    if (arg.part[p].isMem()) v.part[p] = reg(arg, p);
  return v;
}

void X86LaneMachine::branch_where_all(std::span<const Value> conditions, const Label& label) {
  const asmjit::Operand all = copy(VType::Bool, conditions[0]).part[0];
  const bool in_masks = masks() > 0;
  for (const Value& c : conditions.subspan(1)) cc_.emit(in_masks ? I::kIdKandw : I::kIdVandps, all, all, c.part[0]);
  if (in_masks) {
    cc_.kortestw(all.as<x86::KReg>(), all.as<x86::KReg>());
    return void(cc_.jc(label));
  }
  const x86::Gp lanes = cc_.newInt32();
  cc_.vmovmskps(lanes, all.as<x86::Vec>());
  cc_.cmp(lanes, imm(0xff));
  cc_.je(label);
}

void X86LaneMachine::move(VType type, const Value& to, const Value& from) {
  for (int p = 0; p < parts_of(type); ++p) {
    if (to.part[p] == from.part[p]) continue;
    const bool mask = to.part[p].as<asmjit::BaseReg>().isGroup(asmjit::RegGroup::kX86_K);
    cc_.emit(mask ? I::kIdKmovw : I::kIdVmovaps, to.part[p], from.part[p]);
  }
}

Value X86LaneMachine::copy(VType type, const Value& from) {
  Value to;
  for (int p = 0; p < parts_of(type); ++p)
    if (type == VType::Bool)
      to.part[p] = bool_register();
    else
      to.part[p] = vec();
  move(type, to, from);
  return to;
}

Value X86LaneMachine::unary(InstId id, const Arg& a, VType result) {
  Value d;
  for (int p = 0; p < parts_of(result); ++p) {
    x86::Vec s = reg(a, p);
    d.part[p] = target(a, p);
    cc_.emit(id, d.part[p], s);
  }
  return d;
}

Value X86LaneMachine::unary(InstId id, const Arg& a, VType result, int immediate) {
  Value d;
  for (int p = 0; p < parts_of(result); ++p) {
    x86::Vec s = reg(a, p);
    d.part[p] = target(a, p);
    cc_.emit(id, d.part[p], s, imm(immediate));
  }
  return d;
}

Value X86LaneMachine::binary(InstId id, const Arg& a, const Arg& b, bool commutes) {
  if (commutes && a.part[0].isMem() && b.part[0].isReg()) return binary(id, b, a, false);
  Value d;
  for (int p = 0; p < parts_of(a.type); ++p) {
    x86::Vec s = reg(a, p);
    d.part[p] = a.dying || a.part[p].isMem() ? s : target(b, p);
    cc_.emit(id, d.part[p], s, b.part[p]);
  }
  return d;
}

// The result overwrites a dying operand, so that a Horner scheme needs no moves.
Value X86LaneMachine::multiply_add(const Arg& a, const Arg& b, const Arg& c) {
  const bool wide = parts_of(c.type) == 2;
  const InstId id231 = wide ? I::kIdVfmadd231pd : I::kIdVfmadd231ps;
  const InstId id213 = wide ? I::kIdVfmadd213pd : I::kIdVfmadd213ps;
  const auto dies = [](const Arg& x) { return x.dying && x.part[0].isReg(); };
  Value d;
  for (int p = 0; p < parts_of(c.type); ++p) {
    if (dies(c)) {
      const bool swap = a.part[p].isMem();
      d.part[p] = c.part[p];
      cc_.emit(id231, d.part[p], reg(swap ? b : a, p), swap ? a.part[p] : b.part[p]);
    } else if (dies(a)) {
      d.part[p] = a.part[p];
      cc_.emit(id213, d.part[p], reg(b, p), c.part[p]);
    } else if (dies(b)) {
      d.part[p] = b.part[p];
      cc_.emit(id213, d.part[p], reg(a, p), c.part[p]);
    } else if (a.part[p].isMem() && c.part[p].isReg() && !b.part[p].isMem()) {
      x86::Vec to = vec();
      load_operand(a.type, to, a.part[p].as<x86::Mem>());
      cc_.emit(id213, to, b.part[p], c.part[p]);
      d.part[p] = to;
    } else {
      x86::Vec to = vec();
      if (c.part[p].isMem())
        load_operand(c.type, to, c.part[p].as<x86::Mem>());
      else
        cc_.vmovaps(to, c.part[p].as<x86::Vec>());
      cc_.emit(id231, to, reg(a, p), b.part[p]);
      d.part[p] = to;
    }
  }
  return d;
}

Value X86LaneMachine::shift(Prim prim, const Arg& a, const Arg& b) {
  const bool wide = parts_of(a.type) == 2;
  const InstId by_lane = prim == Prim::Shl    ? (wide ? I::kIdVpsllvq : I::kIdVpsllvd)
                         : prim == Prim::ShrU ? (wide ? I::kIdVpsrlvq : I::kIdVpsrlvd)
                                              : (wide ? I::kIdVpsravq : I::kIdVpsravd);
  const InstId by_all = prim == Prim::Shl    ? (wide ? I::kIdVpsllq : I::kIdVpslld)
                        : prim == Prim::ShrU ? (wide ? I::kIdVpsrlq : I::kIdVpsrld)
                                             : (wide ? I::kIdVpsraq : I::kIdVpsrad);
  if (b.constant) return unary(by_all, a, a.type, static_cast<int>(b.bits & 63));
  return binary(by_lane, a, b, false);
}

x86::Mem X86LaneMachine::scratch(int offset) {
  if (!has_scratch_) scratch_ = cc_.newStack(2 * kSecondOperand, 64);
  has_scratch_ = true;
  x86::Mem at = scratch_.cloneAdjusted(offset);
  at.setSize(0);
  return at;
}

Value X86LaneMachine::call(LaneFunction function, VType type, const Arg& a, const Arg& b) {
  for (int p = 0; p < parts_of(type); ++p) {
    cc_.emit(I::kIdVmovups, scratch(p * lanes() * 4), reg(a, p));
    cc_.emit(I::kIdVmovups, scratch(kSecondOperand + p * lanes() * 4), reg(b, p));
  }
  x86::Gp pointer = cc_.newIntPtr();
  x86::Gp count = cc_.newInt64();
  cc_.lea(pointer, scratch(0));
  cc_.mov(count, imm(lanes()));
  asmjit::InvokeNode* node = nullptr;
  cc_.invoke(&node, imm(reinterpret_cast<uint64_t>(function)), asmjit::FuncSignatureT<void, void*, int64_t>());
  if (node != nullptr) {
    node->setArg(0, pointer);
    node->setArg(1, count);
    // On Windows a function preserves only the lower halves of some vector registers, so no value stays in any of them.
    node->detail()._callConv.setPreservedRegs(asmjit::RegGroup::kVec, 0);
  }
  Value d;
  for (int p = 0; p < parts_of(type); ++p) {
    d.part[p] = vec();
    cc_.emit(I::kIdVmovups, d.part[p], scratch(p * lanes() * 4));
  }
  return d;
}

// A quotient of 32-bit integers, rounded to float64, truncates to the same integer as the exact one. Converting 2^31 gives INT32_MIN, the
// required result of MIN / -1.
Value X86LaneMachine::divide_int32(const Arg& a, const Arg& b, bool remainder) {
  const Value divisor = in_registers(b);
  const Arg kept_divisor = kept(VType::I32, divisor);
  const Value x = in_registers(a);
  const Arg wide_a = temporary(VType::F64, change_width(VType::I32, VType::F64, kept(VType::I32, x)));
  const Arg wide_b = temporary(VType::F64, change_width(VType::I32, VType::F64, kept_divisor));
  const Value wide = binary(I::kIdVdivpd, wide_a, wide_b, false);
  Value result = change_width(VType::F64, VType::I32, temporary(VType::F64, wide));
  if (remainder) {
    const Value product = binary(I::kIdVpmulld, temporary(VType::I32, result), kept_divisor, true);
    result = binary(I::kIdVpsubd, kept(VType::I32, x), temporary(VType::I32, product), false);
  }
  const Arg zero = constant_arg(VType::I32, 0);
  const Value valid = compare(Prim::Ne, kept_divisor, zero);
  return select(temporary(VType::Bool, valid), temporary(VType::I32, result), zero);
}

Value X86LaneMachine::round_to_bfloat(const Arg& a) {
  const VType t = VType::I32;
  const Value x = in_registers(a);
  const Arg bits = kept(t, x);
  const InstId and_id = bitwise(Prim::And, t);
  Value odd = unary(I::kIdVpsrld, bits, t, 16);
  odd = binary(and_id, temporary(t, odd), constant_arg(t, 1), true);
  Value up = binary(I::kIdVpaddd, temporary(t, odd), constant_arg(t, 0x7fff), true);
  up = binary(I::kIdVpaddd, temporary(t, up), bits, true);
  up = binary(and_id, temporary(t, up), constant_arg(t, 0xffff0000), true);
  // NaN stays NaN, made quiet.
  Value quiet = binary(and_id, bits, constant_arg(t, 0xffff0000), true);
  quiet = binary(bitwise(Prim::Or, t), temporary(t, quiet), constant_arg(t, 0x00400000), true);
  const Arg value = kept(VType::F32, x);
  const Value nan = compare(Prim::Ne, value, value);
  return select(temporary(VType::Bool, nan), temporary(VType::F32, quiet), temporary(VType::F32, up));
}

Value X86LaneMachine::convert(const Arg& a, DType to) {
  const VType from = a.type;
  const VType type = ir::vtype_of(to);
  if (to == DType::Bool) {
    if (from == VType::Bool) return copy(from, in_registers(a));
    return compare(Prim::Ne, a, constant_arg(from, 0));
  }
  if (from == VType::Bool) {
    const uint64_t one = type == VType::F32 ? 0x3f800000 : type == VType::F64 ? 0x3ff0000000000000 : 1;
    return select(a, constant_arg(type, one), constant_arg(type, 0));
  }

  Value v;
  if (from == type)
    v = Value{{a.part[0], a.part[1]}};
  else if (from == VType::F32 && type == VType::I32)
    v = unary(I::kIdVcvttps2dq, a, type);
  else if (from == VType::I32 && type == VType::F32)
    v = unary(I::kIdVcvtdq2ps, a, type);
  else
    v = change_width(from, type, a);

  const Arg whole(type, v, from != type || a.dying);
  switch (to) {
    case DType::U8:
      return binary(bitwise(Prim::And, type), whole, constant_arg(type, 0xff), true);
    case DType::I8:
    case DType::I16: {
      const int unused = to == DType::I8 ? 24 : 16;
      const Value up = unary(I::kIdVpslld, whole, type, unused);
      return unary(I::kIdVpsrad, temporary(type, up), type, unused);
    }
    case DType::F16:
      return round_to_half(whole);
    case DType::BF16:
      return round_to_bfloat(whole);
    default:
      return from == type ? copy(type, in_registers(a)) : v;
  }
}

Value X86LaneMachine::arithmetic64(const ir::Node& node, const Arg* args) {
  const Arg &a = args[0], &b = args[1];
  switch (node.prim) {
    case Prim::Mul:
      return binary(I::kIdVpmullq, a, b, true);
    case Prim::Min:
      return binary(I::kIdVpminsq, a, b, true);
    case Prim::Max:
      return binary(I::kIdVpmaxsq, a, b, true);
    case Prim::Abs:
      return unary(I::kIdVpabsq, a, node.type);
    default:
      return shift(node.prim, a, b);
  }
}

Value X86LaneMachine::eval(const ir::Node& node, const Arg* args) {
  const VType t = node.type;
  const Arg &a = args[0], &b = args[1], &c = args[2];
  const bool flt = ir::is_float(t);
  if (a.type == VType::Bool && node.prim != Prim::Convert && (node.prim != Prim::Select || t == VType::Bool)) return bool_logic(node, args);
  if (const LaneFunction function = lane_function(node.prim, t)) return call(function, t, a, b);
  switch (node.prim) {
    case Prim::Add:
      return binary(of_type(t, I::kIdVpaddd, I::kIdVpaddq, I::kIdVaddps, I::kIdVaddpd), a, b, true);
    case Prim::Sub:
      return binary(of_type(t, I::kIdVpsubd, I::kIdVpsubq, I::kIdVsubps, I::kIdVsubpd), a, b, false);
    case Prim::Mul:
      if (t == VType::I64) return arithmetic64(node, args);
      return binary(of_type(t, I::kIdVpmulld, I::kIdNone, I::kIdVmulps, I::kIdVmulpd), a, b, true);
    case Prim::Fma:
      return multiply_add(a, b, c);
    case Prim::Div:
      if (t == VType::I32) return divide_int32(a, b, false);
      return binary(t == VType::F32 ? I::kIdVdivps : I::kIdVdivpd, a, b, false);
    case Prim::Rem:
      return divide_int32(a, b, true);
    case Prim::Neg: {
      if (flt) return binary(bitwise(Prim::Xor, t), a, constant_arg(t, sign_bit(t)), true);
      const Value zero = constant(t, 0);
      return binary(t == VType::I32 ? I::kIdVpsubd : I::kIdVpsubq, kept(t, zero), a, false);
    }
    case Prim::Abs:
      if (flt) return binary(bitwise(Prim::And, t), a, constant_arg(t, sign_bit(t) - 1), true);
      return t == VType::I32 ? unary(I::kIdVpabsd, a, t) : arithmetic64(node, args);
    case Prim::Sqrt:
      return unary(t == VType::F32 ? I::kIdVsqrtps : I::kIdVsqrtpd, a, t);
    case Prim::Min:
      if (t == VType::I64) return arithmetic64(node, args);
      return binary(of_type(t, I::kIdVpminsd, I::kIdNone, I::kIdVminps, I::kIdVminpd), a, b, !flt);
    case Prim::Max:
      if (t == VType::I64) return arithmetic64(node, args);
      return binary(of_type(t, I::kIdVpmaxsd, I::kIdNone, I::kIdVmaxps, I::kIdVmaxpd), a, b, !flt);
    case Prim::Round:
      return unary(rounding(t), a, t, 8);
    case Prim::Floor:
      return unary(rounding(t), a, t, 9);
    case Prim::Ceil:
      return unary(rounding(t), a, t, 10);
    case Prim::Trunc:
      return unary(rounding(t), a, t, 11);
    case Prim::Scale:
      return scale(a, b);
    case Prim::Lt:
    case Prim::Le:
    case Prim::Eq:
    case Prim::Ne:
      return compare(node.prim, a, b);
    case Prim::Select:
      return select(a, b, c);
    case Prim::And:
    case Prim::Or:
    case Prim::Xor:
      return binary(bitwise(node.prim, t), a, b, true);
    case Prim::Not:
      return binary(bitwise(Prim::Xor, t), a, constant_arg(t, ~uint64_t{0}), true);
    case Prim::Shl:
    case Prim::Shr:
    case Prim::ShrU:
      return t == VType::I64 ? arithmetic64(node, args) : shift(node.prim, a, b);
    case Prim::MulHiU:
      return mul_hi_unsigned(a, b);
    case Prim::Convert:
      return convert(a, node.dtype);
    default:
      return {};  // the walker handles leaves and Bitcast
  }
}

}  // namespace naru::render

#endif
