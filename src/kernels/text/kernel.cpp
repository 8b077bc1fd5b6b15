#include "kernels/text/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <regex>

#include "kernels/source/cuda_source.h"
#include "kernels/text/division.h"
#include "kernels/text/math.h"
#include "kernels/text/words.h"
#include "kernels/text/work_group.h"
#include "naru/error.h"
#include "render/c/launch.h"

namespace naru::render::c {
namespace {

using ir::CType;
using ir::KernelEntry;
using ir::KernelParam;
using ir::KernelSource;
using ir::Token;

constexpr const char* kTypes[] = {"bool", "signed char",   "unsigned char", "short",         "unsigned short", "int",   "unsigned int",
                                  "long", "unsigned long", "naru_half",     "naru_bfloat16", "float",          "double"};
const char* text_of(CType type) { return kTypes[static_cast<int>(type)]; }

// The value of a scalar argument.
std::string number_text(CType type, const std::string& slot) {
  switch (type) {
    case CType::Bool:
      return fmt::format("({} != 0)", slot);
    case CType::F32:
      return fmt::format("naru_as_f32({})", slot);
    case CType::F64:
      return fmt::format("naru_as_f64({})", slot);
    default:
      return fmt::format("({}){}", text_of(type), slot);
  }
}

// Translates a source to a target: renames words of the dialect, passes the item's position to functions that need it, and keeps only one
// kernel. Line numbers stay.
class SourceTranslator {
 public:
  SourceTranslator(const KernelSource& source, const Dialect::User& dialect, const UserMath& math) : s_(source), d_(dialect), math_(math) {}

  // `head` replaces that kernel's head, up to its `{`.
  std::string spell(const KernelEntry& wanted, const std::string& head) {
    const std::vector<Token>& tokens = s_.tokens();
    size_t i = 0;
    while (i < tokens.size()) {
      const auto kernel = std::find_if(s_.kernels().begin(), s_.kernels().end(), [&](const KernelEntry& k) { return k.head == i; });
      if (kernel != s_.kernels().end()) {
        const bool mine = kernel->name == wanted.name;
        const size_t over = mine ? kernel->body + 1 : kernel->end;
        gap(i);
        lines(tokens[i].at, tokens[over - 1].at + tokens[over - 1].size);
        if (mine) out_ += head;
        i = over;
      } else {
        gap(i);
        i = token(i);
      }
    }
    out_.append(s_.text(), copied_, std::string::npos);
    return std::move(out_);
  }

 private:
  // Copies the text before a token.
  void gap(size_t i) {
    const uint32_t at = s_.tokens()[i].at;
    if (at > copied_) out_.append(s_.text(), copied_, at - copied_);
    copied_ = at + s_.tokens()[i].size;
  }
  // Copies only line breaks.
  void lines(size_t begin, size_t end) {
    out_.append(static_cast<size_t>(
                    std::count(s_.text().begin() + static_cast<ptrdiff_t>(begin), s_.text().begin() + static_cast<ptrdiff_t>(end), '\n')),
                '\n');
    copied_ = end;
  }
  bool next_is(size_t i, std::string_view word) const { return i + 1 < s_.tokens().size() && s_.word(i + 1) == word; }

  size_t token(size_t i) {
    const std::string_view w = s_.word(i);
    if (*d_.global && points_to_memory(i)) out_ += fmt::format("{} ", d_.global);
    if (s_.tokens()[i].kind != Token::Kind::Name)
      out_ += w;
    else if (w == "global")
      out_ += d_.global;
    else if (w == "shared")
      out_ += is_pointer(i) ? d_.shared_pointer : d_.shared;
    else if (w == "constant")
      out_ += is_pointer(i) ? d_.constant_pointer : d_.constant;
    else if (w == "private")
      out_ += d_.private_pointer;
    else if (w == "half")
      out_ += "naru_half";
    else if (w == "bfloat16")
      out_ += "naru_bfloat16";
    else if (w == "inline")
      out_ += "";
    else if (w == "barrier" && next_is(i, "(")) {
      const size_t close = s_.matching(i + 1);
      out_ += d_.barrier;
      if (close >= s_.tokens().size()) return i + 1;
      lines(s_.tokens()[i].at, s_.tokens()[close].at + 1);
      return close + 1;
    } else if (s_.is_function(w)) {
      return function(i);
    } else {
      if (next_is(i, "(") && math_.names.count(std::string(w))) out_ += "naru_";
      out_ += w;
    }
    return i + 1;
  }

  // A function's name, in its definition or in a call. Adds the argument with the item's position if needed, and a suffix to avoid clashes
  // with naru's and the device's own functions.
  size_t function(size_t i) {
    const std::string_view w = s_.word(i);
    const auto head = std::find_if(s_.functions().begin(), s_.functions().end(), [&](const ir::FunctionHead& f) { return f.at == i; });
    (out_ += w) += "_";
    if (!s_.uses_item_position(w) || !next_is(i, "(")) return i + 1;
    gap(i + 1);
    const bool defined = head != s_.functions().end();
    out_ += defined ? "(const naru_place naru_here" : "(naru_here";
    if (next_is(i + 1, ")")) return i + 2;
    if (defined && next_is(i + 1, "void") && next_is(i + 2, ")")) {
      gap(i + 2);
      return i + 3;
    }
    out_ += ", ";
    return i + 2;
  }

  // True for the type in `float* p` without an address space: then it points to a tensor.
  bool points_to_memory(size_t i) const {
    if (!ir::is_type_word(s_.word(i))) return false;
    size_t next = i + 1;
    while (next < s_.tokens().size() && (s_.word(next) == "const" || s_.word(next) == "volatile")) ++next;
    if (next >= s_.tokens().size() || s_.word(next) != "*") return false;
    for (size_t before = i; before-- > 0;) {
      const std::string_view w = s_.word(before);
      if (w == "global" || w == "shared" || w == "private" || w == "constant") return false;
      if (w != "const" && w != "volatile" && w != "static" && !ir::is_type_word(w)) return true;
    }
    return true;
  }

  // True for shared float* p, false for shared float p[4].
  bool is_pointer(size_t i) const {
    for (++i; i < s_.tokens().size(); ++i) {
      const std::string_view w = s_.word(i);
      if (w == "*") return true;
      if (w == ";" || w == "[" || w == "=" || w == "," || w == ")") return false;
    }
    return false;
  }

  const KernelSource& s_;
  const Dialect::User& d_;
  const UserMath& math_;
  std::string out_;
  size_t copied_ = 0;
};

// Defines the size of the shared array that a kernel leaves open.
std::string open_shared(const KernelEntry& entry, int64_t bytes) {
  return entry.open_shared ? fmt::format("#define naru_shared_bytes {}\n", bytes) : "";
}

// The name of our entry function, as the target's tools show it. User names are functions in the same text.
std::string name_of_ours(const KernelEntry& entry, const Target& target) {
  return target.dialect->cuda_words ? fmt::format("naru_user_{}", entry.name.substr(0, 50)) : "k";
}

// Shared arrays above CUDA's limit for static ones become dynamic shared memory. Returns "" if the text can't be rewritten.
constexpr int64_t kMostFixedShared = 48 << 10;
std::string with_shared_of_launch(const std::string& text) {
  static const auto& array = *new std::regex(R"(__shared__\s+([\w\s]+?)\s*(\w+)\s*\[\s*naru_shared_bytes / sizeof\([^)]*\)\s*\])");
  if (std::distance(std::sregex_iterator(text.begin(), text.end(), array), std::sregex_iterator()) != 1) return "";
  return std::regex_replace(text, array, "extern __shared__ __align__(16) $1 $2[]");
}
bool shared_by_launch(const ir::UserKernel& k, const Target& target) { return target.dialect->cuda_words && k.shared > kMostFixedShared; }

const KernelEntry& entry_of(const ir::UserKernel& k) { return k.source->kernels()[static_cast<size_t>(k.entry)]; }

// --- devices

// Groups of one size: from `first`, `count` of them, in each dimension.
struct Region {
  std::array<int64_t, 3> first, count, size;
};

// The whole grid as one region. For kernels with barriers, which all items of a group must reach, the smaller groups at the end are
// separate regions.
std::vector<Region> regions(const ir::UserKernel& k) {
  std::vector<Region> list{{}};
  for (size_t d = 0; d < 3; ++d) {
    const int64_t whole = entry_of(k).barriers ? k.items[d] / k.threads[d] : k.groups(static_cast<int>(d)),
                  rest = k.items[d] - whole * k.threads[d];
    std::vector<Region> longer;
    for (Region r : list) {
      r.first[d] = 0, r.count[d] = whole, r.size[d] = k.threads[d];
      if (whole > 0) longer.push_back(r);
      r.first[d] = whole, r.count[d] = 1, r.size[d] = rest;
      if (rest > 0) longer.push_back(r);
    }
    list = std::move(longer);
  }
  return list;
}

// Indices of the arguments.
enum Number { kCount = 0, kFirst = 3, kItems = 6, kGroups = 9, kThreads = 12, kSize = 15, kNumberCount = 18 };

struct Variant {
  bool wide, fixed;  // fixed: the group size is `threads` at compile time
  int dims;
  std::array<int64_t, 3> threads;
};

std::string place_text(const Variant& v, bool guard) {
  std::string text = "static inline naru_place naru_find(const naru_args a, naru_i group, naru_i item) {\n  naru_place p;\n";
  for (int d = 0; d < 3; ++d) {
    const std::string full = v.fixed ? fmt::format("{}", v.threads[static_cast<size_t>(d)]) : fmt::format("a.d[{}]", kThreads + d);
    const std::string size = v.fixed ? full : fmt::format("a.d[{}]", kSize + d);
    if (d >= v.dims) {
      text += fmt::format(
          "  p.group_[{0}] = p.local_[{0}] = p.global_[{0}] = 0, p.size_[{0}] = p.whole_[{0}] = p.groups_[{0}] = p.items_[{0}] = 1;\n", d);
      continue;
    }
    const bool last = d + 1 == v.dims;
    text += fmt::format("  p.group_[{0}] = group{1} + a.d[{2}];\n", d, last ? "" : fmt::format(" % a.d[{}]", kCount + d), kFirst + d);
    text += fmt::format("  p.local_[{0}] = item{1};\n", d, last ? "" : " % " + size);
    if (!last) text += fmt::format("  group /= a.d[{}], item /= {};\n", kCount + d, size);
    text += fmt::format(
        "  p.global_[{0}] = p.group_[{0}] * {1} + p.local_[{0}], p.items_[{0}] = a.d[{2}], p.groups_[{0}] = a.d[{3}], p.whole_[{0}] = "
        "{1};\n",
        d, full, kItems + d, kGroups + d);
    text += guard ? fmt::format("  p.size_[{0}] = p.items_[{0}] - p.group_[{0}] * {1} < {1} ? p.items_[{0}] - p.group_[{0}] * {1} : {1};\n",
                                d, full)
                  : fmt::format("  p.size_[{}] = {};\n", d, size);
  }
  return text + "  return p;\n}\n";
}

std::string device_text(const ir::UserKernel& k, const Variant& v, const Target& target, size_t argument_bytes) {
  const Dialect::User& d = target.dialect->user;
  const KernelEntry& entry = entry_of(k);
  const UserMath math = user_math(*k.source, target);
  const bool guard = !entry.barriers, apart = in_memory(k.memory.size(), argument_bytes, target);
  std::string text = fmt::format("{}{}typedef {} naru_i;\n#define NARU_WORK_GROUP\n{}typedef struct {{", d.prelude,
                                 math.text + user_words(*k.source, target) + open_shared(entry, k.shared), v.wide ? "long" : "int", kPlace);
  if (!k.memory.empty()) text += fmt::format(" long o[{}];", k.memory.size());
  if (!k.numbers.empty()) text += fmt::format(" unsigned long p[{}];", k.numbers.size());
  text += fmt::format(" naru_i d[{}]; }} naru_args;\n", static_cast<int>(kNumberCount)) + place_text(v, guard);
  const int64_t items = v.threads[0] * v.threads[1] * v.threads[2];
  std::string head =
      (v.fixed ? fmt::format(fmt::runtime(d.entry), items) : std::string(d.any_entry)) + fmt::format(" {}(", name_of_ours(entry, target));
  head += parameters({d.global, "unsigned char", "naru_b", "naru_args", "naru_a", "naru_at", " "}, k.memory.size(), apart, *target.dialect);
  size_t pointers = 0, numbers = 0;
  for (const KernelParam& p : entry.params) {
    const std::string type = fmt::format("{} {}{}", p.pointer ? d.global : "", p.constant ? "const " : "", text_of(p.type));
    head += p.pointer ? fmt::format(" {0}* {1} = ({0}*)(naru_b{2} + naru_a.o[{2}]);", type, p.name, pointers)
                      : fmt::format(" {} {} = {};", type, p.name, number_text(p.type, fmt::format("naru_a.p[{}]", numbers)));
    ++(p.pointer ? pointers : numbers);
  }
  head += fmt::format(" const naru_place naru_here = naru_find(naru_a, (naru_i){}, (naru_i){});", d.group, d.item);
  for (int i = 0; guard && i < v.dims; ++i) head += fmt::format(" if (naru_here.global_[{0}] >= naru_here.items_[{0}]) return;", i);
  text += "#line 1 \"kernel\"\n" + SourceTranslator(*k.source, d, math).spell(entry, head) + "\n";
  // Processors may trap on division. Divisions hidden in directives can't be found here.
  const std::string own = k.source->text().substr(0, k.source->text().find("\n#pragma naru inexact"));
  const bool guarded = target.loops && own.find('#') == std::string::npos && has_division(own);
  return guarded ? with_defined_division_in_opencl(text) : text;
}

// CUDA C++ unchanged, but its kernels become device functions. naru's own entry kernel unpacks the launch's arguments, checks the grid's
// bounds and calls the one that was launched.
std::string native_text(const ir::UserKernel& k) {
  const KernelSource& s = *k.source;
  const KernelEntry& entry = entry_of(k);
  const std::vector<bool> host = ir::host_code(s);
  std::string text = std::string(native_words()) + "#line 1 \"kernel\"\n";
  size_t copied = 0;
  for (size_t i = 0; i < s.tokens().size(); ++i) {
    const Token& t = s.tokens()[i];
    size_t last = i;
    std::string instead;
    if (host[i])
      last = i;
    else if (s.word(i) == "extern" && i + 2 < s.tokens().size() && s.word(i + 2) == "__global__")
      last = i + 1;
    else if (s.word(i) == "__launch_bounds__")
      last = std::min(s.matching(i + 1), s.tokens().size() - 1);
    else if (s.word(i) == "__global__")
      instead = "static __device__";
    else
      continue;
    text.append(s.text(), copied, t.at - copied) += instead;
    copied = s.tokens()[last].at + s.tokens()[last].size;
    text.append(static_cast<size_t>(std::count(s.text().begin() + t.at, s.text().begin() + static_cast<ptrdiff_t>(copied), '\n')), '\n');
    i = last;
  }
  text.append(s.text(), copied) += "\n#line 1 \"naru\"\ntypedef struct {";
  if (!k.memory.empty()) text += fmt::format(" long long o[{}];", k.memory.size());
  if (!k.numbers.empty()) text += fmt::format(" unsigned long long p[{}];", k.numbers.size());
  text += fmt::format(" long long n[3]; }} naru_args;\nextern \"C\" __global__ void __launch_bounds__({}) naru_user_{}(",
                      k.threads[0] * k.threads[1] * k.threads[2], entry.name.substr(0, 50));
  std::string call;
  size_t pointers = 0, numbers = 0;
  for (const KernelParam& p : entry.params) {
    const std::string type = p.type == CType::Half     ? "__half"
                             : p.type == CType::BFloat ? "__nv_bfloat16"
                                                       : text_of(p.type),
                      slot = fmt::format("naru_a.p[{}]", numbers);
    call += call.empty() ? "" : ", ";
    if (p.pointer) {
      text += fmt::format("unsigned char* naru_b{}, ", pointers);
      call += fmt::format("({}*)(naru_b{} + naru_a.o[{}])", type, pointers, pointers);
    } else {
      call += p.type == CType::F32   ? fmt::format("__uint_as_float((unsigned){})", slot)
              : p.type == CType::F64 ? fmt::format("__longlong_as_double((long long){})", slot)
                                     : number_text(p.type, slot);
    }
    ++(p.pointer ? pointers : numbers);
  }
  text += "naru_args naru_a) {\n";
  for (const auto& [d, c] : {std::pair{0, 'x'}, {1, 'y'}, {2, 'z'}})
    text += fmt::format("  if ((long long)blockIdx.{0} * blockDim.{0} + threadIdx.{0} >= naru_a.n[{1}]) return;\n", c, d);
  return text + fmt::format("  {}({});\n}}\n", entry.name, call);
}

// Calls f(launch), and reports compiler errors with the user's line numbers.
template <class F>
void with_lines(const ir::UserKernel& k, const Launch& launch, const F& f) {
  try {
    f(launch);
  } catch (const CompilerError& e) {
    throw RuntimeError(ir::refusal(*k.source, entry_of(k).name, e.compiler, e.log));
  }
}

template <class F>
void native_launch(const ir::UserKernel& k, const F& f) {
  Arguments arguments(static_cast<int>(k.memory.size()), true);
  for (const uint64_t n : k.numbers) arguments.param(n);
  for (const int64_t n : k.items) arguments.add(n);
  Key key{Kind::User, nullptr, k.source->id() << 8 | static_cast<uint64_t>(k.entry),
          static_cast<uint64_t>(k.threads[0] * k.threads[1] * k.threads[2])};
  Launch launch{key,
                [&] { return native_text(k); },
                k.memory,
                arguments.bytes(),
                k.groups(0) * k.groups(1) * k.groups(2),
                static_cast<int>(key.more),
                {},
                {}};
  launch.shared = static_cast<int>(k.shared);
  for (size_t d = 0; d < 3; ++d) launch.groups3[d] = k.groups(static_cast<int>(d)), launch.group3[d] = static_cast<int>(k.threads[d]);
  with_lines(k, launch, f);
}

template <class F>
void each_launch(const ir::UserKernel& k, Launcher& launcher, const F& f) {
  if (k.source->native()) return native_launch(k, f);
  const bool wide = is_wide(k);
  int dims = 1;
  for (int d = 1; d < 3; ++d)
    if (k.items[static_cast<size_t>(d)] > 1 || k.threads[static_cast<size_t>(d)] > 1) dims = d + 1;
  for (const Region& r : regions(k)) {
    const Variant v{wide, r.size == k.threads, dims, r.size};
    Arguments arguments(static_cast<int>(k.memory.size()), wide);
    for (const uint64_t n : k.numbers) arguments.param(n);
    for (const auto& three : {r.count, r.first, k.items, std::array{k.groups(0), k.groups(1), k.groups(2)}, k.threads, r.size})
      for (const int64_t n : three) arguments.add(n);
    Key key{Kind::User, nullptr, k.source->id() << 8 | static_cast<uint64_t>(k.entry), 0};
    key.more = static_cast<uint64_t>(wide) | static_cast<uint64_t>(v.fixed) << 1 | static_cast<uint64_t>(dims) << 2;
    key.more |= static_cast<uint64_t>(k.shared) << 41;
    for (size_t d = 0; v.fixed && d < 3; ++d) key.more |= static_cast<uint64_t>(r.size[d]) << (4 + 12 * d);
    const auto bytes = arguments.bytes();
    const bool by_launch = shared_by_launch(k, launcher.target());
    const auto text = [&] {
      std::string fixed = device_text(k, v, launcher.target(), bytes.size()), open = by_launch ? with_shared_of_launch(fixed) : "";
      return open.empty() ? fixed : open;
    };
    Launch launch{key, text, k.memory, bytes, r.count[0] * r.count[1] * r.count[2], static_cast<int>(r.size[0] * r.size[1] * r.size[2]),
                  {},  {}};
    if (by_launch) launch.shared = static_cast<int>(k.shared);
    with_lines(k, launch, f);
  }
}

}  // namespace

bool is_wide(const ir::UserKernel& k) noexcept {
  constexpr double kMost = 2147483648.0 - 65536;
  double all = 1;
  for (int d = 0; d < 3; ++d) all *= static_cast<double>(k.groups(d)) * static_cast<double>(k.threads[static_cast<size_t>(d)]);
  return all > kMost;
}

void run(const ir::UserKernel& k, Launcher& launcher) {
  each_launch(k, launcher, [&](const Launch& launch) { launcher.start(launch); });
}
void prepare(const ir::UserKernel& k, Launcher& launcher) {
  each_launch(k, launcher, [&](const Launch& launch) { launcher.prepare(launch); });
}

std::string user_c_text(const UserC& kernel) {
  const KernelSource& s = *kernel.source;
  const KernelEntry& entry = s.kernels()[static_cast<size_t>(kernel.entry)];
  std::string head = "static inline __attribute__((always_inline)) void naru_kernel(const naru_place naru_here",
              call = "naru_kernel(naru_here";
  std::string locals;
  size_t pointers = 0, numbers = 0;
  for (size_t i = 0; i < entry.params.size(); ++i) {
    const KernelParam& p = entry.params[i];
    const std::string type = fmt::format("{}{}{}", p.constant ? "const " : "", text_of(p.type), p.pointer ? "*" : "");
    head += fmt::format(", {} {}", type, p.name);
    call += fmt::format(", naru_{}", i);
    locals +=
        fmt::format("  {0} naru_{1} = {2};\n", type, i,
                    p.pointer ? fmt::format("({})memory[{}]", type, pointers) : number_text(p.type, fmt::format("numbers[{}]", numbers)));
    ++(p.pointer ? pointers : numbers);
  }
  Target target;
  target.dialect = &plain_c();
  const UserMath math = user_math(s, target);
  const Dialect::User& c = target.dialect->user;
  std::string text = c.prelude + math.text + user_words(s, target) + open_shared(entry, kernel.shared);
  text += fmt::format("typedef {} naru_i;\n#define NARU_WORK_GROUP struct naru_work_group* work_group;\n{}", kernel.wide ? "long" : "int",
                      kPlace);
  if (entry.barriers) text += user_work_group();
  text += "#line 1 \"kernel\"\n" + SourceTranslator(s, c, math).spell(entry, head + ") {") + "\n#line 1 \"naru\"\n";
  return text + user_loops(entry.barriers, locals, call + ")");
}

}  // namespace naru::render::c
