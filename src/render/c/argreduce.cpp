// Positions of greatest and least elements.
#include <fmt/format.h>

#include <algorithm>

#include "naru/error.h"
#include "render/c/expressions.h"
#include "render/c/launch.h"

namespace naru::render::c {
namespace {

using ir::Space;
using ir::VType;

// From so many results on, one item each.
constexpr int64_t kManyResults = 1024;

const char* dtype_name(VType t) noexcept { return t == VType::Bool ? "u8" : name_of(t); }

// FUNCTION bool before(T a, T b): a is nearer to the wanted end than b; a NaN before all.
std::string before_function(bool greatest, VType type) {
  const char* t = dtype_name(type);
  const char* op = greatest ? ">" : "<";
  if (is_float(type)) return fmt::format("FUNCTION bool before({0} a, {0} b) {{ return a != a ? b == b : b == b && a {1} b; }}\n", t, op);
  return fmt::format("FUNCTION bool before({0} a, {0} b) {{ return a {1} b; }}\n", t, op);
}

// Numbers: results, elements of each, elements from one to the next, results of a looping item; the kept space. Memory: in, values, indices.
// items: that share a result; 0: looping ones, with several lanes side by side.
constexpr int kLoopLanes = 32;
std::string arg_text(const ir::ArgReduce& op, const Space& kept, const Target& target, int items, bool wide) {
  const DType dtype = op.in.dtype;
  const VType type = ir::vtype_of(dtype);
  const char* t = dtype_name(type);
  const Walk walk{4, kept.rank, kept.count};
  Head h;
  h.memory = {stored(dtype), "=" + std::string(stored(dtype)), "=i64"};
  h.numbers = walk.end();
  h.group = items == 0 ? 1 : kGroup;
  h.wide = wide;
  h.functions = before_function(op.greatest, type);
  const auto load = [&](const std::string& at) {
    const std::string element = fmt::format("m0[r + {} * a.d[2]]", at);
    return type == VType::Bool ? element : loaded(dtype, element);
  };
  std::string text = opening(h, target);
  const auto store = [&] {
    std::string lines;
    if (op.values.data) lines += fmt::format("      m1[{}] = m0[r + at * a.d[2]];\n", walk.offset(1, "q"));
    if (op.indices.data) lines += fmt::format("      m2[{}] = (i64)at;\n", walk.offset(2, "q"));
    return lines;
  };
  if (items == 0) {
    text += fmt::format(
        "  {0} best[{1}];\n  I place[{1}];\n  const I first = (I)GROUP * a.d[3], last = first + a.d[3] < a.d[0] ? first + a.d[3] : "
        "a.d[0];\n"
        "  for (I row = first; row < last; ++row) {{\n{2}    const I r = {3};\n"
        "    for (int l = 0; l < {1}; ++l) {{\n      place[l] = l < a.d[1] ? l : 0;\n      best[l] = {4};\n    }}\n",
        t, kLoopLanes, walk.position("q", "row", "    "), walk.offset(0, "q"), load("place[l]"));
    text += fmt::format(
        "    for (I i = {0}; i < a.d[1]; i += {0}) {{\n      const int n = a.d[1] - i < {0} ? (int)(a.d[1] - i) : {0};\n"
        "      PARALLEL\n      for (int l = 0; l < n; ++l) {{\n        const {1} y = {2};\n        const bool b = before(y, best[l]);\n"
        "        best[l] = b ? y : best[l];\n        place[l] = b ? i + l : place[l];\n      }}\n    }}\n",
        kLoopLanes, t, load("(i + l)"));
    text += fmt::format(
        "    {0} x = best[0];\n    I at = place[0];\n    for (int l = 1; l < {1}; ++l)\n"
        "      if (before(best[l], x) || (!before(x, best[l]) && place[l] < at)) {{ x = best[l]; at = place[l]; }}\n",
        t, kLoopLanes);
    return complete(target, text + store() + "  }\n}\n");
  }
  if (items > 1) text += fmt::format("  LOCAL {} best[{}];\n  LOCAL I place[{}];\n", t, items, items);
  text += items == 1 ? fmt::format("  const I row = (I)GROUP * {} + ITEM;\n  if (row < a.d[0]) {{\n", kGroup)
                     : "  const I row = (I)GROUP;\n  {\n";
  text += walk.position("q", "row", "    ") + fmt::format("    const I r = {};\n", walk.offset(0, "q"));
  const std::string first = items == 1 ? "0" : "ITEM";
  // Items beyond the row's end start from its first element, which changes nothing.
  text += fmt::format(
      "    I at = {0} < a.d[1] ? {0} : 0;\n    {1} x = {2};\n    for (I i = {0} + {3}; i < a.d[1]; i += {3}) {{\n"
      "      const {1} y = {4};\n      if (before(y, x)) {{ x = y; at = i; }}\n    }}\n",
      first, t, load("at"), items, load("i"));
  if (items > 1)
    text += fmt::format(
        "    best[ITEM] = x;\n    place[ITEM] = at;\n    BARRIER;\n    for (int by = {}; by > 0; by /= 2) {{\n"
        "      if (ITEM < by) {{\n        const {} y = best[ITEM + by];\n        const I j = place[ITEM + by];\n"
        "        if (before(y, x) || (!before(x, y) && j < at)) {{ x = y; at = j; }}\n"
        "        best[ITEM] = x;\n        place[ITEM] = at;\n      }}\n      BARRIER;\n    }}\n",
        items / 2, t);
  text += items > 1 ? "    if (ITEM == 0) {\n" : "    {\n";
  return complete(target, text + store() + "    }\n  }\n}\n");
}

// Elements from one to the next along the last dimension.
int64_t last_stride(const ir::View& v) { return v.strides.back(); }

bool is_wide_with(const ir::View& v, int64_t length, const Space& kept) {
  return is_wide(kept) || length * std::abs(last_stride(v)) > (int64_t{1} << 30);
}

}  // namespace

void run(const ir::ArgReduce& op, Launcher& launcher) {
  const std::span<const int64_t> shape = op.shape;
  Space kept(shape.first(shape.size() - 1));
  const int64_t results = kept.numel(), length = op.shape.back();
  if (results == 0) return;
  if (length == 0) throw IndexError("argmax/argmin: expected a dimension of non-zero size to reduce, got shape {}", op.shape.str());
  const Dims none(shape.size(), 0);
  kept.add(op.in);
  kept.add(static_cast<char*>(op.values.data), static_cast<int64_t>(size_of(op.in.dtype)),
           (op.values.data ? op.values.strides : none).data());
  kept.add(static_cast<char*>(op.indices.data), 8, (op.indices.data ? op.indices.strides : none).data());
  kept.drop_ones();
  kept.merge();
  const bool wide = is_wide_with(op.in, length, kept);
  const Target& target = launcher.target();
  const int items = target.loops ? 0 : results >= kManyResults ? 1 : kGroup;
  const int64_t each = std::clamp<int64_t>(results / (4 * target.units), 1, 256);
  const int64_t groups = target.loops ? (results + each - 1) / each : items == 1 ? (results + kGroup - 1) / kGroup : results;
  Arguments arguments(3, wide);
  for (const int64_t v : {results, length, last_stride(op.in), each}) arguments.add(v);
  add(arguments, kept);
  void* const memory[] = {op.in.data, op.values.data, op.indices.data};
  const bool values = op.values.data, indices = op.indices.data;
  const KeyBits bits = KeyBits().add(op.in.dtype).add(op.greatest).add(wide).add(items == 1).add(values).add(indices).add(kept.rank, 8);
  launcher.start({{Kind::ArgReduce, nullptr, bits},
                  [&] { return arg_text(op, kept, target, items, wide); },
                  memory,
                  arguments.bytes(),
                  groups,
                  target.loops ? 1 : kGroup});
}

}  // namespace naru::render::c
