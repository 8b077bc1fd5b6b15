#include "render/c/expressions.h"

#include <fmt/format.h>

#include <vector>

namespace naru::render::c {
namespace {

using ir::Node;
using ir::Prim;
using ir::VType;

const char* unsigned_of(VType t) noexcept { return t == VType::I64 ? "u64" : "u32"; }

// A value truncated to an integer element type, widened back to a value.
std::string narrowed(DType to, const std::string& x) {
  switch (to) {
    case DType::U8:
      return fmt::format("(i32)(u8){}", x);
    case DType::I8:
      return fmt::format("(i32)(i8){}", x);
    case DType::I16:
      return fmt::format("(i32)(i16){}", x);
    default:
      return x;
  }
}

// `soft`: float64 is computed in integers (soft_float64.cpp).
std::string convert(VType from, DType to, std::string x, bool soft) {
  const VType type = ir::vtype_of(to);
  if (soft && from == VType::F64 && to == DType::Bool) return fmt::format("!eq_f64({}, 0)", x);
  if (soft && from == VType::F64 && type == VType::F32) x = fmt::format("f64_to_f32({})", x);
  switch (to) {
    case DType::Bool:
      return from == VType::Bool ? x : fmt::format("{} != {}", x, literal(from, 0));
    case DType::F16:
      return fmt::format("half_to_float(float_to_half((f32){}))", x);
    case DType::BF16:
      return fmt::format("bfloat_to_float(float_to_bfloat((f32){}))", x);
    case DType::F64:
      if (soft) return fmt::format("{}_to_f64({})", from == VType::F32 ? "f32" : "i64", x);
      return fmt::format("({}){}", name_of(type), x);
    case DType::F32:
      return fmt::format("({}){}", name_of(type), x);
    default:
      break;
  }
  const std::string whole =
      is_float(from) ? fmt::format("{}_to_{}({})", name_of(from), name_of(type), x) : fmt::format("({}){}", name_of(type), x);
  return narrowed(to, is_float(from) ? whole : fmt::format("({})", whole));
}

struct Printer {
  const ir::Graph& graph;
  const Leaves& leaves;
  const Target& target;
  const std::string& prefix;

  std::string name(uint32_t id) const { return node(prefix, id); }
  std::string infix(const Node& n, const char* op) const { return fmt::format("{} {} {}", name(n.a), op, name(n.b)); }
  // In unsigned arithmetic, which wraps.
  std::string wrapping(const Node& n, const char* op) const {
    const char* u = unsigned_of(n.type);
    return fmt::format("({})(({}){} {} ({}){})", name_of(n.type), u, name(n.a), op, u, name(n.b));
  }
  std::string call(const Node& n, const char* function) const {
    if (n.c != ir::kNoNode) return fmt::format("{}({}, {}, {})", function, name(n.a), name(n.b), name(n.c));
    if (n.b != ir::kNoNode) return fmt::format("{}({}, {})", function, name(n.a), name(n.b));
    return fmt::format("{}({})", function, name(n.a));
  }
  std::string typed_call(const Node& n, const char* function) const {
    return call(n, fmt::format("{}_{}", function, name_of(n.type)).c_str());
  }
  // True if the device's float32 operation is not correctly rounded, so that float64 is used.
  static bool through_f64(const Node& n, bool exact) { return n.type == VType::F32 && !exact; }
  // Such a quotient or root.
  std::string by_f64(const Node& n) const {
    if (n.prim == Prim::Sqrt)
      return fmt::format(fmt::runtime(soft() ? "f64_to_f32(sqrt_f64(f32_to_f64({})))" : "(f32)sqrt_f64((f64){})"), name(n.a));
    return fmt::format(fmt::runtime(soft() ? "f64_to_f32(div_f64(f32_to_f64({}), f32_to_f64({})))" : "(f32)((f64){} / (f64){})"), name(n.a),
                       name(n.b));
  }
  bool soft() const { return !target.arithmetic.fp64; }
  // An operator on two numbers: infix, or for float64 in integers a function.
  std::string infix_or_call(const Node& n, const char* op, const char* function) const {
    return soft() && graph[n.a].type == VType::F64 ? call(n, fmt::format("{}_f64", function).c_str()) : infix(n, op);
  }
  // Whether a is less than b, numbers of the node's type.
  std::string less(const Node& n, uint32_t a, uint32_t b) const {
    return fmt::format(fmt::runtime(soft() && n.type == VType::F64 ? "lt_f64({}, {})" : "{} < {}"), name(a), name(b));
  }

  std::string of_bools(const Node& n) const;
  std::string of(const Node& n) const;
};

std::string Printer::of_bools(const Node& n) const {
  switch (n.prim) {
    case Prim::And:
      return infix(n, "&&");
    case Prim::Or:
      return infix(n, "||");
    case Prim::Not:
      return "!" + name(n.a);
    case Prim::Eq:
      return infix(n, "==");
    default:
      return infix(n, "!=");
  }
}

std::string Printer::of(const Node& n) const {
  const bool real = is_float(n.type);
  switch (n.prim) {
    case Prim::Input:
      return leaves.input(n.bits, n.dtype);
    case Prim::Param:
      return leaves.param(n.bits, n.type);
    case Prim::Const:
      return literal(n.type, n.bits);
    case Prim::Index:
      return leaves.index;
    case Prim::Add:
      return real ? infix_or_call(n, "+", "add") : wrapping(n, "+");
    case Prim::Sub:
      return real ? infix_or_call(n, "-", "sub") : wrapping(n, "-");
    case Prim::Mul:
      return real ? infix_or_call(n, "*", "mul") : wrapping(n, "*");
    case Prim::Fma:
      return typed_call(n, "fma");
    case Prim::Div:
      if (through_f64(n, target.arithmetic.exact_division)) return by_f64(n);
      return real ? infix_or_call(n, "/", "div") : typed_call(n, "div");
    case Prim::Rem:
      return typed_call(n, "rem");
    case Prim::Neg:
      if (soft() && n.type == VType::F64) return typed_call(n, "neg");
      return real ? "-" + name(n.a) : fmt::format("({})(0u - ({}){})", name_of(n.type), unsigned_of(n.type), name(n.a));
    case Prim::Abs:
      if (real) return typed_call(n, "fabs");
      return fmt::format("{0} < 0 ? ({1})(0u - ({2}){0}) : {0}", name(n.a), name_of(n.type), unsigned_of(n.type));
    case Prim::Sqrt:
      return through_f64(n, target.arithmetic.exact_root) ? by_f64(n) : typed_call(n, "sqrt");
    case Prim::Min:
      return fmt::format("{} ? {} : {}", less(n, n.a, n.b), name(n.a), name(n.b));
    case Prim::Max:
      return fmt::format("{} ? {} : {}", less(n, n.b, n.a), name(n.a), name(n.b));
    case Prim::Floor:
      return typed_call(n, "floor");
    case Prim::Ceil:
      return typed_call(n, "ceil");
    case Prim::Trunc:
      return typed_call(n, "trunc");
    case Prim::Round:
      return typed_call(n, "rint");
    case Prim::Scale:
      return typed_call(n, "scale");
    case Prim::Lt:
      return infix_or_call(n, "<", "lt");
    case Prim::Le:
      return infix_or_call(n, "<=", "le");
    case Prim::Eq:
      return graph[n.a].type == VType::Bool ? of_bools(n) : infix_or_call(n, "==", "eq");
    case Prim::Ne:
      return graph[n.a].type == VType::Bool ? of_bools(n) : infix_or_call(n, "!=", "!eq");
    case Prim::Select:
      return fmt::format("{} ? {} : {}", name(n.a), name(n.b), name(n.c));
    case Prim::And:
      return n.type == VType::Bool ? of_bools(n) : infix(n, "&");
    case Prim::Or:
      return n.type == VType::Bool ? of_bools(n) : infix(n, "|");
    case Prim::Xor:
      return n.type == VType::Bool ? of_bools(n) : infix(n, "^");
    case Prim::Not:
      return n.type == VType::Bool ? of_bools(n) : "~" + name(n.a);
    case Prim::Shl:
      return wrapping(n, "<<");
    case Prim::Shr:
      return infix(n, ">>");
    case Prim::ShrU:
      return wrapping(n, ">>");
    case Prim::MulHiU:
      return fmt::format("(i32)((u64)(u32){} * (u64)(u32){} >> 32)", name(n.a), name(n.b));
    case Prim::Convert:
      return convert(graph[n.a].type, n.dtype, name(n.a), soft());
    case Prim::Bitcast:
      return fmt::format("as_{}({})", name_of(n.type), name(n.a));
  }
  return "";
}

}  // namespace

const char* arithmetic(VType t) noexcept { return t == VType::I32 ? "u32" : t == VType::I64 ? "u64" : name_of(t); }

const char* name_of(VType type) noexcept {
  constexpr const char* kNames[] = {"bool", "i32", "i64", "f32", "f64"};
  return kNames[static_cast<int>(type)];
}

const char* stored(DType type) noexcept {
  constexpr PerDType<const char*> kNames{"u8", "u8", "i8", "i16", "i32", "i64", "u16", "u16", "f32", "f64"};
  return kNames[type];
}

std::string loaded(DType type, const std::string& element) {
  switch (type) {
    case DType::Bool:
      return fmt::format("({} != 0)", element);
    case DType::U8:
    case DType::I8:
    case DType::I16:
      return fmt::format("(i32){}", element);
    case DType::F16:
      return fmt::format("half_to_float({})", element);
    case DType::BF16:
      return fmt::format("bfloat_to_float({})", element);
    default:
      return element;
  }
}

std::string to_store(DType type, const std::string& value) {
  switch (type) {
    case DType::F16:
      return fmt::format("float_to_half({})", value);
    case DType::BF16:
      return fmt::format("float_to_bfloat({})", value);
    case DType::F32:
    case DType::F64:
      return value;
    default:
      return fmt::format("({}){}", stored(type), value);
  }
}

std::string literal(VType type, uint64_t bits) {
  switch (type) {
    case VType::Bool:
      return bits & 1 ? "true" : "false";
    case VType::I32:
      return fmt::format("(i32)0x{:x}u", bits & 0xffffffffu);
    case VType::I64:
      return fmt::format("(i64)(u64)0x{:x}", bits);
    case VType::F32:
      return fmt::format("as_f32(0x{:08x}u)", bits & 0xffffffffu);
    case VType::F64:
      return fmt::format("as_f64((u64)0x{:x})", bits);
  }
  return "";
}

std::string node(const std::string& prefix, uint32_t id) { return fmt::format("{}{}", prefix, id); }

std::string expressions(const ir::Graph& graph, std::span<const uint32_t> results, const Leaves& leaves, const Target& target,
                        const std::string& prefix, const std::string& indent) {
  std::vector<bool> wanted(graph.nodes().size());
  for (const uint32_t id : results) wanted[id] = true;
  for (size_t id = wanted.size(); id-- > 0;)
    if (wanted[id])
      for (const uint32_t operand : {graph.nodes()[id].a, graph.nodes()[id].b, graph.nodes()[id].c})
        if (operand != ir::kNoNode) wanted[operand] = true;
  const Printer printer{graph, leaves, target, prefix};
  std::string text;
  for (uint32_t id = 0; id < wanted.size(); ++id)
    if (wanted[id]) text += fmt::format("{}const {} {} = {};\n", indent, name_of(graph[id].type), node(prefix, id), printer.of(graph[id]));
  return text;
}

std::string result_to_store(const ir::MapKernel& kernel, size_t i, const std::string& prefix,
                            const std::function<std::string(uint64_t slot)>& element) {
  const DType type = kernel.outputs[i];
  const Node& n = kernel.graph[kernel.results[i]];
  if (element && n.prim == Prim::Input && n.dtype == type && type != DType::Bool) return element(n.bits);
  // The conversion of 16-bit results is what storing them does.
  if (n.prim == Prim::Convert && n.dtype == type && (type == DType::F16 || type == DType::BF16) && is_float(kernel.graph[n.a].type)) {
    const Node& from = kernel.graph[n.a];
    if (element && from.prim == Prim::Input && from.dtype == type) return element(from.bits);
    return to_store(type, (from.type == VType::F64 ? "f64_to_f32(" : "(f32)(") + node(prefix, n.a) + ")");
  }
  return to_store(type, node(prefix, kernel.results[i]));
}

std::string stored_value(VType type) { return type == VType::Bool ? "u8" : name_of(type); }
std::string got(VType type, const std::string& x) { return type == VType::Bool ? fmt::format("({} != 0)", x) : x; }
std::string put(VType type, const std::string& x) { return type == VType::Bool ? fmt::format("(u8){}", x) : x; }

std::string combine_function(ir::ReduceOp op, VType type, const Target& target, const std::string& name) {
  constexpr DType kOf[] = {DType::Bool, DType::I32, DType::I64, DType::F32, DType::F64};
  const DType dtype = kOf[static_cast<int>(type)];
  ir::Graph graph;
  const ir::V a = ir::input(graph, 0, dtype), b = ir::input(graph, 1, dtype);
  const uint32_t result = ir::combine(op, a, b).id();
  const Leaves leaves{[](uint64_t slot, DType) { return slot == 0 ? "a" : "b"; }, {}, {}};
  return fmt::format("FUNCTION {0} {3}({0} a, {0} b) {{\n{1}  return {2};\n}}\n", name_of(type),
                     expressions(graph, {&result, 1}, leaves, target, "v", "  "), node("v", result), name);
}

std::string converted(VType from, DType to, const std::string& value, const Target& target) {
  if (ir::vtype_of(to) == from && (to == DType::F16 || to == DType::BF16)) return to_store(to, value);
  return to_store(to, fmt::format("({})", convert(from, to, value, !target.arithmetic.fp64)));
}

}  // namespace naru::render::c
