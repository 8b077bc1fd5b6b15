// Arithmetic, comparisons, selections of NEON.
#if defined(__aarch64__)

#include <bit>

#include "render/a64/machine_neon.h"

namespace naru::render {
namespace {

using I = a64::Inst;
using asmjit::imm;

// Primitives that are a single instruction, for integer and floating-point types; kIdNone: no such instruction.
struct Instruction {
  Prim prim;
  asmjit::InstId integer, floating;
};
constexpr Instruction kUnary[] = {
    {Prim::Neg, I::kIdNeg_v, I::kIdFneg_v},    {Prim::Abs, I::kIdAbs_v, I::kIdFabs_v},   {Prim::Sqrt, I::kIdNone, I::kIdFsqrt_v},
    {Prim::Floor, I::kIdNone, I::kIdFrintm_v}, {Prim::Ceil, I::kIdNone, I::kIdFrintp_v}, {Prim::Trunc, I::kIdNone, I::kIdFrintz_v},
    {Prim::Round, I::kIdNone, I::kIdFrintn_v},
};
constexpr Instruction kBinary[] = {
    {Prim::Add, I::kIdAdd_v, I::kIdFadd_v},
    {Prim::Sub, I::kIdSub_v, I::kIdFsub_v},
    {Prim::Mul, I::kIdMul_v, I::kIdFmul_v},
    {Prim::Div, I::kIdNone, I::kIdFdiv_v},
};

template <size_t N>
asmjit::InstId find(const Instruction (&table)[N], Prim prim, VType type) noexcept {
  for (const Instruction& i : table)
    if (i.prim == prim) return ir::is_float(type) ? i.floating : i.integer;
  return I::kIdNone;
}

}  // namespace

Value MachineNeon::unary(InstId id, VType type, const Taken& a) {
  Value v;
  for (int p = 0; p < parts_of(type); ++p) {
    const Vec d = target(a, p);
    cc_.emit(id, lanes_of(type, d), lanes_of(type, a.part(p)));
    v.part[p] = d;
  }
  return v;
}

Value MachineNeon::binary(InstId id, VType type, const Taken& a, const Taken& b) {
  Value v;
  for (int p = 0; p < parts_of(type); ++p) {
    const Vec d = target(a, b, p);
    cc_.emit(id, lanes_of(type, d), lanes_of(type, a.part(p)), lanes_of(type, b.part(p)));
    v.part[p] = d;
  }
  return v;
}

Value MachineNeon::bitwise(InstId id, VType type, const Taken& a, const Taken& b) {
  Value v;
  for (int p = 0; p < parts_of(type); ++p) {
    const Vec d = target(a, b, p);
    cc_.emit(id, d.b16(), a.part(p).b16(), b.part(p).b16());
    v.part[p] = d;
  }
  return v;
}

Value MachineNeon::invert(VType type, const Taken& a) {
  Value v;
  for (int p = 0; p < parts_of(type); ++p) {
    const Vec d = target(a, p);
    cc_.not_(d.b16(), a.part(p).b16());
    v.part[p] = d;
  }
  return v;
}

Value MachineNeon::multiply_add(VType type, const Arg* args) {
  const Taken a = take(args[0]), b = take(args[1]), c = take(args[2]);
  Value v;
  for (int p = 0; p < parts_of(type); ++p) {
    const Vec d = c.free ? c.part(p) : copy_of(c.part(p));
    cc_.fmla(lanes_of(type, d), lanes_of(type, a.part(p)), lanes_of(type, b.part(p)));
    v.part[p] = d;
  }
  return v;
}

// The primitives' definition, which fmin and fmax do not follow: b if either is NaN or both are zero.
Value MachineNeon::extreme(Prim prim, VType type, const Taken& a, const Taken& b) {
  if (type == VType::I32) return binary(prim == Prim::Min ? I::kIdSmin_v : I::kIdSmax_v, type, a, b);
  Value v;
  for (int p = 0; p < parts_of(type); ++p) {
    const Vec greater = prim == Prim::Min ? b.part(p) : a.part(p), less = prim == Prim::Min ? a.part(p) : b.part(p);
    const Vec first = vec();
    cc_.emit(ir::is_float(type) ? I::kIdFcmgt_v : I::kIdCmgt_v, lanes_of(type, first), lanes_of(type, greater), lanes_of(type, less));
    Vec d = first;
    if (a.free)
      cc_.bif((d = a.part(p)).b16(), b.part(p).b16(), first.b16());
    else if (b.free)
      cc_.bit((d = b.part(p)).b16(), a.part(p).b16(), first.b16());
    else
      cc_.bsl(d.b16(), a.part(p).b16(), b.part(p).b16());
    v.part[p] = d;
  }
  return v;
}

// low * low + ((low * high + high * low) << 32)
Value MachineNeon::multiply64(const Taken& a, const Taken& b) {
  Value v;
  for (int p = 0; p < 2; ++p) {
    const Vec x = a.part(p), y = b.part(p);
    Vec d = vec(), low_x = vec(), low_y = vec();
    cc_.rev64(d.s4(), y.s4());
    cc_.mul(d.s4(), d.s4(), x.s4());
    cc_.uaddlp(d.d2(), d.s4());
    cc_.shl(d.d2(), d.d2(), imm(32));
    cc_.xtn(low_x.s2(), x.d2());
    cc_.xtn(low_y.s2(), y.d2());
    cc_.umlal(d.d2(), low_x.s2(), low_y.s2());
    v.part[p] = d;
  }
  return v;
}

Value MachineNeon::multiply_high(const Taken& a, const Taken& b) {
  Vec low = vec(), high = vec();
  cc_.umull(low.d2(), a.part(0).s2(), b.part(0).s2());
  cc_.umull2(high.d2(), a.part(0).s4(), b.part(0).s4());
  cc_.uzp2(low.s4(), low.s4(), high.s4());
  return Value{{low}};
}

// Lane by lane. The instruction gives 0 for x / 0 and MIN for MIN / -1, like the primitive.
Value MachineNeon::divide(VType type, const Taken& a, const Taken& b, bool remainder) {
  const bool wide = parts_of(type) == 2;
  const uint32_t each = wide ? 2 : 4;
  Value v;
  for (int p = 0; p < parts_of(type); ++p) {
    const Vec d = vec();
    for (uint32_t lane = 0; lane < each; ++lane) {
      const auto element = [&](const Vec& x) { return wide ? x.d(lane) : x.s(lane); };
      const auto form = [&](const a64::Gp& r) -> a64::Gp { return wide ? a64::Gp(r.x()) : a64::Gp(r.w()); };
      const a64::Gp x = form(cc_.newInt64()), y = form(cc_.newInt64()), q = form(cc_.newInt64());
      cc_.umov(x, element(a.part(p)));
      cc_.umov(y, element(b.part(p)));
      cc_.sdiv(q, x, y);
      if (remainder) cc_.msub(q, q, y, x);
      if (lane == 0)
        cc_.dup(lanes_of(type, d), q);
      else
        cc_.ins(element(d), q);
    }
    if (remainder) {  // x rem 0 is 0
      const Vec valid = vec();
      cc_.cmtst(lanes_of(type, valid), lanes_of(type, b.part(p)), lanes_of(type, b.part(p)));
      cc_.and_(d.b16(), d.b16(), valid.b16());
    }
    v.part[p] = d;
  }
  return v;
}

Value MachineNeon::shift(Prim prim, VType type, const Arg& a, const Arg& b) {
  const Taken x = take(a);
  Value v;
  if (b.constant) {
    const auto by = static_cast<uint32_t>(b.bits & (parts_of(type) == 2 ? 63 : 31));
    const InstId id = prim == Prim::Shl ? I::kIdShl_v : prim == Prim::Shr ? I::kIdSshr_v : I::kIdUshr_v;
    for (int p = 0; p < parts_of(type); ++p) {
      const Vec d = target(x, p);
      if (by == 0)
        cc_.mov(d.b16(), x.part(p).b16());
      else
        cc_.emit(id, lanes_of(type, d), lanes_of(type, x.part(p)), imm(by));
      v.part[p] = d;
    }
    return v;
  }
  // A right shift is a left shift by a negative count.
  const Taken count = take(b);
  const InstId id = prim == Prim::Shr ? I::kIdSshl_v : I::kIdUshl_v;
  for (int p = 0; p < parts_of(type); ++p) {
    const Vec d = vec();
    Vec by = count.part(p);
    if (prim != Prim::Shl) {
      by = vec();
      cc_.neg(lanes_of(type, by), lanes_of(type, count.part(p)));
    }
    cc_.emit(id, lanes_of(type, d), lanes_of(type, x.part(p)), lanes_of(type, by));
    v.part[p] = d;
  }
  return v;
}

// In 64 bits: there the product with a power of two is exact, and the conversion rounds once.
Value MachineNeon::scale32(const Taken& a, const Taken& b) {
  const VType t = VType::I32;
  const Vec zero = zeros();
  Vec n = vec(), low = vec(), high = vec(), factor = vec(), d = vec();
  cc_.fcvtzs(n.s4(), b.part(0).s4());
  cc_.smax(n.s4(), n.s4(), bits_everywhere(t, static_cast<uint32_t>(-400)).s4());
  cc_.smin(n.s4(), n.s4(), bits_everywhere(t, 400).s4());
  cc_.add(n.s4(), n.s4(), bits_everywhere(t, 1023).s4());
  cc_.shl(n.s4(), n.s4(), imm(20));  // the upper half of a float64's bits
  cc_.fcvtl(low.d2(), a.part(0).s2());
  cc_.fcvtl2(high.d2(), a.part(0).s4());
  cc_.zip1(factor.s4(), zero.s4(), n.s4());
  cc_.fmul(low.d2(), low.d2(), factor.d2());
  cc_.zip2(n.s4(), zero.s4(), n.s4());
  cc_.fmul(high.d2(), high.d2(), n.d2());
  cc_.fcvtn(d.s2(), low.d2());
  cc_.fcvtn2(d.s4(), high.d2());
  return Value{{d}};
}

// a * 2^b as (a * 2^h) * 2^(b - h). h >= -960 keeps the first product normal, so that only the second one rounds.
Value MachineNeon::scale(VType type, const Taken& a, const Taken& b) {
  if (type == VType::F32) return scale32(a, b);
  const auto flt = [&](double x) { return bits_everywhere(VType::F64, std::bit_cast<uint64_t>(x)); };
  Value v;
  for (int p = 0; p < 2; ++p) {
    Vec h = vec(), rest = vec(), d = vec();
    cc_.fmax(h.d2(), b.part(p).d2(), flt(-960).d2());
    cc_.fmin(h.d2(), h.d2(), flt(1023).d2());
    cc_.fsub(rest.d2(), b.part(p).d2(), h.d2());
    cc_.fmax(rest.d2(), rest.d2(), flt(-1000).d2());
    cc_.fmin(rest.d2(), rest.d2(), flt(1000).d2());
    const Vec bias = bits_everywhere(VType::I64, 1023);
    for (const Vec* e : {&h, &rest}) {
      cc_.fcvtzs(e->d2(), e->d2());
      cc_.add(e->d2(), e->d2(), bias.d2());
      cc_.shl(e->d2(), e->d2(), imm(52));
    }
    cc_.fmul(d.d2(), a.part(p).d2(), h.d2());
    cc_.fmul(d.d2(), d.d2(), rest.d2());
    v.part[p] = d;
  }
  return v;
}

Value MachineNeon::compare(Prim prim, VType type, const Taken& a, const Taken& b) {
  const bool flt = ir::is_float(type), swapped = prim == Prim::Lt || prim == Prim::Le;
  const InstId id = prim == Prim::Lt   ? (flt ? I::kIdFcmgt_v : I::kIdCmgt_v)
                    : prim == Prim::Le ? (flt ? I::kIdFcmge_v : I::kIdCmge_v)
                                       : (flt ? I::kIdFcmeq_v : I::kIdCmeq_v);
  Vec part[2];
  for (int p = 0; p < parts_of(type); ++p) {
    const Vec x = swapped ? b.part(p) : a.part(p), y = swapped ? a.part(p) : b.part(p);
    part[p] = vec();
    cc_.emit(id, lanes_of(type, part[p]), lanes_of(type, x), lanes_of(type, y));
  }
  const Vec d = parts_of(type) == 2 ? narrow_mask(part[0], part[1]) : part[0];
  return prim == Prim::Ne ? invert(VType::Bool, {Value{{d}}, true}) : Value{{d}};
}

Value MachineNeon::select(VType type, const Taken& condition, const Taken& yes, const Taken& no) {
  Value v;
  for (int p = 0; p < parts_of(type); ++p) {
    const Vec mask = parts_of(type) == 2 ? wide_mask(condition.part(0), p) : condition.part(0);
    Vec d = mask;
    if (no.free) {
      cc_.bit((d = no.part(p)).b16(), yes.part(p).b16(), mask.b16());
    } else if (yes.free) {
      cc_.bif((d = yes.part(p)).b16(), no.part(p).b16(), mask.b16());
    } else {
      if (parts_of(type) == 1 && !condition.free) d = copy_of(mask);
      cc_.bsl(d.b16(), yes.part(p).b16(), no.part(p).b16());
    }
    v.part[p] = d;
  }
  return v;
}

Value MachineNeon::bool_logic(Prim prim, const Arg* args) {
  const Taken a = take(args[0]);
  if (prim == Prim::Not) return invert(VType::Bool, a);
  const Taken b = take(args[1]);
  switch (prim) {
    case Prim::And:
      return bitwise(I::kIdAnd_v, VType::Bool, a, b);
    case Prim::Or:
      return bitwise(I::kIdOrr_v, VType::Bool, a, b);
    case Prim::Eq:
      return binary(I::kIdCmeq_v, VType::Bool, a, b);
    case Prim::Select:
      return select(VType::Bool, a, b, take(args[2]));
    default:
      return bitwise(I::kIdEor_v, VType::Bool, a, b);  // Xor, Ne
  }
}

// A called function preserves only the lower halves of some vector registers, so no value stays in any of them.
Value MachineNeon::call(LaneFunction function, VType type, const Taken& a, const Taken& b) {
  if (!has_scratch_) scratch_ = cc_.newStack(2 * kSecondOperand, 16);
  has_scratch_ = true;
  const a64::Gp place = cc_.newIntPtr(), count = cc_.newInt64(), code = cc_.newIntPtr();
  cc_.loadAddressOf(place, scratch_);
  for (int p = 0; p < parts_of(type); ++p) {
    cc_.str(a.part(p).q(), a64::ptr(place, p * 16));
    cc_.str(b.part(p).q(), a64::ptr(place, kSecondOperand + p * 16));
  }
  cc_.mov(count, imm(lanes()));
  cc_.mov(code, imm(reinterpret_cast<uint64_t>(function)));
  asmjit::InvokeNode* node = nullptr;
  cc_.invoke(&node, code, asmjit::FuncSignatureT<void, void*, int64_t>());
  if (node != nullptr) {
    node->setArg(0, place);
    node->setArg(1, count);
    node->detail()._callConv.setPreservedRegs(asmjit::RegGroup::kVec, 0);
  }
  const a64::Gp results = cc_.newIntPtr();
  cc_.loadAddressOf(results, scratch_);
  Value v;
  for (int p = 0; p < parts_of(type); ++p) {
    const Vec d = vec();
    cc_.ldr(d.q(), a64::ptr(results, p * 16));
    v.part[p] = d;
  }
  return v;
}

Value MachineNeon::eval(const ir::Node& node, const Arg* args) {
  const VType t = node.type;
  const Arg &a = args[0], &b = args[1];
  if (node.prim == Prim::Convert) return convert(a, node.dtype);
  if (a.type == VType::Bool && (node.prim != Prim::Select || t == VType::Bool)) return bool_logic(node.prim, args);
  if (const InstId id = find(kUnary, node.prim, t); id != I::kIdNone) return unary(id, t, take(a));
  if (const InstId id = find(kBinary, node.prim, t); id != I::kIdNone && !(node.prim == Prim::Mul && t == VType::I64))
    return binary(id, t, take(a), take(b));
  switch (node.prim) {
    case Prim::Mul:
      return multiply64(take(a), take(b));
    case Prim::Fma:
      return multiply_add(t, args);
    case Prim::Div:
      return divide(t, take(a), take(b), false);
    case Prim::Rem:
      if (ir::is_float(t)) return call(lane_function(node.prim, t), t, take(a), take(b));
      return divide(t, take(a), take(b), true);
    case Prim::Min:
    case Prim::Max:
      return extreme(node.prim, t, take(a), take(b));
    case Prim::Scale:
      return scale(t, take(a), take(b));
    case Prim::Lt:
    case Prim::Le:
    case Prim::Eq:
    case Prim::Ne:
      return compare(node.prim, a.type, take(a), take(b));
    case Prim::Select:
      return select(t, take(a), take(b), take(args[2]));
    case Prim::And:
      return bitwise(I::kIdAnd_v, t, take(a), take(b));
    case Prim::Or:
      return bitwise(I::kIdOrr_v, t, take(a), take(b));
    case Prim::Xor:
      return bitwise(I::kIdEor_v, t, take(a), take(b));
    case Prim::Not:
      return invert(t, take(a));
    case Prim::Shl:
    case Prim::Shr:
    case Prim::ShrU:
      return shift(node.prim, t, a, b);
    case Prim::MulHiU:
      return multiply_high(take(a), take(b));
    default:
      return {};  // the walker handles leaves and Bitcast
  }
}

}  // namespace naru::render

#endif
