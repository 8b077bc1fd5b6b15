// One elementwise program over many lists of dense operands: a kernel for as many lists as its parameters hold the addresses of.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "render/c/expressions.h"
#include "render/c/launch.h"
#include "render/c/map_body.h"

namespace naru::render::c {
namespace {

// Kernels for fewer lists than the most have fewer parameters to hand over.
constexpr int64_t kFewLists[] = {8, 32};
// Elements of an item: four neighbours where they can be read at once.
constexpr int kNeighbours = 4;
// The greatest element or group number of 32 bits, with room for a group behind it.
constexpr int64_t kMostNarrow = (int64_t{1} << 31) - 65536;
constexpr uint64_t kOwnAddress = ir::kMaxInputs;

class MapEachPlan {
 public:
  MapEachPlan(const ir::MapEach& e, const Target& t) : each_(e), target_(t) {
    std::fill(same_as_.begin(), same_as_.end(), kOwnAddress);
    for (size_t o = 0; o < e.program.outputs_count; ++o) same_as_[o] = input_of(o);
    for (size_t k = 0; k < e.operands(); ++k) varying_ += has_address(k);
    wide_ = *std::max_element(e.counts.begin(), e.counts.end()) > kMostNarrow;
  }
  void start(Launcher& launcher);

 private:
  size_t lists() const { return each_.counts.size(); }
  void* address(size_t list, size_t k) const { return each_.addresses[list * each_.operands() + k]; }
  int64_t of_group() const { return kNeighbours * target_.group; }
  uint64_t input_of(size_t output) const;
  // Operands whose address is an argument for each list; inputs that are one element for all lists have one before those.
  bool has_address(size_t k) const { return !each_.is_scalar(k) && (k < each_.inputs() || same_as_[k - each_.inputs()] == kOwnAddress); }
  size_t scalars() const {
    return static_cast<size_t>(std::count_if(each_.program.inputs.begin(), each_.program.inputs.begin() + each_.program.inputs_count,
                                             [](const ir::Program::Input& i) { return i.scalar; }));
  }
  int64_t most() const;
  void start(Launcher& launcher, size_t begin, size_t end);
  std::string text() const;
  std::string pointers() const;
  std::string aligned() const;

  const ir::MapEach& each_;
  const Target& target_;
  std::array<uint64_t, ir::kMaxOutputs> same_as_;  // the input that an output overwrites in all lists
  size_t varying_ = 0;
  bool wide_ = false;
  int64_t room_ = 0;  // the lists that the kernel's parameters hold
};

uint64_t MapEachPlan::input_of(size_t output) const {
  for (size_t k = 0; k < each_.inputs(); ++k) {
    bool same = !each_.is_scalar(k);
    for (size_t list = 0; list < lists() && same; ++list) same = address(list, k) == address(list, each_.inputs() + output);
    if (same) return k;
  }
  return kOwnAddress;
}

int64_t MapEachPlan::most() const {
  const size_t before = 8 * (each_.params.size() + scalars());
  return static_cast<int64_t>((target_.parameters - before) / (8 * varying_ + (wide_ ? 16 : 8)));
}

// Defines m0, m1 ... for the list. Parameters: those of the program, the addresses of inputs that are one element, those of each list.
std::string MapEachPlan::pointers() const {
  std::string text;
  size_t fixed = each_.params.size(), at = 0;
  for (size_t k = 0; k < each_.operands(); ++k) {
    const bool written = k >= each_.inputs() || std::find(same_as_.begin(), same_as_.end(), k) != same_as_.end();
    const std::string type = fmt::format("GLOBAL {}{}*", written ? "" : "const ", stored(each_.dtype(k)));
    if (k >= each_.inputs() && same_as_[k - each_.inputs()] != kOwnAddress) {
      text += fmt::format("  {0} m{1} = ({0})m{2};\n", type, k, same_as_[k - each_.inputs()]);
      continue;
    }
    const std::string number = each_.is_scalar(k) ? fmt::format("a.p[{}]", fixed++)
                                                  : fmt::format("a.p[{} + list * {}]", each_.params.size() + scalars() + at++, varying_);
    text += fmt::format("  {0} m{1} = ({0}){2};\n", type, k, fmt::format(fmt::runtime(target_.dialect->address), number));
  }
  return text;
}

// True where four neighbours of each operand can be read at once.
std::string MapEachPlan::aligned() const {
  std::string text;
  for (const size_t item : {1, 2, 4, 8}) {
    std::string all;
    for (size_t k = 0; k < each_.operands(); ++k)
      if (has_address(k) && size_of(each_.dtype(k)) == item) all += fmt::format("{}(u64)m{}", all.empty() ? "" : " | ", k);
    if (!all.empty()) text += fmt::format("{}(({}) & {}) == 0", text.empty() ? "" : " && ", all, std::min<size_t>(4 * item, 16) - 1);
  }
  return text;
}

// Numbers: the first group of each list, then the elements of each.
std::string MapEachPlan::text() const {
  Head head;
  head.params = static_cast<int>(each_.params.size() + scalars()) + static_cast<int>(varying_) * static_cast<int>(room_);
  head.numbers = 2 * static_cast<int>(room_);
  head.wide = wide_;
  head.group = target_.group;
  std::string text = opening(head, target_) + "  int list = 0;\n";
  int64_t step = 1;
  while (2 * step < room_) step *= 2;
  for (; step > 0; step /= 2) text += fmt::format("  if (list + {0} < {1} && (I)GROUP >= a.d[list + {0}]) list += {0};\n", step, room_);
  text += pointers();
  text += fmt::format("  const I n = a.d[{} + list], begin = ((I)GROUP - a.d[list]) * {};\n", room_, of_group());
  text += fmt::format("  const bool fours = {};\n  const I first = begin + ITEM * (fours ? {} : 1);\n", aligned(), kNeighbours);
  const auto repeats = [this](int k) { return each_.is_scalar(static_cast<size_t>(k)); };
  const auto place = [&](const char* at) { return [&repeats, at](int k) { return repeats(k) ? "0" : std::string(at); }; };
  text += fmt::format("  if (fours && first + {} <= n) {{\n", kNeighbours);
  text += MapBody{each_.program, target_, place("first")}.of_four("(i64)first", repeats);
  // The end of a list, and lists that are not aligned.
  text += fmt::format(
      "  }} else {{\n    const I after = fours ? first + {} : begin + {}, end = after < n ? after : n;\n"
      "    for (I i = first; i < end; i += fours ? 1 : {}) {{\n",
      kNeighbours, of_group(), target_.group);
  text += MapBody{each_.program, target_, place("i")}.of_one("(i64)i", "      ");
  return complete(target_, text + "    }\n  }\n}\n");
}

void MapEachPlan::start(Launcher& launcher, size_t begin, size_t end) {
  room_ = most();
  for (const int64_t few : kFewLists)
    if (static_cast<int64_t>(end - begin) <= few) {
      room_ = std::min(room_, few);
      break;
    }
  Arguments arguments(0, wide_);
  for (const uint64_t p : each_.params) arguments.param(p);
  const auto add_address = [&](size_t list, size_t k) { arguments.param(reinterpret_cast<uintptr_t>(address(list, k))); };
  for (size_t k = 0; k < each_.inputs(); ++k)
    if (each_.is_scalar(k)) add_address(begin, k);
  for (size_t list = begin; list < end; ++list)
    for (size_t k = 0; k < each_.operands(); ++k)
      if (has_address(k)) add_address(list, k);
  const auto unused = static_cast<size_t>(room_) - (end - begin);
  for (size_t i = 0; i < unused * varying_; ++i) arguments.param(0);
  int64_t groups = 0;
  for (size_t list = begin; list < end; ++list) {
    arguments.add(groups);
    groups += (each_.counts[list] + of_group() - 1) / of_group();
  }
  for (size_t i = 0; i < unused; ++i) arguments.add(std::numeric_limits<int32_t>::max());  // no group comes so late
  for (size_t list = begin; list < end; ++list) arguments.add(each_.counts[list]);
  for (size_t i = 0; i < unused; ++i) arguments.add(0);
  KeyBits same;
  for (size_t o = 0; o < each_.program.outputs_count; ++o) same.add(same_as_[o], 4);
  const Key key{Kind::MapEach, &each_.program, KeyBits().add(wide_).add(static_cast<uint64_t>(room_), 16), same};
  launcher.start({key, [this] { return text(); }, {}, arguments.bytes(), groups, target_.group});
}

void MapEachPlan::start(Launcher& launcher) {
  const auto together = static_cast<size_t>(most());
  for (size_t list = 0; list < lists(); list += together) start(launcher, list, std::min(lists(), list + together));
}

}  // namespace

void run(const ir::MapEach& each, Launcher& launcher) {
  const Target& target = launcher.target();
  if (target.loops || !target.dialect->address) {
    for (size_t list = 0; list < each.counts.size(); ++list) run(each.one(list), launcher);
  } else if (!each.counts.empty()) {
    MapEachPlan(each, target).start(launcher);
  }
}

}  // namespace naru::render::c
