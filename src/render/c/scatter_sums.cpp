#include "render/c/scatter_sums.h"

#include <fmt/format.h>

#include "ir/scatter_sums.h"
#include "render/c/expressions.h"

namespace naru::render::c {

std::string sum_text(DType t, const std::string& a, const std::string& b) {
  if (t == DType::Bool) return fmt::format("(u8)(({}) != 0 || ({}) != 0)", a, b);
  if (is_floating(t)) return to_store(t, fmt::format("({} + {})", loaded(t, a), loaded(t, b)));
  const char* u = size_of(t) == 8 ? "u64" : "u32";
  return fmt::format("({})(({}){} + ({}){})", stored(t), u, a, u, b);
}

namespace {

constexpr int64_t kSumBlock = ir::kScatterBlock;

Head head(std::vector<std::string> memory, int numbers, bool wide) {
  Head h;
  h.memory = std::move(memory);
  h.numbers = numbers;
  h.group = 64;
  h.wide = wide;
  return h;
}

// For each row, finds the first row with the same target offset; clears the slots. Numbers: rows, slots. Memory: offsets, order, starts, first
// row of each slot's block.
std::string starts_text(bool wide, const Target& target) {
  return complete(target, opening(head({"i64", "i64", "=i64", "=i64"}, 2, wide), target) +
                              "  const I at = (I)GROUP * 64 + ITEM;\n  if (at < a.d[0]) {\n    if (at < a.d[1]) m3[at] = -1;\n"
                              "    const i64 place = m0[2 * m1[at]];\n    I low = at;\n"
                              "    if (at > 0 && m0[2 * m1[at - 1]] == place) {\n      I high = at - 1;\n      low = 0;\n"
                              "      while (low < high) {\n        const I middle = low + (high - low) / 2;\n"
                              "        if (m0[2 * m1[middle]] < place) low = middle + 1; else high = middle;\n      }\n    }\n"
                              "    m2[at] = low;\n  }\n}\n");
}

// Sums the chain of each block. A target element's first block starts with the element's old value and writes the element; other blocks write to
// slots, numbered by the block's first row divided by the block size. Slots never collide, because only the last block of an element is short.
// Numbers: rows, elements of a row; strides: value, target. Memory: offsets, value, target, order, starts, first rows of slots, sums.
std::string blocks_text(DType dtype, bool wide, const Target& target) {
  const std::string type = stored(dtype);
  std::string text = opening(head({"i64", type, "=" + type, "i64", "i64", "=i64", "=" + type}, 4, wide), target);
  text += fmt::format(
      "  const I item = (I)GROUP * 64 + ITEM;\n  const I col = item % a.d[1], at = item / a.d[1];\n  if (at < a.d[0]) {{\n"
      "    const i64 place = m0[2 * m3[at]], start = m4[at], from = (i64)col * a.d[2], to = place + (i64)col * a.d[3];\n"
      "    const i64 behind = at - start;\n    if (place >= 0 && behind % {0} == 0) {{\n"
      "      I i = at;\n      {1} x;\n      if (behind == 0) {{ x = m2[to]; }} else {{ x = m1[m0[2 * m3[i] + 1] + from]; ++i; }}\n"
      "      for (; i < a.d[0] && i - at < {0} && m4[i] == start; ++i) x = {2};\n"
      "      if (behind == 0) {{ m2[to] = x; }} else {{\n        m6[(i64)(at / {0}) * a.d[1] + col] = x;\n"
      "        if (col == 0) m5[at / {0}] = at;\n      }}\n    }}\n  }}\n}}\n",
      kSumBlock, type, sum_text(dtype, "x", "m1[m0[2 * m3[i] + 1] + from]"));
  return complete(target, text);
}

// Adds up the sums of up to kSumBlock neighbouring blocks of a target element; the first of them is added to the target element itself. Numbers:
// slots, elements of a row, stride of the target, rows covered by a sum, rows. Memory: offsets, target, order, starts, first rows of slots, sums.
std::string fold_text(DType dtype, bool wide, const Target& target) {
  const std::string type = stored(dtype);
  std::string text = opening(head({"i64", "=" + type, "i64", "i64", "i64", "=" + type}, 5, wide), target);
  text += fmt::format(
      "  const I item = (I)GROUP * 64 + ITEM;\n  const I col = item % a.d[1], slot = item / a.d[1];\n"
      "  if (slot < a.d[0] && m4[slot] >= 0) {{\n"
      "    const i64 at = m4[slot], start = m3[at], behind = at - start, unit = a.d[3], whole = unit * {0};\n"
      "    const i64 own = (i64)slot * a.d[1] + col, to = m0[2 * m2[at]] + (i64)col * a.d[2];\n"
      "    if (behind == unit || behind % whole == 0) {{\n"
      "      i64 i = at, end = at + whole;\n      {1} x;\n"
      "      if (behind == unit) {{ x = m1[to]; end = start + whole; }} else {{ x = m5[own]; i += unit; }}\n"
      "      for (; i < end && i < a.d[4] && m3[i] == start; i += unit) x = {2};\n"
      "      if (behind == unit) {{ m1[to] = x; }} else {{ m5[own] = x; }}\n    }}\n  }}\n}}\n",
      kSumBlock, type, sum_text(dtype, "x", fmt::format("m5[(i / {}) * a.d[1] + col]", kSumBlock)));
  return complete(target, text);
}

enum class Part : uint8_t { Starts = 1, Blocks, Fold };

void start(Part step, DType dtype, bool wide, std::span<void* const> memory, std::initializer_list<int64_t> numbers, int64_t items,
           std::string (*text)(DType, bool, const Target&), Launcher& launcher) {
  Arguments arguments(static_cast<int>(memory.size()), wide);
  for (const int64_t v : numbers) arguments.add(v);
  KeyBits bits;
  bits.add(true).add(wide).add(true).add(dtype).add(static_cast<uint64_t>(step), 2);
  launcher.start({{Kind::Scatter, nullptr, bits},
                  [=, &launcher] { return text(dtype, wide, launcher.target()); },
                  memory,
                  arguments.bytes(),
                  (items + 63) / 64,
                  64});
}

}  // namespace

void add_sorted(const ir::Scatter& s, const SortedRows& r, Launcher& launcher) {
  const DType type = s.value.dtype;
  const int64_t slots = r.rows / kSumBlock + 1;
  const bool wide = r.wide || r.rows * r.run >= int64_t{1} << 30;
  void* const starts = launcher.scratch(static_cast<size_t>(r.rows) * 8);
  void* const firsts = launcher.scratch(static_cast<size_t>(slots) * 8);
  void* const sums = launcher.scratch(static_cast<size_t>(slots * r.run) * size_of(type));
  {
    void* const memory[] = {r.offsets, r.order, starts, firsts};
    start(
        Part::Starts, type, wide, memory, {r.rows, slots}, r.rows, [](DType, bool w, const Target& t) { return starts_text(w, t); },
        launcher);
  }
  {
    void* const memory[] = {r.offsets, s.value.data, s.target.data, r.order, starts, firsts, sums};
    start(Part::Blocks, type, wide, memory, {r.rows, r.run, r.value_step, r.target_step}, r.rows * r.run, blocks_text, launcher);
  }
  for (int64_t unit = kSumBlock; unit < r.rows; unit *= kSumBlock) {
    void* const memory[] = {r.offsets, s.target.data, r.order, starts, firsts, sums};
    start(Part::Fold, type, wide, memory, {slots, r.run, r.target_step, unit, r.rows}, slots * r.run, fold_text, launcher);
  }
}

}  // namespace naru::render::c
