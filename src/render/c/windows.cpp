// Sums and maxima of windows: one item per result, or per four or eight neighbouring channels.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "render/c/expressions.h"
#include "render/c/launch.h"

namespace naru::render::c {
namespace {

using ir::VType;
using ir::Windows;
using Op = Windows::Op;

// Results per looping item.
constexpr int64_t kEachWindow = 256;
// Windows of at most this many places have their numbers of places in the text, so that the compiler unrolls the loops.
constexpr int64_t kFewPlaces = 27;
// Of at most this many, an item computes eight channels of 8 or 16 bits, for which it computes positions once.
constexpr int64_t kPlacesOfEight = 9;
constexpr char kAxes[] = {'x', 'y', 'z'};
constexpr char kParts[] = {'x', 'y', 'z', 'w'};

// The least value of a type, as it is stored.
const char* least(DType type) noexcept {
  constexpr PerDType<const char*> kLeast{"0",
                                         "0",
                                         "-128",
                                         "-32768",
                                         "(i32)0x80000000u",
                                         "(i64)((u64)1 << 63)",
                                         "0xfc00",
                                         "0xff80",
                                         "as_f32(0xff800000u)",
                                         "as_f64((u64)0xfff << 52)"};
  return kLeast[type];
}

struct WindowText {
  const Windows& q;
  const Target& target;
  VType type;
  bool wide;
  bool few;       // the loops are unrolled
  int fours = 0;  // an item computes so many times four neighbouring channels; 0: one result

  WindowText(const Windows& w, const Target& t) : q(w), target(t), type(ir::vtype_of(w.computed())) {
    int64_t reach = std::max(product(q.sizes_of_x()), product(q.sizes_of_y()));
    const auto look = [&](const Windows::Array& a, const std::array<int64_t, 5>& sizes) {
      int64_t n = 0;
      for (size_t d = 0; d < 5; ++d) n += sizes[d] * std::abs(a.strides[d]);
      reach = std::max(reach, n);
    };
    look(q.x, q.sizes_of_x()), look(q.y, q.sizes_of_y());
    if (q.indices.data) look(q.indices, sizes_of_indices());
    wide = reach > (int64_t{1} << 29);
    if (type == VType::Bool) type = VType::I32;
    const int64_t all = places(0) * places(1) * places(2);
    few = !target.loops && all <= kFewPlaces;
    if (channels_last() && q.channels % 4 == 0 && in_fours(q.x, q.sizes_of_x(), q.dtype) && in_fours(q.y, q.sizes_of_y(), q.out) &&
        (!q.indices.data || in_fours(q.indices, sizes_of_indices(), q.index)))
      fours = few && all <= kPlacesOfEight && q.channels % 8 == 0 && size_of(q.dtype) <= 2 ? 2 : 1;
  }
  std::array<int64_t, 5> sizes_of_indices() const { return q.op == Op::Max ? q.sizes_of_y() : q.sizes_of_x(); }
  // Neighbouring items compute neighbouring results: channels, if those are contiguous.
  bool channels_last() const { return !target.loops && q.channels > 1 && q.y.strides[1] == 1 && q.y.strides[4] != 1; }
  // True if four neighbouring channels can be read or written at once at every position.
  static bool in_fours(const Windows::Array& a, const std::array<int64_t, 5>& sizes, DType dtype) {
    bool all = a.strides[1] == 1 && reinterpret_cast<uintptr_t>(a.data) % (4 * size_of(dtype)) == 0;
    for (const size_t d : {0, 2, 3, 4}) all &= sizes[d] == 1 || a.strides[d] % 4 == 0;
    return all;
  }
  int parts() const { return std::max(4 * fours, 1); }
  int64_t results() const { return product(q.sizes_of_y()) / parts(); }
  bool tabled(size_t d) const { return q.tables[d].index != nullptr; }
  bool computes(size_t d) const { return few && tabled(d) && q.tables[d].step > 0; }
  bool flat(size_t d) const { return !tabled(d) && q.result[d] == 1; }
  bool weighs(size_t d) const { return q.tables[d].weight != nullptr; }
  int64_t places(size_t d) const { return tabled(d) ? q.tables[d].places : 1; }

  KeyBits bits() const {
    KeyBits b;
    b.add(static_cast<uint64_t>(q.op), 2).add(q.dtype).add(q.out).add(q.index).add(q.indices.data != nullptr);
    b.add(wide).add(q.apart).add(channels_last()).add(few).add(static_cast<uint64_t>(fours), 2);
    for (size_t d = 0; d < 3; ++d)
      b.add(tabled(d)).add(computes(d)).add(flat(d)).add(weighs(d)).add(few ? static_cast<uint64_t>(places(d)) : 0, 5);
    return b;
  }
  std::string names() const;
  std::string digit(const std::string& name, const std::string& size) const;
  std::string position() const;
  std::string loop(size_t d) const;
  std::string here() const;
  std::string begins() const;
  std::string read(char name, DType dtype, int memory, const char* place) const;
  std::string element(char name, int part) const {
    return fours > 0 ? fmt::format("{}{}.{}", name, part / 4, kParts[part % 4]) : fmt::format("{}0", name);
  }
  std::string step() const;
  std::string sums_apart() const;
  std::string results_written() const;
  std::string text() const;
  Arguments arguments(int64_t each) const;
};

// Memory: x, y, indices, then index and weight of each dimension. Numbers: as named below. channels: in units of an item's.
std::string WindowText::names() const {
  int at = 0;
  std::string text;
  const auto name = [&](const std::string& n) { text += fmt::format("  const I {} = a.d[{}];\n", n, at++); };
  for (const char* n : {"total", "each", "channels"}) name(n);
  for (const char* n : {"size_", "result_", "places_", "first_", "step_"})
    for (const char d : kAxes) name(fmt::format("{}{}", n, d));
  for (const char* n : {"x", "y", "i"})
    for (int d = 0; d < 5; ++d) name(fmt::format("{}_{}", n, d));
  for (const char* n : {"channels", "result_x", "result_y", "result_z"})
    for (const char* of : {"multiplier", "shift"}) name(fmt::format("{}_{}", of, n));
  return text;
}

Arguments WindowText::arguments(int64_t each) const {
  Arguments a(9, wide);
  const int64_t channels = q.channels / parts();
  for (const int64_t v : {results(), each, channels}) a.add(v);
  for (const Windows::Sizes* s : {&q.size, &q.result})
    for (const int64_t v : *s) a.add(v);
  for (size_t d = 0; d < 3; ++d) a.add(places(d));
  for (const auto number : {&Windows::Table::first, &Windows::Table::step})
    for (const Windows::Table& t : q.tables) a.add(t.*number);
  for (const Windows::Array* s : {&q.x, &q.y, &q.indices})
    for (const int64_t v : s->strides) a.add(v);
  for (const int64_t v : {channels, q.result[0], q.result[1], q.result[2]}) wide ? (a.add(0), a.add(0)) : add_divisor(a, v);
  return a;
}

// Takes the last digit off `rest`, a number below `size`.
std::string WindowText::digit(const std::string& name, const std::string& size) const {
  const std::string over = wide ? "rest / " + size : fmt::format("(I)quotient((u32)rest, (u32)multiplier_{0}, (u32)shift_{0})", size);
  return fmt::format("    const I over_{0} = {1}, {0} = rest - over_{0} * {2};\n    rest = over_{0};\n", name, over, size);
}

// The item's image, (first) channel and position in y.
std::string WindowText::position() const {
  const std::string channel = digit("c", "channels") + fmt::format("    const I i1 = c * {};\n", parts());
  std::string text = "    I rest = i;\n";
  if (channels_last()) text += channel;
  for (size_t d = 3; d-- > 0;)
    text +=
        flat(d) ? fmt::format("    const I p{} = 0;\n", kAxes[d]) : digit(fmt::format("p{}", kAxes[d]), fmt::format("result_{}", kAxes[d]));
  if (!channels_last()) text += channel;
  return text + "    const I i0 = rest;\n";
}

// The head of the loop over the places of a dimension, up to the element and its weight. Unrolled loops go on where there is no element, with one
// that is read anyway (of tables: the one before), so that no read has to wait for a branch.
std::string WindowText::loop(size_t d) const {
  const char axis = kAxes[d];
  if (!tabled(d)) return fmt::format("    {{\n      const I e{0} = p{0};\n", axis);
  const std::string entry = fmt::format("[t{0} * result_{0} + p{0}]", axis);
  std::string text;
  if (few && !computes(d)) text += fmt::format("    I near_{} = 0;\n", axis);
  if (few) text += "    UNROLL\n";
  text +=
      fmt::format("    for (I t{0} = 0; t{0} < {1}; ++t{0}) {{\n", axis, few ? std::to_string(places(d)) : fmt::format("places_{}", axis));
  if (computes(d))
    text += fmt::format(
        "      const I f{0} = p{0} * step_{0} + t{0} + first_{0}, e{0} = f{0} < 0 ? 0 : f{0} < size_{0} ? f{0} : size_{0} - 1;\n", axis);
  else if (few)
    text +=
        fmt::format("      const I f{0} = (I)m{1}{2}, e{0} = f{0} < 0 ? near_{0} : f{0};\n      near_{0} = e{0};\n", axis, 3 + d, entry);
  else
    text += fmt::format("      const I e{0} = (I)m{1}{2};\n      if (e{0} < 0) continue;\n", axis, 3 + d, entry);
  if (weighs(d)) text += fmt::format("      const {} w{} = m{}{};\n", name_of(type), axis, 6 + d, entry);
  return text;
}

// In unrolled loops, whether there is an element; "" if that does not matter. A maximum is not changed by elements that computed positions repeat:
// they are at the ends of the window.
std::string WindowText::here() const {
  std::string text;
  for (size_t d = 0; d < 3 && few; ++d)
    if (tabled(d) && !(q.op == Op::Max && computes(d))) text += fmt::format("{0}f{1} == e{1}", text.empty() ? "" : " && ", kAxes[d]);
  return text;
}

// Defines what is read at a place of memory, in vectors of four if there are several channels.
std::string WindowText::read(char name, DType dtype, int memory, const char* place) const {
  if (fours == 0) return fmt::format("        const {} {}0 = m{}[{}];\n", stored(dtype), name, memory, place);
  std::string text;
  for (int k = 0; k < fours; ++k)
    text += fmt::format("        const {0}x4 {1}{2} = *(GLOBAL const {0}x4*)(m{3} + ({4} + {5}));\n", stored(dtype), name, k, memory, place,
                        4 * k);
  return text;
}

// Whether unrolled loops are at their first element.
std::string WindowText::begins() const {
  std::string text = "true";
  for (size_t d = 0; d < 3; ++d)
    if (tabled(d)) text += fmt::format(" && t{} == 0", kAxes[d]);
  return text;
}

// What is done with each element of a window. Sum adds 0 rather than branch, which changes nothing, as no sum is -0.
std::string WindowText::step() const {
  const std::string condition = here(), also = condition.empty() ? "" : "here && ";
  std::string text = condition.empty() ? "" : fmt::format("        const bool here = {};\n", condition);
  text += read('t', q.dtype, 0, "i0 * x_0 + i1 * x_1 + ex * x_2 + ey * x_3 + ez * x_4");
  if (q.op == Op::Pick) text += read('u', q.index, 2, "i0 * i_0 + i1 * i_1 + ex * i_2 + ey * i_3 + ez * i_4");
  if (q.op == Op::Max)
    text += fmt::format("        const I number = (ex * size_y + ey) * size_z + ez;\n        if ({}) first = number;\n",
                        condition.empty() && few ? begins() : also + "first < 0");
  std::string weight;
  for (size_t d = 0; d < 3; ++d)
    if (weighs(d)) weight = weight.empty() ? fmt::format("w{}", kAxes[d]) : fmt::format("({} * w{})", weight, kAxes[d]);
  for (int k = 0; k < parts(); ++k) {
    text += fmt::format("        const {0} v{1} = ({0}){2};\n", name_of(type), k, loaded(q.dtype, element('t', k)));
    const std::string value = weight.empty() ? fmt::format("({})v{}", arithmetic(type), k) : fmt::format("v{} * {}", k, weight);
    if (q.op == Op::Max)
      text += fmt::format("        if ({0}(v{1} > s{1}{2})) {{ s{1} = v{1}; n{1} = number; }}\n", also, k,
                          is_float(type) ? fmt::format(" || v{0} != v{0}", k) : "");
    else if (q.op == Op::Pick)
      text += fmt::format("        if ({0}{1} == ({2})own) s{3} = s{3} + {4};\n", also, element('u', k), stored(q.index), k, value);
    else
      text += fmt::format("        s{0} = s{0} + {1};\n", k, condition.empty() ? value : "(here ? " + value + " : 0)");
  }
  return text;
}

// All loops, of sums over one dimension after the other: each loop adds what the loop within it has summed. The outermost one adds to s.
std::string WindowText::sums_apart() const {
  size_t outermost = 0;
  while (outermost < 2 && !tabled(outermost)) ++outermost;
  const auto sum = [&](size_t d, int k) { return d == outermost ? fmt::format("s{}", k) : fmt::format("s{}{}", kAxes[d], k); };
  std::string text;
  for (size_t d = 0; d < 3; ++d) {
    for (int k = 0; k < parts() && tabled(d) && d != outermost; ++k) text += fmt::format("    {} {} = 0;\n", arithmetic(type), sum(d, k));
    text += tabled(d) ? loop(d) : fmt::format("      const I e{0} = p{0};\n", kAxes[d]);  // no block, which would end the values within it
  }
  text += read('t', q.dtype, 0, "i0 * x_0 + i1 * x_1 + ex * x_2 + ey * x_3 + ez * x_4");
  std::vector<std::string> inner;
  for (int k = 0; k < parts(); ++k) {
    inner.push_back(fmt::format("v{}", k));
    text += fmt::format("        const {0} v{1} = ({0}){2};\n", name_of(type), k, loaded(q.dtype, element('t', k)));
  }
  for (size_t d = 3; d-- > 0;) {
    if (!tabled(d)) continue;
    for (int k = 0; k < parts(); ++k) {
      std::string& value = inner[static_cast<size_t>(k)];
      const std::string term = weighs(d) ? fmt::format("{} * w{}", value, kAxes[d]) : fmt::format("({}){}", arithmetic(type), value);
      value = sum(d, k);
      text += few ? fmt::format("        {0} = {0} + (f{1} == e{1} ? {2} : 0);\n", value, kAxes[d], term)
                  : fmt::format("        {0} = {0} + {1};\n", value, term);
    }
    text += "    }\n";
  }
  return text;
}

std::string WindowText::results_written() const {
  const auto write = [&](int memory, const char* to, const char* type, const std::function<std::string(int)>& value) {
    const std::string place = fmt::format("i0 * {0}_0 + i1 * {0}_1 + px * {0}_2 + py * {0}_3 + pz * {0}_4", to);
    if (fours == 0) return fmt::format("    m{}[{}] = {};\n", memory, place, value(0));
    std::string text;
    for (int k = 0; k < 4 * fours; k += 4)
      text += fmt::format("    *(GLOBAL {0}x4*)(m{1} + ({2} + {3})) = MAKE4({0}, {4}, {5}, {6}, {7});\n", type, memory, place, k, value(k),
                          value(k + 1), value(k + 2), value(k + 3));
    return text;
  };
  std::string text;
  if (q.op == Op::Max && type == VType::I32 && q.dtype != DType::I32)  // an empty window has the least value of the computed type
    for (int k = 0; k < parts(); ++k) text += fmt::format("    if (first < 0) s{} = {};\n", k, least(DType::I32));
  text += write(1, "y", stored(q.out), [&](int k) { return converted(type, q.out, fmt::format("(({})s{})", name_of(type), k), target); });
  // Where nothing was greater than the least value, all elements are equal to it, and the first one counts.
  if (q.op == Op::Max && q.indices.data)
    text += write(2, "i", stored(q.index), [&](int k) { return fmt::format("({0})(n{1} < 0 ? first : n{1})", stored(q.index), k); });
  return text;
}

std::string WindowText::text() const {
  const char* const computed = name_of(type);
  const std::string index = stored(q.index);
  Head h;
  h.memory = {
      stored(q.dtype), "=" + std::string(stored(q.out)), (q.op == Op::Max ? "=" : "") + index, "i64", "i64", "i64", computed, computed,
      computed};
  h.numbers = 3 + 15 + 15 + 8;
  h.group = target.loops ? 1 : target.group;
  h.wide = wide;
  if (!wide) h.functions = kQuotient;
  std::string text = opening(h, target) + names();
  text += target.loops ? "  const I last = ((I)GROUP + 1) * each < total ? ((I)GROUP + 1) * each : total;\n  for (I i = (I)GROUP * each; i "
                         "< last; ++i) {\n"
                       : fmt::format("  const I i = (I)GROUP * {} + ITEM;\n  if (i < total) {{\n", target.group);
  text += position();
  if (q.op == Op::Pick) text += "    const I own = (px * result_y + py) * result_z + pz;\n";
  if (q.op == Op::Max) text += "    I first = -1;\n";
  for (int k = 0; k < parts(); ++k)
    text += q.op == Op::Max ? fmt::format("    {0} s{1} = ({0}){2};\n    I n{1} = -1;\n", computed, k,
                                          loaded(q.dtype, fmt::format("(({}){})", stored(q.dtype), least(q.dtype))))
                            : fmt::format("    {} s{} = 0;\n", arithmetic(type), k);
  if (q.apart) {
    text += sums_apart();
  } else {
    for (size_t d = 0; d < 3; ++d) text += loop(d);
    text += step() + "    }}}\n";
  }
  text += results_written();
  return complete(target, text + "  }\n}\n");
}

}  // namespace

void run(const Windows& q, Launcher& launcher) {
  const Target& target = launcher.target();
  if (product(q.sizes_of_y()) == 0) return;
  const WindowText text(q, target);
  const int64_t each = target.loops ? kEachWindow : target.group, groups = (text.results() + each - 1) / each;
  Arguments arguments = text.arguments(each);
  void* const memory[] = {q.x.data,          q.y.data,           q.indices.data,     q.tables[0].index, q.tables[1].index,
                          q.tables[2].index, q.tables[0].weight, q.tables[1].weight, q.tables[2].weight};
  launcher.start({{Kind::Windows, nullptr, text.bits()},
                  [&] { return text.text(); },
                  memory,
                  arguments.bytes(),
                  groups,
                  target.loops ? 1 : target.group});
}

}  // namespace naru::render::c
