// Gather and Scatter. Positions are checked first: if one is out of bounds, nothing is written, and the operand's record holds its position and
// its value.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/bad_index.h"
#include "ir/scatter_sums.h"
#include "naru/error.h"
#include "render/c/digit_sort.h"
#include "render/c/expressions.h"
#include "render/c/launch.h"
#include "render/c/scatter_sums.h"

namespace naru::render::c {
namespace {

using ir::IndexOperand;
using ir::Space;

constexpr int kMostIndices = 12;

// The unsigned integer type for elements that are only copied.
const char* moved(DType t) noexcept {
  constexpr const char* kNames[] = {"", "u8", "u16", "", "u32", "", "", "", "u64"};
  return kNames[size_of(t)];
}

// Numbers: positions, the least allowed index, the bound; the positions' space.
std::string check_text(const Space& space, const Target& target, bool wide) {
  const Walk walk{3, space.rank, 1};
  Head h;
  h.memory = {"i64", "=u32"};
  h.numbers = walk.end();
  h.group = target.group;
  h.wide = wide;
  std::string text = opening(h, target) + fmt::format("  const I i = (I)GROUP * {} + ITEM;\n  if (i < a.d[0]) {{\n", target.group);
  text += walk.position("q", "i", "    ");
  text += fmt::format("    const i64 p = m0[{}];\n    if (p < (i64)a.d[1] || p >= (i64)a.d[2]) atomic_least(m1, (u32)i);\n  }}\n}}\n",
                      walk.offset(0, "q"));
  return complete(target, text);
}

// Allocates error records, one per index operand.
char* records_of(const std::vector<IndexOperand>& indices, const Dims& shape, const char* op, uint32_t where, Launcher& launcher) {
  if (indices.size() > kMostIndices) throw RuntimeError("index: wanted at most {} index tensors, got {}", kMostIndices, indices.size());
  return static_cast<char*>(launcher.faults(static_cast<int>(indices.size()), [=](int record, uint32_t found, int64_t value) {
    return ir::bad_index(indices[static_cast<size_t>(record)], shape, record, found, value, op, where);
  }));
}

// The space of an index operand's own positions.
Space own_space(const IndexOperand& index, const Dims& shape) {
  Dims sizes, strides;
  for (size_t d = 0; d < shape.size(); ++d)
    if (index.positions.strides[d] != 0) sizes.push_back(shape[d]), strides.push_back(index.positions.strides[d]);
  Space space{std::span<const int64_t>(sizes)};
  space.add(static_cast<char*>(index.positions.data), 8, strides.data());
  space.drop_ones();
  space.merge();
  return space;
}

// Checks all positions of the operands. A kernel that finds a record of an index out of bounds records its value and writes nothing.
void* check(const std::vector<IndexOperand>& indices, const Dims& shape, const char* op, uint32_t where, Launcher& launcher) {
  char* const records = records_of(indices, shape, op, where, launcher);
  const Target& target = launcher.target();
  for (size_t i = 0; i < indices.size(); ++i) {
    const IndexOperand& index = indices[i];
    const Space space = own_space(index, shape);
    const int64_t n = space.numel();
    const bool wide = is_wide(space) || index.bound > INT32_MAX;
    Arguments arguments(2, wide);
    for (const int64_t v : {n, index.least(), index.bound}) arguments.add(v);
    add(arguments, space);
    void* const memory[] = {index.positions.data, records + i * sizeof(Fault)};
    launcher.start({{Kind::CheckIndex, nullptr, static_cast<uint64_t>(wide) | static_cast<uint64_t>(space.rank) << 8},
                    [&] { return check_text(space, target, wide); },
                    memory,
                    arguments.bytes(),
                    (n + target.group - 1) / target.group,
                    target.group});
  }
  return records;
}

// Records the value of the index that a kernel has recorded as out of bounds, if there is one. Numbers: the positions' space.
void record_value(const IndexOperand& index, const Dims& shape, char* record, Launcher& launcher) {
  const Space space = own_space(index, shape);
  const bool wide = is_wide(space);
  const auto text = [&] {
    const Walk walk{0, space.rank, 1};
    Head h;
    h.memory = {"i64", "=u32"};
    h.numbers = walk.end();
    h.group = kGroup;
    h.wide = wide;
    std::string body = opening(h, launcher.target()) + "  if (ITEM == 0 && m1[0] != 0xffffffffu) {\n    const I i = (I)m1[0];\n";
    body += walk.position("q", "i", "    ") + fmt::format("    *(GLOBAL i64*)(m1 + 2) = m0[{}];\n  }}\n}}\n", walk.offset(0, "q"));
    return complete(launcher.target(), body);
  };
  Arguments arguments(2, wide);
  add(arguments, space);
  void* const memory[] = {index.positions.data, record};
  launcher.start({{Kind::CheckIndex, nullptr, static_cast<uint64_t>(wide) | uint64_t{1} << 1 | static_cast<uint64_t>(space.rank) << 8},
                  text,
                  memory,
                  arguments.bytes(),
                  1,
                  kGroup});
}

// The space of a copy; its operands: plain, indexed, positions ...
struct Moves {
  Space space;
  const std::vector<IndexOperand>& indices;
  bool wide;

  Moves(const Dims& shape, const ir::View& plain, const ir::View& indexed, const std::vector<IndexOperand>& list)
      : space(std::span<const int64_t>(shape)), indices(list) {
    space.add(plain);
    space.add(indexed);
    for (const IndexOperand& i : list) space.add(i.positions);
    space.drop_ones();
    space.merge();
    wide = is_wide(space);
    for (const IndexOperand& i : list) wide |= i.bound * std::abs(i.step) > (int64_t{1} << 30);
  }
  int count() const { return static_cast<int>(indices.size()); }
  uint64_t bits() const {
    uint64_t from_end = 0;
    for (const int k : numbers()) from_end |= static_cast<uint64_t>(indices[static_cast<size_t>(k)].from_end) << k;
    return static_cast<uint64_t>(wide) | static_cast<uint64_t>(count()) << 1 | from_end << 8 | static_cast<uint64_t>(space.rank) << 24;
  }
  std::vector<int> numbers() const {
    std::vector<int> all;
    for (int k = 0; k < count(); ++k) all.push_back(k);
    return all;
  }
  // Adds the bounds and steps of the operands.
  void add_to(Arguments& arguments) const {
    for (const IndexOperand& i : indices) arguments.add(i.bound), arguments.add(i.step);
  }
  // The row-major index of position q0, q1 ... among an operand's own: over the dimensions it varies in.
  static std::string own_index(const Walk& walk, int k) {
    std::string own = "0";
    for (int d = 0; d < walk.rank; ++d)
      own = fmt::format("(a.d[{0}] ? ({1}) * a.d[{2}] + q{3} : ({1}))", walk.stride(k + 2, d), own, walk.size(d), d);
    return own;
  }
  // If the index at position q0, q1 ... is out of bounds in any operand, records its value if it is the recorded one. Positions are in memory
  // `first` .., bounds and steps in the Numbers from `numbers` on, records in memory `records`.
  std::string fault_text(const Walk& walk, int first, int records) const {
    std::string any, text;
    for (const int k : numbers()) any += fmt::format("{}m{}[{}] != 0xffffffffu", any.empty() ? "" : " || ", records, 4 * k);
    text = fmt::format("    if ({}) {{\n", any);
    for (const int k : numbers()) {
      const std::string own = own_index(walk, k);
      text += fmt::format("      if (m{0}[{1}] == (u32)({2})) *(GLOBAL i64*)(m{0} + {3}) = m{4}[{5}];\n", records, 4 * k, own, 4 * k + 2,
                          first + k, walk.offset(k + 2, "q"));
    }
    return text + "      return;\n    }\n";
  }
  // The offset that the indices add, in elements.
  std::string shift_text(const Walk& walk, int first, int numbers_at) const {
    std::string text = "    I shift = 0;\n";
    for (const int k : numbers()) {
      text += fmt::format("    {{\n      const I p = (I)m{}[{}];\n", first + k, walk.offset(k + 2, "q"));
      const std::string p = indices[static_cast<size_t>(k)].from_end ? fmt::format("(p < 0 ? p + a.d[{}] : p)", numbers_at + 2 * k) : "p";
      text += fmt::format("      shift += {} * a.d[{}];\n    }}\n", p, numbers_at + 2 * k + 1);
    }
    return text;
  }
};

// How an item of a gather moves elements: one; four neighbours that lie together in the source, too, because the indices are constant along a row; or
// four neighbours of the result, each by its own index.
enum class GatherBy : uint8_t { One, Four, FourIndices };

// True if four neighbours of the result can be written, and their four positions be read, at once.
bool indices_in_fours(const Moves& m, int64_t item) {
  const Space& s = m.space;
  const int last = s.rank - 1;
  if (m.count() != 1 || last < 0 || item == 1 || s.sizes[last] % 4 != 0) return false;
  bool all = true;
  for (const int k : {0, 2}) all &= last_step(s, k) == kNext && starts_in_fours(s.operands[k], last);
  return all;
}

// The same where the indices are constant along a row, and the row is contiguous in the source, too.
bool in_fours(const Moves& m, int64_t item) {
  const Space& s = m.space;
  const int last = s.rank - 1;
  if (last < 0 || item == 8 || s.sizes[last] % 4 != 0) return false;
  bool all = true;
  for (int k = 0; k < 2; ++k) all &= last_step(s, k) == kNext && starts_in_fours(s.operands[k], last);
  for (int k = 0; k < m.count(); ++k) all &= s.operands[k + 2].strides[last] == 0 && m.indices[static_cast<size_t>(k)].step % 4 == 0;
  return all;
}

// The end of a gather with one index, which it checks itself: an element whose index is out of bounds is recorded, and not written.
std::string checked_gather_text(const Moves& m, const Walk& walk, DType dtype, GatherBy by) {
  const std::string type = moved(dtype), own = Moves::own_index(walk, 0), place = walk.offset(2, "q");
  const std::string to = fmt::format("m0[{}]", walk.offset(0, "q")), from = walk.offset(1, "q");
  const bool from_end = m.indices[0].from_end;
  const auto bad = [&](const std::string& p) { return fmt::format("{0} < {1} || {0} >= (i64)a.d[1]", p, from_end ? "-(i64)a.d[1]" : "0"); };
  const auto shift = [&](const std::string& p) {
    return fmt::format("(I){} * a.d[2]", from_end ? fmt::format("({0} < 0 ? {0} + (i64)a.d[1] : {0})", p) : p);
  };
  if (by != GatherBy::FourIndices) {
    const std::string move = by == GatherBy::Four
                                 ? fmt::format("*(GLOBAL {0}x4*)&{1} = *(GLOBAL const {0}x4*)&m1[{2} + {3}];", type, to, from, shift("p"))
                                 : fmt::format("{} = m1[{} + {}];", to, from, shift("p"));
    return fmt::format("    const i64 p = m2[{}];\n    if ({}) atomic_least(m3, (u32)({}));\n    else {}\n", place, bad("p"), own, move);
  }
  std::string text = fmt::format("    const i64x4 p = *(GLOBAL const i64x4*)&m2[{}];\n", place), values;
  constexpr const char* kParts = "xyzw";
  for (int part = 0; part < 4; ++part) {
    const std::string p = fmt::format("p.{}", kParts[part]);
    text += fmt::format(
        "    {0} v{1} = 0;\n    if ({2}) atomic_least(m3, (u32)({3} + {1}));\n    else v{1} = m1[{4} + {1} * a.d[{5}] + {6}];\n", type,
        part, bad(p), own, from, walk.stride(1, walk.rank - 1), shift(p));
    values += fmt::format(", v{}", part);
  }
  return text + fmt::format("    *(GLOBAL {0}x4*)&{1} = MAKE4({0}{2});\n", type, to, values);
}

// Numbers: units (elements, or fours); bounds and steps; the space; units along its last dimension; divisors of the dimensions except the first.
// Memory: out, source, positions ..., records.
std::string gather_text(const Moves& m, DType dtype, GatherBy by, bool checks, const Target& target) {
  const Walk walk{1 + 2 * m.count(), m.space.rank, m.space.count};
  const int last = walk.rank - 1;
  Head h;
  h.memory = {"=" + std::string(moved(dtype)), moved(dtype)};
  for (int k = 0; k < m.count(); ++k) h.memory.push_back("i64");
  h.memory.push_back("=u32");
  h.numbers = walk.end() + 1 + 2 * std::max(last, 0);
  h.group = target.group;
  h.wide = m.wide;
  h.functions = kQuotient;
  std::string text = opening(h, target) + fmt::format("  const I i = (I)GROUP * {} + ITEM;\n  if (i < a.d[0]) {{\n", target.group);
  std::string rest = "i";
  for (int d = last; d >= 0; --d) {
    const std::string times = by != GatherBy::One && d == last ? " * 4" : "";
    if (d == 0) {
      text += fmt::format("    const I q0 = {}{};\n", rest, times);
      break;
    }
    const int size = d == last ? walk.end() : walk.size(d), divisor = walk.end() + 1 + 2 * (d - 1);
    const std::string over = m.wide ? fmt::format("{} / a.d[{}]", rest, size)
                                    : fmt::format("(I)quotient((u32){}, (u32)a.d[{}], (u32)a.d[{}])", rest, divisor, divisor + 1);
    text += fmt::format("    const I n{0} = {1}, q{0} = ({2} - n{0} * a.d[{3}]){4};\n", d, over, rest, size, times);
    rest = fmt::format("n{}", d);
  }
  if (checks) return complete(target, text + checked_gather_text(m, walk, dtype, by) + "  }\n}\n");
  if (m.count() > 0) text += m.fault_text(walk, 2, 2 + m.count());
  text += m.shift_text(walk, 2, 1);
  const std::string to = fmt::format("m0[{}]", walk.offset(0, "q")), from = fmt::format("m1[{} + shift]", walk.offset(1, "q"));
  text += by == GatherBy::Four ? fmt::format("    *(GLOBAL {0}x4*)&{1} = *(GLOBAL const {0}x4*)&{2};\n", moved(dtype), to, from)
                               : fmt::format("    {} = {};\n", to, from);
  return complete(target, text + "  }\n}\n");
}

// Computes where each row of a scatter starts: in the target (-1 if nothing is to be written), and in the values. Numbers: rows; bounds and
// steps; the space, without its last dimension if that is a run. Memory: offsets, positions ..., records.
std::string offsets_text(const Moves& m, int dims, const Target& target) {
  const Walk walk{1 + 2 * m.count(), m.space.rank, m.space.count};
  Head h;
  h.memory = {"=i64"};
  for (int k = 0; k < m.count(); ++k) h.memory.push_back("i64");
  h.memory.push_back("=u32");
  h.numbers = walk.end();
  h.group = target.group;
  h.wide = m.wide;
  std::string text = opening(h, target) + fmt::format("  const I i = (I)GROUP * {} + ITEM;\n  if (i < a.d[0]) {{\n", target.group);
  // The last dimension, if it is a run, stays at its first element.
  if (dims < walk.rank) text += fmt::format("    const I q{} = 0;\n", walk.rank - 1);
  text += walk.position("q", "i", dims, "    ");
  text += "    m0[2 * i] = -1;\n";
  if (m.count() > 0) text += m.fault_text(walk, 1, 1 + m.count());
  text += m.shift_text(walk, 1, 1);
  text += fmt::format("    m0[2 * i] = {} + shift;\n    m0[2 * i + 1] = {};\n  }}\n}}\n", walk.offset(1, "q"), walk.offset(0, "q"));
  return complete(target, text);
}

// Each item owns some elements of the target, and applies the rows that go there in order. Numbers: rows, elements of a row, owners; strides:
// value, target. Memory: offsets, value, target.
std::string scatter_text(DType dtype, bool add, bool wide, const Target& target) {
  const std::string type = add ? stored(dtype) : moved(dtype);
  Head h;
  h.memory = {"i64", type, "=" + type};
  h.numbers = 5;
  h.group = 64;
  h.wide = wide;
  std::string text = opening(h, target);
  text +=
      "  const I item = (I)GROUP * 64 + ITEM;\n  const I col = item % a.d[1], owner = item / a.d[1];\n  if (owner < a.d[2]) {\n"
      "    const I from = col * a.d[3], to = col * a.d[4];\n    for (I row = 0; row < a.d[0]; ++row) {\n"
      "      const i64 place = m0[2 * row];\n"
      "      if (place < 0 || (I)(((u32)place * 2654435761u >> 8) & (u32)(a.d[2] - 1)) != owner) continue;\n";
  text += fmt::format("      m2[place + to] = {};\n    }}\n  }}\n}}\n",
                      add ? sum_text(dtype, "m2[place + to]", "m1[m0[2 * row + 1] + from]") : "m1[m0[2 * row + 1] + from]");
  return complete(target, text);
}

// The same for rows sorted by target offset, equal ones in order: the first row of an offset adds all of them up, or the last one is written.
// Numbers: rows, elements of a row; strides: value, target. Memory: offsets, value, target, the rows' indices.
std::string sorted_scatter_text(DType dtype, bool add, bool wide, const Target& target) {
  const std::string type = add ? stored(dtype) : moved(dtype);
  Head h;
  h.memory = {"i64", type, "=" + type, "i64"};
  h.numbers = 4;
  h.group = 64;
  h.wide = wide;
  std::string text = opening(h, target);
  text +=
      "  const I item = (I)GROUP * 64 + ITEM;\n  const I col = item % a.d[1], at = item / a.d[1];\n  if (at < a.d[0]) {\n"
      "    const i64 place = m0[2 * m3[at]], from = col * a.d[2], to = place + col * a.d[3];\n";
  if (!add)
    return complete(target, text +
                                "    if (place >= 0 && (at + 1 == a.d[0] || m0[2 * m3[at + 1]] != place)) m2[to] = m1[m0[2 * m3[at] + 1] + "
                                "from];\n  }\n}\n");
  text += fmt::format(
      "    if (place >= 0 && (at == 0 || m0[2 * m3[at - 1]] != place)) {{\n      {} x = m2[to];\n"
      "      for (I i = at; i < a.d[0] && m0[2 * m3[i]] == place; ++i) x = {};\n      m2[to] = x;\n    }}\n  }}\n}}\n",
      type, sum_text(dtype, "x", "m1[m0[2 * m3[i] + 1] + from]"));
  return complete(target, text);
}

// From kSorted rows on, sorting costs less than having every owner read all rows; above kMostSorted it would need too much memory.
constexpr int64_t kSorted = 1024, kMostSorted = int64_t{1} << 26;

// An upper bound (exclusive) of the target offsets of a scatter; INT64_MAX if some are negative.
int64_t beyond(const ir::Scatter& s) {
  int64_t last = 0;
  for (size_t d = 0; d < s.shape.size(); ++d) {
    if (s.target.strides[d] < 0) return INT64_MAX;
    last += (s.shape[d] - 1) * s.target.strides[d];
  }
  for (const IndexOperand& i : s.indices) {
    if (i.step < 0) return INT64_MAX;
    last += (i.bound - 1) * i.step;
  }
  return last + 1;
}

// The number of low bits that are 0 in all target offsets of rows, which have the first `dims` dimensions.
int zeros_of(const Moves& m, int dims, const ir::Scatter& s) {
  uint64_t steps = 0;
  for (int d = 0; d < dims; ++d) steps |= static_cast<uint64_t>(m.space.operands[1].strides[d] / m.space.operands[1].item);
  for (const IndexOperand& i : s.indices) steps |= static_cast<uint64_t>(i.step);
  return steps ? std::countr_zero(steps) : 0;
}

// Memory: offsets, value, target.
void scatter_sorted(const ir::Scatter& s, bool in_blocks, bool wide, int64_t rows, int64_t run, int64_t value_step, int64_t target_step,
                    void* offsets, int64_t limit, int zeros, Launcher& launcher) {
  ir::Sort sort;
  sort.shape = {rows};
  sort.k = rows;
  sort.in.data = offsets, sort.in.dtype = DType::I64, sort.in.strides = {2};
  sort.indices.data = launcher.scratch(static_cast<size_t>(rows) * 8), sort.indices.dtype = DType::I64, sort.indices.strides = {1};
  // If one index is out of bounds, all offsets are -1, and nothing is written.
  sort_below(sort, limit, zeros, launcher);
  if (s.add && in_blocks) return add_sorted(s, {rows, run, value_step, target_step, offsets, sort.indices.data, wide}, launcher);
  wide |= rows * run >= int64_t{1} << 30;
  Arguments arguments(4, wide);
  for (const int64_t v : {rows, run, value_step, target_step}) arguments.add(v);
  void* const memory[] = {offsets, s.value.data, s.target.data, sort.indices.data};
  KeyBits bits;
  bits.add(s.add).add(wide).add(true);
  s.add ? bits.add(s.value.dtype) : bits.add(size_of(s.value.dtype), 6);
  launcher.start({{Kind::Scatter, nullptr, bits},
                  [&] { return sorted_scatter_text(s.value.dtype, s.add, wide, launcher.target()); },
                  memory,
                  arguments.bytes(),
                  (rows * run + 63) / 64,
                  64});
}

}  // namespace

void run(const ir::Gather& g, Launcher& launcher) {
  const int64_t n = product(g.shape);
  if (n == 0) return;
  const Target& target = launcher.target();
  const Moves m(g.shape, g.out, g.source, g.indices);
  // With one index the gather checks it as it goes, so that the positions are read once.
  const bool checks = m.count() == 1 && !target.loops && n < int64_t{Fault::kNothing};
  char* const records = checks ? records_of(g.indices, g.shape, g.op, g.where, launcher)
                               : static_cast<char*>(check(g.indices, g.shape, g.op, g.where, launcher));
  const auto item = static_cast<int64_t>(size_of(g.out.dtype));
  const GatherBy by = in_fours(m, item) ? GatherBy::Four : checks && indices_in_fours(m, item) ? GatherBy::FourIndices : GatherBy::One;
  const int64_t each = by == GatherBy::One ? 1 : 4, units = n / each;
  Arguments arguments(3 + m.count(), m.wide);
  arguments.add(units);
  m.add_to(arguments);
  add(arguments, m.space);
  const int last = m.space.rank - 1;
  const int64_t of_row = last < 0 ? 1 : m.space.sizes[last] / each;
  arguments.add(of_row);
  for (int d = 1; d <= last; ++d)
    m.wide ? arguments.add(0), arguments.add(0) : add_divisor(arguments, d == last ? of_row : m.space.sizes[d]);
  std::vector<void*> memory{g.out.data, g.source.data};
  for (const IndexOperand& i : g.indices) memory.push_back(i.positions.data);
  memory.push_back(records);
  launcher.start(
      {{Kind::Gather, nullptr, m.bits(), KeyBits().add(static_cast<uint64_t>(item), 4).add(static_cast<uint64_t>(by), 2).add(checks)},
       [&] { return gather_text(m, g.out.dtype, by, checks, target); },
       memory,
       arguments.bytes(),
       (units + target.group - 1) / target.group,
       target.group});
  if (checks) record_value(g.indices[0], g.shape, records, launcher);
}

void run(const ir::Scatter& s, Launcher& launcher) {
  const int64_t n = product(s.shape);
  if (n == 0) return;
  const Target& target = launcher.target();
  void* const records = check(s.indices, s.shape, s.op, s.where, launcher);
  Moves m(s.shape, s.value, s.target, s.indices);
  const int last = m.space.rank - 1;
  bool is_run = last >= 0;
  for (int k = 0; k < m.count(); ++k) is_run &= last >= 0 && m.space.operands[k + 2].strides[last] == 0;
  const int64_t run = is_run ? m.space.sizes[last] : 1, rows = n / run;
  const auto item = static_cast<int64_t>(size_of(s.value.dtype));
  m.wide |= rows >= int64_t{1} << 29;  // each row has two offsets

  void* const offsets = launcher.scratch(static_cast<size_t>(rows) * 16);
  const int dims = is_run ? last : m.space.rank;
  {
    Arguments arguments(2 + m.count(), m.wide);
    arguments.add(rows);
    m.add_to(arguments);
    add(arguments, m.space);
    std::vector<void*> memory{offsets};
    for (const IndexOperand& i : s.indices) memory.push_back(i.positions.data);
    memory.push_back(records);
    launcher.start({{Kind::Offsets, nullptr, m.bits(), static_cast<uint64_t>(is_run)},
                    [&] { return offsets_text(m, dims, target); },
                    memory,
                    arguments.bytes(),
                    (rows + target.group - 1) / target.group,
                    target.group});
  }
  const int64_t value_step = is_run ? m.space.operands[0].strides[last] / item : 0;
  const int64_t target_step = is_run ? m.space.operands[1].strides[last] / item : 0;
  const bool in_blocks = ir::sums_in_blocks(s);
  if (in_blocks || (!target.loops && rows >= kSorted && rows <= kMostSorted))
    return scatter_sorted(s, in_blocks, m.wide, rows, run, value_step, target_step, offsets, beyond(s), zeros_of(m, dims, s), launcher);
  // Every owner reads every row, so use no more owners than keep the device busy.
  int64_t owners = 1;
  while (owners * run < 64 * target.units && owners * 16 < rows && (!target.loops || owners < target.units)) owners *= 2;
  Arguments arguments(3, m.wide);
  for (const int64_t v : {rows, run, owners, value_step, target_step}) arguments.add(v);
  void* const memory[] = {offsets, s.value.data, s.target.data};
  KeyBits bits;
  bits.add(s.add).add(m.wide).add(false);
  s.add ? bits.add(s.value.dtype) : bits.add(size_of(s.value.dtype), 6);
  launcher.start({{Kind::Scatter, nullptr, bits},
                  [&] { return scatter_text(s.value.dtype, s.add, m.wide, target); },
                  memory,
                  arguments.bytes(),
                  (owners * run + 63) / 64,
                  64});
}

}  // namespace naru::render::c
