// A group selects from a row by digits of 11 bits, the most significant first: it counts the digits of the keys that begin like the last key wanted,
// until they and those that come before fit into local memory. It collects all these there, and sorts them by key and position.
#include "render/c/select.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "render/c/sort_pairs.h"

namespace naru::render::c {
namespace {

constexpr int kSelectBits = 11, kBins = 1 << kSelectBits;
// Pairs that a group collects in local memory, and so the most that are wanted of a row; a power of two.
constexpr int64_t kMostSelected = 1024;
// The most elements of a row for each row. A group reads a row alone, so that a few longer ones take less time in the sort, whose kernels give a row
// to many groups.
constexpr int64_t kLongForRows = int64_t{1} << 18;
// The elements of a row for each item of its group, unless the group is as small or large as it may be.
constexpr int64_t kSelectsOfItem = 16;
// One of so many of a row may be sorted rather than told apart by another digit.
constexpr int64_t kSortedOfRow = 32;

int selecting_group(int64_t n, const Target& target) {
  const auto wanted = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n / kSelectsOfItem)));
  return static_cast<int>(std::clamp<int64_t>(wanted, target.group, std::max(target.group, target.largest_group)));
}

// The first and last (exclusive) address of a view's elements.
std::pair<uintptr_t, uintptr_t> reach_of(const ir::View& v, const Dims& shape) {
  const auto item = static_cast<int64_t>(size_of(v.dtype));
  auto first = reinterpret_cast<uintptr_t>(v.data), last = first + static_cast<uintptr_t>(item);
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t by = (shape[d] - 1) * v.strides[d] * item;
    (by < 0 ? first : last) += static_cast<uintptr_t>(by);
  }
  return {first, last};
}

struct RowSelection {
  const ir::Sort& op;
  const Target& target;
  const ir::Space& kept;
  bool wide;
  int group;
  bool fours;  // the row lies contiguously: four elements are read at once

  Walk walk() const { return {6, kept.rank, kept.count}; }
  const char* key() const { return size_of(op.in.dtype) == 8 ? "u64" : "u32"; }
  KeyBits bits() const {
    KeyBits b;
    return b.add(op.in.dtype)
        .add(wide)
        .add(op.descending)
        .add(fours)
        .add(op.values.data != nullptr)
        .add(op.indices.data != nullptr)
        .add(static_cast<uint64_t>(group), 12)
        .add(static_cast<uint64_t>(kept.rank), 7);
  }
  std::string each_four(const std::string& indent, const std::string& lines) const;
  std::string of_four(const std::string& condition, const std::string& lines, const std::string& indent) const;
  std::string read_four(const std::string& indent) const;
  std::string opening_text() const;
  std::string digits_text() const;
  std::string collect_text() const;
  std::string sorted_text() const;
  std::string text() const { return complete(target, opening_text() + digits_text() + collect_text() + sorted_text() + "}\n"); }
};

// Reads the keys k[0] ... of the four positions from p on, as far as the row has them. Fours are counted from an aligned address, so that the first
// and the last may lie partly outside.
std::string RowSelection::read_four(const std::string& indent) const {
  std::string text = fmt::format("{0}const I p = 4 * b - skew;\n{0}{1} k[4];\n", indent, key());
  const size_t size = size_of(op.in.dtype);
  const std::string single = fmt::format("for (int c = 0; c < 4; ++c) k[c] = p + c >= 0 && p + c < n ? key_of(({0})row[{1}]) : 0;\n", key(),
                                         fours ? "p + c" : "(p + c) * a.d[2]");
  if (!fours) return text + indent + single;
  const std::string type = size == 8 ? "i64x4" : std::string(bits_type(op.in.dtype)) + "x4";
  text += fmt::format("{0}if (p >= 0 && p + 4 <= n) {{\n{0}  const {1} v = *(GLOBAL const {1}*)(row + p);\n", indent, type);
  for (int c = 0; c < 4; ++c) text += fmt::format("{}  k[{}] = key_of(({})v.{});\n", indent, c, key(), "xyzw"[c]);
  return text + fmt::format("{0}}} else {{\n{0}  {1}{0}}}\n", indent, single);
}

// Does `lines` for each of the four positions that is in the row and for which the condition holds.
std::string RowSelection::of_four(const std::string& condition, const std::string& lines, const std::string& indent) const {
  return fmt::format("{0}for (int c = 0; c < 4; ++c)\n{0}  if (p + c >= 0 && p + c < n && ({1})) {2}\n", indent, condition, lines);
}

std::string RowSelection::each_four(const std::string& indent, const std::string& lines) const {
  return fmt::format("{0}for (I b = ITEM; b < blocks; b += {1}) {{\n{2}{3}{0}}}\n", indent, group, read_four(indent + "  "), lines);
}

// Numbers: elements of a row, elements wanted; strides in in, values, indices; how many elements are few enough to be sorted.
std::string RowSelection::opening_text() const {
  Head h;
  h.memory = {bits_type(op.in.dtype), "=" + std::string(bits_type(op.in.dtype)), "=i64"};
  h.numbers = walk().end();
  h.group = group;
  h.wide = wide;
  h.functions = key_function(op.in.dtype, op.descending, 64);
  std::string text = opening(h, target);
  text += fmt::format(
      "  LOCAL u32 counts[{0}];\n  LOCAL u32 s[{1}];\n  LOCAL u32 found[3];\n  LOCAL u32 taken[1];\n  LOCAL {2} keys[{3}];\n"
      "  LOCAL u32 places[{3}];\n",
      kBins, group, key(), kMostSelected);
  text += walk().position("q", "(I)GROUP", "  ");
  text += fmt::format("  GLOBAL const {}* row = m0 + ({});\n", bits_type(op.in.dtype), walk().offset(0, "q"));
  const std::string skew = fours ? fmt::format("(int)((u64)row / {} & 3)", size_of(op.in.dtype)) : "0";
  return text + fmt::format("  const int skew = {};\n  const I n = a.d[0], blocks = (n + skew + 3) / 4;\n", skew);
}

// Finds how the last element wanted begins: the bits `fixed` of its key are `prefix`, and the bits `place_fixed` of its position `place_prefix`. `less`
// elements come before all those that begin like it, of which there are `equal`, `need` of them wanted. Positions count where keys are equal.
std::string RowSelection::digits_text() const {
  const int each = kBins / group;
  std::string text = fmt::format(
      "  u32 need = (u32)a.d[1], less = 0, equal = 0, place_prefix = 0, place_fixed = 0;\n  {0} prefix = 0, fixed = 0;\n"
      "  int shift = {1}, place_shift = 1;\n  while (n >> place_shift > 0) ++place_shift;\n  if (ITEM == 0) taken[0] = 0;\n  do {{\n"
      "    const bool by_place = shift == 0;\n    const int high = by_place ? place_shift : shift, low = high > {2} ? high - {2} : 0;\n"
      "    const u32 digit = (1u << (high - low)) - 1u;\n"
      "    for (int d = ITEM; d < {3}; d += {4}) counts[d] = 0;\n    BARRIER;\n",
      key(), 8 * size_of(op.in.dtype), kSelectBits, kBins, group);
  text += each_four("    ", of_four("(k[c] & fixed) == prefix && ((u32)(p + c) & place_fixed) == place_prefix",
                                    "local_count(&counts[(by_place ? (u32)(p + c) >> low : (u32)(k[c] >> low)) & digit]);", "      "));
  text += fmt::format(
      "    BARRIER;\n    u32 own = 0;\n    for (int d = 0; d < {0}; ++d) own += counts[ITEM * {0} + d];\n    s[ITEM] = own;\n", each);
  text += sums_of_group("s", "u32", group, "    ");
  text += fmt::format(
      "    u32 sum = s[ITEM] - own;\n    for (int d = 0; d < {0} && sum < need; ++d) {{\n      const u32 c = counts[ITEM * {0} + d];\n"
      "      if (sum + c >= need) {{ found[0] = (u32)(ITEM * {0} + d); found[1] = sum; found[2] = c; }}\n      sum += c;\n    }}\n"
      "    BARRIER;\n",
      each);
  text += fmt::format(
      "    if (by_place) {{\n      place_prefix |= found[0] << low;\n      place_fixed |= digit << low;\n      place_shift = low;\n"
      "    }} else {{\n      prefix |= ({0})found[0] << low;\n      fixed |= ({0})digit << low;\n      shift = low;\n    }}\n",
      key());
  return text + "    less += found[1];\n    need -= found[1];\n    equal = found[2];\n  } while (less + equal > (u32)a.d[5]);\n";
}

// Collects these elements, in any order.
std::string RowSelection::collect_text() const {
  const std::string take =
      "{\n          const u32 to = local_count(&taken[0]);\n          keys[to] = k[c];\n          places[to] = (u32)(p + c);\n        }";
  const std::string wanted = "(k[c] & fixed) < prefix || ((k[c] & fixed) == prefix && ((u32)(p + c) & place_fixed) <= place_prefix)";
  return each_four("  ", of_four(wanted, take, "    "));
}

// Sorts what was collected by a bitonic network, with pairs behind all others up to a power of two, and writes the elements wanted.
std::string RowSelection::sorted_text() const {
  std::string text = fmt::format(
      "  const int valid = (int)(less + equal);\n  int size = 1;\n  while (size < valid) size *= 2;\n"
      "  for (int i = valid + ITEM; i < size; i += {0}) {{\n    keys[i] = ~({1})0;\n    places[i] = ~0u;\n  }}\n  BARRIER;\n",
      group, key());
  text += fmt::format(
      "  for (int merge = 2; merge <= size; merge *= 2) {{\n    for (int step = merge / 2; step > 0; step /= 2) {{\n"
      "      for (int e = ITEM; e < size / 2; e += {0}) {{\n"
      "        const int i = 2 * e - (e & (step - 1)), j = i + step;\n        const bool up = (i & merge) == 0;\n"
      "        if ({1} == up) {2}\n      }}\n      BARRIER;\n    }}\n  }}\n",
      group, pair_before("j", "i"), exchange_pairs(key()));
  text += fmt::format("  for (int i = ITEM; i < (int)a.d[1]; i += {}) {{\n    const I place = (I)places[i];\n", group);
  if (op.values.data)
    text += fmt::format("    m1[{} + i * a.d[3]] = row[{}];\n", walk().offset(1, "q"), fours ? "place" : "place * a.d[2]");
  if (op.indices.data) text += fmt::format("    m2[{} + i * a.d[4]] = (i64)place;\n", walk().offset(2, "q"));
  return text + "  }\n";
}

}  // namespace

bool can_select(const ir::Sort& op, const Target& target) {
  const int64_t n = op.shape.back(), rows = product(op.shape) / n;
  const int64_t bytes = 4 * (kBins + selecting_group(n, target) + 4) + kMostSelected * (size_of(op.in.dtype) == 8 ? 12 : 8);
  if (target.loops || op.k > kMostSelected || n > kLongForRows * rows || bytes > target.local) return false;
  Dims taken = op.shape;
  taken.back() = op.k;
  const auto read = reach_of(op.in, op.shape);
  for (const ir::View* v : {&op.values, &op.indices}) {
    if (!v->data) continue;
    const auto written = reach_of(*v, taken);
    if (read.first < written.second && written.first < read.second) return false;
  }
  return true;
}

void select_first(const Selection& selection, Launcher& launcher) {
  const ir::Sort& op = selection.op;
  const Target& target = launcher.target();
  const RowSelection s{op, target, selection.kept, selection.wide, selecting_group(op.shape.back(), target), op.in.strides.back() == 1};
  // The network's cost grows with their number, that of another digit with the row's length.
  const int64_t enough = std::min(kMostSelected, std::max(2 * op.k, op.shape.back() / kSortedOfRow));
  Arguments arguments(3, s.wide);
  for (const int64_t v : {op.shape.back(), op.k, op.in.strides.back(), op.values.data ? op.values.strides.back() : 0,
                          op.indices.data ? op.indices.strides.back() : 0, enough})
    arguments.add(v);
  add(arguments, s.kept);
  void* const memory[] = {op.in.data, op.values.data, op.indices.data};
  launcher.start({{Kind::SortSelect, nullptr, s.bits()}, [&s] { return s.text(); }, memory, arguments.bytes(), s.kept.numel(), s.group});
}

}  // namespace naru::render::c
