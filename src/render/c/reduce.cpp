// Reductions, in the order of ir/reduce.h. Contiguous: chunks of each result by groups of 64 items (or by items that loop over 64 lanes).
// Strided: one item per result. Then the tree over the chunks.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "render/c/expressions.h"
#include "render/c/launch.h"

namespace naru::render::c {
namespace {

using ir::Space;
using ir::VType;

// Columns that an item processes together.
constexpr int64_t kColumns = 256;
// The columns of a tile that a group reads at once in a strided reduction, which is for at least kTiledRows rows; with more than kBusy items per
// unit, separate items are faster.
constexpr int64_t kTileColumns = 32, kTiledRows = 128, kBusy = 1024;
// Chunks that an item combines at a time in trees of many; Numbers of a tree before its space.
constexpr int kTreeBlock = 16, kTreeNumbers = 5;
// Bytes of the part of a chunk that is staged for the 64 lanes.
constexpr int64_t kPieceBytes = 16384;

struct Reduction {
  const ir::Reduce& reduce;
  const Target& target;
  Space kept;     // inputs, then the result
  Space reduced;  // inputs
  int inputs;
  VType type = VType::F32;
  int64_t results, length, chunk, chunks;
  bool wide;
  bool spread = false;  // few chunks: a whole group reads each, of a row or of some columns
  bool fours = false;   // ... four elements of the row at once; strided: an item takes four columns

  Reduction(const ir::Reduce& r, const Target& t) : reduce(r), target(t), inputs(static_cast<int>(r.inputs.size())) {
    const int kept_dims = static_cast<int>(r.shape.size()) - r.reduced;
    const std::span<const int64_t> shape = r.shape;
    kept.reset(shape.first(kept_dims));
    reduced.reset(shape.subspan(kept_dims));
    Space whole(shape);
    for (const ir::View& v : r.inputs) {
      const auto item = static_cast<int64_t>(size_of(v.dtype));
      kept.add(static_cast<char*>(v.data), item, v.strides.data());
      reduced.add(static_cast<char*>(v.data), item, v.strides.data() + kept_dims);
      whole.add(v);
    }
    kept.add(r.out);
    wide = is_wide(whole) || is_wide(kept);
    results = kept.numel(), length = reduced.numel();
    for (Space* s : {&kept, &reduced}) s->drop_ones(), s->merge();
    chunk = r.contiguous ? ir::kContiguousChunk : ir::kStridedChunk;
    chunks = std::max<int64_t>(1, (length + chunk - 1) / chunk);
    type = ir::vtype_of(r.program.nodes[r.program.outputs[0]].out);
    if (!t.loops && r.contiguous)
      spread = length >= 2048 && results * chunks <= 4 * t.units && lies_in_rows(), fours = spread && in_fours();
    if (!t.loops && !r.contiguous) {
      fours = columns_in_fours();
      spread = length >= kTiledRows && results >= kTileColumns / 2 && results * chunks <= kBusy * (fours ? 2 : 1) * t.units &&
               t.group >= static_cast<int>(outputs()) * kTileColumns;
    }
  }

  void start(Launcher& launcher) const;

 private:
  // Numbers: length, chunks, results (contiguous: results times chunks), units per item; both spaces.
  static constexpr int kNumbers = 4;
  Walk kept_walk() const { return {kNumbers, kept.rank, kept.count}; }
  Walk reduced_walk() const { return {kept_walk().end(), reduced.rank, reduced.count}; }
  bool columns() const { return target.loops && !reduce.contiguous; }
  // The length of a row of results, the last kept dimension; the other kept dimensions are rows.
  int64_t row() const { return kept.rank == 0 ? 1 : kept.sizes[kept.rank - 1]; }
  bool lies_in_rows() const;
  bool in_fours() const;
  bool columns_in_fours() const;
  int columns_of_item() const { return fours ? 4 : 1; }
  const ir::View& out_of(size_t r) const { return r == 0 ? reduce.out : reduce.others[r - 1]; }
  // Results of the reduction, for each kept position.
  size_t outputs() const { return 1 + reduce.others.size(); }
  // Rows of a strided reduction's tile: as many as half of the local memory holds.
  int tile_rows() const {
    const auto row = static_cast<int64_t>(ir::size_of(type) * outputs()) * kTileColumns;
    return static_cast<int>(std::clamp<int64_t>(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(target.local / 2 / row))),
                                                target.group * columns_of_item() / kTileColumns, 128));
  }
  int64_t piece() const { return kPieceBytes / std::max<int64_t>(4, static_cast<int64_t>(ir::size_of(type))); }
  int items() const { return target.loops ? 1 : spread || !reduce.contiguous ? target.group : static_cast<int>(ir::kLanes); }
  Key key() const;
  std::string text() const;
  std::string head() const;
  std::string value(const std::string& index, const std::function<std::string(int)>& place, const std::string& indent,
                    std::string& result) const;
  std::string reduced_offset(int k) const;
  std::string store(const std::string& place, const std::string& partial, const std::string& value) const;
  std::string contiguous_items() const;
  std::string lanes_of_group() const;
  std::string contiguous_spread() const;
  std::string contiguous_loops() const;
  std::string strided_values(const std::string& index, const std::string& indent,
                             const std::function<std::string(size_t, int, const std::string&)>& use, bool ahead = false) const;
  bool next_column(int k) const { return kept.rank > 0 && last_step(kept, k) == kNext; }
  std::string reads_ahead(int each) const;
  std::string ahead_text() const;
  std::string strided_store(size_t r, const std::string& place, const std::string& x) const;
  std::string strided_items() const;
  std::string strided_spread() const;
  std::string strided_loops() const;
  void start_trees(Launcher& launcher, void* partial) const;
  std::string tree_opening(int group, bool in_place) const;
  std::string tree_store(const std::string& x, const std::string& indent) const;
  std::string tree_text(int items) const;
  std::string block_tree_text(int beside) const;
  int64_t block_room() const { return target.local / 2 / static_cast<int64_t>(ir::size_of(type)); }
};

Key Reduction::key() const {
  uint64_t steps = 0;
  for (int k = 0; k < inputs; ++k) {
    if (reduced.rank == 1) steps |= static_cast<uint64_t>(last_step(reduced, k)) << (2 * k);
    if (!reduce.contiguous) steps |= static_cast<uint64_t>(last_step(kept, k)) << (2 * k + 24);
  }
  const KeyBits more = KeyBits()
                           .add(reduce.op)
                           .add(reduce.out.dtype)
                           .add(wide)
                           .add(chunks == 1)
                           .add(kept.rank, 8)
                           .add(reduced.rank, 8)
                           .add(spread)
                           .add(fours)
                           .add(static_cast<uint64_t>(outputs()), 4);
  return {reduce.contiguous ? Kind::ContiguousReduction : Kind::StridedReduction, &reduce.program, steps, more};
}

std::string Reduction::head() const {
  Head h;
  for (const ir::View& v : reduce.inputs) h.memory.push_back(stored(v.dtype));
  for (size_t r = 0; r < outputs(); ++r)
    h.memory.push_back("=" + (chunks == 1 ? std::string(stored(reduce.out.dtype)) : stored_value(type)));
  h.params = static_cast<int>(reduce.params.size());
  h.numbers = reduced_walk().end();
  h.group = items();
  h.wide = wide;
  h.functions = combine_function(reduce.op, type, target);
  return opening(h, target);
}

// Code that computes the reduced value of one element.
std::string Reduction::value(const std::string& index, const std::function<std::string(int)>& place, const std::string& indent,
                             std::string& result) const {
  const ir::MapKernel kernel = reduce.program.lower();
  const Leaves leaves{[&](uint64_t slot, DType t) { return loaded(t, fmt::format("m{}[{}]", slot, place(static_cast<int>(slot)))); },
                      param_text, index};
  result = node("v", kernel.results[0]);
  return expressions(kernel.graph, {kernel.results.data(), 1}, leaves, target, "v", indent);
}

// The offset from a result's first element to the one at reduced position f (constants f0, f1 ... if there are several dimensions).
std::string Reduction::reduced_offset(int k) const {
  if (reduced.rank == 0) return "0";
  if (reduced.rank > 1) return reduced_walk().offset(k, "f");
  const Step step = last_step(reduced, k);
  return step == kStays ? "0" : step == kNext ? "f" : fmt::format("f * a.d[{}]", reduced_walk().stride(k, 0));
}

// Writes the accumulator to the result, or to the partial results for the tree.
std::string Reduction::store(const std::string& place, const std::string& partial, const std::string& x) const {
  if (chunks == 1) return fmt::format("m{}[{}] = {};\n", inputs, place, converted(type, reduce.out.dtype, x, target));
  return fmt::format("m{}[{}] = {};\n", inputs, partial, put(type, x));
}

std::string Reduction::contiguous_items() const {
  const std::string t = name_of(type), indent = "    ";
  const Walk k = kept_walk(), f = reduced_walk();
  std::string text = fmt::format("  LOCAL {} s[64];\n", stored_value(type));
  text +=
      "  const I unit = (I)GROUP, row = unit / a.d[1], begin = unit % a.d[1] * 16384;\n"
      "  const I end = begin + 16384 < a.d[0] ? begin + 16384 : a.d[0];\n";
  text += k.position("q", "row", "  ");
  for (int i = 0; i < inputs; ++i) text += fmt::format("  const I r{} = {};\n", i, k.offset(i, "q"));
  text +=
      fmt::format("  {} x = {};\n  for (I f = begin + ITEM; f < end; f += 64) {{\n", t, literal(type, ir::identity_bits(reduce.op, type)));
  if (f.rank > 1) text += f.position("f", "f", indent);
  std::string result;
  text += value(
      "(i64)(row * a.d[0] + f)", [&](int i) { return fmt::format("r{} + {}", i, reduced_offset(i)); }, indent, result);
  text += fmt::format("    x = combine(x, {});\n  }}\n  s[ITEM] = {};\n  BARRIER;\n", result, put(type, "x"));
  return text + lanes_of_group();
}

// Combines the 64 lanes in s into the result.
std::string Reduction::lanes_of_group() const {
  const std::string combined = put(type, fmt::format("combine({}, {})", got(type, "s[ITEM]"), got(type, "s[ITEM + by]")));
  return fmt::format("  for (int by = 32; by > 0; by /= 2) {{\n    if (ITEM < by) s[ITEM] = {};\n    BARRIER;\n  }}\n", combined) +
         "  if (ITEM == 0) " + store(kept_walk().offset(inputs, "q"), "unit", got(type, "s[0]")) + "}\n";
}

// True if every input is contiguous along the reduced dimension, or constant.
bool Reduction::lies_in_rows() const {
  bool all = reduced.rank == 1;
  for (int k = 0; k < inputs && all; ++k) all = last_step(reduced, k) != kStrides;
  return all;
}

// True if four neighbours can be read at once.
bool Reduction::in_fours() const {
  if (!lies_in_rows() || length % 4 != 0) return false;
  bool all = true;
  for (int k = 0; k < inputs; ++k) {
    if (last_step(reduced, k) == kNext) all &= starts_in_fours(kept.operands[k], kept.rank);
  }
  return all;
}

// True if four neighbouring columns can be read at once.
bool Reduction::columns_in_fours() const {
  if (kept.rank == 0 || kept.sizes[kept.rank - 1] % 4 != 0) return false;
  bool all = true;
  for (int k = 0; k < inputs; ++k) {
    if (last_step(kept, k) == kStays) continue;
    all &= next_column(k) && starts_in_fours(kept.operands[k], kept.rank - 1) && starts_in_fours(reduced.operands[k], reduced.rank);
  }
  return all;
}

// All items of a group read a part of a chunk, four elements each at once if possible; 64 of them combine its values, one lane each.
std::string Reduction::contiguous_spread() const {
  const Walk k = kept_walk();
  constexpr const char* kParts = "xyzw";
  std::string text = fmt::format("  LOCAL {0} s[64];\n  LOCAL {0} values[{1}];\n", stored_value(type), piece());
  text +=
      "  const I unit = (I)GROUP, row = unit / a.d[1], begin = unit % a.d[1] * 16384;\n"
      "  const I end = begin + 16384 < a.d[0] ? begin + 16384 : a.d[0];\n";
  text += k.position("q", "row", "  ");
  for (int i = 0; i < inputs; ++i) text += fmt::format("  const I r{} = {};\n", i, k.offset(i, "q"));
  text += fmt::format("  {0} x = {1};\n  for (I at = begin; at < end; at += {2}) {{\n    const I stop = at + {2} < end ? at + {2} : end;\n",
                      name_of(type), literal(type, ir::identity_bits(reduce.op, type)), piece());
  const int parts = fours ? 4 : 1;
  text += fmt::format("    for (I f = at + ITEM * {0}; f < stop; f += {1}) {{\n", parts, parts * items());
  for (int i = 0; i < inputs; ++i)
    if (fours && last_step(reduced, i) == kNext)
      text += fmt::format("      const {0}x4 t{1} = *(GLOBAL const {0}x4*)&m{1}[r{1} + f];\n",
                          stored(reduce.inputs[static_cast<size_t>(i)].dtype), i);
  const ir::MapKernel kernel = reduce.program.lower();
  for (int part = 0; part < parts; ++part) {
    const auto input = [&](uint64_t slot, DType t) {
      if (last_step(reduced, static_cast<int>(slot)) != kNext) return loaded(t, fmt::format("m{0}[r{0}]", slot));
      return loaded(t, fours ? fmt::format("t{}.{}", slot, kParts[part]) : fmt::format("m{0}[r{0} + f]", slot));
    };
    const std::string prefix = fmt::format("v{}_", kParts[part]);
    text += expressions(kernel.graph, {kernel.results.data(), 1}, {input, param_text, fmt::format("(i64)(row * a.d[0] + f + {})", part)},
                        target, prefix, "      ");
    text += fmt::format("      values[f - at + {}] = {};\n", part, put(type, node(prefix, kernel.results[0])));
  }
  text += fmt::format(
      "    }}\n    BARRIER;\n    if (ITEM < 64)\n      for (I f = at + ITEM; f < stop; f += 64) x = combine(x, {});\n    BARRIER;\n  }}\n",
      got(type, "values[f - at]"));
  return text + fmt::format("  if (ITEM < 64) s[ITEM] = {};\n  BARRIER;\n", put(type, "x")) + lanes_of_group();
}

std::string Reduction::contiguous_loops() const {
  const std::string t = name_of(type), indent = "        ";
  const Walk k = kept_walk(), f = reduced_walk();
  std::string text = fmt::format("  {} x[64];\n", t);
  text +=
      "  const I first = (I)GROUP * a.d[3], last = first + a.d[3] < a.d[2] ? first + a.d[3] : a.d[2];\n"
      "  for (I unit = first; unit < last; ++unit) {\n"
      "    const I row = unit / a.d[1], begin = unit % a.d[1] * 16384;\n"
      "    const I end = begin + 16384 < a.d[0] ? begin + 16384 : a.d[0];\n";
  text += k.position("q", "row", "    ");
  for (int i = 0; i < inputs; ++i) text += fmt::format("    const I r{} = {};\n", i, k.offset(i, "q"));
  text += fmt::format("    for (int l = 0; l < 64; ++l) x[l] = {};\n", literal(type, ir::identity_bits(reduce.op, type)));
  text += "    for (I at = begin; at < end; at += 64) {\n      const int n = end - at < 64 ? (int)(end - at) : 64;\n";
  text += fmt::format("      {}for (int l = 0; l < n; ++l) {{\n        const I f = at + l;\n", f.rank > 1 ? "" : "PARALLEL\n      ");
  if (f.rank > 1) text += f.position("f", "f", indent);
  std::string result;
  text += value(
      "(i64)(row * a.d[0] + f)", [&](int i) { return fmt::format("r{} + {}", i, reduced_offset(i)); }, indent, result);
  text += fmt::format("        x[l] = combine(x[l], {});\n      }}\n    }}\n", result);
  text += "    for (int by = 32; by > 0; by /= 2)\n      for (int l = 0; l < by; ++l) x[l] = combine(x[l], x[l + by]);\n";
  return text + "    " + store(k.offset(inputs, "q"), "unit", "x[0]") + "  }\n}\n";
}

// Lines that load and compute the reduced values of each result, of one column or of four neighbours (`fours`), at r<k> + the reduced offset; ahead: the
// elements have been read into t<k>[u]. use is given a result's number, a column's and the value's name.
std::string Reduction::strided_values(const std::string& index, const std::string& indent,
                                      const std::function<std::string(size_t, int, const std::string&)>& use, bool ahead) const {
  constexpr const char* kParts = "xyzw";
  const ir::MapKernel kernel = reduce.program.lower();
  std::string text;
  for (int k = 0; fours && !ahead && k < inputs; ++k)
    if (next_column(k))
      text += fmt::format("{0}const {1}x4 t{2} = *(GLOBAL const {1}x4*)&m{2}[r{2} + {3}];\n", indent,
                          stored(reduce.inputs[static_cast<size_t>(k)].dtype), k, reduced_offset(k));
  for (int part = 0; part < columns_of_item(); ++part) {
    const auto input = [&](uint64_t slot, DType t) {
      const int k = static_cast<int>(slot);
      const std::string place = ahead ? fmt::format("t{}[u]", k) : fmt::format("t{}", k);
      if (next_column(k) && (fours || ahead)) return loaded(t, fours ? fmt::format("{}.{}", place, kParts[part]) : place);
      return loaded(t, fmt::format("m{0}[r{0} + {1}]", k, reduced_offset(k)));
    };
    const std::string prefix = fmt::format("v{}_", kParts[part]);
    text += expressions(kernel.graph, kernel.results, {input, param_text, fmt::format(fmt::runtime(index), part)}, target, prefix, indent);
    for (size_t r = 0; r < kernel.results.size(); ++r) text += indent + use(r, part, node(prefix, kernel.results[r]));
  }
  return text;
}

// Arrays for the elements of `each` rows that an item reads before it uses them; "": no operand changes with the columns.
std::string Reduction::reads_ahead(int each) const {
  std::string text;
  for (int k = 0; k < inputs; ++k)
    if (next_column(k))
      text += fmt::format("  {}{} t{}[{}];\n", stored(reduce.inputs[static_cast<size_t>(k)].dtype), fours ? "x4" : "", k, each);
  return text;
}
// Reads those of row f into place u.
std::string Reduction::ahead_text() const {
  std::string text;
  for (int k = 0; k < inputs; ++k)
    if (next_column(k))
      text += fours ? fmt::format("      t{0}[u] = *(GLOBAL const {1}x4*)&m{0}[r{0} + {2}];\n", k,
                                  stored(reduce.inputs[static_cast<size_t>(k)].dtype), reduced_offset(k))
                    : fmt::format("      t{0}[u] = m{0}[r{0} + {1}];\n", k, reduced_offset(k));
  return text;
}

// Writes the accumulator of result r, in column `row` of the kept space's last dimension, or of its partial results.
std::string Reduction::strided_store(size_t r, const std::string& place, const std::string& x) const {
  if (chunks == 1) return fmt::format("m{}[{}] = {};\n", inputs + static_cast<int>(r), place, converted(type, reduce.out.dtype, x, target));
  return fmt::format("m{}[chunk * a.d[2] + row] = {};\n", inputs + static_cast<int>(r), put(type, x));
}

// An item computes a result, or four neighbours, for one chunk of rows.
std::string Reduction::strided_items() const {
  const Walk k = kept_walk(), f = reduced_walk();
  const int columns = columns_of_item();
  std::string text = fmt::format("  const I units = a.d[2] / {0}, item = (I)GROUP * {1} + ITEM;\n  if (item < units * a.d[1]) {{\n",
                                 columns, target.group);
  text += fmt::format(
      "    const I first = item % units * {}, chunk = item / units, begin = chunk * 256;\n"
      "    const I end = begin + 256 < a.d[0] ? begin + 256 : a.d[0];\n",
      columns);
  text += k.position("q", "first", "    ");
  for (int i = 0; i < inputs; ++i) text += fmt::format("    const I r{} = {};\n", i, k.offset(i, "q"));
  const auto x = [](size_t r, int c) { return fmt::format("x{}_{}", r, c); };
  for (size_t r = 0; r < outputs(); ++r)
    for (int c = 0; c < columns; ++c)
      text += fmt::format("    {} {} = {};\n", name_of(type), x(r, c), literal(type, ir::identity_bits(reduce.op, type)));
  text += "    for (I f = begin; f < end; ++f) {\n";
  if (f.rank > 1) text += f.position("f", "f", "      ");
  text += strided_values("(i64)((first + {}) * a.d[0] + f)", "      ",
                         [&](size_t r, int c, const std::string& v) { return fmt::format("{0} = combine({0}, {1});\n", x(r, c), v); });
  text += "    }\n";
  for (int c = 0; c < columns; ++c) {
    text += fmt::format("    {{\n      const I row = first + {};\n{}", c, c ? k.position("w", "row", "      ") : "");
    for (size_t r = 0; r < outputs(); ++r) text += "      " + strided_store(r, k.offset(inputs, c ? "w" : "q"), x(r, c));
    text += "    }\n";
  }
  return text + "  }\n}\n";
}

// A group computes 32 neighbouring results, for one chunk of rows: all its items read a tile of rows, and one item per result combines them in
// order.
std::string Reduction::strided_spread() const {
  const Walk k = kept_walk(), f = reduced_walk();
  const int columns = columns_of_item(), rows = tile_rows(), across = static_cast<int>(kTileColumns) / columns;
  const auto several = static_cast<int>(outputs());
  std::string text = fmt::format("  LOCAL {} s[{}];\n", stored_value(type), several * rows * kTileColumns);
  text += fmt::format(
      "  const I blocks = (a.d[2] + {0}) / {1}, start = (I)GROUP % blocks * {1}, chunk = (I)GROUP / blocks;\n"
      "  const I begin = chunk * 256, end = begin + 256 < a.d[0] ? begin + 256 : a.d[0];\n"
      "  const int column = ITEM % {2} * {3};\n  const I first = start + column < a.d[2] ? start + column : 0;\n",
      kTileColumns - 1, kTileColumns, across, columns);
  text += k.position("q", "first", "  ");
  for (int i = 0; i < inputs; ++i) text += fmt::format("  const I r{} = {};\n", i, k.offset(i, "q"));
  // The elements of the next tile are read while the values of this one are combined. u: the item's rows of a tile.
  const int step = items() / across, each = rows / step;
  const std::string here = fmt::format("ITEM / {} + u * {}", across, step);
  const std::string ahead = f.rank > 1 ? "" : reads_ahead(each);
  const auto read = [&](const std::string& at) {
    return ahead.empty() ? ""
                         : fmt::format(
                               "    UNROLL\n    for (int u = 0; u < {}; ++u) {{\n      const I f = {} + {};\n      if (f < end) {{\n{}     "
                               " }}\n    }}\n",
                               each, at, here, ahead_text());
  };
  text += fmt::format("  {} x = {};\n", name_of(type), literal(type, ir::identity_bits(reduce.op, type))) + ahead + read("begin");
  text += fmt::format(
      "  for (I at = begin; at < end; at += {0}) {{\n    const I stop = at + {0} < end ? at + {0} : end;\n    UNROLL\n"
      "    for (int u = 0; u < {1}; ++u) {{\n      const I f = at + {2};\n      if (f < stop) {{\n      const int to = (int)(f - at) * {3} "
      "+ column;\n",
      rows, each, here, kTileColumns);
  if (f.rank > 1) text += f.position("f", "f", "      ");
  text += strided_values(
      "(i64)((first + {}) * a.d[0] + f)", "      ",
      [&](size_t r, int c, const std::string& v) {
        return fmt::format("s[to + {}] = {};\n", static_cast<int>(r) * rows * static_cast<int>(kTileColumns) + c, put(type, v));
      },
      !ahead.empty());
  text += "      }\n    }\n    BARRIER;\n" + read(fmt::format("at + {}", rows));
  text += fmt::format(
      "    if (ITEM < {0}) {{\n      const int n = (int)(stop - at), from = ITEM / {1} * {2} + ITEM % {1};\n"
      "      for (int j = 0; j < n; ++j) x = combine(x, {3});\n    }}\n    BARRIER;\n  }}\n",
      several * kTileColumns, kTileColumns, rows * kTileColumns, got(type, fmt::format("s[from + j * {}]", kTileColumns)));
  text += fmt::format("  const I row = start + ITEM % {};\n  if (ITEM < {} && row < a.d[2]) {{\n", kTileColumns, several * kTileColumns);
  text += k.position("w", "row", "    ");
  for (size_t r = 0; r < outputs(); ++r)
    text += fmt::format("    if (ITEM / {} == {}) ", kTileColumns, r) + strided_store(r, k.offset(inputs, "w"), "x");
  return text + "  }\n}\n";
}

// A group computes some neighbouring results, for one chunk of rows: accumulators are in an array, and the inner loop runs along the results.
std::string Reduction::strided_loops() const {
  const Walk k = kept_walk(), f = reduced_walk();
  const int last = kept.rank - 1, outer = std::max(last, 0);
  const std::string width = kept.rank == 0 ? "1" : fmt::format("a.d[{}]", k.size(last));
  std::string text = fmt::format("  {} x[{}];\n", name_of(type), kColumns);
  text += fmt::format(
      "  const I blocks = ({0} + {1}) / {2}, col = (I)GROUP % blocks * {2}, chunk = (I)GROUP / blocks % a.d[1];\n"
      "  const I row = (I)GROUP / blocks / a.d[1], begin = chunk * 256;\n"
      "  const I end = begin + 256 < a.d[0] ? begin + 256 : a.d[0];\n"
      "  const int n = {0} - col < {2} ? (int)({0} - col) : {2};\n",
      width, kColumns - 1, kColumns);
  text += k.position("q", "row", outer, "  ");
  const auto step_of = [&](int i) {
    const Step step = last_step(kept, i);
    return step == kStays ? std::string("0") : step == kNext ? "j" : fmt::format("j * a.d[{}]", k.stride(i, last));
  };
  for (int i = 0; i <= inputs; ++i)
    text += fmt::format("  const I r{} = {}{};\n", i, k.offset(i, "q", outer),
                        last < 0 ? "" : fmt::format(" + col * a.d[{}]", k.stride(i, last)));
  text += fmt::format("  for (int j = 0; j < n; ++j) x[j] = {};\n", literal(type, ir::identity_bits(reduce.op, type)));
  text += "  for (I f = begin; f < end; ++f) {\n";
  if (f.rank > 1) text += f.position("f", "f", "    ");
  for (int i = 0; i < inputs; ++i) text += fmt::format("    const I e{0} = r{0} + {1};\n", i, reduced_offset(i));
  text += "    PARALLEL\n    for (int j = 0; j < n; ++j) {\n";
  std::string result;
  text += value(
      fmt::format("(i64)((row * {} + col + j) * a.d[0] + f)", width), [&](int i) { return fmt::format("e{} + {}", i, step_of(i)); },
      "      ", result);
  text += fmt::format("      x[j] = combine(x[j], {});\n    }}\n  }}\n  for (int j = 0; j < n; ++j)\n    ", result);
  const std::string place = last < 0 ? "r" + std::to_string(inputs) : fmt::format("r{} + j * a.d[{}]", inputs, k.stride(inputs, last));
  return text + store(place, fmt::format("chunk * a.d[2] + row * {} + col + j", width), "x[j]") + "}\n";
}

std::string Reduction::text() const {
  const std::string body = reduce.contiguous ? (target.loops ? contiguous_loops()
                                                : spread     ? contiguous_spread()
                                                             : contiguous_items())
                                             : (target.loops ? strided_loops()
                                                : spread     ? strided_spread()
                                                             : strided_items());
  return complete(target, head() + body);
}

// The start of a tree kernel. Memory: the partial results, those of each result of the reduction behind one another; each result. Numbers: results,
// chunks, stride from result to result, from chunk to chunk, groups of a result of the reduction; the kept space of a result alone.
std::string Reduction::tree_opening(int group, bool in_place) const {
  Head h;
  h.memory = {(in_place ? "=" : "") + stored_value(type)};
  for (size_t r = 0; r < outputs(); ++r) h.memory.push_back("=" + std::string(stored(reduce.out.dtype)));
  h.numbers = Walk{kTreeNumbers, kept.rank, 1}.end();
  h.group = group;
  h.wide = wide;
  h.functions = combine_function(reduce.op, type, target);
  const char* const which =
      outputs() == 1 ? "  const I which = 0, g = (I)GROUP;\n" : "  const I which = (I)GROUP / a.d[4], g = (I)GROUP - which * a.d[4];\n";
  return opening(h, target) + which;
}

// Stores a tree's value x as result q.
std::string Reduction::tree_store(const std::string& x, const std::string& indent) const {
  const Walk walk{kTreeNumbers, kept.rank, 1};
  std::string text = walk.position("q", "q", indent);
  for (size_t r = 0; r < outputs(); ++r)
    text += fmt::format("{}{}m{}[{}] = {};\n", indent, outputs() == 1 ? std::string() : fmt::format("if (which == {}) ", r), r + 1,
                        walk.offset(0, "q"), converted(type, reduce.out.dtype, x, target));
  return text;
}

// Combines the chunks of each result as a tree, in place, by `items` items.
std::string Reduction::tree_text(int items) const {
  std::string text = tree_opening(64, true);
  text += items == 1 ? "  const I q = g * 64 + ITEM;\n  const int item = 0;\n  if (q < a.d[0]) {\n"
                     : "  const I q = g;\n  const int item = ITEM;\n  {\n";
  text += fmt::format(
      "    GLOBAL {0}* x = m0 + which * a.d[0] * a.d[1] + q * a.d[2];\n    for (I s = 1; s < a.d[1]; s *= 2) {{\n"
      "      for (I i = 2 * s * item; i + s < a.d[1]; i += 2 * s * {1}) x[i * a.d[3]] = {2};\n{3}    }}\n",
      stored_value(type), items, put(type, fmt::format("combine({}, {})", got(type, "x[i * a.d[3]]"), got(type, "x[(i + s) * a.d[3]]"))),
      items == 1 ? "" : "      BARRIER;\n");
  text += "    if (item == 0) {\n" + tree_store(got(type, "x[0]"), "      ") + "    }\n  }\n}\n";
  return complete(target, text);
}

// The same for many chunks, by a group for some neighbouring results: each item combines blocks of 16 chunks, then the group the blocks, in local
// memory. `beside`: results of a group.
std::string Reduction::block_tree_text(int beside) const {
  const int group = target.group, lanes = group / beside;
  std::string text = tree_opening(group, false);
  text += fmt::format(
      "  LOCAL {0} s[{1}];\n  const int own = ITEM % {2}, lane = ITEM / {2}, blocks = (int)((a.d[1] + {3}) / {4});\n"
      "  const I at = g * {2} + own, q = at < a.d[0] ? at : 0;\n  GLOBAL const {0}* x = m0 + which * a.d[0] * a.d[1] + q * a.d[2];\n"
      "  for (int b = lane; b < blocks; b += {5}) {{\n    const I from = (I)b * {4};\n",
      stored_value(type), block_room(), beside, kTreeBlock - 1, kTreeBlock, lanes);
  for (int i = 0; i < kTreeBlock; ++i)
    text += fmt::format(
        "    {} v{} = {};\n", name_of(type), i,
        got(type, i == 0 ? std::string("x[from * a.d[3]]") : fmt::format("x[(from + {0} < a.d[1] ? from + {0} : from) * a.d[3]]", i)));
  for (int by = 1; by < kTreeBlock; by *= 2)
    for (int i = 0; i + by < kTreeBlock; i += 2 * by)
      text += fmt::format("    if (from + {0} < a.d[1]) v{1} = combine(v{1}, v{0});\n", i + by, i);
  text += fmt::format("    s[b * {} + own] = {};\n  }}\n  BARRIER;\n", beside, put(type, "v0"));
  text += fmt::format(
      "  for (int by = 1; by < blocks; by *= 2) {{\n    for (int b = 2 * by * lane; b + by < blocks; b += 2 * by * {}) s[b * {} + own] = "
      "{};\n"
      "    BARRIER;\n  }}\n",
      lanes, beside,
      put(type, fmt::format("combine({}, {})", got(type, fmt::format("s[b * {} + own]", beside)),
                            got(type, fmt::format("s[(b + by) * {} + own]", beside)))));
  text += "  if (lane == 0 && at < a.d[0]) {\n" + tree_store(got(type, "s[own]"), "    ") + "  }\n}\n";
  return complete(target, text);
}

// The trees of all results; partial: their chunks.
void Reduction::start_trees(Launcher& launcher, void* partial) const {
  Space result;
  result.rank = kept.rank;
  std::copy(kept.sizes, kept.sizes + kept.rank, result.sizes);
  result.count = 1;
  result.operands[0] = kept.operands[inputs];
  // One item per tree, or one group: long trees of few results would keep few items busy.
  const bool enough = results >= 128 * static_cast<int64_t>(target.units) || chunks < 64;
  const int items = target.loops || (results >= 64 && enough) ? 1 : 64;
  // Neighbouring results lie beside one another in the partial results of a strided reduction.
  const int64_t blocks = (chunks + kTreeBlock - 1) / kTreeBlock;
  int beside = reduce.contiguous ? 1 : 8;
  while (beside > 1 && beside * blocks > block_room()) beside /= 2;
  const bool in_blocks = !target.loops && chunks >= 2 * kTreeBlock && beside * blocks <= block_room();
  const int64_t groups = in_blocks ? (results + beside - 1) / beside : items == 1 ? (results + 63) / 64 : results;
  std::vector<void*> memory{partial};
  for (size_t r = 0; r < outputs(); ++r) memory.push_back(out_of(r).data);
  Arguments arguments(static_cast<int>(memory.size()), wide);
  for (const int64_t v : {results, chunks, reduce.contiguous ? chunks : int64_t{1}, reduce.contiguous ? int64_t{1} : results, groups})
    arguments.add(v);
  add(arguments, result);
  const KeyBits bits = KeyBits()
                           .add(reduce.op)
                           .add(reduce.out.dtype)
                           .add(wide)
                           .add(items == 1)
                           .add(type)
                           .add(kept.rank, 8)
                           .add(in_blocks ? static_cast<uint64_t>(beside) : 0, 4)
                           .add(static_cast<uint64_t>(outputs()), 4);
  launcher.start({{Kind::Tree, nullptr, bits},
                  [&] { return in_blocks ? block_tree_text(beside) : tree_text(items); },
                  memory,
                  arguments.bytes(),
                  groups * static_cast<int64_t>(outputs()),
                  in_blocks ? target.group : 64});
}

void Reduction::start(Launcher& launcher) const {
  std::vector<void*> memory;
  for (const ir::View& v : reduce.inputs) memory.push_back(v.data);
  const size_t of_result = static_cast<size_t>(results * chunks) * ir::size_of(type);
  auto* const partial = chunks > 1 ? static_cast<char*>(launcher.scratch(outputs() * of_result)) : nullptr;
  for (size_t r = 0; r < outputs(); ++r) memory.push_back(partial ? partial + r * of_result : out_of(r).data);
  Arguments arguments(static_cast<int>(memory.size()), wide);
  for (const uint64_t p : reduce.params) arguments.param(p);
  int64_t groups, each = 1;
  if (columns()) {
    groups = results / row() * chunks * ((row() + kColumns - 1) / kColumns);
  } else if (reduce.contiguous) {
    groups = results * chunks;
    if (target.loops)
      each = std::clamp<int64_t>(kLeastOfItem / std::max<int64_t>(1, std::min(length, chunk)), 1,
                                 std::max<int64_t>(1, groups / (2 * target.units)));
    groups = (groups + each - 1) / each;
  } else {
    groups = spread ? (results + kTileColumns - 1) / kTileColumns * chunks
                    : (results / columns_of_item() * chunks + target.group - 1) / target.group;
  }
  for (const int64_t v : {length, chunks, reduce.contiguous ? results * chunks : results, each}) arguments.add(v);
  add(arguments, kept);
  add(arguments, reduced);
  launcher.start({key(), [this] { return text(); }, memory, arguments.bytes(), groups, items()});
  if (partial) start_trees(launcher, partial);
}

}  // namespace

void run(const ir::Reduce& reduce, Launcher& launcher) {
  // Only strided reductions in groups have a kernel for several results.
  if (!reduce.others.empty() && (reduce.contiguous || launcher.target().loops)) {
    for (const ir::Reduce& one : ir::separate(reduce)) run(one, launcher);
    return;
  }
  const Reduction reduction(reduce, launcher.target());
  if (reduction.results > 0) reduction.start(launcher);
}

}  // namespace naru::render::c
