// Row programs: reductions of rows and elementwise work with their results, by one kernel. A group of 64 items (or an item that loops over 64
// lanes) does all parts for a row, which so stays in the caches; what parts hand to each other goes through the memory of their results.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "render/c/expressions.h"
#include "render/c/launch.h"

namespace naru::render::c {
namespace {

using ir::Space;
using ir::VType;

// Reduced values of a row that are kept beside the items; longer rows keep them in the memory that the instruction names.
constexpr int64_t kMostKept = 2048;

// An operand of a part: along a row by nothing, to the next or by its stride; elements from row to row.
struct RowOperand {
  int memory = 0;
  bool kept = false;  // the values that an earlier part kept
  Step step = kStays;
  int64_t row_stride = 0, stride = 0;
};

struct Part {
  const ir::Program* program = nullptr;
  const ir::Reduce* reduce = nullptr;  // null: a map
  int inputs = 0;
  int64_t length = 1;  // positions of a row
  bool wide = false;
  VType type = VType::F32;  // what is reduced
  void* kept = nullptr;
  std::span<const uint64_t> params;
  std::vector<ir::View> views;  // inputs, then results
  std::vector<RowOperand> operands;
  DType kept_dtype() const { return program->nodes[program->outputs[0]].out; }
};

// A part over `rows` rows, as long as each of its operands goes from row to row and along a row by one stride.
std::optional<Part> part_of(const ir::RowFused::Part& p, int64_t rows) {
  Part part;
  part.kept = p.kept;
  Dims shape, out_strides;
  if (const auto* reduce = std::get_if<ir::Reduce>(&p.work)) {
    if (!reduce->contiguous) return {};
    part.reduce = reduce, part.program = &reduce->program, part.params = reduce->params, part.views = reduce->inputs;
    part.type = ir::vtype_of(reduce->program.nodes[reduce->program.outputs[0]].out);
    shape = reduce->shape;
    // The result stays where it is along the reduced dimensions.
    part.views.push_back(reduce->out);
    while (part.views.back().strides.size() < shape.size()) part.views.back().strides.push_back(0);
  } else {
    const auto& map = std::get<ir::Map>(p.work);
    part.program = &map.program, part.params = map.params, part.views = map.inputs, shape = map.shape;
    part.views.insert(part.views.end(), map.outputs.begin(), map.outputs.end());
  }
  part.inputs = static_cast<int>(part.program->inputs_count);
  part.length = product(shape) / rows;
  if (part.length * rows != product(shape) || part.length > ir::kContiguousChunk) return {};
  // Leading dimensions are rows, the others lie along them.
  size_t split = 0;
  for (int64_t n = 1; n < rows; ++split) n *= shape[split];
  if (product(std::span<const int64_t>(shape).first(split)) != rows) return {};
  Space outer(std::span<const int64_t>(shape).first(split)), inner(std::span<const int64_t>(shape).subspan(split));
  Space whole{std::span<const int64_t>(shape)};
  for (const ir::View& v : part.views) {
    const auto item = static_cast<int64_t>(size_of(v.dtype));
    outer.add(static_cast<char*>(v.data), item, v.strides.data());
    inner.add(static_cast<char*>(v.data), item, v.strides.data() + split);
    whole.add(v);
  }
  part.wide = is_wide(whole);
  for (Space* s : {&outer, &inner}) s->drop_ones(), s->merge();
  if (outer.rank > 1 || inner.rank > 1) return {};
  for (int k = 0; k < whole.count; ++k) {
    const int64_t item = outer.operands[k].item;
    part.operands.push_back({0, false, last_step(inner, k), outer.rank ? outer.operands[k].strides[0] / item : 0,
                             inner.rank ? inner.operands[k].strides[0] / item : 0});
  }
  return part;
}

class Rows {
 public:
  // alone: nothing outside `parts` reads what they keep.
  Rows(std::span<Part> parts, int64_t rows, bool alone, const Target& target) : parts_(parts), rows_(rows), target_(target) {
    for (Part& p : parts_) {
      wide_ |= p.wide, params_ += p.params.size(), operands_ += p.operands.size(), longest_ = std::max(longest_, p.length);
      for (size_t k = 0; k < p.operands.size(); ++k) {
        const bool written = k >= static_cast<size_t>(p.inputs);
        p.operands[k].kept = !written && beside_ && p.views[k].data == kept_;
        p.operands[k].memory = p.operands[k].kept ? 0 : memory_of(p.views[k].data, p.views[k].dtype, written);
      }
      if (!p.kept) continue;
      kept_ = p.kept;
      beside_ = alone && p.length <= kMostKept
                    ? static_cast<int>(std::max<int64_t>(64, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(p.length)))))
                    : 0;
      if (!beside_) kept_memory_ = memory_of(p.kept, p.kept_dtype(), true);
    }
  }
  void start(Launcher& launcher) const;

 private:
  struct Memory {
    void* data;
    std::string type;
    bool written;
  };
  int memory_of(void* data, DType dtype, bool written) {
    for (size_t i = 0; i < memory_.size(); ++i)
      if (memory_[i].data == data && memory_[i].type == stored(dtype)) return memory_[i].written |= written, static_cast<int>(i);
    memory_.push_back({data, stored(dtype), written});
    return static_cast<int>(memory_.size()) - 1;
  }
  Key key() const;
  std::string text() const;
  std::string declarations() const;
  std::string part_text(size_t number, size_t first_param, int first_stride) const;
  std::string reduction_text(size_t number, const std::string& body, const std::string& value, const std::string& out) const;

  std::span<Part> parts_;
  int64_t rows_, longest_ = 1;
  const Target& target_;
  std::vector<Memory> memory_;
  bool wide_ = false;
  size_t params_ = 0, operands_ = 0;
  void* kept_ = nullptr;
  int beside_ = 0;  // room for the kept values of a row beside the items; 0: in memory
  int kept_memory_ = -1;
};

// Numbers: rows, rows of an item, the length of each part, then for each operand the strides from row to row and along.
constexpr int kCommonNumbers = 2;

// Several programs make the text: they stand in the key by their hashes, mixed in two ways.
Key Rows::key() const {
  uint64_t a = 0x243f6a8885a308d3u, b = 0x13198a2e03707344u;
  const auto mix = [&](uint64_t v) {
    a = (a ^ v) * 0x9e3779b97f4a7c15u, a ^= a >> 29;
    b = (b + v) * 0xbf58476d1ce4e5b9u, b ^= b >> 31;
  };
  for (const Part& p : parts_) {
    mix(p.program->hash());
    mix((p.reduce ? 4 + static_cast<uint64_t>(p.reduce->op) : 1) << 1 | (p.kept != nullptr));
    for (size_t k = 0; k < p.operands.size(); ++k) {
      const RowOperand& o = p.operands[k];
      const bool written = !o.kept && memory_[static_cast<size_t>(o.memory)].written;
      mix(static_cast<uint64_t>(o.memory) << 16 | static_cast<uint64_t>(p.views[k].dtype) << 8 | static_cast<uint64_t>(o.step) << 2 |
          o.kept << 1 | written);
    }
  }
  mix(static_cast<uint64_t>(wide_) << 32 | static_cast<uint64_t>(beside_));
  return {Kind::Rows, parts_[0].program, a, b};
}

// Room for what is reduced, by type, and for what is kept.
std::string Rows::declarations() const {
  const std::string where = target_.loops ? "" : "LOCAL ";
  std::string text;
  for (const VType type : {VType::Bool, VType::I32, VType::I64, VType::F32, VType::F64})
    if (std::any_of(parts_.begin(), parts_.end(), [&](const Part& p) { return p.reduce && p.type == type; }))
      text += fmt::format("  {0}{1} x_{1}[64];\n", where, stored_value(type));
  for (const Part& p : parts_)
    if (p.kept && beside_) text += fmt::format("  {}{} kept[{}];\n", where, stored_value(p.type), beside_);
  return text;
}

// Everything about the reducing of a row around `body`, the lines that compute `value` at place f.
std::string Rows::reduction_text(size_t number, const std::string& body, const std::string& value, const std::string& out) const {
  const Part& p = parts_[number];
  const std::string x = "x_" + stored_value(p.type), length = fmt::format("a.d[{}]", kCommonNumbers + static_cast<int>(number));
  const std::string identity = literal(p.type, ir::identity_bits(p.reduce->op, p.type));
  const auto combined = [&](const std::string& a, const std::string& b) { return fmt::format("combine{}({}, {})", number, a, b); };
  const auto at = [&](const std::string& i) { return got(p.type, x + "[" + i + "]"); };
  const std::string result = converted(p.type, p.reduce->out.dtype, at("0"), target_);
  std::string keep;
  if (p.kept && beside_)
    keep = fmt::format("        kept[f] = {};\n", put(p.type, value));
  else if (p.kept)
    keep = fmt::format("        m{}[row * {} + f] = {};\n", kept_memory_, length, to_store(p.kept_dtype(), value));
  if (target_.loops)
    return fmt::format(
        "      for (int l = 0; l < 64; ++l) {0}[l] = {1};\n"
        "      for (I at = 0; at < {2}; at += 64) {{\n        const int n = {2} - at < 64 ? (int)({2} - at) : 64;\n"
        "        PARALLEL\n        for (int l = 0; l < n; ++l) {{\n        const I f = at + l;\n{3}{4}        {0}[l] = {5};\n        }}\n  "
        "    }}\n"
        "      for (int by = 32; by > 0; by /= 2)\n        for (int l = 0; l < by; ++l) {0}[l] = {6};\n      {7} = {8};\n",
        x, put(p.type, identity), length, body, keep, put(p.type, combined(at("l"), value)), put(p.type, combined(at("l"), at("l + by"))),
        out, result);
  std::string text = fmt::format(
      "      {0} v = {1};\n      for (I f = ITEM; f < {2}; f += 64) {{\n{3}{4}        v = {5};\n      }}\n      {6}[ITEM] = {7};\n      "
      "BARRIER;\n",
      name_of(p.type), identity, length, body, keep, combined("v", value), x, put(p.type, "v"));
  // Written out: PoCL runs loops around barriers slowly.
  for (int by = 32; by > 0; by /= 2)
    text += fmt::format("      if (ITEM < {0}) {1}[ITEM] = {2};\n      BARRIER;\n", by, x,
                        put(p.type, combined(at("ITEM"), at(fmt::format("ITEM + {}", by)))));
  return text + fmt::format("      if (ITEM == 0) {} = {};\n", out, result);
}

std::string Rows::part_text(size_t number, size_t first_param, int first_stride) const {
  const Part& p = parts_[number];
  const std::string length = fmt::format("a.d[{}]", kCommonNumbers + static_cast<int>(number));
  std::string text = "    {\n";
  for (size_t k = 0; k < p.operands.size(); ++k)
    if (!p.operands[k].kept) text += fmt::format("      const I r{} = row * a.d[{}];\n", k, first_stride + 2 * static_cast<int>(k));
  const auto place = [&](size_t k) -> std::string {
    const RowOperand& o = p.operands[k];
    if (o.kept) return "kept[f]";
    const std::string move = o.step == kStays  ? ""
                             : o.step == kNext ? " + f"
                                               : fmt::format(" + f * a.d[{}]", first_stride + 2 * static_cast<int>(k) + 1);
    return fmt::format("m{}[r{}{}]", o.memory, k, move);
  };
  const ir::MapKernel kernel = p.program->lower();
  const Leaves leaves{[&](uint64_t slot, DType t) { return loaded(t, place(slot)); },
                      [&](uint64_t slot, VType t) { return param_text(slot + first_param, t); },
                      fmt::format("(i64)(row * {} + f)", length)};
  const std::string body = expressions(kernel.graph, kernel.results, leaves, target_, "v", "        ");
  if (p.reduce) {
    text += reduction_text(number, body, node("v", kernel.results[0]), place(static_cast<size_t>(p.inputs)));
  } else {
    text += target_.loops ? fmt::format("      PARALLEL\n      for (I f = 0; f < {}; ++f) {{\n", length)
                          : fmt::format("      for (I f = ITEM; f < {}; f += 64) {{\n", length);
    text += body;
    for (size_t i = 0; i < kernel.results.size(); ++i)
      text += fmt::format("        {} = {};\n", place(static_cast<size_t>(p.inputs) + i),
                          to_store(kernel.outputs[i], node("v", kernel.results[i])));
    text += "      }\n";
  }
  return text + "    }\n" + (target_.loops || number + 1 == parts_.size() ? "" : "    BARRIER;\n");
}

std::string Rows::text() const {
  Head head;
  for (const Memory& m : memory_) head.memory.push_back((m.written ? "=" : "") + m.type);
  head.params = static_cast<int>(params_);
  head.numbers = kCommonNumbers + static_cast<int>(parts_.size() + 2 * operands_);
  head.group = target_.loops ? 1 : 64;
  head.wide = wide_;
  for (size_t i = 0; i < parts_.size(); ++i)
    if (parts_[i].reduce) head.functions += combine_function(parts_[i].reduce->op, parts_[i].type, target_, fmt::format("combine{}", i));
  std::string text = opening(head, target_) + declarations();
  text += target_.loops ? "  const I first = (I)GROUP * a.d[1], last = first + a.d[1] < a.d[0] ? first + a.d[1] : a.d[0];\n  for (I row = "
                          "first; row < last; ++row) {\n"
                        : "  {\n    const I row = (I)GROUP;\n";
  size_t param = 0;
  int stride = kCommonNumbers + static_cast<int>(parts_.size());
  for (size_t i = 0; i < parts_.size(); ++i) {
    text += part_text(i, param, stride);
    param += parts_[i].params.size();
    stride += 2 * static_cast<int>(parts_[i].operands.size());
  }
  return complete(target_, text + "  }\n}\n");
}

void Rows::start(Launcher& launcher) const {
  std::vector<void*> memory;
  for (const Memory& m : memory_) memory.push_back(m.data);
  Arguments arguments(static_cast<int>(memory.size()), wide_);
  for (const Part& p : parts_)
    for (const uint64_t v : p.params) arguments.param(v);
  int64_t each = 1;
  if (target_.loops) each = std::clamp<int64_t>(kLeastOfItem / longest_, 1, std::max<int64_t>(1, rows_ / (2 * target_.units)));
  arguments.add(rows_), arguments.add(each);
  for (const Part& p : parts_) arguments.add(p.length);
  for (const Part& p : parts_)
    for (const RowOperand& o : p.operands) arguments.add(o.row_stride), arguments.add(o.stride);
  launcher.start({key(), [this] { return text(); }, memory, arguments.bytes(), (rows_ + each - 1) / each, target_.loops ? 1 : 64});
}

// A part by itself. What it keeps is computed once more, into memory.
void run_alone(const ir::RowFused::Part& part, Launcher& launcher) {
  if (const auto* reduce = std::get_if<ir::Reduce>(&part.work); reduce && part.kept) {
    ir::Map map{reduce->program, reduce->shape, reduce->inputs, {}, reduce->params};
    map.outputs.push_back({part.kept, reduce->program.nodes[reduce->program.outputs[0]].out, contiguous_strides(reduce->shape)});
    run(map, launcher);
  }
  std::visit([&](const auto& work) { run(work, launcher); }, part.work);
}

}  // namespace

void run(const ir::RowFused& w, Launcher& launcher) {
  std::vector<std::optional<Part>> all;
  for (const ir::RowFused::Part& p : w.parts) all.push_back(part_of(p, w.rows));
  for (size_t begin = 0, end; begin < all.size(); begin = end) {
    std::vector<Part> together;
    for (end = begin; end < all.size() && all[end]; ++end) together.push_back(*all[end]);
    if (together.size() > 1)
      Rows(together, w.rows, together.size() == all.size(), launcher.target()).start(launcher);
    else
      run_alone(w.parts[begin], launcher), end = begin + 1;
  }
}

}  // namespace naru::render::c
