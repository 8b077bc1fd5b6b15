#if defined(__aarch64__)

#include "render/a64/machine_neon.h"

#include <bit>

namespace naru::render {
namespace {

using asmjit::imm;

// The bit offset of the only nonzero byte of a word; -1 if there is not exactly one.
int only_byte(uint32_t word) noexcept {
  const int at = std::countr_zero(word) / 8 * 8;
  return word != 0 && (word & ~(0xffu << at)) == 0 ? at : -1;
}

}  // namespace

// --- values ---------------------------------------------------------------------------------------------------------

MachineNeon::Vec MachineNeon::zeros() {
  Vec d = vec();
  cc_.movi(d.s4(), imm(0));
  return d;
}

// (Not with fmov: asmjit's compiler assigns it a wrong register.)
MachineNeon::Vec MachineNeon::bits_everywhere(VType type, uint64_t bits) {
  Vec d = vec();
  const bool wide = parts_of(type) == 2;
  const auto word = static_cast<uint32_t>(bits);
  if (wide ? bits == 0 : word == 0) return zeros();
  if (!wide && only_byte(word) >= 0) {
    const int at = only_byte(word);
    cc_.movi(d.s4(), imm(word >> at), a64::lsl(static_cast<uint32_t>(at)));
  } else {
    const uint64_t whole = wide ? bits : word | uint64_t{word} << 32;
    const uint64_t all[2] = {whole, whole};
    cc_.ldr(d.q(), new_constant(cc_, all, sizeof all));
  }
  return d;
}

Value MachineNeon::constant(VType type, uint64_t bits) {
  if (type == VType::Bool) return Value{{bits_everywhere(VType::I32, bits & 1 ? ~uint64_t{0} : 0)}};
  const Vec d = bits_everywhere(type, bits);
  return parts_of(type) == 2 ? Value{{d, d}} : Value{{d}};
}

// Not in a register yet: a shift by a constant needs none.
Arg MachineNeon::constant_arg(VType type, uint64_t bits) {
  Arg arg;
  arg.type = type;
  arg.constant = true;
  arg.bits = bits;
  return arg;
}

Arg MachineNeon::broadcast_arg(VType type, const Address& at) {
  return Arg(type, broadcast(parts_of(type) == 2 ? DType::F64 : DType::F32, at), true);
}

Arg MachineNeon::load_arg(VType type, const Address& at) {
  return Arg(type, load(parts_of(type) == 2 ? DType::F64 : DType::F32, at, false), true);
}

Value MachineNeon::in_registers(const Arg& arg) {
  return arg.part[0].isReg() ? Value{{arg.part[0], arg.part[1]}} : constant(arg.type, arg.bits);
}

MachineNeon::Taken MachineNeon::take(const Arg& a) {
  const Value v = in_registers(a);
  return {v, a.dying || (!a.part[0].isReg() && parts_of(a.type) == 1)};
}

MachineNeon::Vec MachineNeon::copy_of(const Vec& from) {
  Vec d = vec();
  cc_.mov(d.b16(), from.b16());
  return d;
}

void MachineNeon::move(VType type, const Value& to, const Value& from) {
  for (int p = 0; p < parts_of(type); ++p)
    if (to.part[p] != from.part[p]) cc_.mov(vec_of(to.part[p]).b16(), vec_of(from.part[p]).b16());
}

Value MachineNeon::copy(VType type, const Value& from) {
  Value to;
  for (int p = 0; p < parts_of(type); ++p) to.part[p] = copy_of(vec_of(from.part[p]));
  return to;
}

Value MachineNeon::index(const Register& base, int offset) {
  Vec all = vec();
  cc_.dup(all.d2(), gp(base));
  Value v;
  for (int p = 0; p < 2; ++p) {
    const int64_t lane[2] = {offset + 2 * p, offset + 2 * p + 1};
    Vec d = vec();
    cc_.ldr(d.q(), new_constant(cc_, lane, sizeof lane));
    cc_.add(d.d2(), d.d2(), all.d2());
    v.part[p] = d;
  }
  return v;
}

Value MachineNeon::shift_down(VType type, const Value& value, int by) {
  const bool wide = parts_of(type) == 2;
  if (wide && by == 2) return Value{{value.part[1], value.part[1]}};
  const Vec s = vec_of(value.part[0]);
  Vec d = vec();
  cc_.ext(d.b16(), s.b16(), s.b16(), imm(by * (wide ? 8 : 4)));
  return Value{{d, d}};
}

// --- memory ---------------------------------------------------------------------------------------------------------

void MachineNeon::spill(VType type, const Value& value, const Address& to) {
  for (int p = 0; p < parts_of(type); ++p) cc_.str(vec_of(value.part[p]).q(), a_.memory(to.moved(p * 16)));
}

Value MachineNeon::fill(VType type, const Address& from) {
  Value v;
  for (int p = 0; p < parts_of(type); ++p) {
    Vec d = vec();
    cc_.ldr(d.q(), a_.memory(from.moved(p * 16)));
    v.part[p] = d;
  }
  return v;
}

void MachineNeon::store_first(VType type, const Value& value, const Address& address) {
  const a64::Mem at = a_.memory(address);
  const Vec s = vec_of(value.part[0]);
  if (type == VType::Bool) {
    const a64::Gp bit = cc_.newInt32();
    cc_.umov(bit.w(), s.s(0));
    cc_.and_(bit.w(), bit.w(), imm(1));
    cc_.strb(bit.w(), at);
  } else if (parts_of(type) == 2) {
    cc_.str(s.d(), at);
  } else {
    cc_.str(s.s(), at);
  }
}

void MachineNeon::broadcast_narrow(DType dtype, const Vec& d, const a64::Mem& at) {
  if (dtype == DType::F16) {
    cc_.ldr(d.h(), at);
    cc_.fcvt(d.s(), d.h());
    cc_.dup(d.s4(), d.s(0));
    return;
  }
  const a64::Gp element = cc_.newInt32();
  if (dtype == DType::I8)
    cc_.ldrsb(element.w(), at);
  else if (dtype == DType::I16)
    cc_.ldrsh(element.w(), at);
  else if (size_of(dtype) == 1)
    cc_.ldrb(element.w(), at);
  else
    cc_.ldrh(element.w(), at);
  cc_.dup(d.s4(), element.w());
  if (dtype == DType::BF16) cc_.shl(d.s4(), d.s4(), imm(16));
  if (dtype == DType::Bool) cc_.cmtst(d.s4(), d.s4(), d.s4());
}

// One register is both parts of 64-bit types (see Arg).
Value MachineNeon::broadcast(DType dtype, const Address& address) {
  const a64::Mem at = a_.memory(address);
  Vec d = vec();
  if (size_of(dtype) < 4) {
    broadcast_narrow(dtype, d, at);
    return Value{{d}};
  }
  if (size_of(dtype) == 4) {
    cc_.ldr(d.s(), at);
    cc_.dup(d.s4(), d.s(0));
    return Value{{d}};
  }
  cc_.ldr(d.d(), at);
  cc_.dup(d.d2(), d.d(0));
  return Value{{d, d}};
}

// Loads four elements of less than 32 bits.
void MachineNeon::widen(DType dtype, const Vec& d, const a64::Mem& from) {
  if (size_of(dtype) == 1) {
    cc_.ldr(d.s(), from);
    if (dtype == DType::I8) {
      cc_.sxtl(d.h8(), d.b8());
      cc_.sxtl(d.s4(), d.h4());
    } else {
      cc_.uxtl(d.h8(), d.b8());
      cc_.uxtl(d.s4(), d.h4());
    }
    if (dtype == DType::Bool) cc_.cmtst(d.s4(), d.s4(), d.s4());
    return;
  }
  cc_.ldr(d.d(), from);
  if (dtype == DType::F16)
    cc_.fcvtl(d.s4(), d.h4());
  else if (dtype == DType::BF16)
    cc_.shll(d.s4(), d.h4(), imm(16));
  else
    cc_.sxtl(d.s4(), d.h4());
}

// The address of the element for a lane (0 to 2) of a tail of less than four; a lane beyond the tail maps to the tail's last element.
a64::Mem MachineNeon::some_at(const a64::Gp& at, int lane, int size) const {
  if (lane == 0) return a64::ptr(at);
  const a64::Gp& index = lane == 1 ? second_ : last_;
  return size == 1 ? a64::ptr(at, index)
                   : a64::ptr(at, index, a64::lsl(static_cast<uint32_t>(std::countr_zero(static_cast<unsigned>(size)))));
}

// Loads one to three elements through scalar registers; the other lanes become zero.
Value MachineNeon::load_some(DType dtype, const Value& into, const a64::Gp& at) {
  const int size = static_cast<int>(size_of(dtype)), parts = parts_of(ir::vtype_of(dtype));
  a64::Gp element[3];
  for (int lane = 0; lane < 3; ++lane) {
    element[lane] = cc_.newInt64();
    const a64::Mem from = some_at(at, lane, size);
    const a64::Gp w = element[lane].w();
    if (size == 8)
      cc_.ldr(element[lane], from);
    else if (size == 4)
      cc_.ldr(w, from);
    else if (dtype == DType::I16)
      cc_.ldrsh(w, from);
    else if (size == 2)
      cc_.ldrh(w, from);
    else if (dtype == DType::I8)
      cc_.ldrsb(w, from);
    else
      cc_.ldrb(w, from);
  }
  const Vec d = vec_of(into.part[0]);
  if (parts == 2) {
    const Vec upper = vec_of(into.part[1]);
    cc_.dup(d.d2(), element[0]);
    cc_.ins(d.d(1), element[1]);
    cc_.and_(d.b16(), d.b16(), wide_mask_[0].b16());
    cc_.dup(upper.d2(), element[2]);
    cc_.and_(upper.b16(), upper.b16(), wide_mask_[1].b16());
    return into;
  }
  cc_.dup(d.s4(), element[0].w());
  cc_.ins(d.s(1), element[1].w());
  cc_.ins(d.s(2), element[2].w());
  cc_.and_(d.b16(), d.b16(), mask_.b16());
  if (dtype == DType::Bool) {
    cc_.cmtst(d.s4(), d.s4(), d.s4());
  } else if (dtype == DType::BF16) {
    cc_.shl(d.s4(), d.s4(), imm(16));
  } else if (dtype == DType::F16) {
    cc_.xtn(d.h4(), d.s4());
    cc_.fcvtl(d.s4(), d.h4());
  }
  return into;
}

Value MachineNeon::load(DType dtype, const Address& address, bool tail) {
  const int parts = parts_of(ir::vtype_of(dtype));
  const a64::Mem at = a_.memory(address);
  const a64::Gp place = tail ? a_.pointer(address) : a64::Gp();
  Value v;
  for (int p = 0; p < parts; ++p) v.part[p] = vec();
  const Vec d = vec_of(v.part[0]);
  const Label some = cc_.newLabel(), done = cc_.newLabel();
  if (tail) cc_.tbz(count_, imm(2), some);
  if (parts == 2)
    cc_.ldp(d.q(), vec_of(v.part[1]).q(), at);
  else if (size_of(dtype) == 4)
    cc_.ldr(d.q(), at);
  else
    widen(dtype, d, at);
  if (!tail) return v;
  cc_.b(done);
  cc_.bind(some);
  load_some(dtype, v, place);
  cc_.bind(done);
  return v;
}

void MachineNeon::set_tail(const Register& count) {
  const a64::Gp most = cc_.newInt64();
  count_ = cc_.newInt64();
  second_ = cc_.newInt64();
  last_ = cc_.newInt64();
  cc_.mov(most, imm(lanes()));
  cc_.cmp(gp(count), imm(lanes()));
  cc_.csel(count_, gp(count), most, imm(asmjit::arm::CondCode::kLT));
  cc_.sub(last_, count_, imm(1));
  cc_.cmp(last_, imm(0));
  cc_.cset(second_, imm(asmjit::arm::CondCode::kNE));
  mask_ = vec();
  Vec lane = vec();
  const int32_t numbers[4] = {0, 1, 2, 3};
  cc_.dup(mask_.s4(), count_.w());
  cc_.ldr(lane.q(), new_constant(cc_, numbers, sizeof numbers));
  cc_.cmgt(mask_.s4(), mask_.s4(), lane.s4());
  for (int p = 0; p < 2; ++p) wide_mask_[p] = wide_mask(mask_, p);
}

Value MachineNeon::blend_tail(VType type, const Value& yes, const Value& no) {
  Value v;
  for (int p = 0; p < parts_of(type); ++p) {
    const Vec d = copy_of(parts_of(type) == 2 ? wide_mask_[p] : mask_);
    cc_.bsl(d.b16(), vec_of(yes.part[p]).b16(), vec_of(no.part[p]).b16());
    v.part[p] = d;
  }
  return v;
}

// The stored form of four 32-bit lanes: packed (whole), or each in the low bits of its lane (float16: of a 16-bit lane).
MachineNeon::Vec MachineNeon::narrowed(DType dtype, const Vec& v, bool whole) {
  Vec d = vec();
  if (dtype == DType::F16) {
    cc_.fcvtn(d.h4(), v.s4());
    return d;
  }
  if (dtype == DType::BF16 && whole) {
    cc_.shrn(d.h4(), v.s4(), imm(16));
    return d;
  }
  Vec s = v;
  if (dtype == DType::BF16 || dtype == DType::Bool) {
    s = vec();
    cc_.ushr(s.s4(), v.s4(), imm(dtype == DType::Bool ? 31 : 16));
  }
  if (!whole) return s;
  cc_.xtn(d.h4(), s.s4());
  if (size_of(dtype) == 1) cc_.xtn(d.b8(), d.h8());
  return d;
}

// Stores one to three elements, from the last lane down, so that the values of lanes beyond the tail are overwritten.
void MachineNeon::store_some(DType dtype, const Value& value, const a64::Gp& at) {
  const int size = static_cast<int>(size_of(dtype));
  const Vec low = size < 4 ? narrowed(dtype, vec_of(value.part[0]), false) : vec_of(value.part[0]);
  for (int lane = 2; lane >= 0; --lane) {
    const a64::Gp element = cc_.newInt64();
    const a64::Mem to = some_at(at, lane, size);
    if (size == 8) {
      cc_.umov(element, vec_of(value.part[lane / 2]).d(static_cast<uint32_t>(lane % 2)));
      cc_.str(element, to);
      continue;
    }
    cc_.umov(element.w(), dtype == DType::F16 ? low.h(static_cast<uint32_t>(lane)) : low.s(static_cast<uint32_t>(lane)));
    if (size == 4)
      cc_.str(element.w(), to);
    else if (size == 2)
      cc_.strh(element.w(), to);
    else
      cc_.strb(element.w(), to);
  }
}

// Streaming stores are ordinary stores: the only instruction for them (stnp) is a hint for pairs of registers, and its benefit has not been
// measured.
void MachineNeon::store(DType dtype, const Value& value, const Address& address, StoreMode mode) {
  const bool tail = mode == StoreMode::Tail;
  const Vec s = vec_of(value.part[0]);
  const a64::Mem at = a_.memory(address);
  const a64::Gp place = tail ? a_.pointer(address) : a64::Gp();
  const Label some = cc_.newLabel(), done = cc_.newLabel();
  if (tail) cc_.tbz(count_, imm(2), some);
  switch (size_of(dtype)) {
    case 8:
      cc_.stp(s.q(), vec_of(value.part[1]).q(), at);
      break;
    case 4:
      cc_.str(s.q(), at);
      break;
    case 2:
      cc_.str(narrowed(dtype, s, true).d(), at);
      break;
    default:
      cc_.str(narrowed(dtype, s, true).s(), at);
      break;
  }
  if (!tail) return;
  cc_.b(done);
  cc_.bind(some);
  store_some(dtype, value, place);
  cc_.bind(done);
}

}  // namespace naru::render

#endif
