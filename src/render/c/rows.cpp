// Row programs: reductions of rows and elementwise work with their results, by one kernel. A group of items (or an item that loops over 64
// lanes) does all parts for a row, which so stays in the caches; what parts hand to each other goes through the memory of their results.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "render/c/expressions.h"
#include "render/c/launch.h"
#include "render/c/row_parts.h"

namespace naru::render::c {
namespace {

using ir::VType;

// Reduced values of a row that are kept beside the items at least; what does not fit there is kept in the memory that the instruction names.
constexpr int64_t kMostKept = 2048;
// Elements that an item of a larger group than 64 takes at least.
constexpr int64_t kOfItemInRow = 32;
constexpr const char* kFourParts = "xyzw";
// Rows of several chunks (ir/reduce.h): items of a group (more, where there are no more rows than groups that run at the same time), chunks of a row at
// most, and elements whose values wait in local memory at a time, at most eight reads of an item.
constexpr int kLongGroup = 512, kLongGroupOfFew = 1024;
constexpr int64_t kMostChunks = 64;
constexpr int kStage = 8192;
// Places of a long row whose elements an item reads before it stores results.
constexpr int kReadTogether = 4;

class Rows {
 public:
  // alone: nothing outside `parts` reads what they keep. only: as in the instruction.
  Rows(std::span<RowPart> parts, int64_t rows, bool alone, void* only, const Target& target) : parts_(parts), rows_(rows), target_(target) {
    if (only) only_memory_ = memory_of(only, DType::Bool, false);
    for (RowPart& p : parts_) {
      wide_ |= p.wide, params_ += p.params.size(), operands_ += p.operands.size(), longest_ = std::max(longest_, p.length);
      for (size_t k = 0; k < p.operands.size(); ++k) {
        const bool written = k >= static_cast<size_t>(p.inputs);
        p.operands[k].kept = !written && beside_ && p.views[k].data == kept_;
        p.operands[k].memory = p.operands[k].kept ? 0 : memory_of(p.views[k].data, p.views[k].dtype, written);
      }
      if (!p.kept) continue;
      kept_ = p.kept;
      if (alone) beside_ = room(p.length);
      if (target.loops ? p.length > kMostKept : !fits()) beside_ = 0;
      if (!beside_) kept_memory_ = memory_of(p.kept, p.kept_dtype(), true);
    }
    if (!target.loops) share();
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
  // Positions for which there is room, so that few lengths make kernels of their own.
  static int room(int64_t length) {
    return static_cast<int>(length <= kMostKept ? std::max<int64_t>(64, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length))))
                                                : (length + 1023) / 1024 * 1024);
  }
  void share();
  bool fits() const;
  bool in_fours(const RowPart& p) const;
  // Sums of floats whose values wait beside the items for the 64 that add them up: where they wait.
  bool waits(const RowPart& p) const { return shared_ && p.reduce && !p.associative(); }
  static bool is_long(const RowPart& p) { return p.length > ir::kContiguousChunk; }
  bool any_long() const { return longest_ > ir::kContiguousChunk; }
  std::string waiting(const RowPart& p) const { return p.kept && beside_ ? "kept" : "values_" + stored_value(p.type); }
  Key key() const;
  std::string text() const;
  std::string length_of(size_t number) const;
  // Rows that are not chosen have no elements. (PoCL 3.1 makes code that crashes of barriers within a branch, and of a return before them.)
  bool leaves_out_by_length() const { return only_memory_ >= 0 && !target_.loops && !target_.dialect->cuda_words; }
  std::string declarations() const;
  std::string part_text(size_t number, size_t first_param, int first_stride) const;
  std::string sweep_text(size_t number, size_t first_param, const std::function<std::string(size_t)>& place,
                         const std::function<std::string(const std::string& f, const std::vector<std::string>& values)>& use,
                         bool ahead = false) const;
  std::string ahead_text(size_t number, int each, const std::string& f, const std::function<std::string(size_t)>& place) const;
  std::string shared_reduction(size_t number, size_t first_param, const std::function<std::string(size_t)>& place) const;
  std::string chunked_reduction(size_t number, size_t first_param, const std::function<std::string(size_t)>& place) const;
  std::string staged_sums(size_t number, size_t first_param, const std::function<std::string(size_t)>& place) const;
  std::string pieces_of_chunks(size_t number, size_t first_param, const std::function<std::string(size_t)>& place) const;
  std::string kept_text(const RowPart& p, size_t number, const std::string& f, const std::string& value) const;
  std::string lanes_text(size_t number, const std::string& base, const std::string& item) const;
  std::string tree_text(size_t number, const std::string& out) const;
  std::string reduction_text(size_t number, const std::string& body, const std::string& value, const std::string& out) const;

  std::span<RowPart> parts_;
  int64_t rows_, longest_ = 1;
  const Target& target_;
  std::vector<Memory> memory_;
  bool wide_ = false;
  size_t params_ = 0, operands_ = 0;
  void* kept_ = nullptr;
  int beside_ = 0;  // room for the kept values of a row beside the items; 0: in memory
  int kept_memory_ = -1, only_memory_ = -1;
  int group_ = 64;
  bool shared_ = false;    // the items share the work otherwise than as the 64 lanes of a reduction
  int values_ = 0;         // room for the values of sums of floats, of each type that there is
  int beside_chunks_ = 1;  // chunks of a long row that are reduced side by side
};

// Bytes that all of it takes beside the items.
bool Rows::fits() const {
  int64_t bytes = 0;
  for (const VType type : {VType::Bool, VType::I32, VType::I64, VType::F32, VType::F64}) {
    const auto item = static_cast<int64_t>(ir::size_of(type));
    bool reduced = false, summed = false;
    for (const RowPart& p : parts_) {
      if (!p.reduce || p.type != type) continue;
      reduced = true, summed |= waits(p) && !(p.kept && beside_);
      if (p.kept) bytes += item * beside_;
    }
    bytes += item * ((reduced ? 4 * group_ : 0) + (summed ? values_ : 0) + (reduced && any_long() ? kMostChunks : 0));
  }
  return bytes <= target_.local;
}

// Whether all that a part reads and writes along a row lies where four elements can be moved at once.
bool Rows::in_fours(const RowPart& p) const {
  bool all = p.length % 4 == 0;
  for (size_t k = 0; k < p.operands.size(); ++k) {
    const RowOperand& o = p.operands[k];
    const auto bytes = static_cast<uintptr_t>(4 * size_of(p.views[k].dtype));
    all &= o.kept || o.step == kStays ||
           (o.step == kNext && o.row_stride % 4 == 0 && reinterpret_cast<uintptr_t>(p.views[k].data) % bytes == 0);
  }
  return all;
}

// Larger groups for longer rows, as long as the values of sums find room.
void Rows::share() {
  const int64_t most = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, longest_ / kOfItemInRow))));
  group_ = static_cast<int>(std::clamp<int64_t>(
      most, 64,
      any_long() ? std::min(target_.largest_group, rows_ <= target_.units ? kLongGroupOfFew : kLongGroup) : std::min(target_.group, 256)));
  shared_ = true;
  for (const RowPart& p : parts_)
    if (waits(p) && !(p.kept && beside_))
      values_ = std::max(values_, is_long(p) ? std::min(kStage, 8 * group_ * (in_fours(p) ? 4 : 1)) : room(p.length));
  if (any_long()) {
    while (!fits() && group_ > 64) values_ > 4 * group_ ? values_ /= 2 : group_ /= 2;
    const int64_t chunks = (longest_ + ir::kContiguousChunk - 1) / ir::kContiguousChunk;
    beside_chunks_ = static_cast<int>(std::min<int64_t>(group_ / 64, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(chunks)))));
    for (RowPart& p : parts_) p.fours = in_fours(p);
    return;
  }
  shared_ = fits();
  if (!shared_) group_ = 64, values_ = 0;
  for (RowPart& p : parts_) p.fours = shared_ && in_fours(p);
}

// Numbers: rows, rows of an item, the length of each part, then for each operand the strides from row to row and along.
constexpr int kCommonNumbers = 2;

// Several programs make the text: they stand in the key by their hashes, mixed in two ways.
Key Rows::key() const {
  uint64_t a = 0x243f6a8885a308d3u, b = 0x13198a2e03707344u;
  const auto mix = [&](uint64_t v) {
    a = (a ^ v) * 0x9e3779b97f4a7c15u, a ^= a >> 29;
    b = (b + v) * 0xbf58476d1ce4e5b9u, b ^= b >> 31;
  };
  for (const RowPart& p : parts_) {
    mix(p.program->hash());
    mix(static_cast<uint64_t>(p.fours) << 1 | is_long(p));
    mix((p.reduce ? 4 + static_cast<uint64_t>(p.reduce->op) : 1) << 1 | (p.kept != nullptr));
    for (size_t k = 0; k < p.operands.size(); ++k) {
      const RowOperand& o = p.operands[k];
      const bool written = !o.kept && memory_[static_cast<size_t>(o.memory)].written;
      mix(static_cast<uint64_t>(o.memory) << 16 | static_cast<uint64_t>(p.views[k].dtype) << 8 | static_cast<uint64_t>(o.step) << 2 |
          o.kept << 1 | written);
    }
  }
  mix(static_cast<uint64_t>(wide_) << 32 | static_cast<uint64_t>(beside_));
  mix(static_cast<uint64_t>(shared_) << 63 | static_cast<uint64_t>(group_) << 32 | static_cast<uint64_t>(values_));
  mix(static_cast<uint64_t>(beside_chunks_) << 1 | (only_memory_ >= 0));
  return {Kind::Rows, parts_[0].program, a, b};
}

// Room for what is reduced, by type, and for what is kept.
std::string Rows::declarations() const {
  const std::string where = target_.loops ? "" : "LOCAL ";
  std::string text;
  for (const VType type : {VType::Bool, VType::I32, VType::I64, VType::F32, VType::F64})
    if (std::any_of(parts_.begin(), parts_.end(), [&](const RowPart& p) { return p.reduce && p.type == type; }))
      text += fmt::format("  {0}{1} x_{1}[{2}];\n{3}", where, stored_value(type), shared_ ? 4 * group_ : 64,
                          any_long() ? fmt::format("  {0}{1} chunks_{1}[{2}];\n", where, stored_value(type), kMostChunks) : std::string());
  for (const VType type : {VType::F32, VType::F64})
    if (std::any_of(parts_.begin(), parts_.end(), [&](const RowPart& p) { return waits(p) && p.type == type && !(p.kept && beside_); }))
      text += fmt::format("  {0}{1} values_{1}[{2}];\n", where, stored_value(type), values_);
  for (const RowPart& p : parts_)
    if (p.kept && beside_) text += fmt::format("  {}{} kept[{}];\n", where, stored_value(p.type), beside_);
  return text;
}

std::string Rows::length_of(size_t number) const {
  const std::string length = fmt::format("a.d[{}]", kCommonNumbers + static_cast<int>(number));
  return leaves_out_by_length() ? "(chosen ? " + length + " : 0)" : length;
}

// Everything about the reducing of a row around `body`, the lines that compute `value` at place f.
std::string Rows::reduction_text(size_t number, const std::string& body, const std::string& value, const std::string& out) const {
  const RowPart& p = parts_[number];
  const std::string x = "x_" + stored_value(p.type), length = length_of(number);
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
  return fmt::format(
             "      {0} v = {1};\n      for (I f = ITEM; f < {2}; f += 64) {{\n{3}{4}        v = {5};\n      }}\n      {6}[ITEM] = {7};\n"
             "      BARRIER;\n",
             name_of(p.type), identity, length, body, keep, combined("v", value), x, put(p.type, "v")) +
         tree_text(number, out);
}

// Combines the lanes first, first + by, first + by / 2 ... as ir/reduce.h's tree does from `by` down to `last`.
std::string tree_of(const std::function<std::string(int lane)>& at, const std::string& combine, int first, int by, int last) {
  if (by < last) return at(first);
  // The pairs of the last round are trees of the rounds before.
  const auto before = [&](int lane) { return tree_of(at, combine, lane, by, 2 * last); };
  return fmt::format("{}({}, {})", combine, before(first), before(first + last));
}

// The 64 lanes of x behind `base` become one, at its start, by items 0 to 7 of `item`: three rounds each before and behind one barrier.
std::string Rows::lanes_text(size_t number, const std::string& base, const std::string& item) const {
  const RowPart& p = parts_[number];
  const std::string x = "x_" + stored_value(p.type), combine = fmt::format("combine{}", number);
  const auto rounds = [&](const std::string& from, int by, int last) {
    return put(p.type, tree_of([&](int lane) { return got(p.type, fmt::format("{}[{} + {}]", x, from, lane)); }, combine, 0, by, last));
  };
  return fmt::format("      if ({0} < 8) {1}[{2} + {0}] = {3};\n      BARRIER;\n      if ({0} == 0) {1}[{2}] = {4};\n      BARRIER;\n",
                     item, x, base, rounds(base + " + " + item, 32, 8), rounds(base, 4, 1));
}

// The 64 lanes of a reduction become one.
std::string Rows::tree_text(size_t number, const std::string& out) const {
  const RowPart& p = parts_[number];
  return lanes_text(number, "0", "ITEM") +
         fmt::format("      if (ITEM == 0) {} = {};\n", out,
                     converted(p.type, p.reduce->out.dtype, got(p.type, "x_" + stored_value(p.type) + "[0]"), target_));
}

// Reads the elements at `each` places f (a text that counts them by u) into arrays t<operand>[u]. All are read before any is used, because a compiler
// may not move a read before the store of a result.
std::string Rows::ahead_text(size_t number, int each, const std::string& f, const std::function<std::string(size_t)>& place) const {
  const RowPart& p = parts_[number];
  std::string arrays, reads;
  for (size_t k = 0; k < static_cast<size_t>(p.inputs); ++k) {
    if (p.operands[k].kept || p.operands[k].step != kNext) continue;
    const std::string type = std::string(stored(p.views[k].dtype)) + (p.fours ? "x4" : "");
    arrays += fmt::format("        {} t{}[{}];\n", type, k, each);
    reads += p.fours ? fmt::format("        t{}[u] = *(GLOBAL const {}*)&{};\n", k, type, place(k))
                     : fmt::format("        t{}[u] = {};\n", k, place(k));
  }
  if (reads.empty()) return "";
  return arrays + fmt::format(
                      "        UNROLL\n        for (int u = 0; u < {}; ++u) {{\n        const I f = {};\n        if (f < a.d[{}]) {{\n{}   "
                      "     }}\n        }}\n",
                      each, f, kCommonNumbers + static_cast<int>(number), reads);
}

// The lines that compute a part's results at place f, or at it and the three behind it, and what `use` makes of each position's. ahead: the elements
// have been read by ahead_text.
std::string Rows::sweep_text(size_t number, size_t first_param, const std::function<std::string(size_t)>& place,
                             const std::function<std::string(const std::string&, const std::vector<std::string>&)>& use, bool ahead) const {
  const RowPart& p = parts_[number];
  const ir::MapKernel kernel = p.program->lower();
  std::string text;
  if (p.fours && !ahead)
    for (size_t k = 0; k < static_cast<size_t>(p.inputs); ++k)
      if (!p.operands[k].kept && p.operands[k].step == kNext)
        text += fmt::format("        const {0}x4 t{1} = *(GLOBAL const {0}x4*)&{2};\n", stored(p.views[k].dtype), k, place(k));
  for (int part = 0; part < (p.fours ? 4 : 1); ++part) {
    const std::string f = p.fours ? fmt::format("f + {}", part) : "f", prefix = p.fours ? fmt::format("v{}_", kFourParts[part]) : "v";
    const auto input = [&](uint64_t slot, DType t) {
      const RowOperand& o = p.operands[slot];
      if (o.kept) return loaded(t, "kept[" + f + "]");
      if (o.step != kNext || !(p.fours || ahead)) return loaded(t, place(slot));
      const std::string element = fmt::format("t{}{}", slot, ahead ? "[u]" : "");
      return loaded(t, p.fours ? fmt::format("{}.{}", element, kFourParts[part]) : element);
    };
    const Leaves leaves{input, [&](uint64_t slot, VType t) { return param_text(slot + first_param, t); },
                        fmt::format("(i64)(row * a.d[{}] + {})", kCommonNumbers + static_cast<int>(number), f)};
    text += expressions(kernel.graph, kernel.results, leaves, target_, prefix, "        ");
    std::vector<std::string> values;
    for (const uint32_t id : kernel.results) values.push_back(node(prefix, id));
    text += use(f, values);
  }
  return text;
}

// What keeps a reduced value at place f for later parts.
std::string Rows::kept_text(const RowPart& p, size_t number, const std::string& f, const std::string& value) const {
  if (p.kept && beside_) return fmt::format("        kept[{}] = {};\n", f, put(p.type, value));
  if (p.kept)
    return fmt::format("        m{}[row * a.d[{}] + {}] = {};\n", kept_memory_, kCommonNumbers + static_cast<int>(number), f,
                       to_store(p.kept_dtype(), value));
  return "";
}

// Sums of floats in rows of several chunks: all items compute the values of some columns of `beside_chunks_` chunks, then 64 items a chunk add up a
// lane each. Leaves each lane's sum in x, chunk after chunk.
std::string Rows::staged_sums(size_t number, size_t first_param, const std::function<std::string(size_t)>& place) const {
  const RowPart& p = parts_[number];
  const std::string length = length_of(number), where = waiting(p);
  const int wide = p.fours ? 4 : 1, columns = values_ / beside_chunks_, chunk = static_cast<int>(ir::kContiguousChunk);
  std::string text = fmt::format("        const I most = {0} - c * {1} < {1} ? {0} - c * {1} : {1};\n", length, chunk);
  const int each = values_ / (group_ * wide);
  const std::string e = fmt::format("(u * {} + ITEM) * {}", group_, wide);
  const std::string f = fmt::format("(c + {0} / {1}) * {2} + at + {0} % {1}", e, columns, chunk);
  text += fmt::format("        for (I at = 0; at < most; at += {}) {{\n", columns) + ahead_text(number, each, f, place);
  text += fmt::format(
      "        UNROLL\n        for (int u = 0; u < {}; ++u) {{\n        const int e = {};\n        const I f = {};\n        if (f < {}) "
      "{{\n",
      each, e, f, length);
  int part = 0;
  text += sweep_text(
      number, first_param, place,
      [&](const std::string& at, const std::vector<std::string>& v) {
        return fmt::format("        {}[e + {}] = {};\n", where, part++, put(p.type, v[0])) + kept_text(p, number, at, v[0]);
      },
      true);
  return text + fmt::format(
                    "        }}\n        }}\n        BARRIER;\n        if (ITEM < {0}) {{\n"
                    "        const I rest = {1} - (c + ITEM / 64) * {2} - at;\n        const int n = rest < {3} ? (int)rest : {3};\n"
                    "        for (int j = ITEM % 64; j < n; j += 64) v = combine{4}(v, {5});\n        }}\n        BARRIER;\n"
                    "        }}\n        if (ITEM < {0}) x_{6}[ITEM] = {7};\n",
                    64 * beside_chunks_, length, chunk, columns, number, got(p.type, fmt::format("{}[ITEM / 64 * {} + j]", where, columns)),
                    stored_value(p.type), put(p.type, "v"));
}

// The same for reductions whose chains may be cut: an item takes neighbouring lanes of a piece of a chunk, and the pieces of a chunk are combined in
// their order.
std::string Rows::pieces_of_chunks(size_t number, size_t first_param, const std::function<std::string(size_t)>& place) const {
  const RowPart& p = parts_[number];
  const std::string length = length_of(number), x = "x_" + stored_value(p.type);
  const int wide = p.fours ? 4 : 1, pieces = group_ * wide / 64 / beside_chunks_, chunk = static_cast<int>(ir::kContiguousChunk);
  std::string text = fmt::format(
      "        const int lane = ITEM * {0} % 64, piece = ITEM * {0} / 64;\n"
      "        const I begin = (c + piece / {1}) * {2} + piece % {1} * {3}, end = begin + {3} < {4} ? begin + {3} : {4};\n",
      wide, pieces, chunk, chunk / pieces, length);
  for (int k = 0; k < wide; ++k) text += fmt::format("        {} w{} = v;\n", name_of(p.type), k);
  text += "        for (I f = begin + lane; f < end; f += 64) {\n";
  int part = 0;
  text += sweep_text(number, first_param, place, [&](const std::string& f, const std::vector<std::string>& v) {
    const std::string w = fmt::format("w{}", part++);
    return fmt::format("        {0} = combine{1}({0}, {2});\n", w, number, v[0]) + kept_text(p, number, f, v[0]);
  });
  text += "        }\n";
  for (int k = 0; k < wide; ++k)
    text += fmt::format("        {}[piece * 64 + lane + {}] = {};\n", x, k, put(p.type, fmt::format("w{}", k)));
  if (pieces == 1) return text;
  return text +
         fmt::format(
             "        BARRIER;\n        if (ITEM < {0}) {{\n        const int first = ITEM / 64 * {1} * 64 + ITEM % 64;\n        v = {2};\n"
             "        for (int i = 1; i < {1}; ++i) v = combine{3}(v, {4});\n        }}\n        BARRIER;\n"
             "        if (ITEM < {0}) {5}[ITEM] = {6};\n",
             64 * beside_chunks_, pieces, got(p.type, x + "[first]"), number, got(p.type, x + "[first + i * 64]"), x, put(p.type, "v"));
}

// A reduction of rows of several chunks.
std::string Rows::chunked_reduction(size_t number, size_t first_param, const std::function<std::string(size_t)>& place) const {
  const RowPart& p = parts_[number];
  const std::string length = length_of(number), x = "x_" + stored_value(p.type);
  const std::string results = "chunks_" + stored_value(p.type);
  const auto combined = [&](const std::string& a, const std::string& b) {
    return put(p.type, fmt::format("combine{}({}, {})", number, got(p.type, a), got(p.type, b)));
  };
  std::string text =
      fmt::format("      const int count = (int)(({0} + {1}) / {2});\n      for (I c = 0; c < count; c += {3}) {{\n        {4} v = {5};\n",
                  length, ir::kContiguousChunk - 1, ir::kContiguousChunk, beside_chunks_, name_of(p.type),
                  literal(p.type, ir::identity_bits(p.reduce->op, p.type)));
  text += waits(p) ? staged_sums(number, first_param, place) : pieces_of_chunks(number, first_param, place);
  text += "        BARRIER;\n";
  text += lanes_text(number, "ITEM / 64 * 64", fmt::format("(ITEM < {} ? ITEM % 64 : 64)", 64 * beside_chunks_));
  text += fmt::format("        if (ITEM < {0}) {1}[c + ITEM] = {2}[ITEM * 64];\n        BARRIER;\n      }}\n", beside_chunks_, results, x);
  text += fmt::format(
      "      for (int s = 1; s < count; s *= 2) {{\n        const int i = 2 * s * ITEM;\n        if (i + s < count) {0}[i] = {1};\n"
      "        BARRIER;\n      }}\n",
      results, combined(results + "[i]", results + "[i + s]"));
  return text + fmt::format("      if (ITEM == 0) {} = {};\n", place(static_cast<size_t>(p.inputs)),
                            converted(p.type, p.reduce->out.dtype, got(p.type, results + "[0]"), target_));
}

// A reduction by all items of the group. Sums of floats: their values wait, and then 64 items each add up a lane. Others: an item takes neighbouring
// lanes of a piece of the row, and the pieces are combined in their order.
std::string Rows::shared_reduction(size_t number, size_t first_param, const std::function<std::string(size_t)>& place) const {
  const RowPart& p = parts_[number];
  const std::string length = length_of(number), x = "x_" + stored_value(p.type);
  const std::string identity = literal(p.type, ir::identity_bits(p.reduce->op, p.type)), t = name_of(p.type);
  const auto combined = [&](const std::string& a, const std::string& b) { return fmt::format("combine{}({}, {})", number, a, b); };
  const auto keep = [&](const std::string& f, const std::string& value) { return kept_text(p, number, f, value); };
  const int wide = p.fours ? 4 : 1, pieces = group_ * wide / 64;
  std::string text;
  if (waits(p)) {
    const std::string where = waiting(p);
    text += fmt::format("      for (I f = ITEM * {0}; f < {1}; f += {2}) {{\n", wide, length, group_ * wide);
    text += sweep_text(number, first_param, place, [&](const std::string& f, const std::vector<std::string>& v) {
      return (where == "kept" ? "" : fmt::format("        {}[{}] = {};\n", where, f, put(p.type, v[0]))) + keep(f, v[0]);
    });
    text += fmt::format(
        "      }}\n      BARRIER;\n      if (ITEM < 64) {{\n        {0} v = {1};\n        for (I f = ITEM; f < {2}; f += 64) v = {3};\n"
        "        {4}[ITEM] = {5};\n      }}\n      BARRIER;\n",
        t, identity, length, combined("v", got(p.type, where + "[f]")), x, put(p.type, "v"));
  } else {
    for (int k = 0; k < wide; ++k) text += fmt::format("      {} w{} = {};\n", t, k, identity);
    text += fmt::format(
        "      const int lane = ITEM * {0} % 64, piece = ITEM * {0} / 64;\n"
        "      const I slabs = (({1} + 63) / 64 + {2}) / {3}, last = (piece + 1) * slabs * 64 < {1} ? (piece + 1) * slabs * 64 : {1};\n"
        "      for (I f = piece * slabs * 64 + lane; f < last; f += 64) {{\n",
        wide, length, pieces - 1, pieces);
    int k = 0;
    text += sweep_text(number, first_param, place, [&](const std::string& f, const std::vector<std::string>& v) {
      const std::string w = fmt::format("w{}", k++);
      return fmt::format("        {} = {};\n", w, combined(w, v[0])) + keep(f, v[0]);
    });
    text += "      }\n";
    for (int i = 0; i < wide; ++i)
      text += fmt::format("      {}[piece * 64 + lane + {}] = {};\n", x, i, put(p.type, fmt::format("w{}", i)));
    text += "      BARRIER;\n";
    if (pieces > 1)
      text += fmt::format(
          "      if (ITEM < 64) {{\n        {0} v = {1};\n        for (int i = 1; i < {2}; ++i) v = {3};\n        {4}[ITEM] = {5};\n      "
          "}}\n"
          "      BARRIER;\n",
          t, got(p.type, x + "[ITEM]"), pieces, combined("v", got(p.type, x + "[i * 64 + ITEM]")), x, put(p.type, "v"));
  }
  return text + tree_text(number, place(static_cast<size_t>(p.inputs)));
}

std::string Rows::part_text(size_t number, size_t first_param, int first_stride) const {
  const RowPart& p = parts_[number];
  const std::string length = length_of(number);
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
  const std::string end = "    }\n" + std::string(target_.loops || number + 1 == parts_.size() ? "" : "    BARRIER;\n");
  if (shared_ && p.reduce && is_long(p)) return text + chunked_reduction(number, first_param, place) + end;
  if (shared_ && p.reduce) return text + shared_reduction(number, first_param, place) + end;
  if (shared_) {
    const int wide = p.fours ? 4 : 1;
    std::vector<std::string> results(kernel.results.size());
    const bool ahead = is_long(p);
    const std::string f = fmt::format("first + u * {}", group_ * wide);
    if (ahead)
      text += fmt::format("      for (I first = ITEM * {}; first < {}; first += {}) {{\n", wide, length, group_ * wide * kReadTogether) +
              ahead_text(number, kReadTogether, f, place) +
              fmt::format("        UNROLL\n        for (int u = 0; u < {}; ++u) {{\n        const I f = {};\n        if (f < {}) {{\n",
                          kReadTogether, f, length);
    else
      text += fmt::format("      for (I f = ITEM * {0}; f < {1}; f += {2}) {{\n", wide, length, group_ * wide);
    int part = 0;
    text += sweep_text(
        number, first_param, place,
        [&](const std::string&, const std::vector<std::string>& v) {
          const std::string prefix = p.fours ? fmt::format("v{}_", kFourParts[part++]) : "v";
          for (size_t i = 0; i < v.size(); ++i) results[i] += (results[i].empty() ? "" : ", ") + result_to_store(kernel, i, prefix);
          return std::string();
        },
        ahead);
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string to = place(static_cast<size_t>(p.inputs) + i), type = stored(kernel.outputs[i]);
      text += p.fours ? fmt::format("        *(GLOBAL {0}x4*)&{1} = MAKE4({0}, {2});\n", type, to, results[i])
                      : fmt::format("        {} = {};\n", to, results[i]);
    }
    if (ahead) text += "        }\n        }\n";
    return text + "      }\n" + end;
  }
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
      text += fmt::format("        {} = {};\n", place(static_cast<size_t>(p.inputs) + i), result_to_store(kernel, i, "v"));
    text += "      }\n";
  }
  return text + end;
}

std::string Rows::text() const {
  Head head;
  for (const Memory& m : memory_) head.memory.push_back((m.written ? "=" : "") + m.type);
  head.params = static_cast<int>(params_);
  head.numbers = kCommonNumbers + static_cast<int>(parts_.size() + 2 * operands_);
  head.group = target_.loops ? 1 : group_;
  head.wide = wide_;
  for (size_t i = 0; i < parts_.size(); ++i)
    if (parts_[i].reduce) head.functions += combine_function(parts_[i].reduce->op, parts_[i].type, target_, fmt::format("combine{}", i));
  std::string text = opening(head, target_) + declarations();
  const std::string of_row = only_memory_ < 0 ? "" : fmt::format("m{}[row]", only_memory_);
  const std::string branch = of_row.empty() || leaves_out_by_length() ? "" : "if (" + of_row + ") ";
  text += target_.loops ? fmt::format(
                              "  const I first = (I)GROUP * a.d[1], last = first + a.d[1] < a.d[0] ? first + a.d[1] : a.d[0];\n"
                              "  for (I row = first; row < last; ++row) {}{{\n",
                              branch)
                        : "  const I row = (I)GROUP;\n" + (leaves_out_by_length() ? "  const int chosen = " + of_row + ";\n" : "") + "  " +
                              branch + "{\n";
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
  for (const RowPart& p : parts_)
    for (const uint64_t v : p.params) arguments.param(v);
  int64_t each = 1;
  if (target_.loops) each = std::clamp<int64_t>(kLeastOfItem / longest_, 1, std::max<int64_t>(1, rows_ / (2 * target_.units)));
  arguments.add(rows_), arguments.add(each);
  for (const RowPart& p : parts_) arguments.add(p.length);
  for (const RowPart& p : parts_)
    for (const RowOperand& o : p.operands) arguments.add(o.row_stride), arguments.add(o.stride);
  launcher.start({key(), [this] { return text(); }, memory, arguments.bytes(), (rows_ + each - 1) / each, target_.loops ? 1 : group_});
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

int64_t longest_chosen_row(const Target& target) {
  return ir::kContiguousChunk * (target.loops || target.largest_group < kLongGroup ? 1 : kMostChunks);
}

void run(const ir::RowFused& w, Launcher& launcher) {
  const Target& target = launcher.target();
  int64_t most = longest_chosen_row(target);
  // A group takes a whole row: few rows of many chunks are faster with a group for each chunk, though that is more kernels.
  if (!w.only && w.rows * 4 < target.units) most = std::min(most, 4 * ir::kContiguousChunk);
  std::vector<std::optional<RowPart>> all;
  for (const ir::RowFused::Part& p : w.parts) all.push_back(part_of(p, w.rows, most));
  if (w.only && !std::all_of(all.begin(), all.end(), [](const auto& part) { return part.has_value(); }))
    throw RuntimeError("internal error: work on chosen rows needs rows that are dense, of at most {} elements", most);
  for (size_t begin = 0, end; begin < all.size(); begin = end) {
    std::vector<RowPart> together;
    for (end = begin; end < all.size() && all[end]; ++end) together.push_back(*all[end]);
    if (together.size() > 1 || w.only)
      Rows(together, w.rows, together.size() == all.size(), w.only, launcher.target()).start(launcher);
    else
      run_alone(w.parts[begin], launcher), end = begin + 1;
  }
}

}  // namespace naru::render::c
