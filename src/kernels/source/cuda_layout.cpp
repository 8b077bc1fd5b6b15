#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/source/cuda_source.h"
#include "naru/error.h"

namespace naru::ir {
namespace {

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// One past `template <...>`.
size_t behind_template(const KernelSource& s, size_t i) {
  int depth = 0;
  for (++i; i < s.tokens().size(); ++i) {
    depth += s.word(i) == "<" ? 1 : s.word(i) == ">" ? -1 : 0;
    if (depth == 0) return i + 1;
  }
  return i;
}

void mark(CudaPart& p, std::string_view w, bool& global, bool& type) {
  global |= w == "__global__";
  p.device |= w == "__device__" || w == "constexpr";
  p.host |= w == "__host__";
  type |= is_one_of(w, {"struct", "class", "union", "enum"}) && !p.open;
}

CudaPart part_at(const KernelSource& s, size_t i) {
  const size_t n = s.tokens().size();
  CudaPart p;
  p.begin = i;
  bool assigned = false, global = false, type = false;
  const bool other = is_one_of(s.word(i), {"static_assert", "using", "typedef", "namespace"});
  if ((p.templated = s.word(i) == "template")) i = behind_template(s, i);
  while (i < n) {
    const std::string_view w = s.word(i);
    if (s.tokens()[i].directive) {
      ++i;
      continue;
    }
    if (w == ";" || w == "}") {
      ++i;
      break;
    }
    mark(p, w, global, type);
    assigned |= w == "=";
    if (w != "(" && w != "{" && w != "[") {
      ++i;
      continue;
    }
    const size_t close = std::min(s.matching(i), n - 1);
    if (w == "(" && !assigned && !p.open && i > p.begin && s.tokens()[i - 1].kind == Token::Kind::Name &&
        !is_one_of(s.word(i - 1), {"__launch_bounds__", "__attribute__", "__align__", "alignas", "decltype"}))
      p.at = i - 1, p.open = i, p.close = close, p.name = std::string(s.word(i - 1));
    if (w == "{" && p.open && !assigned) p.body = i;
    i = close + 1;
    if (p.body || (w == "{" && other && s.word(p.begin) == "namespace")) break;
  }
  p.end = i;
  using Kind = CudaPart::Kind;
  p.kind = other ? Kind::Other : p.open ? (global ? Kind::Kernel : Kind::Function) : type ? Kind::Type : Kind::Variable;
  return p;
}

std::vector<CudaMacro> macros_of(const KernelSource& s) {
  std::vector<CudaMacro> list;
  const auto starts = [&](size_t i) {  // a preprocessor directive
    if (!s.tokens()[i].directive || s.word(i) != "#") return false;
    const size_t line = s.text().rfind('\n', s.tokens()[i].at);
    return i == 0 || !s.tokens()[i - 1].directive ||
           (line != std::string::npos && line > s.tokens()[i - 1].at && s.text()[line - 1] != '\\');
  };
  for (size_t i = 0; i + 2 < s.tokens().size(); ++i) {
    if (!starts(i) || s.word(i + 1) != "define") continue;
    size_t end = i + 3;
    while (end < s.tokens().size() && s.tokens()[end].directive && !starts(end)) ++end;
    list.push_back({std::string(s.word(i + 2)), i, i + 3, end});
  }
  return list;
}

}  // namespace

CudaLayout cuda_layout(const KernelSource& s) {
  CudaLayout layout;
  layout.macros = macros_of(s);
  std::vector<size_t> closing;
  for (size_t i = 0; i < s.tokens().size();) {
    const auto is = [&](size_t at, std::string_view w) { return at < s.tokens().size() && s.word(at) == w; };
    const size_t brace = is(i, "extern") && i + 1 < s.tokens().size() && s.tokens()[i + 1].kind == Token::Kind::Text && is(i + 2, "{")
                             ? i + 2
                         : is(i, "namespace") && is(i + 1, "{") ? i + 1
                                                                : 0;
    if (s.tokens()[i].directive || is(i, ";")) {
      ++i;
    } else if (std::find(closing.begin(), closing.end(), i) != closing.end()) {
      layout.around.push_back(i++);
    } else if (brace) {
      closing.push_back(s.matching(brace));
      while (i <= brace) layout.around.push_back(i++);
    } else {
      layout.parts.push_back(part_at(s, i));
      i = std::max(layout.parts.back().end, i + 1);
    }
  }
  return layout;
}

std::set<std::string> CudaLayout::reached_from(const KernelSource& s, const std::vector<const CudaPart*>& first) const {
  std::set<std::string> reached;
  std::vector<std::string> open;
  const auto look = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      if (s.tokens()[i].kind == Token::Kind::Name && reached.insert(std::string(s.word(i))).second) open.emplace_back(s.word(i));
  };
  const auto in_macro = [&](size_t i) {
    return std::any_of(macros.begin(), macros.end(), [&](const CudaMacro& m) { return m.begin <= i && i < m.end; });
  };
  for (size_t i = 0; i < s.tokens().size(); ++i)
    if (s.tokens()[i].directive && !in_macro(i)) look(i, i + 1);
  for (const CudaPart* p : first) look(p->begin, p->end);
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    for (const CudaPart& p : parts)
      if (p.kind == CudaPart::Kind::Function && p.body && p.name == name) look(p.begin, p.end);
    for (const CudaMacro& m : macros)
      if (m.name == name) look(m.text, m.end);
  }
  return reached;
}

std::vector<bool> host_code(const KernelSource& s) {
  const CudaLayout layout = cuda_layout(s);
  std::vector<const CudaPart*> first;
  for (const CudaPart& p : layout.parts)
    if (p.kind == CudaPart::Kind::Kernel || (p.kind == CudaPart::Kind::Function && p.device)) first.push_back(&p);
  const std::set<std::string> reached = layout.reached_from(s, first);
  std::vector<bool> host(s.tokens().size());
  for (const CudaPart& p : layout.parts)
    for (size_t i = p.begin; p.kind == CudaPart::Kind::Function && !p.device && !reached.contains(p.name) && i < p.end; ++i)
      host[i] = !s.tokens()[i].directive;
  return host;
}

Spelling::Spelling(const KernelSource& s) : source(s), before(s.tokens().size()), gone(s.tokens().size()) {
  for (size_t i = 0; i < s.tokens().size(); ++i) words.emplace_back(s.word(i));
}

void Spelling::drop(size_t begin, size_t end) {
  // Keep conditionals, because they may close outside of the dropped range; drop pragmas, which apply to the dropped code.
  bool pragma = false;
  for (size_t i = begin; i < end; ++i) {
    if (source.word(i) == "#") pragma = i + 1 < end && source.word(i + 1) == "pragma";
    if (!source.tokens()[i].directive || pragma) drop(i);
  }
}

std::string Spelling::text() const {
  std::string text;
  size_t copied = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    const Token& t = source.tokens()[i];
    text.append(source.text(), copied, t.at - copied).append(before[i]) += words[i];
    copied = t.at + t.size;
  }
  return text.append(source.text(), copied);
}

void Spelling::refuse(size_t token, const std::string& why) const {
  const int number = source.line_at(token < words.size() ? source.tokens()[token].at : source.text().size());
  throw NotImplementedError(
      "naru.kernel: {} (line {}: {}). Real cuda devices take CUDA C++ as it is; for others it is translated into naru's dialect "
      "(docs/kernels.md)",
      why, number, source.line(number));
}

}  // namespace naru::ir
