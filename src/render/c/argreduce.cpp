// Argmax and argmin.
#include <fmt/format.h>

#include <algorithm>

#include "naru/error.h"
#include "render/c/expressions.h"
#include "render/c/launch.h"

namespace naru::render::c {
namespace {

using ir::Space;
using ir::VType;

// The least elements of an item if several share a row; the least length of a row's pieces.
constexpr int64_t kOfItem = 16, kLeastPiece = 64;

const char* dtype_name(VType t) noexcept { return t == VType::Bool ? "u8" : name_of(t); }

// FUNCTION bool before(T a, T b): a is strictly greater (less) than b; NaN comes before everything.
std::string before_function(bool greatest, VType type) {
  const char* t = dtype_name(type);
  const char* op = greatest ? ">" : "<";
  if (is_float(type)) return fmt::format("FUNCTION bool before({0} a, {0} b) {{ return a != a ? b == b : b == b && a {1} b; }}\n", t, op);
  return fmt::format("FUNCTION bool before({0} a, {0} b) {{ return a {1} b; }}\n", t, op);
}

// Common to both styles of kernel: positions of elements, their values, and the final writes.
struct Chosen {
  const ir::ArgReduce& op;
  const Space& kept;  // in, values, indices
  const Target& target;
  bool wide;

  const char* type() const { return dtype_name(ir::vtype_of(op.in.dtype)); }
  std::string load(const std::string& at) const { return value_of(fmt::format("m0[r + {} * a.d[2]]", at)); }
  std::string value_of(const std::string& element) const {
    return ir::vtype_of(op.in.dtype) == VType::Bool ? element : loaded(op.in.dtype, element);
  }
  std::string store(const Walk& walk) const {
    std::string lines;
    if (op.values.data) lines += fmt::format("      m1[{}] = m0[r + at * a.d[2]];\n", walk.offset(1, "q"));
    if (op.indices.data) lines += fmt::format("      m2[{}] = (i64)at;\n", walk.offset(2, "q"));
    return lines;
  }
  Head head(int group, int numbers) const {
    Head h;
    h.memory = {stored(op.in.dtype), "=" + std::string(stored(op.in.dtype)), "=i64"};
    h.numbers = numbers;
    h.group = group;
    h.wide = wide;
    h.functions = before_function(op.greatest, ir::vtype_of(op.in.dtype));
    return h;
  }
};

// Numbers: results, elements per result, stride of the reduced dimension, results per looping item; the kept space. Memory: in, values, indices.
// Processes several lanes in parallel.
constexpr int kLoopLanes = 32;
std::string loops_text(const Chosen& c) {
  const Walk walk{4, c.kept.rank, c.kept.count};
  const char* t = c.type();
  std::string text = opening(c.head(1, walk.end()), c.target);
  text += fmt::format(
      "  {0} best[{1}];\n  I place[{1}];\n  const I first = (I)GROUP * a.d[3], last = first + a.d[3] < a.d[0] ? first + a.d[3] : "
      "a.d[0];\n"
      "  for (I row = first; row < last; ++row) {{\n{2}    const I r = {3};\n"
      "    for (int l = 0; l < {1}; ++l) {{\n      place[l] = l < a.d[1] ? l : 0;\n      best[l] = {4};\n    }}\n",
      t, kLoopLanes, walk.position("q", "row", "    "), walk.offset(0, "q"), c.load("place[l]"));
  text += fmt::format(
      "    for (I i = {0}; i < a.d[1]; i += {0}) {{\n      const int n = a.d[1] - i < {0} ? (int)(a.d[1] - i) : {0};\n"
      "      PARALLEL\n      for (int l = 0; l < n; ++l) {{\n        const {1} y = {2};\n        const bool b = before(y, best[l]);\n"
      "        best[l] = b ? y : best[l];\n        place[l] = b ? i + l : place[l];\n      }}\n    }}\n",
      kLoopLanes, t, c.load("(i + l)"));
  text += fmt::format(
      "    {0} x = best[0];\n    I at = place[0];\n    for (int l = 1; l < {1}; ++l)\n"
      "      if (before(best[l], x) || (!before(x, best[l]) && place[l] < at)) {{ x = best[l]; at = place[l]; }}\n",
      t, kLoopLanes);
  return complete(c.target, text + c.store(walk) + "  }\n}\n");
}

// Splits rows into pieces; `share` items (a power of two) of a group process one. The positions found in the pieces form a second, shorter row,
// whose elements are looked up in a second step.
struct Pieces {
  int share = 1;
  bool fours = false;       // an item reads four neighbouring elements at once
  bool candidates = false;  // this is the second step: the row's elements are at the positions found in the first
  bool whole = true;        // a row is one piece, and its position is the result
  uint64_t bits() const { return KeyBits().add(static_cast<uint64_t>(share), 12).add(fours).add(candidates).add(whole); }
};

// Numbers: units (results times pieces), elements of a row, their stride, pieces per row, elements per piece, results; the kept space. Memory:
// in, values, indices, places. A unit is a piece of one result; if one item processes a unit alone, neighbouring units are neighbouring results.
std::string items_text(const Chosen& c, const Pieces& p) {
  const Walk walk{6, c.kept.rank, c.kept.count};
  const char* t = c.type();
  const int group = c.target.group;
  Head h = c.head(group, walk.end());
  h.memory.push_back(p.whole && p.candidates ? "I" : "=I");
  std::string text = opening(h, c.target);
  if (p.share > 1) text += fmt::format("  LOCAL {} best[{}];\n  LOCAL I place[{}];\n", t, group, group);
  // Items beyond the last unit repeat it without writing, so that all of them reach the barriers.
  text += fmt::format(
      "  const I own = ((I)GROUP * {0} + ITEM) / {1}, unit = own < a.d[0] ? own : a.d[0] - 1;\n  const int part = ITEM % {1};\n", group,
      p.share);
  text += p.share == 1 ? "  const I row = unit % a.d[5], begin = unit / a.d[5] * a.d[4];\n"
                       : "  const I row = unit / a.d[3], begin = unit % a.d[3] * a.d[4];\n";
  text += "  const I end = begin + a.d[4] < a.d[1] ? begin + a.d[4] : a.d[1];\n";
  text += walk.position("q", "row", "  ") + fmt::format("  const I r = {};\n", walk.offset(0, "q"));
  const auto at = [&](const std::string& i) { return p.candidates ? fmt::format("m3[row + {} * a.d[5]]", i) : i; };
  const auto take = [&](const std::string& y, const std::string& place, const char* indent) {
    // An item's later elements come later in the row, so the first of equal ones wins.
    return fmt::format("{0}{{\n{0}  const {1} y = {2};\n{0}  if (before(y, x)) {{ x = y; at = {3}; }}\n{0}}}\n", indent, t, y, place);
  };
  text += fmt::format("  I at = {};\n  {} x = {};\n", at("begin"), t, c.load("at"));
  if (p.fours) {
    text += fmt::format("  for (I i = begin + part * 4; i < end; i += {0}) {{\n    const {1}x4 f = *(GLOBAL const {1}x4*)(m0 + r + i);\n",
                        4 * p.share, stored(c.op.in.dtype));
    constexpr const char* kParts = "xyzw";
    for (int k = 0; k < 4; ++k) text += take(c.value_of(fmt::format("f.{}", kParts[k])), fmt::format("i + {}", k), "    ");
  } else {
    text += fmt::format("  for (I i = begin + part; i < end; i += {}) {{\n    const I j = {};\n", p.share, at("i"));
    text += take(c.load("j"), "j", "    ");
  }
  text += "  }\n";
  if (p.share > 1) {
    text += "  best[ITEM] = x;\n  place[ITEM] = at;\n  BARRIER;\n";
    // Unrolled: PoCL runs loops around barriers slowly.
    for (int by = p.share / 2; by > 0; by /= 2)
      text += fmt::format(
          "  if (part < {0}) {{\n    const {1} y = best[ITEM + {0}];\n    const I j = place[ITEM + {0}];\n"
          "    if (before(y, x) || (!before(x, y) && j < at)) {{ x = y; at = j; }}\n    best[ITEM] = x;\n    place[ITEM] = at;\n  }}\n"
          "  BARRIER;\n",
          by, t);
  }
  text += "  if (own < a.d[0] && part == 0) {\n";
  text += p.whole ? c.store(walk) : p.share == 1 ? "      m3[unit] = at;\n" : "      m3[row + unit % a.d[3] * a.d[5]] = at;\n";
  return complete(c.target, text + "  }\n}\n");
}

// The stride along the last dimension.
int64_t last_stride(const ir::View& v) { return v.strides.back(); }

bool is_wide_with(const ir::View& v, int64_t length, const Space& kept) {
  // Up to as many items as elements may share the rows.
  return is_wide(kept) || length * std::max<int64_t>(1, std::abs(last_stride(v))) > (int64_t{1} << 30) ||
         kept.numel() * std::min<int64_t>(length, 256) > (int64_t{1} << 30);
}

// True if each row, and each piece of a row, begins where four elements can be read at once.
bool in_fours(const ir::View& in, const Space& kept) {
  const auto item = static_cast<int64_t>(size_of(in.dtype));
  bool all = last_stride(in) == 1 && reinterpret_cast<uintptr_t>(in.data) % static_cast<uintptr_t>(4 * item) == 0;
  for (int d = 0; d < kept.rank; ++d) all &= kept.operands[0].strides[d] % (4 * item) == 0;
  return all;
}

void start_items(const Chosen& c, uint64_t bits, int64_t results, int64_t length, Launcher& launcher) {
  const Target& target = c.target;
  const Space& kept = c.kept;
  const auto item = static_cast<int64_t>(size_of(c.op.in.dtype));
  // Neighbouring results are closer in memory than a row's elements: an item processes a whole row or piece.
  const bool across = kept.rank > 0 && kept.sizes[kept.rank - 1] > 1 &&
                      std::abs(kept.operands[0].strides[kept.rank - 1]) < std::abs(last_stride(c.op.in)) * item;
  const auto shared_by = [&](int64_t n) {
    int share = 1;
    while (share < target.group && share * kOfItem < n) share *= 2;
    return share;
  };
  // The number of units that keeps the device busy.
  const int64_t busy = across ? int64_t{1024} * target.units : int64_t{8} * target.units;
  int64_t pieces = std::clamp<int64_t>(busy / results, 1, std::max<int64_t>(1, length / (across ? kLeastPiece : kOfItem * target.group)));
  const int64_t piece = ((length + pieces - 1) / pieces + 3) / 4 * 4;
  pieces = (length + piece - 1) / piece;
  void* const places = pieces == 1 ? nullptr : launcher.scratch(static_cast<size_t>(results * pieces) * (c.wide ? 8 : 4));
  const auto start = [&](const Pieces& p, int64_t n, int64_t units, int64_t parts, int64_t each) {
    Arguments arguments(4, c.wide);
    for (const int64_t v : {units, n, last_stride(c.op.in), parts, each, results}) arguments.add(v);
    add(arguments, kept);
    void* const memory[] = {c.op.in.data, c.op.values.data, c.op.indices.data, places};
    launcher.start({{Kind::ArgReduce, nullptr, bits, p.bits()},
                    [&] { return items_text(c, p); },
                    memory,
                    arguments.bytes(),
                    (units * p.share + target.group - 1) / target.group,
                    target.group});
  };
  const bool fours = !across && length % 4 == 0 && in_fours(c.op.in, kept);
  const Pieces first{across ? 1 : shared_by(piece), fours, false, pieces == 1};
  start(first, length, results * pieces, pieces, piece);
  if (pieces > 1) start({shared_by(pieces), false, true, true}, pieces, results, 1, pieces);
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
  const Chosen chosen{op, kept, target, wide};
  void* const memory[] = {op.in.data, op.values.data, op.indices.data};
  const bool values = op.values.data, indices = op.indices.data;
  const KeyBits bits = KeyBits().add(op.in.dtype).add(op.greatest).add(wide).add(values).add(indices).add(kept.rank, 8).add(target.loops);
  if (!target.loops) return start_items(chosen, bits, results, length, launcher);
  const int64_t each = std::clamp<int64_t>(results / (4 * target.units), 1, 256);
  Arguments arguments(3, wide);
  for (const int64_t v : {results, length, last_stride(op.in), each}) arguments.add(v);
  add(arguments, kept);
  launcher.start(
      {{Kind::ArgReduce, nullptr, bits}, [&] { return loops_text(chosen); }, memory, arguments.bytes(), (results + each - 1) / each, 1});
}

}  // namespace naru::render::c
