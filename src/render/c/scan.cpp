// Running sums, products and extremes, in the order of ir/reduce.h: one item per block. Rows of more than one block need three steps: the blocks'
// last values, a scan of these, and the chains again, combined with the running values of the blocks before.
#include <fmt/format.h>

#include <string_view>

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
// How items process their chains: one element after another; several loaded before any is written; or through local memory, for chains of
// contiguous elements, so that neighbouring items read neighbouring elements.
enum class Way : uint8_t { Single, Batches, Tiles };
constexpr int kBatch = 8, kTileOfChain = 32;

// Common to a scan and to the scan of its blocks' last values.
struct ScannedRows {
  ir::ReduceOp op;
  VType type;
  int64_t rows, length;
  bool wide;
  Launcher& launcher;

  int64_t blocks() const { return (length + ir::kScanBlock - 1) / ir::kScanBlock; }
};

// Memory: in; the result (Ends: the last values of all blocks but the last, as [block][row]; Chains: also their running values). Numbers:
// rows, elements of each; strides: in, out; blocks; the kept space.
struct ScanText {
  const ScannedRows& r;
  Phase phase;
  DType in, out;
  const Space& kept;
  Way way;

  Walk walk() const { return {5, kept.rank, kept.count}; }
  std::string type() const { return name_of(r.type); }
  bool writes() const { return phase != Phase::Ends; }
  // What an element adds to the chain: code that computes it, and its name.
  std::pair<std::string, std::string> value(const std::string& element, const std::string& indent) const {
    ir::Graph graph;
    const uint32_t id = ir::convert(ir::input(graph, 0, in), kElement[static_cast<int>(r.type)]).id();
    const Leaves leaves{[&](uint64_t, DType d) { return loaded(d, element); }, {}, {}};
    return {expressions(graph, {&id, 1}, leaves, r.launcher.target(), "v", indent), node("v", id)};
  }
  // Of equal extremes, and of NaNs, the later wins: combine() prefers the first argument.
  std::string linked(const std::string& before, const std::string& x) const {
    const bool swapped = r.op == ir::ReduceOp::Max || r.op == ir::ReduceOp::Min;
    return fmt::format("combine({}, {})", swapped ? x : before, swapped ? before : x);
  }
  std::string result() const { return converted(r.type, out, phase == Phase::Chains ? linked("before", "x") : "x", r.launcher.target()); }
  // Combines the element into x, and stores x if this step stores results.
  std::string link(const std::string& element, const std::string& to, const std::string& indent) const {
    const auto [lines, v] = value(element, indent + "  ");
    return fmt::format("{0}{{\n{1}{0}  x = {2};\n{3}{0}}}\n", indent, lines, linked("x", v),
                       writes() ? fmt::format("{}  {} = {};\n", indent, to, result()) : "");
  }
  std::string text() const;
  std::string singles() const;
  std::string batches() const;
  std::string tiles() const;
};

std::string ScanText::text() const {
  const Target& target = r.launcher.target();
  Head h;
  h.memory = {stored(in), "=" + (writes() ? std::string(stored(out)) : stored_value(r.type))};
  if (phase == Phase::Chains) h.memory.push_back(stored_value(r.type));
  h.numbers = walk().end();
  h.group = kGroup;
  h.wide = r.wide;
  h.functions = combine_function(r.op, r.type, target);
  const std::string none = literal(r.type, ir::identity_bits(r.op, r.type)), t = type();
  std::string text = opening(h, target);
  text += fmt::format("  const I own = (I)GROUP * {} + ITEM, units = a.d[0] * a.d[4];\n", kGroup);
  // With local memory, all items of a group must reach the barriers: those beyond the end process an empty chain.
  const bool meet = way == Way::Tiles;
  text += meet ? "  const I unit = own < units ? own : units - 1;\n  const I row = unit / a.d[4], block = unit % a.d[4];\n"
               : "  const I unit = own;\n  if (unit < units) {\n  const I row = unit % a.d[0], block = unit / a.d[0];\n";
  text += fmt::format("  const I begin = block * {0}, end = begin + {0} < a.d[1] ? begin + {0} : a.d[1];\n", ir::kScanBlock);
  text += walk().position("q", "row", "  ");
  text += fmt::format("  I from = {} + begin * a.d[2];\n  {} x = {};\n", walk().offset(0, "q"), t, none);
  if (writes()) text += fmt::format("  I to = {} + begin * a.d[3];\n", walk().offset(1, "q"));
  if (phase == Phase::Chains)
    text += fmt::format("  const {} before = begin ? {} : {};\n", t, got(r.type, "m2[row + (block - 1) * a.d[0]]"), none);
  text += way == Way::Tiles ? tiles() : way == Way::Batches ? batches() + singles() : singles();
  if (!writes()) text += fmt::format("  {}m1[row + block * a.d[0]] = {};\n", meet ? "if (own < units) " : "", put(r.type, "x"));
  return complete(target, text + (meet ? "}\n" : "  }\n}\n"));
}

std::string ScanText::singles() const {
  const std::string begin = way == Way::Batches ? "done" : "begin";
  return fmt::format("  for (I i = {}; i < end; ++i) {{\n{}    from += a.d[2];\n{}  }}\n", begin, link("m0[from]", "m1[to]", "    "),
                     writes() ? "    to += a.d[3];\n" : "");
}

std::string ScanText::batches() const {
  std::string text = fmt::format("  I done = begin;\n  for (; done + {0} <= end; done += {0}) {{\n", kBatch);
  for (int k = 0; k < kBatch; ++k) text += fmt::format("    const {0} e{1} = m0[from + {1} * a.d[2]];\n", stored(in), k);
  for (int k = 0; k < kBatch; ++k) text += link(fmt::format("e{}", k), fmt::format("m1[to + {} * a.d[3]]", k), "    ");
  return text +
         fmt::format("    from += {0} * a.d[2];\n{1}  }}\n", kBatch, writes() ? fmt::format("    to += {} * a.d[3];\n", kBatch) : "");
}

// A tile holds some elements of each item's chain, one chain after another. Its rows are padded by one element, so that items access different
// banks. Results replace the elements if they have the same size.
std::string ScanText::tiles() const {
  const bool over = std::string_view(stored(in)) == stored(out);
  const int tile = size_of(in) + size_of(out) > 8 ? kTileOfChain / 2 : kTileOfChain, pitch = tile + 1;
  const char* const results = over ? "tile" : "results";
  std::string text =
      fmt::format("  LOCAL {0} tile[{1}];\n  LOCAL I starts[{2}];\n  LOCAL int lengths[{2}];\n", stored(in), kGroup * pitch, kGroup);
  if (writes()) text += fmt::format("  LOCAL I goals[{}];\n", kGroup);
  if (writes() && !over) text += fmt::format("  LOCAL {} results[{}];\n", stored(out), kGroup * pitch);
  text += "  starts[ITEM] = from;\n  lengths[ITEM] = own < units ? (int)(end - begin) : 0;\n";
  if (writes()) text += "  goals[ITEM] = to;\n";
  text += fmt::format("  BARRIER;\n  for (int at = 0; at < {0} && at < a.d[1]; at += {1}) {{\n", ir::kScanBlock, tile);
  // kGroup * tile elements by kGroup items.
  const auto moved = [&](const std::string& line) {
    return fmt::format(
        "    for (int k = 0; k < {0}; ++k) {{\n      const int f = k * {1} + ITEM, c = f / {0}, e = f % {0};\n"
        "      if (at + e < lengths[c]) {2};\n    }}\n    BARRIER;\n",
        tile, kGroup, line);
  };
  text += moved(fmt::format("tile[c * {} + e] = m0[starts[c] + at + e]", pitch));
  text += fmt::format(
      "    const int n = lengths[ITEM] - at < {0} ? lengths[ITEM] - at : {0};\n    for (int e = 0; e < n; ++e) {{\n{1}    }}\n    "
      "BARRIER;\n",
      tile, link(fmt::format("tile[ITEM * {} + e]", pitch), fmt::format("{}[ITEM * {} + e]", results, pitch), "      "));
  if (writes()) text += moved(fmt::format("m1[goals[c] + at + e] = {}[c * {} + e]", results, pitch));
  return text + "  }\n";
}

Way way_of(const ScannedRows& r, Phase phase, const ir::View& in, const ir::View& out) {
  if (r.launcher.target().loops) return Way::Single;
  const bool neighbours = in.strides.back() == 1 && (phase == Phase::Ends || out.strides.back() == 1);
  return neighbours && r.length > 1 ? Way::Tiles : Way::Batches;
}

void start(const ScannedRows& r, Phase phase, const ir::View& in, const ir::View& out, const Space& kept, void* ends) {
  const int64_t blocks = r.blocks() - (phase == Phase::Ends);
  const int memories = phase == Phase::Chains ? 3 : 2;
  const Way way = way_of(r, phase, in, out);
  Arguments arguments(memories, r.wide);
  for (const int64_t v : {r.rows, r.length, in.strides.back(), out.strides.back(), blocks}) arguments.add(v);
  add(arguments, kept);
  void* const memory[] = {in.data, phase == Phase::Ends ? ends : out.data, ends};
  const KeyBits bits = KeyBits()
                           .add(in.dtype)
                           .add(out.dtype)
                           .add(r.wide)
                           .add(r.op)
                           .add(r.type)
                           .add(static_cast<uint64_t>(phase), 2)
                           .add(kept.rank, 8)
                           .add(static_cast<uint64_t>(way), 2);
  r.launcher.start({{Kind::Scan, nullptr, bits},
                    [&] { return ScanText{r, phase, in.dtype, out.dtype, kept, way}.text(); },
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

bool is_wide_along(const ir::View& v, int64_t length, const Space& kept) {
  return is_wide(kept) || length * std::max<int64_t>(1, std::abs(v.strides.back())) > (int64_t{1} << 30);
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
  const bool wide = is_wide_along(scan.in, length, kept) || is_wide_along(scan.out, length, kept);
  run_rows({scan.op, accumulator(scan.out.dtype), rows, length, wide, launcher}, scan.in, scan.out, kept);
}

}  // namespace naru::render::c
