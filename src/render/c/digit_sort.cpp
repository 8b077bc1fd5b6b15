// Least significant digit first, 8 bits per digit. For each digit, each group counts the digits of a tile; then the counts of each digit are
// prefix-summed over a row's tiles; then each tile is sorted by the digit in local memory and moved to its destinations.
#include "render/c/digit_sort.h"

#include <fmt/format.h>

#include <array>

namespace naru::render::c {
namespace {

constexpr int kDigits = 256, kTileOfDigits = 2048;
// Tiles whose counts an item adds up at a time.
constexpr int kTilesOfItem = 4;

struct Digits {
  const DigitSort& sort;
  const Target& target;

  const char* key() const { return sort.key_bytes == 8 ? "u64" : "u32"; }
  int64_t tiles() const { return (sort.n + kTileOfDigits - 1) / kTileOfDigits; }
  Head head(std::vector<std::string> memory, int group) const {
    Head h;
    h.memory = std::move(memory);
    h.numbers = 4;
    h.group = group;
    h.wide = sort.wide;
    return h;
  }
  std::string count_text() const;
  std::string sums_text() const;
  std::string move_text() const;
  std::string split_text(int shift) const;
};

// The start of the group's tile, and the number of its pairs. Numbers: elements of a row, tiles per row, the digit's bit offset in a key, rows.
constexpr const char* kOwnTile =
    "  const I row = (I)GROUP / a.d[1], tile = (I)GROUP % a.d[1], start = row * a.d[0] + tile * 2048;\n"
    "  const int valid = a.d[0] - tile * 2048 < 2048 ? (int)(a.d[0] - tile * 2048) : 2048;\n";

// Memory: keys; counts by row, digit and tile.
std::string Digits::count_text() const {
  const int group = target.group;
  std::string text = opening(head({key(), "=u32"}, group), target) + fmt::format("  LOCAL u32 counts[{}];\n", kDigits) + kOwnTile;
  text += fmt::format("  for (int d = ITEM; d < {0}; d += {1}) counts[d] = 0;\n  BARRIER;\n", kDigits, group);
  text += fmt::format("  for (int f = ITEM; f < valid; f += {}) local_count(&counts[(u32)(m0[start + f] >> a.d[2]) & 255u]);\n  BARRIER;\n",
                      group);
  text += fmt::format("  for (int d = ITEM; d < {0}; d += {1}) m1[(row * {0} + d) * a.d[1] + tile] = counts[d];\n}}\n", kDigits, group);
  return complete(target, text);
}

// For one digit of a row: replaces each tile's count by the sum of those of the tiles before it. Memory: counts; totals by row and digit.
std::string Digits::sums_text() const {
  std::string text = opening(head({"=u32", "=u32"}, kGroup), target);
  text += fmt::format(
      "  LOCAL u32 s[{0}];\n  GLOBAL u32* counts = m0 + (I)GROUP * a.d[1];\n  u32 before = 0;\n"
      "  for (I first = 0; first < a.d[1]; first += {1}) {{\n    const I t = first + ITEM * {2};\n    u32 own = 0, c[{2}];\n"
      "    for (int k = 0; k < {2}; ++k) {{ c[k] = t + k < a.d[1] ? counts[t + k] : 0; own += c[k]; }}\n    s[ITEM] = own;\n",
      kGroup, kGroup * kTilesOfItem, kTilesOfItem);
  text += sums_of_group("s", "u32", kGroup, "    ");
  text += fmt::format(
      "    u32 sum = before + s[ITEM] - own;\n    for (int k = 0; k < {0}; ++k) {{ if (t + k < a.d[1]) counts[t + k] = sum; sum += c[k]; "
      "}}\n"
      "    before += s[{1}];\n    BARRIER;\n  }}\n  if (ITEM == 0) m1[GROUP] = before;\n}}\n",
      kTilesOfItem, kGroup - 1);
  return complete(target, text);
}

// Sorts the tile's elements, `digit << 16 | number`, by 4 bits of the digit. Each item reads some neighbours and counts them in its own column;
// the prefix sums over all columns, digit after digit, give the position of its first element of each digit.
std::string Digits::split_text(int shift) const {
  const int group = target.group, each = kTileOfDigits / group;
  std::string text = fmt::format(
      "  {{\n    u32 e[{0}];\n    int to[{0}], rank[{0}];\n    for (int d = 0; d < 16; ++d) columns[column(d * {1} + ITEM)] = 0;\n", each,
      group);
  text += fmt::format(
      "    for (int k = 0; k < {0}; ++k) {{\n      e[k] = pairs[slot(ITEM * {0} + k)];\n      to[k] = column((int)(e[k] >> {1} & 15u) * "
      "{2} + ITEM);\n"
      "      rank[k] = columns[to[k]]++;\n    }}\n    BARRIER;\n",
      each, shift, group);
  text += "    u32 own = 0;\n    for (int k = 0; k < 16; ++k) own += columns[column(ITEM * 16 + k)];\n    s[ITEM] = own;\n";
  text += sums_of_group("s", "u32", group, "    ");
  text +=
      "    u32 sum = s[ITEM] - own;\n    for (int k = 0; k < 16; ++k) {\n      const int c = column(ITEM * 16 + k);\n      const u32 n = "
      "columns[c];\n"
      "      columns[c] = (u16)sum;\n      sum += n;\n    }\n    BARRIER;\n";
  return text + fmt::format("    for (int k = 0; k < {}; ++k) pairs[slot(columns[to[k]] + rank[k])] = e[k];\n    BARRIER;\n  }}\n", each);
}

// Memory: keys, places, counts, totals; the new keys and places.
std::string Digits::move_text() const {
  const int group = target.group, digits = kDigits / group;
  Head h = head({key(), "u32", "u32", "u32", "=" + std::string(key()), "=u32"}, group);
  // Padded, so that items that each read some neighbours access different banks.
  h.functions = "FUNCTION int slot(int f) { return f + (f >> 3); }\nFUNCTION int column(int c) { return c + (c >> 4) * 2; }\n";
  std::string text = opening(h, target);
  text += fmt::format(
      "  LOCAL u32 pairs[{0}];\n  LOCAL u16 columns[{1}];\n  LOCAL u32 s[{2}];\n  LOCAL u32 base[{3}];\n  LOCAL int first[{3}];\n",
      kTileOfDigits + kTileOfDigits / 8, 16 * group + 2 * group, group, kDigits);
  text += kOwnTile;
  // The destination of each digit in the row, and among equal digits that of this tile.
  text += fmt::format(
      "  {{\n    u32 own = 0, c[{0}];\n    for (int k = 0; k < {0}; ++k) {{ c[k] = m3[row * {1} + ITEM * {0} + k]; own += c[k]; }}\n    "
      "s[ITEM] = own;\n",
      digits, kDigits);
  text += sums_of_group("s", "u32", group, "    ");
  text += fmt::format(
      "    u32 sum = s[ITEM] - own;\n    for (int k = 0; k < {0}; ++k) {{\n      const int d = ITEM * {0} + k;\n"
      "      base[d] = sum + m2[(row * {1} + d) * a.d[1] + tile];\n      sum += c[k];\n    }}\n  }}\n",
      digits, kDigits);
  // Slots beyond the row's end get the greatest digit, and stay after all others.
  text += fmt::format(
      "  for (int f = ITEM; f < {0}; f += {1}) {{\n    const u32 d = f < valid ? (u32)(m0[start + f] >> a.d[2]) & 255u : 255u;\n"
      "    pairs[slot(f)] = d << 16 | (u32)f;\n  }}\n  BARRIER;\n",
      kTileOfDigits, group);
  text += split_text(16) + split_text(20);
  text += fmt::format(
      "  for (int p = ITEM; p < {0}; p += {1}) {{\n    const u32 d = pairs[slot(p)] >> 16;\n"
      "    if (p == 0 || pairs[slot(p - 1)] >> 16 != d) first[d] = p;\n  }}\n  BARRIER;\n",
      kTileOfDigits, group);
  text += fmt::format(
      "  for (int p = ITEM; p < valid; p += {0}) {{\n    const u32 e = pairs[slot(p)], d = e >> 16;\n"
      "    const I from = start + (I)(e & 0xffffu), to = row * a.d[0] + (I)base[d] + (p - first[d]);\n"
      "    m4[to] = m0[from];\n    m5[to] = m1[from];\n  }}\n}}\n",
      group);
  return complete(target, text);
}

}  // namespace

void* sort_by_digits(const DigitSort& sort, void* keys, void* places, Launcher& launcher) {
  const Target& target = launcher.target();
  const Digits digits{sort, target};
  const int64_t tiles = digits.tiles();
  const auto pairs = static_cast<size_t>(sort.rows * sort.n);
  std::array<void*, 2> all_keys{keys, launcher.scratch(pairs * static_cast<size_t>(sort.key_bytes))},
      all_places{places, launcher.scratch(pairs * 4)};
  void* const counts = launcher.scratch(static_cast<size_t>(sort.rows * kDigits * tiles) * 4);
  void* const sums = launcher.scratch(static_cast<size_t>(sort.rows * kDigits) * 4);
  const KeyBits bits = KeyBits().add(static_cast<uint64_t>(sort.key_bytes), 4).add(sort.wide);
  size_t from = 0;
  for (int shift = sort.first; shift < sort.bits; shift += 8, from = 1 - from) {
    const auto start = [&](Kind kind, std::span<void* const> memory, int64_t groups, int group, std::string (Digits::*text)() const) {
      Arguments arguments(static_cast<int>(memory.size()), sort.wide);
      for (const int64_t v : {sort.n, tiles, int64_t{shift}, sort.rows}) arguments.add(v);
      launcher.start({{kind, nullptr, bits}, [&] { return (digits.*text)(); }, memory, arguments.bytes(), groups, group});
    };
    void* const counted[] = {all_keys[from], counts};
    start(Kind::SortCount, counted, sort.rows * tiles, target.group, &Digits::count_text);
    void* const summed[] = {counts, sums};
    start(Kind::SortSums, summed, sort.rows * kDigits, kGroup, &Digits::sums_text);
    void* const moved[] = {all_keys[from], all_places[from], counts, sums, all_keys[1 - from], all_places[1 - from]};
    start(Kind::SortMove, moved, sort.rows * tiles, target.group, &Digits::move_text);
  }
  return all_places[from];
}

}  // namespace naru::render::c
