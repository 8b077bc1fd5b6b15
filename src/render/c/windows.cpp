// Sums and maxima of windows: one item per result.
#include <fmt/format.h>

#include <algorithm>

#include "render/c/expressions.h"
#include "render/c/launch.h"

namespace naru::render::c {
namespace {

using ir::VType;
using ir::Windows;
using Op = Windows::Op;

// Results per looping item.
constexpr int64_t kEachWindow = 256;
constexpr char kAxes[] = {'x', 'y', 'z'};

struct WindowText {
  const Windows& q;
  const Target& target;
  VType type;
  bool wide;

  WindowText(const Windows& w, const Target& t) : q(w), target(t), type(ir::vtype_of(w.computed())) {
    int64_t reach = product(q.sizes_of_y());
    const auto look = [&](const Windows::Array& a, const std::array<int64_t, 5>& sizes) {
      int64_t n = 0;
      for (size_t d = 0; d < 5; ++d) n += sizes[d] * std::abs(a.strides[d]);
      reach = std::max(reach, n);
    };
    look(q.x, q.sizes_of_x()), look(q.y, q.sizes_of_y()), look(q.indices, q.op == Op::Max ? q.sizes_of_y() : q.sizes_of_x());
    wide = reach > (int64_t{1} << 29);
    if (type == VType::Bool) type = VType::I32;
  }
  // Neighbouring items compute neighbouring results: channels, if those are contiguous.
  bool channels_last() const { return !target.loops && q.channels > 1 && q.y.strides[1] == 1 && q.y.strides[4] != 1; }
  bool tabled(size_t d) const { return q.tables[d].index != nullptr; }
  bool weighs(size_t d) const { return q.tables[d].weight != nullptr; }

  KeyBits bits() const {
    KeyBits b;
    b.add(static_cast<uint64_t>(q.op), 2).add(q.dtype).add(q.out).add(wide).add(channels_last());
    for (size_t d = 0; d < 3; ++d) b.add(tabled(d)).add(weighs(d));
    return b;
  }
  std::string names() const;
  std::string step() const;
  std::string text() const;
  Arguments arguments(int64_t each) const;
};

// Memory: x, y, indices, then index and weight of each dimension. Numbers: as named below.
std::string WindowText::names() const {
  int at = 0;
  std::string text;
  const auto name = [&](const std::string& n) { text += fmt::format("  const I {} = a.d[{}];\n", n, at++); };
  for (const char* n : {"total", "each", "batch", "channels"}) name(n);
  for (const char* n : {"size_", "result_", "places_"})
    for (const char d : kAxes) name(fmt::format("{}{}", n, d));
  for (const char* n : {"x", "y", "i"})
    for (int d = 0; d < 5; ++d) name(fmt::format("{}_{}", n, d));
  return text;
}

Arguments WindowText::arguments(int64_t each) const {
  Arguments a(9, wide);
  for (const int64_t v : {product(q.sizes_of_y()), each, q.batch, q.channels}) a.add(v);
  for (const Windows::Sizes* s : {&q.size, &q.result})
    for (const int64_t v : *s) a.add(v);
  for (size_t d = 0; d < 3; ++d) a.add(tabled(d) ? q.tables[d].places : 1);
  for (const Windows::Array* s : {&q.x, &q.y, &q.indices})
    for (const int64_t v : s->strides) a.add(v);
  return a;
}

std::string WindowText::step() const {
  const std::string v = fmt::format("const {} v = ({}){};\n", name_of(type), name_of(type),
                                    loaded(q.dtype, "m0[i0 * x_0 + i1 * x_1 + ex * x_2 + ey * x_3 + ez * x_4]"));
  if (q.op == Op::Max) {
    const std::string nan = is_float(type) ? " || v != v" : "";
    return v + fmt::format("        if (place < 0 || v > s{}) {{ s = v; place = ((i64)ex * size_y + ey) * size_z + ez; }}\n", nan);
  }
  if (q.op == Op::Pick)
    return v +
           fmt::format("        if (m2[i0 * i_0 + i1 * i_1 + ex * i_2 + ey * i_3 + ez * i_4] == own) s = s + ({})v;\n", arithmetic(type));
  std::string weight;
  for (size_t d = 0; d < 3; ++d)
    if (weighs(d)) weight = weight.empty() ? fmt::format("w{}", kAxes[d]) : fmt::format("({} * w{})", weight, kAxes[d]);
  return v +
         (weight.empty() ? fmt::format("        s = s + ({})v;\n", arithmetic(type)) : fmt::format("        s = s + v * {};\n", weight));
}

std::string WindowText::text() const {
  const char* const computed = name_of(type);
  Head h;
  h.memory = {stored(q.dtype), "=" + std::string(stored(q.out)), q.op == Op::Max ? "=i64" : "i64", "i64", "i64", "i64", computed, computed,
              computed};
  h.numbers = 4 + 9 + 15;
  h.group = target.loops ? 1 : kGroup;
  h.wide = wide;
  std::string text = opening(h, target) + names();
  text += target.loops ? "  const I last = ((I)GROUP + 1) * each < total ? ((I)GROUP + 1) * each : total;\n  for (I i = (I)GROUP * each; i "
                         "< last; ++i) {\n"
                       : fmt::format("  const I i = (I)GROUP * {} + ITEM;\n  if (i < total) {{\n", kGroup);
  text += "    I rest = i;\n";
  const char* const channel = "    const I i1 = rest % channels;\n    rest /= channels;\n";
  if (channels_last()) text += channel;
  for (const char axis : {'z', 'y', 'x'}) text += fmt::format("    const I p{0} = rest % result_{0};\n    rest /= result_{0};\n", axis);
  if (!channels_last()) text += channel;
  text += "    const I i0 = rest;\n    const i64 own = ((i64)px * result_y + py) * result_z + pz;\n    i64 place = -1;\n";
  text += fmt::format("    {} s = 0;\n", q.op == Op::Max ? computed : arithmetic(type));
  for (size_t d = 0; d < 3; ++d) {
    text += fmt::format("    for (I t{0} = 0; t{0} < places_{0}; ++t{0}) {{\n", kAxes[d]);
    text += tabled(d)
                ? fmt::format("      const I e{0} = (I)m{1}[t{0} * result_{0} + p{0}];\n      if (e{0} < 0) continue;\n", kAxes[d], 3 + d)
                : fmt::format("      const I e{0} = p{0};\n", kAxes[d]);
    if (weighs(d)) text += fmt::format("      const {1} w{0} = m{2}[t{0} * result_{0} + p{0}];\n", kAxes[d], computed, 6 + d);
  }
  text += "        " + step() + "    }}}\n";
  text += fmt::format("    m1[i0 * y_0 + i1 * y_1 + px * y_2 + py * y_3 + pz * y_4] = {};\n",
                      converted(type, q.out, fmt::format("(({})s)", computed), target));
  if (q.op == Op::Max) text += "    m2[i0 * i_0 + i1 * i_1 + px * i_2 + py * i_3 + pz * i_4] = place;\n";
  return complete(target, text + "  }\n}\n");
}

}  // namespace

void run(const Windows& q, Launcher& launcher) {
  const Target& target = launcher.target();
  const WindowText text(q, target);
  const int64_t each = target.loops ? kEachWindow : kGroup, groups = (product(q.sizes_of_y()) + each - 1) / each;
  if (groups == 0) return;
  Arguments arguments = text.arguments(each);
  void* const memory[] = {q.x.data,          q.y.data,           q.indices.data,     q.tables[0].index, q.tables[1].index,
                          q.tables[2].index, q.tables[0].weight, q.tables[1].weight, q.tables[2].weight};
  launcher.start(
      {{Kind::Windows, nullptr, text.bits()}, [&] { return text.text(); }, memory, arguments.bytes(), groups, target.loops ? 1 : kGroup});
}

}  // namespace naru::render::c
