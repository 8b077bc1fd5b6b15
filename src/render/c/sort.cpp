// Stable sorts, NaN greatest: every element becomes a key (its bits in the order of the values) and its position, so that no two pairs are equal.
// A bitonic network sorts the pairs of short rows, padded to a power of two. Longer rows, and all rows on devices with looping items, are sorted
// by digits, unless only a few elements are wanted (select.h).
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "naru/error.h"
#include "render/c/digit_sort.h"
#include "render/c/expressions.h"
#include "render/c/launch.h"
#include "render/c/select.h"
#include "render/c/sort_pairs.h"

namespace naru::render::c {
namespace {

using ir::Space;

// Pairs that a group sorts in local memory.
constexpr int64_t kInGroup = 512;
// The longest rows for which a network needs no more kernels than a radix sort.
constexpr int64_t kNetwork = 2048;

struct KeyedRows {
  const ir::Sort& op;
  const Target& target;
  Space kept;  // in, values, indices
  int64_t rows, n, padded;
  bool wide;
  int low;    // number of low bits that differ between elements; 64: all
  int zeros;  // of them, the lowest that do not

  Walk walk() const { return {6, kept.rank, kept.count}; }
  int key_bytes() const { return size_of(op.in.dtype) == 8 && low > 32 ? 8 : 4; }
  const char* key() const { return key_bytes() == 8 ? "u64" : "u32"; }

  // Numbers of keys_text and put: pairs in all, pairs of a row, elements of a row (to be put); strides in in, values, indices.
  std::string keys_text() const {
    Head h;
    h.memory = {bits_type(op.in.dtype), "=" + std::string(key()), "=u32", "=" + std::string(bits_type(op.in.dtype))};
    h.numbers = walk().end();
    h.group = target.group;
    h.wide = wide;
    h.functions = key_function(op.in.dtype, op.descending, low);
    std::string text = opening(h, target) + fmt::format("  const I i = (I)GROUP * {} + ITEM;\n  if (i < a.d[0]) {{\n", target.group);
    text += "    const I row = i / a.d[1], at = i % a.d[1];\n" + walk().position("q", "row", "    ");
    text += fmt::format(
        "    {0} k = ~({0})0;\n    if (at < a.d[2]) {{\n      const {1} x = m0[{2} + at * a.d[3]];\n      k = key_of(({0})x);\n"
        "{3}    }}\n    m1[i] = k;\n    m2[i] = (u32)at;\n  }}\n}}\n",
        key(), bits_type(op.in.dtype), walk().offset(0, "q"), op.values.data ? "      m3[row * a.d[2] + at] = x;\n" : "");
    return complete(target, text);
  }

  // Sorts whole pieces of kInGroup pairs (or rows, if shorter) in local memory; later only the rounds that stay within a piece. Numbers: pairs of
  // a piece; the first round: pairs of what is merged.
  std::string group_text(int64_t piece) const {
    const int items = static_cast<int>(std::max<int64_t>(piece / 2, 1));
    Head h;
    h.memory = {"=" + std::string(key()), "=u32"};
    h.numbers = 3;
    h.group = items;
    h.wide = wide;
    std::string text = opening(h, target);
    text += fmt::format("  LOCAL {} keys[{}];\n  LOCAL u32 places[{}];\n  const I start = (I)GROUP * {};\n", key(), piece, piece, piece);
    text += fmt::format(
        "  for (int i = ITEM; i < {0}; i += {1}) {{\n    keys[i] = m0[start + i];\n    places[i] = m1[start + i];\n  }}\n  BARRIER;\n",
        piece, items);
    // d[0]: the first merge size; d[1]: the last; d[2]: pairs of a row.
    text += fmt::format(
        "  for (I size = a.d[0]; size <= a.d[1]; size *= 2) {{\n"
        "    for (int step = (int)(size / 2 < {0} ? size / 2 : {0}); step > 0; step /= 2) {{\n"
        "      const int i = ITEM / step * 2 * step + ITEM % step, j = i + step;\n"
        "      const bool up = ((start + i) % a.d[2] & size) == 0;\n"
        "      if (j < {1} && {2} == up) {3}\n      BARRIER;\n    }}\n  }}\n",
        std::max<int64_t>(piece / 2, 1), piece, pair_before("j", "i"), exchange_pairs(key()));
    text +=
        fmt::format("  for (int i = ITEM; i < {0}; i += {1}) {{\n    m0[start + i] = keys[i];\n    m1[start + i] = places[i];\n  }}\n}}\n",
                    piece, items);
    return complete(target, text);
  }

  // One round over all pairs. Numbers: half the pairs, the size merged, the step, pairs of a row.
  std::string step_text() const {
    Head h;
    h.memory = {"=" + std::string(key()), "=u32"};
    h.numbers = 4;
    h.group = target.group;
    h.wide = wide;
    std::string text = opening(h, target) + fmt::format("  const I item = (I)GROUP * {} + ITEM;\n  if (item < a.d[0]) {{\n", target.group);
    text += fmt::format(
        "    GLOBAL {0}* keys = m0;\n    GLOBAL u32* places = m1;\n"
        "    const I i = item / a.d[2] * 2 * a.d[2] + item % a.d[2], j = i + a.d[2];\n    const bool up = (i % a.d[3] & a.d[1]) == 0;\n"
        "    if ({1} == up) {2}\n  }}\n}}\n",
        key(), pair_before("j", "i"), exchange_pairs(key()));
    return complete(target, text);
  }

  // Each looping item sorts a row by its digits, the least first: two passes per round, from the first pair of arrays to the second and back.
  // Numbers: elements of a row, rows.
  std::string digits_text() const {
    Head h;
    h.memory = {"=" + std::string(key()), "=u32", "=" + std::string(key()), "=u32"};
    h.numbers = 2;
    h.wide = wide;
    const auto pass = [&](const char* from, const char* from_place, const char* to, const char* to_place) {
      return fmt::format(
          "    {{\n    for (int d = 0; d < 256; ++d) at[d] = 0;\n    for (I i = 0; i < n; ++i) ++at[({0}[i] >> shift) & 255];\n"
          "    u32 sum = 0;\n    for (int d = 0; d < 256; ++d) {{ const u32 c = at[d]; at[d] = sum; sum += c; }}\n"
          "    for (I i = 0; i < n; ++i) {{\n      const {4} k = {0}[i];\n      const u32 j = at[(k >> shift) & 255]++;\n"
          "      {2}[j] = k;\n      {3}[j] = {1}[i];\n    }}\n    }}\n",
          from, from_place, to, to_place, key());
    };
    std::string text = opening(h, target) + "  u32 at[256];\n  const I n = a.d[0], start = (I)GROUP * n;\n";
    text += fmt::format(
        "  GLOBAL {0}* k0 = m0 + start;\n  GLOBAL u32* p0 = m1 + start;\n  GLOBAL {0}* k1 = m2 + start;\n  GLOBAL u32* p1 = m3 + start;\n",
        key());
    const size_t bits = 8 * std::max<size_t>(size_of(op.in.dtype), 2);
    return complete(target, text + fmt::format("  for (int shift = 0; shift < {}; shift += 8) {{\n", bits) + pass("k0", "p0", "k1", "p1") +
                                "    shift += 8;\n" + pass("k1", "p1", "k0", "p0") + "  }\n}\n");
  }

  std::string put_text() const {
    Head h;
    h.memory = {bits_type(op.in.dtype), "u32", "=" + std::string(bits_type(op.in.dtype)), "=i64"};
    h.numbers = walk().end() + 1;
    h.group = target.group;
    h.wide = wide;
    std::string text = opening(h, target) + fmt::format("  const I i = (I)GROUP * {} + ITEM;\n  if (i < a.d[0]) {{\n", target.group);
    text += fmt::format("    const I row = i / a.d[2], at = i % a.d[2];\n{}    const u32 place = m1[row * a.d[1] + at];\n",
                        walk().position("q", "row", "    "));
    if (op.values.data) text += fmt::format("    m2[{} + at * a.d[4]] = m0[row * a.d[{}] + place];\n", walk().offset(1, "q"), walk().end());
    if (op.indices.data) text += fmt::format("    m3[{} + at * a.d[5]] = (i64)place;\n", walk().offset(2, "q"));
    return complete(target, text + "  }\n}\n");
  }

  Arguments numbers(int64_t first, int64_t third) const {
    Arguments arguments(4, wide);
    for (const int64_t v : {first, padded, third, op.in.strides.back(), op.values.data ? op.values.strides.back() : 0,
                            op.indices.data ? op.indices.strides.back() : 0})
      arguments.add(v);
    add(arguments, kept);
    return arguments;
  }

  void start(Launcher& launcher) const;
  void put(Launcher& launcher, void* copy, void* places) const;
};

void KeyedRows::start(Launcher& launcher) const {
  const auto pairs = static_cast<size_t>(rows * padded);
  const auto bytes = static_cast<size_t>(key_bytes());
  void* const keys = launcher.scratch(pairs * bytes);
  void* const places = launcher.scratch(pairs * 4);
  // A copy of the row: values may alias the input.
  void* const copy = op.values.data ? launcher.scratch(static_cast<size_t>(rows * n) * size_of(op.in.dtype)) : nullptr;
  const uint64_t rank = static_cast<uint64_t>(kept.rank) << 24, type = static_cast<uint64_t>(op.in.dtype),
                 w = static_cast<uint64_t>(wide) << 8;
  const auto groups = [&](int64_t items) { return (items + target.group - 1) / target.group; };
  {
    Arguments arguments = numbers(rows * padded, n);
    void* const memory[] = {op.in.data, keys, places, copy};
    const uint64_t lowest = static_cast<uint64_t>(low < 64) << 10 | static_cast<uint64_t>(low > 32) << 11 |
                            static_cast<uint64_t>(op.values.data != nullptr) << 12;
    launcher.start({{Kind::SortKeys, nullptr, type | w | static_cast<uint64_t>(op.descending) << 9 | lowest | rank},
                    [this] { return keys_text(); },
                    memory,
                    arguments.bytes(),
                    groups(rows * padded),
                    target.group});
  }
  if (target.loops) {
    void* const arrays[] = {keys, places, launcher.scratch(pairs * bytes), launcher.scratch(pairs * 4)};
    Arguments arguments(4, wide);
    arguments.add(n), arguments.add(rows);
    launcher.start({{Kind::SortGroup, nullptr, type | w}, [this] { return digits_text(); }, arrays, arguments.bytes(), rows, 1});
    return put(launcher, copy, places);
  }
  if (n > kNetwork) {
    const int bits = std::min(low, 8 * static_cast<int>(size_of(op.in.dtype)));
    return put(launcher, copy, sort_by_digits({rows, n, key_bytes(), zeros, bits, wide}, keys, places, launcher));
  }
  const int64_t piece = std::min({kInGroup, int64_t{2} * target.group, padded});
  void* const both[] = {keys, places};
  const auto within = [&](int64_t first, int64_t last) {
    Arguments arguments(2, wide);
    for (const int64_t v : {first, last, padded}) arguments.add(v);
    launcher.start({{Kind::SortGroup, nullptr, bytes | w | static_cast<uint64_t>(piece) << 16},
                    [&, piece] { return group_text(piece); },
                    both,
                    arguments.bytes(),
                    rows * padded / piece,
                    static_cast<int>(std::max<int64_t>(piece / 2, 1))});
  };
  if (padded > 1) within(2, piece);
  for (int64_t size = 2 * piece; size <= padded; size *= 2) {
    for (int64_t step = size / 2; step > piece / 2; step /= 2) {
      Arguments arguments(2, wide);
      for (const int64_t v : {rows * padded / 2, size, step, padded}) arguments.add(v);
      launcher.start({{Kind::SortStep, nullptr, bytes | w},
                      [this] { return step_text(); },
                      both,
                      arguments.bytes(),
                      groups(rows * padded / 2),
                      target.group});
    }
    within(size, size);
  }
  put(launcher, copy, places);
}

// Writes the first k values and positions of each row.
void KeyedRows::put(Launcher& launcher, void* copy, void* places) const {
  Arguments arguments = numbers(rows * op.k, op.k);
  arguments.add(n);
  void* const memory[] = {copy, places, op.values.data, op.indices.data};
  const uint64_t wanted = static_cast<uint64_t>(op.values.data != nullptr) << 10 | static_cast<uint64_t>(op.indices.data != nullptr) << 11;
  const uint64_t bits = size_of(op.in.dtype) | static_cast<uint64_t>(wide) << 8 | wanted | static_cast<uint64_t>(kept.rank) << 24;
  launcher.start({{Kind::SortPut, nullptr, bits},
                  [this] { return put_text(); },
                  memory,
                  arguments.bytes(),
                  (rows * op.k + target.group - 1) / target.group,
                  target.group});
}

}  // namespace

void run(const ir::Sort& op, Launcher& launcher) { sort_below(op, INT64_MAX, 0, launcher); }

void sort_below(const ir::Sort& op, int64_t limit, int zeros, Launcher& launcher) {
  const std::span<const int64_t> shape = op.shape;
  const int64_t n = op.shape.back();
  if (op.k < 0 || op.k > n) throw RuntimeError("sort: wanted 0 <= k <= {}, got {}", n, op.k);
  if (n > (int64_t{1} << 31)) throw RuntimeError("sort: wanted rows of at most 2^31 elements, got {}", n);
  KeyedRows r{op, launcher.target(), Space(shape.first(shape.size() - 1)), 0, n, 1, false, 64, zeros};
  r.rows = r.kept.numel();
  if (r.rows == 0 || op.k == 0) return;
  if (op.in.dtype == DType::I64 && !r.target.loops && n > kNetwork && limit < INT64_MAX)
    r.low = std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(limit - 1))));
  if (r.target.loops || n > kNetwork)
    r.padded = n;
  else
    while (r.padded < n) r.padded *= 2;
  const Dims none(shape.size(), 0);
  r.kept.add(op.in);
  r.kept.add(static_cast<char*>(op.values.data), static_cast<int64_t>(size_of(op.in.dtype)),
             (op.values.data ? op.values.strides : none).data());
  r.kept.add(static_cast<char*>(op.indices.data), 8, (op.indices.data ? op.indices.strides : none).data());
  r.kept.drop_ones();
  r.kept.merge();
  int64_t reach = r.rows * r.padded;
  for (const ir::View* v : {&op.in, &op.values, &op.indices})
    if (v->data) reach = std::max(reach, n * std::abs(v->strides.back()));
  // Kernels double sizes up to `reach`, and once beyond it; with 32-bit numbers it must be below 2^30.
  r.wide = is_wide(r.kept) || reach >= (int64_t{1} << 30);
  if (n > kNetwork && r.low == 64 && can_select(op, r.target)) return select_first({op, r.kept, r.wide}, launcher);
  r.start(launcher);
}

}  // namespace naru::render::c
