// Running sums, products and extremes, in the order of ir/reduce.h: an item a block. Rows of more than one block take three steps: where the blocks'
// chains end, the running values of these, which are a scan again, and the chains once more behind what stands before them.
#include <fmt/format.h>

#include "render/c/expressions.h"
#include "render/c/launch.h"

namespace naru::render::c {
namespace {

using ir::Space;
using ir::VType;

VType accumulator(DType out) noexcept {
  const VType type = ir::vtype_of(out);
  return type == VType::Bool ? VType::I32 : type;
}
constexpr DType kElement[] = {DType::Bool, DType::I32, DType::I64, DType::F32, DType::F64};

enum class Phase : uint8_t { Whole, Ends, Chains };

// What a scan and those of its blocks' ends have in common.
struct ScannedRows {
  ir::ReduceOp op;
  VType type;
  int64_t rows, length;
  bool wide;
  Launcher& launcher;

  int64_t blocks() const { return (length + ir::kScanBlock - 1) / ir::kScanBlock; }
};

// Memory: in; the result (Ends: the ends of all blocks but the last, row behind row for a block; Chains: and their running values). Numbers: rows,
// elements of each, elements from one to the next: in, out; blocks; the kept space.
std::string text_of(const ScannedRows& r, Phase phase, DType in, DType out, const Space& kept) {
  const Target& target = r.launcher.target();
  const Walk walk{5, kept.rank, kept.count};
  Head h;
  h.memory = {stored(in), "=" + (phase == Phase::Ends ? stored_value(r.type) : std::string(stored(out)))};
  if (phase == Phase::Chains) h.memory.push_back(stored_value(r.type));
  h.numbers = walk.end();
  h.group = kGroup;
  h.wide = r.wide;
  h.functions = combine_function(r.op, r.type, target);
  const std::string t = name_of(r.type), none = literal(r.type, ir::identity_bits(r.op, r.type));
  std::string text = opening(h, target);
  text += fmt::format("  const I unit = (I)GROUP * {} + ITEM;\n  if (unit < a.d[0] * a.d[4]) {{\n", kGroup);
  text += fmt::format(
      "    const I row = unit % a.d[0], begin = unit / a.d[0] * {0};\n    const I end = begin + {0} < a.d[1] ? begin + {0} : a.d[1];\n",
      ir::kScanBlock);
  text += walk.position("q", "row", "    ");
  text += fmt::format("    I from = {} + begin * a.d[2];\n    {} x = {};\n", walk.offset(0, "q"), t, none);
  if (phase != Phase::Ends) text += fmt::format("    I to = {} + begin * a.d[3];\n", walk.offset(1, "q"));
  if (phase == Phase::Chains) text += fmt::format("    const {} before = begin ? {} : {};\n", t, got(r.type, "m2[unit - a.d[0]]"), none);
  text += "    for (I i = begin; i < end; ++i) {\n";
  ir::Graph graph;
  const uint32_t value = ir::convert(ir::input(graph, 0, in), kElement[static_cast<int>(r.type)]).id();
  text += expressions(graph, {&value, 1}, {[](uint64_t, DType d) { return loaded(d, "m0[from]"); }, {}, {}}, target, "v", "      ");
  text += fmt::format("      x = combine(x, {});\n      from += a.d[2];\n", node("v", value));
  if (phase != Phase::Ends)
    text += fmt::format("      m1[to] = {};\n      to += a.d[3];\n",
                        converted(r.type, out, phase == Phase::Chains ? "combine(before, x)" : "x", target));
  text += "    }\n";
  if (phase == Phase::Ends) text += fmt::format("    m1[unit] = {};\n", put(r.type, "x"));
  return complete(target, text + "  }\n}\n");
}

void start(const ScannedRows& r, Phase phase, const ir::View& in, const ir::View& out, const Space& kept, void* ends) {
  const int64_t blocks = r.blocks() - (phase == Phase::Ends);
  const int memories = phase == Phase::Chains ? 3 : 2;
  Arguments arguments(memories, r.wide);
  for (const int64_t v : {r.rows, r.length, in.strides.back(), out.strides.back(), blocks}) arguments.add(v);
  add(arguments, kept);
  void* const memory[] = {in.data, phase == Phase::Ends ? ends : out.data, ends};
  const KeyBits bits =
      KeyBits().add(in.dtype).add(out.dtype).add(r.wide).add(r.op).add(r.type).add(static_cast<uint64_t>(phase), 2).add(kept.rank, 8);
  r.launcher.start({{Kind::Scan, nullptr, bits},
                    [&] { return text_of(r, phase, in.dtype, out.dtype, kept); },
                    {memory, static_cast<size_t>(memories)},
                    arguments.bytes(),
                    (r.rows * blocks + kGroup - 1) / kGroup,
                    kGroup});
}

void run_rows(const ScannedRows& r, const ir::View& in, const ir::View& out, const Space& kept) {
  if (r.blocks() == 1) return start(r, Phase::Whole, in, out, kept, nullptr);
  ScannedRows over{r.op, r.type, r.rows, r.blocks() - 1, r.wide, r.launcher};
  ir::View ends;
  ends.data = r.launcher.scratch(static_cast<size_t>(over.rows * over.length) * ir::size_of(r.type));
  ends.dtype = kElement[static_cast<int>(r.type)];
  ends.strides = {1, r.rows};
  start(r, Phase::Ends, in, out, kept, ends.data);
  Space across(std::span<const int64_t>(&over.rows, 1));
  across.add(ends), across.add(ends);
  run_rows(over, ends, ends, across);
  start(r, Phase::Chains, in, out, kept, ends.data);
}

bool is_wide_with(const ir::View& v, int64_t length, const Space& kept) {
  return is_wide(kept) || length * std::abs(v.strides.back()) > (int64_t{1} << 30);
}

}  // namespace

void run(const ir::Scan& scan, Launcher& launcher) {
  const std::span<const int64_t> shape = scan.shape;
  Space kept(shape.first(shape.size() - 1));
  kept.add(scan.in);
  kept.add(scan.out);
  kept.drop_ones();
  kept.merge();
  const int64_t rows = kept.numel(), length = scan.shape.back();
  if (rows == 0 || length == 0) return;
  const bool wide = is_wide_with(scan.in, length, kept) || is_wide_with(scan.out, length, kept);
  run_rows({scan.op, accumulator(scan.out.dtype), rows, length, wide, launcher}, scan.in, scan.out, kept);
}

}  // namespace naru::render::c
