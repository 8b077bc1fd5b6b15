#include "kernels/text/math.h"

#include <fmt/format.h>

#include <set>

#include "ir/math/math.h"
#include "kernels/text/words.h"
#include "render/c/expressions.h"

namespace naru::render::c {
namespace {

using ir::V;

struct Function {
  const char* name;  // the double function; the float one has the suffix f
  V (*of_one)(V);
  V (*of_two)(V, V);
};

constexpr Function kFunctions[] = {
    {"exp", ir::exp, nullptr},     {"exp2", ir::exp2, nullptr},     {"expm1", ir::expm1, nullptr}, {"log", ir::log, nullptr},
    {"log2", ir::log2, nullptr},   {"log10", ir::log10, nullptr},   {"log1p", ir::log1p, nullptr}, {"sin", ir::sin, nullptr},
    {"cos", ir::cos, nullptr},     {"tan", ir::tan, nullptr},       {"asin", ir::asin, nullptr},   {"acos", ir::acos, nullptr},
    {"atan", ir::atan, nullptr},   {"sinh", ir::sinh, nullptr},     {"cosh", ir::cosh, nullptr},   {"tanh", ir::tanh, nullptr},
    {"asinh", ir::asinh, nullptr}, {"acosh", ir::acosh, nullptr},   {"atanh", ir::atanh, nullptr}, {"erf", ir::erf, nullptr},
    {"erfc", ir::erfc, nullptr},   {"lgamma", ir::lgamma, nullptr}, {"sqrt", ir::sqrt, nullptr},   {"rsqrt", ir::rsqrt, nullptr},
    {"pow", nullptr, ir::pow},     {"atan2", nullptr, ir::atan2},   {"fmod", nullptr, ir::rem},    {"hypot", nullptr, ir::hypot}};

// "" if the target can't compute it.
std::string definition(const Function& f, bool is_double, const Target& target) {
  const DType type = is_double ? DType::F64 : DType::F32;
  ir::Graph graph;
  const V a = ir::input(graph, 0, type);
  const uint32_t result = (f.of_one ? f.of_one(a) : f.of_two(a, ir::input(graph, 1, type))).id();
  if (is_double && !target.arithmetic.fp64) return "";
  const Leaves leaves{[](uint64_t slot, DType) { return slot == 0 ? "a" : "b"; }, {}, {}};
  const char* const t = is_double ? "f64" : "f32";
  return fmt::format("FUNCTION {0} naru_{1}{2}({0} a{3}) {{\n{4}  return {5};\n}}\n", t, f.name, is_double ? "" : "f",
                     f.of_one ? "" : fmt::format(", {} b", t), expressions(graph, {&result, 1}, leaves, target, "v", "  "),
                     node("v", result));
}

// Macros of the renderer's dialect, undefined because a user's source may use these names.
constexpr const char* kForget = R"c(#undef KERNEL
#undef GLOBAL
#undef LOCAL
#undef FUNCTION
#undef GROUP
#undef ITEM
#undef BARRIER
#undef MAKE4
#undef VECTOR
#undef PARALLEL
)c";

}  // namespace

UserMath user_math(const ir::KernelSource& source, const Target& target) {
  constexpr std::string_view kAny = "naru_any_";
  UserMath math;
  std::string functions, generic;
  std::set<std::string> defined, looked_at;
  const auto define = [&](const Function& f, bool is_double) {
    const std::string name = is_double ? f.name : std::string(f.name) + "f";
    if (defined.contains(name)) return true;
    const std::string text = definition(f, is_double, target);
    if (text.empty()) return false;
    functions += text, defined.insert(name);
    return true;
  };
  for (size_t i = 0; i + 1 < source.tokens().size(); ++i) {
    const std::string word(source.word(i));
    if (source.tokens()[i].kind != ir::Token::Kind::Name || source.is_function(word) || !looked_at.insert(word).second) continue;
    const bool any = source.was_cuda() && word.starts_with(kAny);
    for (const Function& f : kFunctions) {
      if (any && word.substr(kAny.size()) == f.name) {
        const bool ours = define(f, false), doubles = define(f, true);
        const std::string of_float = ours ? fmt::format("naru_{}f", f.name) : fmt::format("{}f", f.name);
        generic += generic_function(f.name, f.of_one ? 1 : 2, of_float, fmt::format("naru_{}", f.name), doubles);
      } else if (word == f.name || word == std::string(f.name) + "f") {
        if (define(f, word == f.name)) math.names.insert(word);
      }
    }
  }
  if (!functions.empty()) math.text = complete(target, functions) + kForget;
  math.text += generic;
  return math;
}

}  // namespace naru::render::c
