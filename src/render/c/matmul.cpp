// Matrix products: each element is one chain of multiply-adds in the order of k, so the bits equal those of the cpu kernel, however rows and
// columns are distributed.
#include <fmt/format.h>

#include <algorithm>

#include "naru/error.h"
#include "render/c/expressions.h"
#include "render/c/launch.h"

namespace naru::render::c {
namespace {

using ir::MatMul;
using ir::VType;

struct Product {
  // A group of kSide x kSide items computes a tile of kTile x kTile, kDepth of k at a time, through local memory.
  static constexpr int kSide = 16, kTile = 64, kEach = kTile / kSide, kDepth = 16;
  // A looping item computes kRows rows at a time of a panel two vectors wide.
  static constexpr int kRows = 6;
  static constexpr int64_t kRowsOfItem = 64;

  const MatMul& q;
  const Target& target;
  VType type;
  bool wide;

  Product(const MatMul& m, const Target& t) : q(m), target(t), type(ir::vtype_of(m.dtype)) {
    int64_t reach = 0;
    const auto matrix = [&](const MatMul::Matrix& x, int64_t rows, int64_t cols) {
      reach = std::max(reach, q.batch * std::abs(x.batch_stride) + rows * std::abs(x.row_stride) + cols * std::abs(x.col_stride));
    };
    matrix(q.a, q.m, q.k), matrix(q.b, q.k, q.n), matrix(q.c, q.m, q.n);
    wide = std::max(reach, q.batch * std::max(q.k, int64_t{1}) * (q.n + 64)) > (int64_t{1} << 30);
  }
  bool real() const { return is_float(type); }
  enum class Step : uint8_t { Tiles, Pack, Panels };
  KeyBits bits(Step step) const { return KeyBits().add(static_cast<uint64_t>(step), 2).add(q.dtype).add(wide).add(q.bias != nullptr); }
  std::string loaded_as(const std::string& element) const { return fmt::format("({})({})", arithmetic(type), loaded(q.dtype, element)); }
  // The stored element for a sum and the bias of its column.
  std::string result(const std::string& sum, const std::string& bias) const {
    const std::string plain = q.bias ? fmt::format("(a.d[3] == 0 ? {0} : {1} + {0})", loaded_as(bias), sum) : sum;
    return converted(type, q.dtype, fmt::format("(({})({}))", name_of(type), plain), target);
  }
  // Numbers: batch, m, n, k; batch, row and column strides of a, b, c; the bias's stride.
  void add_to(Arguments& arguments) const {
    for (const int64_t v : {q.batch, q.m, q.n, q.k}) arguments.add(v);
    for (const MatMul::Matrix* x : {&q.a, &q.b, &q.c})
      for (const int64_t v : {x->batch_stride, x->row_stride, x->col_stride}) arguments.add(v);
    arguments.add(q.bias_stride);
  }
  void start_tiles(Launcher& launcher) const;
  void start_panels(Launcher& launcher) const;
  std::string tiles_text(bool a_transposed, bool b_transposed) const;
  std::string pack_text() const;
  std::string panels_text() const;
  int lanes() const { return ir::size_of(type) == 8 ? target.lanes / 2 : target.lanes; }
  int panel() const { return 2 * lanes(); }
};

std::string Product::tiles_text(bool a_transposed, bool b_transposed) const {
  const char* t = arithmetic(type);
  Head h;
  h.memory = {stored(q.dtype), stored(q.dtype), "=" + std::string(stored(q.dtype)), stored(q.dtype)};
  h.numbers = 14;
  h.group = kSide * kSide;
  h.wide = wide;
  std::string text = opening(h, target);
  text += fmt::format("  LOCAL {0} left[{1}];\n  LOCAL {0} right[{1}];\n", t, kTile * kDepth);
  text += fmt::format(
      "  const I across = (a.d[2] + {0}) / {1}, down = (a.d[1] + {0}) / {1};\n"
      "  const I col0 = (I)GROUP % across * {1}, row0 = (I)GROUP / across % down * {1}, batch = (I)GROUP / across / down;\n"
      "  GLOBAL const {2}* pa = m0 + batch * a.d[4];\n  GLOBAL const {2}* pb = m1 + batch * a.d[7];\n  GLOBAL {2}* pc = m2 + batch * "
      "a.d[10];\n"
      "  const int x = ITEM % {3}, y = ITEM / {3};\n  {4} s[{5}][{5}];\n"
      "  for (int i = 0; i < {5}; ++i)\n    for (int j = 0; j < {5}; ++j) s[i][j] = 0;\n",
      kTile - 1, kTile, stored(q.dtype), kSide, t, kEach);
  text += fmt::format("  for (I k0 = 0; k0 < a.d[3]; k0 += {0}) {{\n    for (int e = ITEM; e < {1}; e += {2}) {{\n", kDepth, kTile * kDepth,
                      kSide * kSide);
  // Neighbouring items read neighbouring memory.
  text += a_transposed ? fmt::format("      const int ar = e % {0}, ak = e / {0};\n", kTile)
                       : fmt::format("      const int ar = e / {0}, ak = e % {0};\n", kDepth);
  text += b_transposed ? fmt::format("      const int bc = e / {0}, bk = e % {0};\n", kDepth)
                       : fmt::format("      const int bc = e % {0}, bk = e / {0};\n", kTile);
  text += fmt::format(
      "      left[ak * {0} + ar] = row0 + ar < a.d[1] && k0 + ak < a.d[3] ? {1} : 0;\n"
      "      right[bk * {0} + bc] = col0 + bc < a.d[2] && k0 + bk < a.d[3] ? {2} : 0;\n    }}\n    BARRIER;\n",
      kTile, loaded_as("pa[(row0 + ar) * a.d[5] + (k0 + ak) * a.d[6]]"), loaded_as("pb[(k0 + bk) * a.d[8] + (col0 + bc) * a.d[9]]"));
  text += fmt::format(
      "    const int n = a.d[3] - k0 < {0} ? (int)(a.d[3] - k0) : {0};\n    for (int k = 0; k < n; ++k) {{\n      {1} l[{2}], r[{2}];\n"
      "      for (int i = 0; i < {2}; ++i) l[i] = left[k * {3} + y + i * {4}], r[i] = right[k * {3} + x + i * {4}];\n"
      "      for (int i = 0; i < {2}; ++i)\n        for (int j = 0; j < {2}; ++j) s[i][j] = {5};\n    }}\n    BARRIER;\n  }}\n",
      kDepth, t, kEach, kTile, kSide,
      real() ? fmt::format("fma_{}(l[i], r[j], s[i][j])", name_of(type)) : std::string("s[i][j] + l[i] * r[j]"));
  text += fmt::format(
      "  for (int i = 0; i < {0}; ++i)\n    for (int j = 0; j < {0}; ++j) {{\n      const I row = row0 + y + i * {1}, col = col0 + x + j * "
      "{1};\n"
      "      if (row < a.d[1] && col < a.d[2]) pc[row * a.d[11] + col * a.d[12]] = {2};\n    }}\n}}\n",
      kEach, kSide, result("s[i][j]", "m3[col * a.d[13]]"));
  return complete(target, text);
}

void Product::start_tiles(Launcher& launcher) const {
  const bool a_transposed = q.a.row_stride == 1 && q.a.col_stride != 1, b_transposed = q.b.row_stride == 1 && q.b.col_stride != 1;
  Arguments arguments(4, wide);
  add_to(arguments);
  void* const memory[] = {q.a.data, q.b.data, q.c.data, const_cast<void*>(q.bias)};
  const int64_t groups = q.batch * ((q.m + kTile - 1) / kTile) * ((q.n + kTile - 1) / kTile);
  launcher.start({{Kind::MatMul, nullptr, bits(Step::Tiles).add(a_transposed).add(b_transposed)},
                  [&] { return tiles_text(a_transposed, b_transposed); },
                  memory,
                  arguments.bytes(),
                  groups,
                  kSide * kSide});
}

// Packs b's columns into panels, each with contiguous rows, padded with zeros, in the type computed in.
std::string Product::pack_text() const {
  Head h;
  h.memory = {stored(q.dtype), "=" + std::string(arithmetic(type))};
  h.numbers = 15;
  h.wide = wide;
  std::string text = opening(h, target);
  text += fmt::format(
      "  const I panels = (a.d[2] + {0}) / {1}, blocks = (a.d[3] + 63) / 64;\n"
      "  const I first = (I)GROUP % blocks * 64, panel = (I)GROUP / blocks % panels, batch = (I)GROUP / blocks / panels;\n"
      "  const I last = first + 64 < a.d[3] ? first + 64 : a.d[3], n = a.d[2] - panel * {1} < {1} ? a.d[2] - panel * {1} : {1};\n"
      "  GLOBAL const {2}* from = m0 + batch * a.d[7] + panel * {1} * a.d[9];\n  GLOBAL {3}* to = m1 + (batch * panels + panel) * a.d[3] * "
      "{1};\n"
      "  for (I k = first; k < last; ++k)\n    for (int j = 0; j < {1}; ++j) to[k * {1} + j] = j < n ? {4} : 0;\n}}\n",
      panel() - 1, panel(), stored(q.dtype), arithmetic(type), loaded_as("from[k * a.d[8] + j * a.d[9]]"));
  return complete(target, text);
}

std::string Product::panels_text() const {
  const char* t = arithmetic(type);
  const int w = lanes();
  const std::string vector = fmt::format("{}{}",
                                         type == VType::F32   ? "float"
                                         : type == VType::F64 ? "double"
                                         : type == VType::I32 ? "uint"
                                                              : "ulong",
                                         w);
  Head h;
  h.memory = {stored(q.dtype), t, "=" + std::string(stored(q.dtype)), stored(q.dtype)};
  h.numbers = 15;
  h.wide = wide;
  h.functions = fmt::format("typedef {} V;\n", vector);
  std::string text = opening(h, target);
  text += fmt::format(
      "  const I panels = (a.d[2] + {0}) / {1}, blocks = (a.d[1] + a.d[14] - 1) / a.d[14];\n"
      "  const I block = (I)GROUP % blocks, panel = (I)GROUP / blocks % panels, batch = (I)GROUP / blocks / panels;\n"
      "  const I first = block * a.d[14], last = first + a.d[14] < a.d[1] ? first + a.d[14] : a.d[1], col0 = panel * {1};\n"
      "  const int n = a.d[2] - col0 < {1} ? (int)(a.d[2] - col0) : {1};\n"
      "  GLOBAL const {2}* pb = m1 + (a.d[7] == 0 ? panel : batch * panels + panel) * a.d[3] * {1};\n  {2} line[{1}];\n",
      panel() - 1, panel(), t);
  text += fmt::format("  for (I row = first; row < last; row += {}) {{\n", kRows);
  // Rows beyond the last one repeat it and are not stored.
  for (int r = 0; r < kRows; ++r)
    text += fmt::format(
        "    GLOBAL const {0}* p{1} = m0 + batch * a.d[4] + (row + {1} < last ? row + {1} : last - 1) * a.d[5];\n    V x{1} = 0, y{1} = "
        "0;\n",
        stored(q.dtype), r);
  text += fmt::format(
      "    for (I k = 0; k < a.d[3]; ++k) {{\n      const V b = vload{0}(0, pb + k * {1}), c = vload{0}(1, pb + k * {1});\n      const I "
      "at = k * a.d[6];\n",
      w, panel());
  for (int r = 0; r < kRows; ++r) {
    text += fmt::format("      const V v{0} = (V){1};\n", r, loaded_as(fmt::format("p{}[at]", r)));
    text += real() ? fmt::format("      x{0} = fma(v{0}, b, x{0});\n      y{0} = fma(v{0}, c, y{0});\n", r)
                   : fmt::format("      x{0} += v{0} * b;\n      y{0} += v{0} * c;\n", r);
  }
  text += "    }\n";
  for (int r = 0; r < kRows; ++r)
    text += fmt::format(
        "    if (row + {0} < last) {{\n      vstore{1}(x{0}, 0, line);\n      vstore{1}(y{0}, 1, line);\n"
        "      for (int j = 0; j < n; ++j) m2[batch * a.d[10] + (row + {0}) * a.d[11] + (col0 + j) * a.d[12]] = {2};\n    }}\n",
        r, w, result("line[j]", "m3[(col0 + j) * a.d[13]]"));
  return complete(target, text + "  }\n}\n");
}

void Product::start_panels(Launcher& launcher) const {
  const int64_t panels = (q.n + panel() - 1) / panel(), copies = q.b.batch_stride == 0 ? 1 : q.batch;
  void* const packed = launcher.scratch(static_cast<size_t>(std::max<int64_t>(copies * panels * q.k * panel(), 1)) * ir::size_of(type));
  if (q.k > 0) {
    Arguments arguments(2, wide);
    add_to(arguments);
    arguments.add(0);
    void* const memory[] = {q.b.data, packed};
    launcher.start({{Kind::MatMul, nullptr, bits(Step::Pack)},
                    [this] { return pack_text(); },
                    memory,
                    arguments.bytes(),
                    copies * panels * ((q.k + 63) / 64),
                    1});
  }
  Arguments arguments(4, wide);
  add_to(arguments);
  // Fewer rows per item if there would not be enough items.
  int64_t rows = kRowsOfItem;
  while (rows > kRows && q.batch * panels * ((q.m + rows - 1) / rows) < 4 * target.units) rows /= 2;
  arguments.add(rows);
  void* const memory[] = {q.a.data, packed, q.c.data, const_cast<void*>(q.bias)};
  launcher.start({{Kind::MatMul, nullptr, bits(Step::Panels)},
                  [this] { return panels_text(); },
                  memory,
                  arguments.bytes(),
                  q.batch * panels * ((q.m + rows - 1) / rows),
                  1});
}

}  // namespace

void run(const MatMul& q, Launcher& launcher) {
  if (q.batch == 0 || q.m == 0 || q.n == 0) return;
  if (q.dtype == DType::Bool) throw RuntimeError("matmul: wanted numbers, got bool matrices; convert them first");
  const Product product(q, launcher.target());
  if (launcher.target().loops)
    product.start_panels(launcher);
  else
    product.start_tiles(launcher);
}

}  // namespace naru::render::c
