#include "kernels/source/kernel_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <map>
#include <mutex>

#include "kernels/source/cuda_source.h"
#include "naru/error.h"

namespace naru::ir {
namespace {

constexpr std::array kGroupWords = {"group_id", "local_id", "local_size", "num_groups", "enqueued_local_size", "shared", "barrier"};
// Specific to a compiler or a machine: not portable between devices.
constexpr std::array kForeignWords = {"asm", "__asm", "__asm__", "alloca", "__label__"};
constexpr std::array kDirectives = {"define", "undef", "if",     "ifdef", "ifndef",  "elif",
                                    "else",   "endif", "pragma", "error", "warning", "line"};
constexpr std::array kPlaceWords = {"global_id", "global_size"};

template <size_t N>
bool among(const std::array<const char*, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

struct TypeName {
  const char* words;
  CType type;
};
constexpr TypeName kTypes[] = {{"bool", CType::Bool},
                               {"_Bool", CType::Bool},
                               {"char", CType::I8},
                               {"signed char", CType::I8},
                               {"int8_t", CType::I8},
                               {"unsigned char", CType::U8},
                               {"uchar", CType::U8},
                               {"uint8_t", CType::U8},
                               {"short", CType::I16},
                               {"int16_t", CType::I16},
                               {"unsigned short", CType::U16},
                               {"ushort", CType::U16},
                               {"uint16_t", CType::U16},
                               {"int", CType::I32},
                               {"signed", CType::I32},
                               {"signed int", CType::I32},
                               {"int32_t", CType::I32},
                               {"unsigned", CType::U32},
                               {"unsigned int", CType::U32},
                               {"uint", CType::U32},
                               {"uint32_t", CType::U32},
                               {"long", CType::I64},
                               {"int64_t", CType::I64},
                               {"long int", CType::I64},
                               {"unsigned long", CType::U64},
                               {"ulong", CType::U64},
                               {"uint64_t", CType::U64},
                               {"size_t", CType::U64},
                               {"half", CType::Half},
                               {"bfloat16", CType::BFloat},
                               {"float", CType::F32},
                               {"double", CType::F64},
                               {"long long", CType::I64},
                               {"unsigned long long", CType::U64},
                               {"__half", CType::Half},
                               {"__nv_bfloat16", CType::BFloat}};
constexpr const char* kTexts[] = {"bool", "char",          "unsigned char", "short",    "unsigned short", "int",   "unsigned",
                                  "long", "unsigned long", "half",          "bfloat16", "float",          "double"};

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

void check_dialect(const KernelSource& s) {
  const auto refuse = [&](size_t i, const std::string& why) {
    const int number = s.line_at(s.tokens()[i].at);
    throw ValueError("naru.kernel: {} (line {}: {})", why, number, s.line(number));
  };
  size_t before = 0;
  for (size_t i = 0; i < s.tokens().size(); ++i) {
    const Token& t = s.tokens()[i];
    const std::string_view w = s.word(i), next = i + 1 < s.tokens().size() ? s.word(i + 1) : "";
    const bool starts = i == 0 || std::string_view(s.text()).substr(before, t.at - before).find('\n') != std::string_view::npos;
    before = t.at + t.size;
    if (starts && w == "%" && next == ":") refuse(i, "`%:` is not part of the dialect");
    if (starts && w == "#" && !next.empty() && in_name(next[0]) && !among(kDirectives, next))
      refuse(i, fmt::format("`#{}` is not part of the dialect: kernels have no library but the functions of docs/kernels.md", next));
    if (t.kind == Token::Kind::Name && (among(kForeignWords, w) || w.starts_with("__builtin_")))
      refuse(i, fmt::format("`{}` is not part of the dialect: it is one compiler's own", w));
  }
}

}  // namespace

std::optional<DType> dtype_of(CType type) noexcept {
  switch (type) {
    case CType::Bool:
      return DType::Bool;
    case CType::I8:
      return DType::I8;
    case CType::U8:
      return DType::U8;
    case CType::I16:
      return DType::I16;
    case CType::I32:
      return DType::I32;
    case CType::I64:
      return DType::I64;
    case CType::Half:
      return DType::F16;
    case CType::BFloat:
      return DType::BF16;
    case CType::F32:
      return DType::F32;
    case CType::F64:
      return DType::F64;
    default:
      return {};
  }
}

bool is_type_word(std::string_view word) noexcept {
  return word == "void" || std::any_of(std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) { return word == t.words; });
}

std::string KernelParam::text() const {
  return fmt::format("{}{}{} {}", constant ? "const " : "", kTexts[static_cast<int>(type)], pointer ? "*" : "", name);
}

const KernelSource& KernelSource::of(const std::string& text) {
  static std::mutex mutex;
  static auto* const known = new std::map<std::string, std::unique_ptr<const KernelSource>>;
  const std::lock_guard lock(mutex);
  const auto at = known->find(text);
  if (at != known->end()) return *at->second;
  std::unique_ptr<const KernelSource> source(new KernelSource(text));
  return *known->emplace(text, std::move(source)).first->second;
}

const KernelSource& KernelSource::in_dialect(int kernel) const {
  const std::lock_guard lock(translating_);
  std::unique_ptr<const KernelSource>& known = translated_[kernel];
  if (!known) {
    const KernelEntry& entry = kernels_[static_cast<size_t>(kernel)];
    std::unique_ptr<KernelSource> source(new KernelSource(cuda_in_dialect(*this, entry), this));
    source->kernels_.at(0).name = entry.name;
    known = std::move(source);
  }
  return *known;
}

KernelSource::KernelSource(std::string text, const KernelSource* original) : text_(std::move(text)), original_(original) {
  static std::atomic<uint64_t> count{0};
  id_ = ++count;
  tokenize();
  parse();
  if (!native_) check_dialect(*this);
  find_macros();
  find_uses();
  refuse_recursion();
}

void KernelSource::tokenize() {
  const std::string& s = text_;
  bool directive = false, line_start = true;
  for (size_t i = 0; i < s.size();) {
    const char c = s[i];
    if (c == '\n')
      directive = directive && i > 0 && s[i - 1] == '\\', line_start = true, ++i;
    else if (std::isspace(static_cast<unsigned char>(c)) || (c == '\\' && i + 1 < s.size() && s[i + 1] == '\n'))
      ++i;
    else if (s.compare(i, 2, "//") == 0)
      i = std::min(s.find('\n', i), s.size());
    else if (s.compare(i, 2, "/*") == 0)
      i = s.find("*/", i + 2) == std::string::npos ? s.size() : s.find("*/", i + 2) + 2;
    else {
      const size_t start = i;
      Token t{Token::Kind::Sign, false, static_cast<uint32_t>(i), 1};
      if (c == '#' && line_start) directive = true;
      if (starts_name(c)) {
        t.kind = Token::Kind::Name;
        while (i < s.size() && in_name(s[i])) ++i;
      } else if (std::isdigit(static_cast<unsigned char>(c)) ||
                 (c == '.' && i + 1 < s.size() && std::isdigit(static_cast<unsigned char>(s[i + 1])))) {
        t.kind = Token::Kind::Number;
        while (i < s.size() &&
               (in_name(s[i]) || s[i] == '.' ||
                ((s[i] == '+' || s[i] == '-') && std::string_view("eEpP").find(s[i - 1]) != std::string_view::npos && i > start)))
          ++i;
      } else if (c == '"' || c == '\'') {
        t.kind = Token::Kind::Text;
        for (++i; i < s.size() && s[i] != c && s[i] != '\n'; ++i)
          if (s[i] == '\\') ++i;
        i = std::min(i + 1, s.size());
      } else {
        ++i;
      }
      t.size = static_cast<uint32_t>(i - start);
      t.directive = directive;
      line_start = false;
      tokens_.push_back(t);
    }
  }
}

int KernelSource::line_at(size_t offset) const noexcept {
  return 1 + static_cast<int>(std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(std::min(offset, text_.size())), '\n'));
}

std::string KernelSource::line(int number) const {
  if (original_) return original_->line(number);
  size_t begin = 0;
  for (int i = 1; i < number && begin < text_.size(); ++i) begin = std::min(text_.find('\n', begin), text_.size() - 1) + 1;
  std::string line = text_.substr(std::min(begin, text_.size()), text_.find('\n', begin) - begin);
  const size_t first = line.find_first_not_of(" \t\r"), last = line.find_last_not_of(" \t\r");
  return first == std::string::npos ? "" : line.substr(first, last - first + 1);
}

void KernelSource::refuse(size_t token, const std::string& why) const {
  const int number = line_at(token < tokens_.size() ? tokens_[token].at : text_.size());
  throw ValueError("naru.kernel: {} (line {}: {})", why, number, line(number));
}

size_t KernelSource::matching(size_t open) const noexcept {
  int depth = 0;
  for (size_t i = open; i < tokens_.size(); ++i) {
    if (tokens_[i].directive) continue;
    const std::string_view w = word(i);
    if (w == "(" || w == "{" || w == "[") ++depth;
    if ((w == ")" || w == "}" || w == "]") && --depth == 0) return i;
  }
  return tokens_.size();
}

void KernelSource::parse() {
  for (size_t i = 0; i < tokens_.size(); ++i) native_ |= word(i) == "__global__";
  for (size_t i = 0; i < tokens_.size();) {
    if (tokens_[i].directive) {
      ++i;
      continue;
    }
    const std::string_view w = word(i);
    if (w == (native_ ? "__global__" : "kernel") || (!native_ && w == "__kernel")) {
      parse_kernel(i);
    } else if (native_ && w == "extern" && i + 2 < tokens_.size() && tokens_[i + 1].kind == Token::Kind::Text && word(i + 2) == "{") {
      i += 3;
    } else if (native_ && w == "namespace" && i + 1 < tokens_.size() && word(i + 1) == "{") {
      i += 2;
    } else if (w == "{" || w == "[" || w == "(") {
      i = matching(i) + 1;
    } else if (tokens_[i].kind == Token::Kind::Name && w != "__attribute__" && i + 1 < tokens_.size() && word(i + 1) == "(") {
      const size_t close = matching(i + 1);
      if (close < tokens_.size()) functions_.push_back({std::string(w), i, i + 1, close});
      const size_t body = close + 1;
      if (body < tokens_.size() && word(body) == "{") {
        const size_t end = std::min(matching(body) + 1, tokens_.size());
        bodies_.push_back({std::string(w), body, end});
        i = end;
      } else {
        i = body;
      }
    } else {
      ++i;
    }
  }
  if (kernels_.empty())
    throw ValueError(
        "naru.kernel: there is no kernel in the source. Write one as `kernel void vec_add(const float* a, const float* b, float* out) "
        "{ int i = global_id(0); out[i] = a[i] + b[i]; }`");
}

void KernelSource::parse_kernel(size_t& at) {
  KernelEntry k;
  k.head = at;
  size_t i = at + 1;
  // CUDA attributes such as __launch_bounds__(256).
  while (i < tokens_.size() && word(i) != "void") i = i + 1 < tokens_.size() && word(i + 1) == "(" ? matching(i + 1) + 1 : i + 1;
  if (!native_ && i != at + 1) refuse(at, "a kernel starts with `kernel void name(`");
  if (i + 2 < tokens_.size() && word(i + 1) == "__launch_bounds__") i = matching(i + 2);
  if (i + 2 >= tokens_.size() || tokens_[i + 1].kind != Token::Kind::Name || word(i + 2) != "(")
    refuse(at, "a kernel starts with `kernel void name(`");
  k.name = std::string(word(i + 1));
  const size_t open = i + 2, close = matching(open);
  if (close == tokens_.size()) refuse(open, fmt::format("the parameters of '{}' have no closing bracket", k.name));
  if (close + 1 >= tokens_.size() || word(close + 1) != "{")
    refuse(close, fmt::format("the parameters of '{}' are not followed by `{{`", k.name));
  k.body = close + 1;
  if (matching(k.body) == tokens_.size()) refuse(k.body, fmt::format("the body of '{}' has no closing `}}`", k.name));
  k.end = matching(k.body) + 1;
  const bool none = close == open + 1 || (close == open + 2 && word(open + 1) == "void");
  for (size_t begin = open + 1; !none && begin <= close;) {
    size_t end = begin;
    while (end < close && word(end) != ",") ++end;
    k.params.push_back(parse_param(begin, end, k.name));
    begin = end + 1;
  }
  const auto pointers = std::count_if(k.params.begin(), k.params.end(), [](const KernelParam& p) { return p.pointer; });
  if (pointers > 24) refuse(k.head, fmt::format("'{}' has {} pointers; at most 24 are allowed", k.name, pointers));
  for (size_t n = 0; n < k.params.size(); ++n)
    for (size_t m = 0; m < n; ++m)
      if (k.params[n].name == k.params[m].name)
        refuse(open, fmt::format("two parameters of '{}' are called '{}'", k.name, k.params[n].name));
  for (const KernelEntry& other : kernels_)
    if (other.name == k.name) refuse(k.head, fmt::format("two kernels are called '{}'", k.name));
  at = k.end;
  kernels_.push_back(std::move(k));
}

KernelParam KernelSource::parse_param(size_t begin, size_t end, const std::string& kernel) const {
  KernelParam p;
  std::string type;
  size_t i = begin;
  const auto shown = [&] {
    if (begin >= end) return std::string();
    return text_.substr(tokens_[begin].at, tokens_[end - 1].at + tokens_[end - 1].size - tokens_[begin].at);
  };
  const auto wrong = [&](const std::string& why) {
    refuse(std::min(begin, tokens_.size() - 1),
           fmt::format("parameter {} of '{}' {}; wanted a pointer, as `const float* a` or `float* out`, or a number, as `int n`",
                       shown().empty() ? "without text" : "`" + shown() + "`", kernel, why));
  };
  for (; i + 1 < end; ++i) {
    const std::string w(word(i));
    if (w == "const")
      p.constant |= !p.pointer;  // float* const p: const applies to the pointer
    else if (w == "*" && !p.pointer)
      p.pointer = true;
    else if (w == "*")
      wrong("is a pointer to a pointer");
    else if (w == "global" || w == "restrict" || w == "__restrict__" || w == "__restrict" || w == "volatile")
      continue;
    else if (w == "[")
      wrong("is an array");
    else if (tokens_[i].kind != Token::Kind::Name)
      wrong("can't be read");
    else
      type += (type.empty() ? "" : " ") + w;
  }
  if (begin >= end) wrong("is empty");
  if (tokens_[end - 1].kind != Token::Kind::Name || type.empty()) wrong(word(end - 1) == "]" ? "is an array" : "has no name or no type");
  p.name = std::string(word(end - 1));
  const auto found = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) { return type == t.words; });
  if (found == std::end(kTypes))
    wrong(fmt::format("is of type '{}', which is not one of bool, char, short, int, long (also unsigned), half, bfloat16, float, double",
                      type));
  p.type = found->type;
  if (p.pointer && !dtype_of(p.type))
    wrong(fmt::format("points to '{}', and tensors have no such type (but int, long, unsigned char)", type));
  if (!p.pointer && (p.type == CType::Half || p.type == CType::BFloat)) wrong("is a number of 16 bits: pass a float");
  return p;
}

// A macro's body counts as part of its users.
void KernelSource::find_macros() {
  for (size_t i = 0; i + 2 < tokens_.size(); ++i) {
    if (!tokens_[i].directive || word(i) != "#" || word(i + 1) != "define") continue;
    size_t end = i + 3;
    while (end < tokens_.size() && tokens_[end].directive && word(end) != "#") ++end;
    bodies_.push_back({std::string(word(i + 2)), i + 3, end});
  }
}

void KernelSource::find_uses() {
  const auto look = [&](size_t begin, size_t end, bool& asks, bool& barriers, bool& groups) {
    for (size_t i = begin; i < end; ++i) {
      if (tokens_[i].kind != Token::Kind::Name) continue;
      const std::string_view w = word(i);
      barriers |= w == "barrier";
      groups |= among(kGroupWords, w);
      asks |= among(kPlaceWords, w) || among(kGroupWords, w);
      for (const Body& b : bodies_)
        if (b.name == w) asks |= b.asks, barriers |= b.barriers, groups |= b.groups;
    }
  };
  for (size_t round = 0; round <= bodies_.size(); ++round)
    for (Body& b : bodies_) look(b.begin, b.end, b.asks, b.barriers, b.groups);
  for (KernelEntry& k : kernels_) {
    bool asks = false;
    look(k.body, k.end, asks, k.barriers, k.groups);
    for (size_t i = k.body; i < k.end; ++i)
      k.open_shared |= word(i) == "naru_shared_bytes" || (native_ && word(i) == "extern" && i + 1 < k.end && word(i + 1) == "__shared__");
  }
}

void KernelSource::refuse_recursion() const {
  if (native_) return;
  // Functions that reach themselves.
  for (const FunctionHead& f : functions_) {
    std::vector<std::string_view> reached;
    const auto reach = [&](std::string_view name) {
      for (const Body& b : bodies_)
        if (b.name == name)
          for (size_t i = b.begin; i < b.end; ++i)
            if (tokens_[i].kind == Token::Kind::Name && i + 1 < tokens_.size() && word(i + 1) == "(" && is_function(word(i)) &&
                std::find(reached.begin(), reached.end(), word(i)) == reached.end())
              reached.push_back(word(i));
    };
    reach(f.name);
    for (size_t i = 0; i < reached.size(); ++i) reach(std::string_view(reached[i]));
    if (std::find(reached.begin(), reached.end(), f.name) != reached.end())
      refuse(f.at, fmt::format("'{}' calls itself, which devices don't do. Use a loop", f.name));
  }
}

bool KernelSource::uses_item_position(std::string_view name) const noexcept {
  return std::any_of(bodies_.begin(), bodies_.end(), [&](const Body& b) { return b.asks && b.name == name; });
}
bool KernelSource::is_function(std::string_view name) const noexcept {
  return std::any_of(functions_.begin(), functions_.end(), [&](const FunctionHead& f) { return f.name == name; });
}

int KernelSource::find(const std::string& name) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < kernels_.size(); ++i) {
    if (kernels_[i].name == name) return static_cast<int>(i);
    names.push_back("'" + kernels_[i].name + "'");
  }
  throw ValueError("naru.kernel: the source has no kernel '{}'; it has {}", name, fmt::format("{}", fmt::join(names, ", ")));
}

std::string refusal(const KernelSource& source, const std::string& kernel, const std::string& compiler, const std::string& log) {
  std::string text;
  int shown = 0;
  for (size_t begin = 0; begin < log.size() && shown < 8;) {
    const size_t end = std::min(log.find('\n', begin), log.size());
    const std::string row = log.substr(begin, end - begin);
    begin = end + 1;
    // "kernel:3:5: error: ..." (clang, gcc), "kernel(3): error: ..." (NVRTC).
    const size_t at = row.find("kernel"), error = row.find("error");
    if (at == std::string::npos || error == std::string::npos || at + 7 >= row.size() || (row[at + 6] != ':' && row[at + 6] != '('))
      continue;
    const int number = std::atoi(row.c_str() + at + 7);
    if (number < 1) continue;
    const size_t colon = row.find(": ", error);
    std::string words = row.substr(colon == std::string::npos ? error : colon + 2);
    // PoCL puts the source location after that word.
    if (words.starts_with("kernel:"))
      if (const size_t over = words.find(words.find("<Spelling=") == std::string::npos ? ": " : ">: "); over != std::string::npos)
        words = words.substr(words.find(": ", over) + 2);
    text += fmt::format("\n  line {}: {}\n    {}", number, words, source.line(number));
    ++shown;
  }
  if (text.empty()) text = "\n" + log;
  return fmt::format("naru.kernel '{}': {} refused the source:{}", kernel, compiler, text);
}

}  // namespace naru::ir
