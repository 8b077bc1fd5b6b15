// Positions of a mask's true elements: counts per block, their prefix sums, and the positions, which a group collects before it writes them.
#include <fmt/format.h>

#include "render/c/expressions.h"
#include "render/c/launch.h"

namespace naru::render::c {
namespace {

// Blocks that an item adds up at a time.
constexpr int kBlocksOfItem = 8;

// For each of eight bytes: its lowest bit set if the byte is not 0.
constexpr const char* kBits =
    "FUNCTION u64 bits_of(u64 w) {\n  const u64 low = 0x7f7f7f7f7f7f7f7f;\n"
    "  return (((w & low) + low) | w) >> 7 & (u64)0x0101010101010101;\n}\n";

struct Found {
  const ir::Nonzero& op;
  const Target& target;
  bool eights;  // the mask is aligned for reading eight elements at once
  bool wide;
  int64_t n = product(op.shape);

  int group() const { return target.loops ? 1 : target.group; }
  int rank() const { return static_cast<int>(op.shape.size()); }
  uint64_t bits(int step) const {
    return KeyBits().add(static_cast<uint64_t>(step), 2).add(eights).add(wide).add(static_cast<uint64_t>(op.finds ? rank() : 0), 8);
  }
  std::string words(const std::string& indent, const std::string& lines) const;
  std::string counts_text() const;
  std::string sums_text() const;
  std::string positions_text() const;
  std::string put(const std::string& position, const std::string& number, const std::string& indent) const;
};

// Loops over the elements of an item's blocks: for each eight of them, from i on, their bits in `bits`.
std::string Found::words(const std::string& indent, const std::string& lines) const {
  const std::string bytes = fmt::format("for (int k = 0; k < 8 && i + k < a.d[0]; ++k) bits |= (u64)(m0[i + k] != 0) << 8 * k;\n");
  std::string text = fmt::format("{0}for (I i = begin; i < end; i += 8) {{\n{0}  u64 bits = 0;\n", indent);
  if (eights)
    text += fmt::format("{0}  if (i + 8 <= a.d[0]) bits = bits_of(*(GLOBAL const u64*)(m0 + i));\n{0}  else {1}", indent, bytes);
  else
    text += fmt::format("{}  {}", indent, bytes);
  return text + lines + indent + "}\n";
}

// Numbers: elements. Memory: mask, ends.
std::string Found::counts_text() const {
  Head h;
  h.memory = {"u8", "=i64"};
  h.numbers = 1;
  h.group = group();
  h.wide = wide;
  h.functions = kBits;
  std::string text = opening(h, target);
  if (!target.loops) text += fmt::format("  LOCAL int s[{}];\n", group());
  text += fmt::format(
      "  const I begin = (I)GROUP * {0}{1}, limit = begin + {2}, end = limit < a.d[0] ? limit : a.d[0];\n  int count = 0;\n",
      ir::Nonzero::kBlock, target.loops ? "" : fmt::format(" + ITEM * {}", ir::Nonzero::kBlock / group()), ir::Nonzero::kBlock / group());
  text += words("  ", "    count += (int)(bits * (u64)0x0101010101010101 >> 56);\n");
  if (target.loops) return complete(target, text + "  m1[GROUP] = count;\n}\n");
  text += "  s[ITEM] = count;\n" + sums_of_group("s", "int", group(), "  ");
  return complete(target, text + fmt::format("  if (ITEM == 0) m1[GROUP] = s[{}];\n}}\n", group() - 1));
}

// One group: replaces the blocks' counts by their inclusive prefix sums. Numbers: blocks. Memory: ends.
std::string Found::sums_text() const {
  Head h;
  h.memory = {"=i64"};
  h.numbers = 1;
  h.group = group();
  h.wide = wide;
  std::string text = opening(h, target);
  if (target.loops) return complete(target, text + "  for (I b = 1; b < a.d[0]; ++b) m0[b] += m0[b - 1];\n}\n");
  text += fmt::format("  LOCAL i64 s[{0}];\n  i64 before = 0;\n  for (I first = 0; first < a.d[0]; first += {1}) {{\n", group(),
                      group() * kBlocksOfItem);
  text += fmt::format(
      "    const I b = first + ITEM * {0};\n    i64 own = 0;\n    for (int k = 0; k < {0}; ++k) own += b + k < a.d[0] ? m0[b + k] : 0;\n",
      kBlocksOfItem);
  text += "    s[ITEM] = own;\n" + sums_of_group("s", "i64", group(), "    ");
  text += fmt::format(
      "    i64 sum = before + s[ITEM] - own;\n    for (int k = 0; k < {0} && b + k < a.d[0]; ++k) {{ sum += m0[b + k]; m0[b + k] = sum; "
      "}}\n"
      "    before += s[{1}];\n    BARRIER;\n  }}\n}}\n",
      kBlocksOfItem, group() - 1);
  return complete(target, text);
}

// Writes row `number` of the result: the position in each dimension. Numbers: elements, stride from row to row, stride from dimension to
// dimension; sizes; divisors.
std::string Found::put(const std::string& position, const std::string& number, const std::string& indent) const {
  std::string text = fmt::format("{0}GLOBAL i64* to = m2 + (i64)({1}) * a.d[1];\n{0}I p = {2};\n", indent, number, position);
  for (int d = rank() - 1; d > 0; --d) {
    const int divisor = 3 + rank() + 2 * (d - 1);
    const std::string above =
        wide ? fmt::format("p / a.d[{}]", 3 + d) : fmt::format("(I)quotient((u32)p, (u32)a.d[{}], (u32)a.d[{}])", divisor, divisor + 1);
    text += fmt::format("{0}{{\n{0}  const I above = {1};\n{0}  to[{2} * a.d[2]] = p - above * a.d[{3}];\n{0}  p = above;\n{0}}}\n", indent,
                        above, d, 3 + d);
  }
  return rank() > 0 ? text + indent + "to[0] = p;\n" : text;
}

// Memory: mask, ends, positions.
std::string Found::positions_text() const {
  Head h;
  h.memory = {"u8", "i64", "=i64"};
  h.numbers = 3 + rank() + 2 * std::max(rank() - 1, 0);
  h.group = group();
  h.wide = wide;
  h.functions = std::string(kBits) + kQuotient;
  std::string text = opening(h, target);
  if (!target.loops) text += fmt::format("  LOCAL int s[{}];\n  LOCAL u16 found[{}];\n", group(), ir::Nonzero::kBlock);
  text += fmt::format(
      "  const I block = (I)GROUP * {0}, begin = block{1}, limit = begin + {2}, end = limit < a.d[0] ? limit : a.d[0];\n"
      "  const i64 before = GROUP ? m1[GROUP - 1] : 0;\n",
      ir::Nonzero::kBlock, target.loops ? "" : fmt::format(" + ITEM * {}", ir::Nonzero::kBlock / group()), ir::Nonzero::kBlock / group());
  if (target.loops)  // branch-free: no processor would predict it
    return complete(
        target, text + fmt::format("  u16 found[{}];\n  const int n = (int)(end - begin);\n  int count = 0;\n"
                                   "  for (int k = 0; k < n; ++k) {{\n    found[count] = (u16)k;\n    count += m0[begin + k] != 0;\n  }}\n"
                                   "  for (int k = 0; k < count; ++k) {{\n{}  }}\n}}\n",
                                   ir::Nonzero::kBlock, put("begin + found[k]", "before + k", "    ")));
  text += "  int count = 0;\n" + words("  ", "    count += (int)(bits * (u64)0x0101010101010101 >> 56);\n");
  text += "  s[ITEM] = count;\n" + sums_of_group("s", "int", group(), "  ") + "  int at = s[ITEM] - count;\n";
  text += words("  ", "    for (int k = 0; k < 8; ++k)\n      if (bits >> 8 * k & 1) found[at++] = (u16)(i - block + k);\n");
  text += fmt::format("  BARRIER;\n  for (int k = ITEM; k < s[{0}]; k += {1}) {{\n{2}  }}\n}}\n", group() - 1, group(),
                      put("block + found[k]", "before + k", "    "));
  return complete(target, text);
}

}  // namespace

void run(const ir::Nonzero& op, Launcher& launcher) {
  const Target& target = launcher.target();
  const int64_t n = product(op.shape);
  if (n == 0) return;
  const bool wide = n + ir::Nonzero::kBlock >= (int64_t{1} << 31) - 65536;
  const Found found{op, target, reinterpret_cast<uintptr_t>(op.mask.data) % 8 == 0, wide};
  const auto start = [&](int step, std::span<void* const> memory, Arguments& arguments, int64_t groups,
                         std::string (Found::*text)() const) {
    launcher.start(
        {{Kind::Nonzero, nullptr, found.bits(step)}, [&] { return (found.*text)(); }, memory, arguments.bytes(), groups, found.group()});
  };
  if (!op.finds) {
    void* const memory[] = {op.mask.data, op.ends.data};
    Arguments counts(2, wide), sums(1, wide);
    counts.add(n), sums.add(op.blocks());
    start(0, memory, counts, op.blocks(), &Found::counts_text);
    if (op.blocks() > 1) start(1, {memory + 1, 1}, sums, 1, &Found::sums_text);
    return;
  }
  if (op.count == 0) return;
  Arguments arguments(3, wide);
  for (const int64_t v : {n, op.positions.strides[0], op.positions.strides[1]}) arguments.add(v);
  for (const int64_t size : op.shape) arguments.add(size);
  for (size_t d = 1; d < op.shape.size(); ++d) wide ? arguments.add(0), arguments.add(0) : add_divisor(arguments, op.shape[d]);
  void* const memory[] = {op.mask.data, op.ends.data, op.positions.data};
  start(2, memory, arguments, op.blocks(), &Found::positions_text);
}

}  // namespace naru::render::c
