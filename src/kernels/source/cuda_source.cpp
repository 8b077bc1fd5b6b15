#include "kernels/source/cuda_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "naru/error.h"

namespace naru::ir {
namespace {

using Kind = CudaPart::Kind;

constexpr std::string_view kKeywords[] = {"if", "for", "while", "switch", "return", "else", "do", "case", "goto", "defined"};
bool is_keyword(std::string_view w) { return std::find(std::begin(kKeywords), std::end(kKeywords), w) != std::end(kKeywords); }

constexpr std::string_view kPlaces[][2] = {
    {"threadIdx", "local_id"}, {"blockIdx", "group_id"}, {"blockDim", "enqueued_local_size"}, {"gridDim", "num_groups"}};
std::string_view place_of(std::string_view w) {
  for (const auto& [cuda, ours] : kPlaces)
    if (w == cuda) return ours;
  return "";
}

class CudaTranslator {
 public:
  CudaTranslator(const KernelSource& s, const KernelEntry& wanted) : s_(s), out_(s), layout_(cuda_layout(s)) { choose(wanted); }

  std::string translate() {
    for (const size_t i : layout_.around) out_.drop(i);
    directives();
    for (const CudaPart& p : layout_.parts) part(p);
    write_address_spaces(out_, functions_, constants_, types_);
    for (size_t i = 0; i < out_.words.size(); ++i)
      if (!out_.gone[i]) word(i);
    return out_.text();
  }

 private:
  bool is(size_t i, std::string_view w) const { return out_.is(i, w); }
  std::string_view at(size_t i) const { return i < out_.words.size() ? s_.word(i) : std::string_view(); }

  // Finds what the kernel needs: the functions that it calls, directly or indirectly.
  void choose(const KernelEntry& wanted) {
    for (const CudaPart& p : layout_.parts) {
      if (p.kind == Kind::Kernel) kernels_.insert(p.name);
      if (p.kind == Kind::Kernel && p.begin <= wanted.head && wanted.head < p.end) functions_.push_back(&p);
    }
    reached_ = layout_.reached_from(s_, functions_);
    for (const CudaPart& p : layout_.parts)
      if (p.kind == Kind::Function && reached_.contains(p.name)) functions_.push_back(&p);
    for (const CudaMacro& m : layout_.macros) {
      macros_.emplace(m.name, &m);
      // Drop macros that only the host uses.
      for (size_t i = m.begin; !reached_.contains(m.name) && i < m.end; ++i) out_.drop(i);
    }
    const auto named = [&](std::string_view w) {
      for (size_t i = 1; i < s_.tokens().size(); ++i)
        if (s_.word(i) == w && s_.word(i - 1) != "void" && is_type_word(s_.word(i - 1))) return true;
      return false;
    };
    half_is_a_name_ = named("half");
  }
  bool wanted(const CudaPart& p) const { return std::find(functions_.begin(), functions_.end(), &p) != functions_.end(); }

  // --- file scope

  void directives() {
    for (size_t i = 0; i + 1 < s_.tokens().size(); ++i) {
      if (!s_.tokens()[i].directive || s_.word(i) != "#") continue;
      const bool include = s_.word(i + 1) == "include", once = s_.word(i + 1) == "pragma" && at(i + 2) == "once";
      if (!include && !once) continue;
      const int line = s_.line_at(s_.tokens()[i].at);
      std::string name;
      size_t end = i;
      for (; end < s_.tokens().size() && s_.tokens()[end].directive && s_.line_at(s_.tokens()[end].at) == line; ++end)
        if (end > i + 1) name += s_.word(end);
      if (name.size() > 2) name = name.substr(1, name.size() - 2);
      if (include && !CudaWords::is_header(name))
        out_.refuse(i, fmt::format("the header `{}` is not read: put what the kernel needs of it into the source", name));
      while (i < end) out_.drop(i++);
      --i;
    }
  }

  void part(const CudaPart& p) {
    switch (p.kind) {
      case Kind::Kernel:
      case Kind::Function:
        return wanted(p) ? function(p) : out_.drop(p.begin, p.end);
      case Kind::Variable:
        return variable(p);
      case Kind::Type:
        return type(p);
      case Kind::Other:
        return other(p);
    }
  }

  void function(const CudaPart& p) {
    if (p.templated) out_.refuse(p.begin, fmt::format("'{}' is a template: write the types out", p.name));
    if (p.host && !p.device && p.kind == Kind::Function) out_.refuse(p.at, fmt::format("'{}' is a function of the host", p.name));
    for (size_t i = p.begin; i < p.at; ++i) {
      if (is(i, "__launch_bounds__")) out_.drop(i, s_.matching(i + 1) + 1);
      if (is(i, "constexpr") || s_.tokens()[i].kind == Token::Kind::Text) out_.drop(i);
      if (is(i, "extern") || (p.kind == Kind::Kernel && is(i, "static"))) out_.drop(i);
      if (is(i, "__global__")) out_.words[i] = "kernel";
    }
    for (size_t i = p.open; i < p.close; ++i)
      if (is(i, "=")) out_.refuse(i, fmt::format("'{}' has a default for a parameter: pass it at each call", p.name));
    if (p.body) body(p);
  }

  void body(const CudaPart& p) {
    int depth = 0;
    for (size_t i = p.body; i < p.end; ++i) {
      depth += is(i, "{") - is(i, "}");
      if (is(i, "__shared__")) shared(p, i, depth);
      const bool starts = is(i - 1, ";") || is(i - 1, "{") || is(i - 1, "}");
      if (starts && (is(i, "const") || is(i, "constexpr") || is(i, "static"))) integer_constants(i, end_of(i));
      // A static constant is the same as one at file scope.
      if (starts && is(i, "static") && (is(i + 1, "const") || is(i + 1, "constexpr"))) out_.drop(i);
    }
  }

  void shared(const CudaPart& p, size_t i, int depth) {
    if (is(i - 1, "extern")) open_shared(i);
    for (const size_t k : {i - 1, i + 1})
      if (is(k, "static")) out_.drop(k);
    if (p.kind != Kind::Kernel)
      out_.refuse(i, fmt::format("'{}' is no kernel: declare shared arrays in the kernel and pass pointers", p.name));
    if (depth > 1) out_.refuse(i, "shared arrays stand at the top of a kernel's body");
  }

  // extern __shared__ float part[]: the call gives its size. (All such arrays of a kernel would share the same memory.)
  void open_shared(size_t i) {
    if (open_shared_) out_.refuse(i, "a second shared array without a length: they share their memory; take pointers into one");
    open_shared_ = true;
    out_.drop(i - 1);
    std::string type;
    size_t open = i + 1;
    for (; open < s_.tokens().size() && !is(open, "[") && !is(open, ";"); ++open)
      if (is(open, "("))
        open = s_.matching(open);
      else if (out_.is_name(open) && !is(open + 1, "[") && !is(open, "__align__") && !is(open, "volatile"))
        (type += " ") += s_.word(open);
    if (!is(open, "[") || !is(open + 1, "]")) out_.refuse(i, "`extern __shared__` is for one array, as `extern __shared__ float part[];`");
    out_.words[open + 1] = fmt::format("naru_shared_bytes / sizeof({} )]", type);
  }

  // One past the `;`.
  size_t end_of(size_t i) const {
    for (; i < s_.tokens().size() && s_.word(i) != ";"; ++i)
      if (s_.word(i) == "(" || s_.word(i) == "[" || s_.word(i) == "{") i = s_.matching(i);
    return std::min(i + 1, s_.tokens().size());
  }

  bool is_constant(size_t begin, size_t end, int depth = 0) const {
    if (begin >= end || depth > 8) return false;
    for (size_t i = begin; i < end; ++i) {
      if (s_.tokens()[i].kind == Token::Kind::Text) return false;
      if (!out_.is_name(i) || is_type_word(s_.word(i)) || s_.word(i) == "sizeof" || numbers_.contains(std::string(s_.word(i)))) continue;
      const auto macro = macros_.find(std::string(s_.word(i)));
      if (macro == macros_.end()) return false;
      if (!is_constant(macro->second->text, macro->second->end, depth + 1)) return false;
    }
    return true;
  }

  // `const int n = 16;` is a constant expression in C++ (for array lengths); in C an enumerator is.
  bool integer_constants(size_t begin, size_t end) {
    std::string type;
    size_t i = begin;
    for (; i < end; ++i) {
      const std::string_view w = s_.word(i);
      if (w == "const" || w == "constexpr" || w == "static" || w == "__device__" || w == "__constant__") continue;
      if (!is_type_word(w)) break;
      (type += type.empty() ? "" : " ") += w;
    }
    const bool plain = type == "int" || type == "short" || type == "bool" || type == "char";
    if (i >= end || type.empty() || type == "float" || type == "double" || type == "void" || type == "half") return false;
    std::vector<std::pair<std::string, size_t>> found;
    for (size_t name = i; name < end;) {
      size_t last = name;
      while (last + 1 < end && s_.word(last) != "," && s_.word(last) != ";")
        last = s_.word(last) == "(" ? std::min(s_.matching(last) + 1, end - 1) : last + 1;
      if (!out_.is_name(name) || s_.word(name + 1) != "=" || !is_constant(name + 2, last)) return false;
      for (size_t use = 1; use < s_.tokens().size(); ++use)
        if (s_.word(use) == s_.word(name) && s_.word(use - 1) == "&") return false;
      found.emplace_back(s_.word(name), last);
      name = last + 1;
    }
    for (const auto& [name, last] : found) {
      numbers_.insert(name);
      if (!plain) casts_[name] = {last, type};
    }
    out_.drop(begin, i);
    out_.words[begin] = "enum {", out_.gone[begin] = true;
    out_.words[end - 1] = "};", out_.gone[end - 1] = true;
    return true;
  }

  void variable(const CudaPart& p) {
    bool constant = false, device = false, values = false, shared = false, pointer = false;
    for (size_t i = p.begin; i < p.end; ++i) {
      constant |= is(i, "const") || is(i, "constexpr") || is(i, "__constant__");
      device |= is(i, "__device__") || is(i, "__managed__") || is(i, "__constant__");
      shared |= is(i, "__shared__");
      pointer |= !values && is(i, "*");
      values |= is(i, "=") || is(i, "{");
    }
    if (shared) out_.refuse(p.begin, "a shared array outside of a kernel: write it in the kernel, with its length");
    if (!constant && device) out_.refuse(p.begin, "a variable of the device outlives the kernel: pass a tensor");
    if (!constant || pointer) return out_.drop(p.begin, p.end);
    if (!values && device) out_.refuse(p.begin, "constants that the host fills in later: write their values here, or pass a tensor");
    if (integer_constants(p.begin, p.end)) return;
    constants_.push_back(&p);
    bool said = false;
    for (size_t i = p.begin; i < p.end; ++i) {
      if (is(i, "const") || is(i, "constexpr") || is(i, "static") || is(i, "__device__") || is(i, "__constant__") || is(i, "extern")) {
        out_.drop(i);
      } else if (!said) {
        out_.words[i] = "constant " + out_.words[i], said = true;
      }
    }
  }

  void type(const CudaPart& p) {
    size_t word = p.begin;
    while (word < p.end && !is(word, "struct") && !is(word, "union") && !is(word, "enum") && !is(word, "class")) ++word;
    if (p.templated || is(word, "class") || is(word + 1, "class")) out_.refuse(p.begin, "the dialect is C: use a struct without functions");
    if (!out_.is_name(word + 1)) return;
    const std::string name(s_.word(word + 1));
    types_.insert(name);
    for (size_t i = word; i < p.end; ++i)
      if (!is(word, "enum") && (is(i, "(") || is(i, "=") || is(i, ":")))
        out_.refuse(i, fmt::format("'{}' is more than a struct of C: it may have members without values, and no functions", name));
    if (!is(p.end - 1, ";") || !is(p.end - 2, "}")) return;
    out_.words[word] = "typedef " + out_.words[word];
    out_.words[p.end - 1] = " " + name + ";";
  }

  void other(const CudaPart& p) {
    const std::string_view first = s_.word(p.begin);
    if (first == "namespace") out_.refuse(p.begin, "the dialect has no namespaces");
    if (first == "typedef" && out_.is_name(p.end - 2)) types_.insert(std::string(s_.word(p.end - 2)));
    if (first != "using") return;
    if (is(p.begin + 1, "namespace") || !is(p.begin + 2, "=")) return out_.drop(p.begin, p.end);
    // using T = float;
    types_.insert(std::string(s_.word(p.begin + 1)));
    out_.words[p.begin] = "typedef";
    out_.words[p.end - 1] = fmt::format(" {};", s_.word(p.begin + 1));
    out_.drop(p.begin + 1), out_.drop(p.begin + 2);
  }

  // --- words

  void word(size_t i) {
    const std::string_view w = s_.word(i);
    const Token& t = s_.tokens()[i];
    if (t.kind == Token::Kind::Number) return number(i);
    if (t.kind == Token::Kind::Sign) return sign(i);
    if (t.kind != Token::Kind::Name) return;
    const bool member = i > 0 && (is(i - 1, ".") || (is(i - 1, ">") && is(i - 2, "-")));
    const bool ours = macros_.contains(std::string(w)) || s_.is_function(w) || kernels_.contains(w), called = is(i + 1, "(");
    if (!member && !ours) {
      if (!place_of(w).empty()) return place(i);
      if (w == "std" && is(i + 1, ":") && is(i + 2, ":")) return out_.drop(i, i + 3);
      if (w.ends_with("_cast") && is(i + 1, "<")) return cast(i);
      if (w == "long" && is(i + 1, "long")) return out_.drop(i);
      if (w == "long" && i > 0 && s_.word(i - 1) == "long" && is(i + 1, "int")) out_.drop(i + 1);
      if (is_type_word(w) && called && w != "void" && !is(i + 2, "*") && (i == 0 || !is_type_word(at(i - 1)))) {
        return void(out_.words[i] = fmt::format("({})", w));
      }
      if (const char* const why = CudaWords::refusal(w, called)) out_.refuse(i, fmt::format("`{}`: {}", w, why));
      if (const char* const instead = CudaWords::word(w)) return void(out_.words[i] = instead);
      if (called && !is_keyword(w) && !t.directive) return call(i);
    }
    if (const auto cast = casts_.find(std::string(w)); cast != casts_.end() && !member && i > cast->second.first && !t.directive) {
      out_.words[i] = fmt::format("(({}){})", cast->second.second, w);
      return;
    }
    if (CudaWords::is_taken(w) || (w == "half" && half_is_a_name_)) out_.words[i] += "_here";
  }

  void call(size_t i) {
    const std::string_view w = s_.word(i);
    const char* const instead = CudaWords::function(w);
    if (!instead) {
      if (is_type_word(w) || w == "__attribute__" || w == "__align__" || w == "alignas") return attribute(i);
      out_.refuse(i, fmt::format("`{}` is no function of the source, nor one that kernels have (docs/kernels.md)", w));
    }
    if (*instead) out_.words[i] = instead;
  }

  void attribute(size_t i) {
    if (is(i, "__align__") || is(i, "alignas")) {
      const size_t close = std::min(s_.matching(i + 1), s_.tokens().size() - 1);
      out_.words[i] = "__attribute__((aligned", out_.words[close] = ")))";
    }
  }

  void place(size_t i) {
    const std::string_view w = s_.word(i), d = at(i + 2);
    if (!is(i + 1, ".") || d.size() != 1 || d[0] < 'x' || d[0] > 'z')
      out_.refuse(i, fmt::format("`{0}` as a whole: take {0}.x, {0}.y or {0}.z", w));
    if (global_place(i)) return;
    out_.words[i] = fmt::format("((unsigned){}({}))", place_of(w), d[0] - 'x');
    out_.drop(i + 1), out_.drop(i + 2);
  }

  // Matches `words` from token i on: operators and NAME.d. Returns one past them, or 0.
  size_t match(size_t i, std::initializer_list<std::string_view> words, std::string_view d) const {
    for (const std::string_view w : words) {
      const bool name = w.size() > 1;
      if (!is(i, w) || (name && (!is(i + 1, ".") || !is(i + 2, d)))) return 0;
      i += name ? 3 : 1;
    }
    return i;
  }

  // blockIdx.x * blockDim.x + threadIdx.x, in any of four orders: replaced by global_id, which compilers recognise as consecutive.
  bool global_place(size_t i) {
    const std::string_view d = at(i + 2);
    for (const auto& words : {std::initializer_list<std::string_view>{"blockIdx", "*", "blockDim", "+", "threadIdx"},
                              {"blockDim", "*", "blockIdx", "+", "threadIdx"},
                              {"threadIdx", "+", "blockIdx", "*", "blockDim"},
                              {"threadIdx", "+", "blockDim", "*", "blockIdx"}}) {
      const size_t end = match(i, words, d);
      if (!end) continue;
      const std::string_view before = i > 0 ? s_.word(i - 1) : "", after = at(end);
      if ((before.size() == 1 && std::string_view("*/%+-.~!)").find(before[0]) != std::string_view::npos) || after == "*" || after == "/" ||
          after == "%")
        return false;
      for (size_t k = i; k < end; ++k) out_.drop(k);
      out_.words[i] = fmt::format("((unsigned)global_id({}))", d[0] - 'x');
      return true;
    }
    return false;
  }

  // static_cast<float>(x)
  void cast(size_t i) {
    size_t close = i + 2;
    while (close < s_.tokens().size() && !is(close, ">") && !is(close, ";")) ++close;
    if (!is(close, ">") || !is(close + 1, "(") || is(i, "dynamic_cast")) out_.refuse(i, fmt::format("`{}` can't be read", s_.word(i)));
    const size_t end = std::min(s_.matching(close + 1), s_.tokens().size() - 1);
    out_.words[i] = "((", out_.words[close] = ")", out_.words[end] = "))";
    out_.gone[i] = out_.gone[close] = true;
    out_.drop(i + 1);
  }

  void number(size_t i) {
    std::string& w = out_.words[i];
    if (w.size() > 2 && w[1] != 'x' && w.find('.') != std::string::npos) return;
    for (const char* ll : {"ll", "LL"})
      if (const size_t at = w.find(ll); at != std::string::npos) w.erase(at, 1);
    if (i + 1 < s_.tokens().size() && s_.word(i + 1).starts_with("'") && s_.tokens()[i + 1].at == s_.tokens()[i].at + s_.tokens()[i].size)
      out_.refuse(i, "a number with ' between its digits: write it without");
  }

  void sign(size_t i) {
    if (s_.tokens()[i].directive) return;
    const std::string_view before = i > 0 ? s_.word(i - 1) : "";
    if (is(i, "<") && is(i + 1, "<") && is(i + 2, "<")) out_.refuse(i, "kernels start no kernels");
    if (is(i, ":") && is(i + 1, ":")) out_.refuse(i, "`::`: the dialect has no namespaces");
    if (is(i, "&") && (is_type_word(before) || before == "auto" || types_.contains(std::string(before))))
      out_.refuse(i, "a reference: the dialect is C; pass a pointer");
    if (is(i, "[") && i > 0 && !out_.is_name(i - 1) && before != "]" && before != ")" && !is(i - 1, "{") && !is(i - 1, ","))
      out_.refuse(i, "a lambda: write a function");
  }

  const KernelSource& s_;
  Spelling out_;
  const CudaLayout layout_;
  std::vector<const CudaPart*> functions_, constants_;  // functions: the kernel first, then those that it calls
  std::set<std::string> reached_, types_, numbers_;
  std::set<std::string, std::less<>> kernels_;
  std::map<std::string, const CudaMacro*> macros_;               // by name
  std::map<std::string, std::pair<size_t, std::string>> casts_;  // constants that are not int: first token where they apply, and type
  bool half_is_a_name_ = false, open_shared_ = false;
};

}  // namespace

std::string cuda_in_dialect(const KernelSource& source, const KernelEntry& wanted) { return CudaTranslator(source, wanted).translate(); }

}  // namespace naru::ir
