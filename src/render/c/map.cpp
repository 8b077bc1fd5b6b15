// Elementwise kernels.
#include <fmt/format.h>

#include <algorithm>

#include "render/c/expressions.h"
#include "render/c/launch.h"
#include "render/c/map_body.h"

namespace naru::render::c {
namespace {

using ir::Operand;
using ir::Space;

// Flat: every operand is dense in the same order, or one element. Rows: along the innermost dimension, addresses move by 0, 1 or a fixed number
// of elements. Positions: each address is computed from its position, for items that loop over more than short rows.
enum class Mode : uint8_t { Flat, Rows, Positions };

// Shorter rows are not worth a loop, or a group, of their own.
constexpr int64_t kShortRow = 32;
// Elements of an item, where a group processes a piece of one row.
constexpr int kOfBlock = 4;
// Elements that one item loops over.
constexpr int64_t kChunk = 16384, kLeastChunk = 1024, kTogether = 64;

struct Plan {
  const ir::Map& map;
  const Target& target;
  Space space;
  int inputs;
  Mode mode = Mode::Flat;
  bool wide = false;
  bool fours = false;   // Flat, Rows: an item processes four elements, and reads those of each operand at once
  bool blocks = false;  // Rows: a group processes a piece of one row, an item kOfBlock elements of it, a group's width apart
  uint64_t steps = 0;   // two bits per operand

  Plan(const ir::Map& m, const Target& t) : map(m), target(t), space(m.shape), inputs(static_cast<int>(m.inputs.size())) {
    for (const auto& v : m.inputs) space.add(v);
    for (const auto& v : m.outputs) space.add(v);
    lay_out();
    choose();
  }
  Step step(int k) const { return static_cast<Step>(steps >> (2 * k) & 3); }
  DType dtype(int k) const { return k < inputs ? map.inputs[k].dtype : map.outputs[k - inputs].dtype; }
  bool strides() const {
    for (int k = 0; k < space.count; ++k)
      if (step(k) == kStrides) return true;
    return false;
  }
  int last() const { return space.rank - 1; }
  int64_t inner() const { return space.sizes[last()]; }
  // Rows: each item processes one element or four neighbours. Otherwise items or groups loop.
  bool spread() const { return mode == Mode::Rows && !target.loops; }
  Walk walk() const { return {mode == Mode::Rows ? 5 : 2, space.rank, space.count}; }
  // The Number that holds the divisor of dimension d of the rows; not for the first.
  int divisor(int d) const { return walk().end() + 2 * (d - 1); }
  int numbers() const { return mode == Mode::Flat ? 2 : spread() ? divisor(std::max(last(), 1)) : walk().end(); }
  Key key() const;
  std::string text() const;
  void start(Launcher& launcher) const;

 private:
  void lay_out();
  void choose();
  bool in_fours(int k) const;
  std::string body(const std::string& indent, const std::string& index, const std::function<std::string(int)>& place,
                   const std::function<std::string(int)>& read = {}) const;
  std::string body_of_fours(const std::string& index, const std::function<std::string(int)>& place) const;
  std::string spread_rows() const;
  std::string rows_in_blocks() const;
  std::string place_in_row(int k, const std::string& j = "j") const;
};

void Plan::lay_out() {
  space.drop_ones();
  space.merge();
  if (space.rank > 1 && !map.program.uses_index()) {
    space.order_by(inputs);
    space.merge();
  }
  if (space.rank == 0) {
    space.rank = 1;
    space.sizes[0] = 1;
    for (int k = 0; k < space.count; ++k) space.operands[k].strides[0] = space.operands[k].item;
  }
  wide = is_wide(space);
}

void Plan::choose() {
  bool flat = true;
  for (int k = 0; k < space.count; ++k) flat &= space.flat(k) || (k < inputs && space.repeats_one(k));
  mode = flat ? Mode::Flat : !target.loops || inner() >= kShortRow ? Mode::Rows : Mode::Positions;
  if (mode == Mode::Positions) return;
  for (int k = 0; k < space.count; ++k) {
    const Operand& o = space.operands[k];
    const bool stays = flat ? space.repeats_one(k) : o.strides[last()] == 0;
    steps |= static_cast<uint64_t>(stays ? kStays : o.strides[last()] == o.item ? kNext : kStrides) << (2 * k);
  }
  fours = !target.loops && (flat ? space.numel() : inner()) % 4 == 0;
  for (int k = 0; k < space.count && fours; ++k) fours = step(k) == kStays || in_fours(k);
  blocks = mode == Mode::Rows && !target.loops && !fours && inner() >= 2 * kOfBlock * target.group;
}

// True if four neighbours of operand k can be read at once, in every row.
bool Plan::in_fours(int k) const { return step(k) == kNext && starts_in_fours(space.operands[k], mode == Mode::Rows ? last() : 0); }

Key Plan::key() const {
  const uint64_t rank = mode == Mode::Flat ? 0 : static_cast<uint64_t>(space.rank);
  return {Kind::Map, &map.program, steps,
          static_cast<uint64_t>(mode) | static_cast<uint64_t>(wide) << 2 | static_cast<uint64_t>(fours) << 3 |
              static_cast<uint64_t>(blocks) << 4 | rank << 5};
}

// Loads, computes and stores one element of each operand; place(k) is its offset, read(k) its name if it has been read, "" if not.
std::string Plan::body(const std::string& indent, const std::string& index, const std::function<std::string(int)>& place,
                       const std::function<std::string(int)>& read) const {
  return MapBody{map.program, target, place}.of_one(index, indent, read);
}

// The same for four elements; their index is a multiple of four. place(k) is the offset of the first, or of the one that is repeated.
std::string Plan::body_of_fours(const std::string& index, const std::function<std::string(int)>& place) const {
  return MapBody{map.program, target, place}.of_four(index, [this](int k) { return step(k) == kStays; });
}

// Rows whose elements are spread over items, with as many rows per group as fit. Numbers: units (elements, or fours), elements of a row, units of
// a row, their divisor; the space; the divisors of sizes.
std::string Plan::spread_rows() const {
  const auto over = [&](const std::string& n, int size, int divisor) {
    return wide ? fmt::format("{} / a.d[{}]", n, size)
                : fmt::format("(I)quotient((u32){}, (u32)a.d[{}], (u32)a.d[{}])", n, divisor, divisor + 1);
  };
  std::string text = fmt::format("  const I unit = (I)GROUP * {} + ITEM;\n  if (unit < a.d[0]) {{\n", target.group);
  text += fmt::format("    const I row = {}, j = (unit - row * a.d[2]) * {};\n", over("unit", 2, 3), fours ? 4 : 1);
  std::string rest = "row";
  for (int d = last() - 1; d > 0; --d) {
    text += fmt::format("    const I n{0} = {1}, q{0} = {2} - n{0} * a.d[{3}];\n", d, over(rest, walk().size(d), divisor(d)), rest,
                        walk().size(d));
    rest = fmt::format("n{}", d);
  }
  if (last() > 0) text += fmt::format("    const I q0 = {};\n", rest);
  for (int k = 0; k < space.count; ++k) text += fmt::format("    const I r{} = {};\n", k, walk().offset(k, "q", last()));
  const auto place = [&](int k) { return place_in_row(k); };
  const std::string index = "(i64)(row * a.d[1] + j)";
  return text + (fours ? body_of_fours(index, place) : body("    ", index, place)) + "  }\n}\n";
}

// The offset of operand k in its row, at position j.
std::string Plan::place_in_row(int k, const std::string& j) const {
  if (step(k) == kStays) return fmt::format("r{}", k);
  return step(k) == kStrides ? fmt::format("r{} + {} * a.d[{}]", k, j, walk().stride(k, last())) : fmt::format("r{} + {}", k, j);
}

// Long rows whose elements can't be read four at once: what a row needs is computed once for several elements. Numbers: as spread_rows, but the first
// is not used and the third is the groups of a row.
std::string Plan::rows_in_blocks() const {
  std::string text =
      fmt::format("  const I row = (I)GROUP / a.d[2], start = ((I)GROUP - row * a.d[2]) * {} + ITEM;\n", kOfBlock * target.group);
  text += walk().position("q", "row", last(), "  ");
  for (int k = 0; k < space.count; ++k) text += fmt::format("  const I r{} = {};\n", k, walk().offset(k, "q", last()));
  // All elements are read before any is used, because a compiler may not move a read before the store of a result.
  for (int part = 0; part < kOfBlock; ++part) {
    text += fmt::format("  const I j{0} = start + {1};\n  const bool in{0} = j{0} < a.d[1];\n", part, part * target.group);
    for (int k = 0; k < inputs; ++k)
      if (step(k) != kStays)
        text += fmt::format("  const {0} t{1}_{2} = in{2} ? m{1}[{3}] : ({0})0;\n", stored(dtype(k)), k, part,
                            place_in_row(k, fmt::format("j{}", part)));
  }
  for (int part = 0; part < kOfBlock; ++part)
    text += fmt::format("  if (in{0}) {{\n    const I j = j{0};\n", part) +
            body(
                "    ", "(i64)(row * a.d[1] + j)", [&](int k) { return place_in_row(k); },
                [&](int k) { return step(k) == kStays ? std::string() : fmt::format("t{}_{}", k, part); }) +
            "  }\n";
  return text + "}\n";
}

// Numbers: Flat, Positions: elements, elements per item; Rows, if items loop: rows, elements of a row, pieces per row, elements per piece, rows
// per group. Then, except for Flat: sizes, strides by operand.
std::string Plan::text() const {
  Head head;
  for (int k = 0; k < space.count; ++k) head.memory.push_back((k < inputs ? "" : "=") + std::string(stored(dtype(k))));
  head.params = static_cast<int>(map.params.size());
  head.numbers = numbers();
  head.wide = wide;
  head.group = target.loops ? 1 : target.group;
  if (spread() && !wide && !blocks) head.functions = kQuotient;
  std::string text = opening(head, target);
  if (spread()) return complete(target, text + (blocks ? rows_in_blocks() : spread_rows()));
  if (mode != Mode::Rows) {
    const bool flat = mode == Mode::Flat;
    const auto place = [&](int k) -> std::string { return flat ? (step(k) == kStays ? "0" : "i") : fmt::format("e{}", k); };
    if (target.loops)
      text += fmt::format(
          "  const I begin = (I)GROUP * a.d[1], end = begin + a.d[1] < a.d[0] ? begin + a.d[1] : a.d[0];\n{}"
          "  for (I i = begin; i < end; ++i) {{\n",
          flat ? "  PARALLEL\n" : "");
    else
      text += fmt::format("  const I i = ((I)GROUP * {} + ITEM) * {};\n  if (i < a.d[0]) {{\n", target.group, fours ? 4 : 1);
    if (fours) return complete(target, text + body_of_fours("(i64)i", place) + "  }\n}\n");
    if (!flat) {
      text += walk().position("q", "i", "    ");
      for (int k = 0; k < space.count; ++k) text += fmt::format("    const I e{} = {};\n", k, walk().offset(k, "q"));
    }
    text += body("    ", "(i64)i", place) + "  }\n}\n";
    return complete(target, text);
  }
  const auto place = [&](int k) {
    return "r" + std::to_string(k) + (step(k) == kStays ? "" : step(k) == kNext ? " + j" : fmt::format(" + j * s{}", k));
  };
  text += "  const I piece = (I)GROUP % a.d[2], first = (I)GROUP / a.d[2] * a.d[4];\n";
  for (int k = 0; k < space.count; ++k)
    if (step(k) == kStrides) text += fmt::format("  const I s{} = a.d[{}];\n", k, walk().stride(k, last()));
  text += "  for (I row = first; row < first + a.d[4] && row < a.d[0]; ++row) {\n";
  text += walk().position("q", "row", last(), "    ");
  for (int k = 0; k < space.count; ++k) text += fmt::format("    const I r{} = {};\n", k, walk().offset(k, "q", last()));
  text +=
      "    const I begin = piece * a.d[3], end = begin + a.d[3] < a.d[1] ? begin + a.d[3] : a.d[1];\n"
      "    PARALLEL\n    for (I j = begin; j < end; ++j) {\n";
  text += body("      ", "(i64)(row * a.d[1] + j)", place) + "    }\n  }\n}\n";
  return complete(target, text);
}

void Plan::start(Launcher& launcher) const {
  Arguments arguments(space.count, wide);
  for (const uint64_t p : map.params) arguments.param(p);
  const int64_t n = space.numel();
  // Enough pieces for every unit, each large enough to be worth starting.
  const int64_t chunk = std::clamp((n / (4 * target.units) + 63) / 64 * 64, kLeastChunk, kChunk);
  int64_t groups;
  if (spread()) {
    const int64_t of_block = kOfBlock * target.group, units = n / (fours ? 4 : 1);
    const int64_t of_row = blocks ? (inner() + of_block - 1) / of_block : inner() / (fours ? 4 : 1);
    groups = blocks ? n / inner() * of_row : (units + target.group - 1) / target.group;
    for (const int64_t v : {units, inner(), of_row}) arguments.add(v);
    wide ? arguments.add(0), arguments.add(0) : add_divisor(arguments, of_row);
    add(arguments, space);
    for (int d = 1; d < last(); ++d) wide ? arguments.add(0), arguments.add(0) : add_divisor(arguments, space.sizes[d]);
  } else if (mode == Mode::Rows) {
    const int64_t rows = n / inner();
    int64_t pieces, length, together = 1;
    if (strides()) {
      // Tiles, so that a cache line is used for the next row's elements, too.
      length = together = kTogether;
      pieces = (inner() + kTogether - 1) / kTogether;
    } else {
      pieces = std::max<int64_t>(1, inner() / chunk);
      length = (inner() + pieces - 1) / pieces;
      pieces = (inner() + length - 1) / length;
      if (pieces == 1) together = std::clamp<int64_t>(chunk / inner(), 1, rows);
    }
    groups = (rows + together - 1) / together * pieces;
    for (const int64_t v : {rows, inner(), pieces, length, together}) arguments.add(v);
    add(arguments, space);
  } else {
    const int64_t each = target.loops ? chunk : fours ? 4 * target.group : target.group;
    groups = (n + each - 1) / each;
    arguments.add(n), arguments.add(chunk);
    if (mode != Mode::Flat) add(arguments, space);
  }
  void* memory[ir::kMaxOperands];
  for (int k = 0; k < space.count; ++k) memory[k] = space.operands[k].data;
  launcher.start({key(),
                  [this] { return text(); },
                  {memory, static_cast<size_t>(space.count)},
                  arguments.bytes(),
                  groups,
                  target.loops ? 1 : target.group});
}

}  // namespace

void run(const ir::Map& map, Launcher& launcher) {
  if (map.outputs.empty() || product(map.shape) == 0) return;
  Plan(map, launcher.target()).start(launcher);
}

}  // namespace naru::render::c
