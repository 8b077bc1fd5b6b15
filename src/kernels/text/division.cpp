#include "kernels/text/division.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <span>
#include <string_view>
#include <vector>

namespace naru::render::c {
namespace {

// The operands' common type selects the function. Operands are evaluated once; unary + promotes narrow types to int, as C does.
constexpr const char* kDivision = R"c(
#define NARU_DIVISION(name, type, unsigned_type) \
  static inline type naru_div_##name(type a, type b) { return b == 0 ? 0 : b == (type)-1 && (type)-1 < 1 ? (type)-(unsigned_type)a : a / b; } \
  static inline type naru_mod_##name(type a, type b) { return b == 0 || (b == (type)-1 && (type)-1 < 1) ? 0 : a % b; }
NARU_DIVISION(int, int, unsigned)
NARU_DIVISION(unsigned, unsigned, unsigned)
NARU_DIVISION(long, long, unsigned long)
NARU_DIVISION(ulong, unsigned long, unsigned long)
NARU_DIVISION(llong, long long, unsigned long long)
NARU_DIVISION(ullong, unsigned long long, unsigned long long)
static inline float naru_div_float(float a, float b) { return a / b; }
static inline double naru_div_double(double a, double b) { return a / b; }
#define naru_div(a, b) ({ __auto_type naru_n = +(a); __auto_type naru_d = +(b); _Generic(naru_n + naru_d, int: naru_div_int, \
  unsigned: naru_div_unsigned, long: naru_div_long, unsigned long: naru_div_ulong, long long: naru_div_llong, \
  unsigned long long: naru_div_ullong, float: naru_div_float, double: naru_div_double)(naru_n, naru_d); })
#define naru_mod(a, b) ({ __auto_type naru_n = +(a); __auto_type naru_d = +(b); _Generic(naru_n + naru_d, int: naru_mod_int, \
  unsigned: naru_mod_unsigned, long: naru_mod_long, unsigned long: naru_mod_ulong, long long: naru_mod_llong, \
  unsigned long long: naru_mod_ullong)(naru_n, naru_d); })
#define naru_div_in(a, b) ({ __typeof__(&(a)) naru_at = &(a); *naru_at = naru_div(*naru_at, b); })
#define naru_mod_in(a, b) ({ __typeof__(&(a)) naru_at = &(a); *naru_at = naru_mod(*naru_at, b); })
)c";

// The same in OpenCL C, which has overloaded functions. The type of a + b selects one; the sum itself is not evaluated.
constexpr const char* kOpenClDivision = R"c(
#define NARU_DIVISION(type, unsigned_type) \
  __attribute__((overloadable)) static type naru_quotient(type a, type b) { \
    return b == 0 ? 0 : b == (type)-1 && (type)-1 < 1 ? (type)-(unsigned_type)a : a / b; } \
  __attribute__((overloadable)) static type naru_rest(type a, type b) { return b == 0 || (b == (type)-1 && (type)-1 < 1) ? 0 : a % b; }
NARU_DIVISION(int, uint)
NARU_DIVISION(uint, uint)
NARU_DIVISION(long, ulong)
NARU_DIVISION(ulong, ulong)
__attribute__((overloadable)) static float naru_quotient(float a, float b) { return a / b; }
#ifdef cl_khr_fp64
__attribute__((overloadable)) static double naru_quotient(double a, double b) { return a / b; }
#endif
#define naru_div(a, b) naru_quotient((__typeof__((a) + (b)))(a), (__typeof__((a) + (b)))(b))
#define naru_mod(a, b) naru_rest((__typeof__((a) + (b)))(a), (__typeof__((a) + (b)))(b))
#define naru_div_in(a, b) ({ __typeof__(&(a)) naru_at = &(a); *naru_at = naru_div(*naru_at, b); })
#define naru_mod_in(a, b) ({ __typeof__(&(a)) naru_at = &(a); *naru_at = naru_mod(*naru_at, b); })
)c";

struct Piece {
  enum Kind { Name, Number, Text, Sign } kind;
  size_t at, size;
};

constexpr std::string_view kSigns[] = {
    "<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=", "^=", "|="};

// Skips lines that start with # (line marks of the preprocessor).
std::vector<Piece> tokens_of(const std::string& s, size_t begin, size_t end) {
  std::vector<Piece> tokens;
  bool line_start = true;
  const auto part = [&](size_t i) { return i < end && (std::isalnum(static_cast<unsigned char>(s[i])) || s[i] == '_'); };
  for (size_t i = begin; i < end;) {
    const char c = s[i];
    if (c == '\n') {
      line_start = true, ++i;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      ++i;
    } else if (c == '#' && line_start) {
      i = std::min(s.find('\n', i), end);
    } else if (s.compare(i, 2, "//") == 0) {
      i = std::min(s.find('\n', i), end);
    } else if (s.compare(i, 2, "/*") == 0) {
      i = std::min(s.find("*/", i + 2), end - 2) + 2;
    } else {
      line_start = false;
      const size_t start = i;
      Piece::Kind kind = Piece::Sign;
      if (std::isdigit(static_cast<unsigned char>(c)) || (c == '.' && i + 1 < end && std::isdigit(static_cast<unsigned char>(s[i + 1])))) {
        kind = Piece::Number;
        for (++i; part(i) || (i < end && (s[i] == '.' || ((s[i] == '+' || s[i] == '-') && std::string_view("eEpP").find(s[i - 1]) < 4)));
             ++i) {
        }
      } else if (part(i)) {
        kind = Piece::Name;
        while (part(i)) ++i;
      } else if (c == '"' || c == '\'') {
        kind = Piece::Text;
        for (++i; i < end && s[i] != c && s[i] != '\n'; ++i)
          if (s[i] == '\\') ++i;
        i = std::min(i + 1, end);
      } else {
        const auto sign =
            std::find_if(std::begin(kSigns), std::end(kSigns), [&](std::string_view w) { return s.compare(i, w.size(), w) == 0; });
        i += sign == std::end(kSigns) ? 1 : sign->size();
      }
      tokens.push_back({kind, start, i - start});
    }
  }
  return tokens;
}

const std::set<std::string_view>& type_words() {
  static const auto& words = *new const std::set<std::string_view>{
      "char",    "short",    "int",     "long",    "float",    "double",   "signed",   "unsigned",  "void",      "_Bool",        "bool",
      "const",   "volatile", "struct",  "union",   "enum",     "uchar",    "ushort",   "uint",      "ulong",     "size_t",       "int8_t",
      "int16_t", "int32_t",  "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "ptrdiff_t", "naru_half", "naru_bfloat16"};
  return words;
}
constexpr std::string_view kStops[] = {"return", "case", "else", "do", "goto"};
constexpr std::string_view kHeads[] = {"if", "while", "for", "switch"};
bool among(std::span<const std::string_view> words, std::string_view w) { return std::find(words.begin(), words.end(), w) != words.end(); }

class Divisions {
 public:
  Divisions(const std::string& text, size_t begin, size_t end) : s_(text), end_(end), tokens_(tokens_of(text, begin, end)) {
    match_brackets();
    find_typedefs();
    opens_.resize(tokens_.size());
    closes_.resize(tokens_.size(), 0);
    instead_.resize(tokens_.size());
  }

  std::string spelled(size_t begin) {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const std::string_view w = word(i);
      if (tokens_[i].kind != Piece::Sign || !in_function_[i]) continue;
      if (w == "/" || w == "%")
        binary(i, w == "/");
      else if (w == "/=" || w == "%=")
        assignment(i, w == "/=");
    }
    std::string out;
    size_t copied = begin;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const Piece& t = tokens_[i];
      out.append(s_, copied, t.at - copied);
      out += opens_[i];
      out += instead_[i].empty() ? std::string(word(i)) : instead_[i];
      out.append(closes_[i] * 2, ')');
      copied = t.at + t.size;
    }
    return out.append(s_, copied, end_ - copied);
  }

 private:
  std::string_view word(size_t i) const {
    return i < tokens_.size() ? std::string_view(s_).substr(tokens_[i].at, tokens_[i].size) : std::string_view();
  }

  // Finds the partner of each bracket, and marks tokens within function bodies.
  void match_brackets() {
    partner_.assign(tokens_.size(), 0);
    in_function_.assign(tokens_.size(), false);
    std::vector<size_t> open;
    size_t body_depth = 0;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const std::string_view w = word(i);
      if (tokens_[i].kind == Piece::Sign && (w == "(" || w == "[" || w == "{")) {
        open.push_back(i);
        if (w == "{" && open.size() == 1 && i > 0 && word(i - 1) == ")") body_depth = 1;
      }
      in_function_[i] = body_depth > 0;
      if (tokens_[i].kind == Piece::Sign && (w == ")" || w == "]" || w == "}") && !open.empty()) {
        partner_[i] = open.back(), partner_[open.back()] = i;
        open.pop_back();
        if (open.empty()) body_depth = 0;
      }
    }
  }

  void find_typedefs() {
    const std::vector<Piece> all = tokens_of(s_, 0, s_.size());
    const auto text = [&](const Piece& t) { return std::string_view(s_).substr(t.at, t.size); };
    for (size_t i = 0; i < all.size(); ++i) {
      if (text(all[i]) != "typedef") continue;
      int depth = 0;
      std::string_view last;
      for (++i; i < all.size() && (depth > 0 || text(all[i]) != ";"); ++i) {
        const std::string_view w = text(all[i]);
        depth += w == "{" || w == "(" || w == "[" ? 1 : w == "}" || w == ")" || w == "]" ? -1 : 0;
        if (depth == 0 && all[i].kind == Piece::Name) last = w;
      }
      typedefs_.insert(last);
    }
  }

  bool is_type(std::string_view w) const { return type_words().count(w) || typedefs_.count(w); }
  // True at the opening bracket of a cast such as "(unsigned char*)".
  bool is_cast(size_t open) const {
    if (word(open) != "(" || !partner_[open] || partner_[open] == open + 1) return false;
    bool named = false;
    for (size_t i = open + 1; i < partner_[open]; ++i) {
      const bool tag = i > 0 && (word(i - 1) == "struct" || word(i - 1) == "union" || word(i - 1) == "enum");
      if (is_type(word(i)) || tag)
        named = true;
      else if (word(i) != "*")
        return false;
    }
    return named;
  }

  // True for the braces of a compound literal, `(sides){1, 2}`, not of a block.
  bool is_literal(size_t brace) const { return brace > 0 && word(brace - 1) == ")" && is_cast(partner_[brace - 1]); }

  // True if an operand ends at this token, so that an operator after it is binary.
  bool ends_operand(size_t i) const {
    const std::string_view w = word(i);
    if (tokens_[i].kind == Piece::Name) return !among(kStops, w) && w != "sizeof";
    if (tokens_[i].kind != Piece::Sign) return true;
    if (w == ")") return !is_cast(partner_[i]) && !(partner_[i] > 0 && among(kHeads, word(partner_[i] - 1)));
    return w == "]" || w == "++" || w == "--" || (w == "}" && is_literal(partner_[i]));
  }

  // First token of the left operand of the operator at `op`: a chain of products, and everything that binds tighter.
  size_t left_of(size_t op) const {
    size_t first = op;
    for (size_t i = op; i-- > 0;) {
      const std::string_view w = word(i);
      if (tokens_[i].kind == Piece::Name) {
        if (among(kStops, w)) break;
      } else if (tokens_[i].kind == Piece::Sign) {
        if (w == ")" || w == "]" || w == "}") {
          const size_t open = partner_[i];
          if (w == ")" && open > 0 && among(kHeads, word(open - 1))) break;
          if (w == "}" && !is_literal(open)) break;
          i = open;
        } else if (w == "+" || w == "-" || w == "&") {
          if (i == 0 || ends_operand(i - 1)) break;
        } else if (w != "*" && w != "/" && w != "%" && w != "!" && w != "~" && w != "." && w != "->" && w != "++" && w != "--") {
          break;
        }
      }
      first = i;
    }
    return first;
  }

  // Last token of the operand that starts at `i`: what a cast applies to.
  size_t right_of(size_t i) const {
    const std::set<std::string_view> prefixes = {"+", "-", "~", "!", "*", "&", "++", "--", "sizeof"};
    for (;;) {
      if (prefixes.count(word(i)))
        ++i;
      else if (is_cast(i) && word(partner_[i] + 1) != "{")
        i = partner_[i] + 1;
      else
        break;
    }
    if (is_cast(i)) i = partner_[i] + 1;  // a compound literal
    if (word(i) == "(" || word(i) == "{") i = partner_[i];
    for (;;) {
      const std::string_view next = word(i + 1);
      if (next == "(" || next == "[")
        i = partner_[i + 1];
      else if (next == "." || next == "->")
        i += 2;
      else if (next == "++" || next == "--")
        ++i;
      else
        return std::min(i, tokens_.size() - 1);
    }
  }

  // True for a nonzero constant, as most divisors are. Such divisions stay, so that compilers can optimise them.
  bool is_harmless(size_t first, size_t last) const {
    if (word(first) == "sizeof") return true;
    while (first < last && word(first) == "(" && partner_[first] == last) ++first, --last;
    if (first != last || tokens_[first].kind != Piece::Number) return false;
    const std::string_view w = word(first);
    if (w.find('.') != w.npos) return true;
    return w.find_first_of(w.starts_with("0x") || w.starts_with("0X") ? "123456789abcdefABCDEF" : "123456789",
                           w.starts_with("0x") ? 2 : 0) != w.npos;
  }

  void spell(size_t first, size_t op, size_t last, const char* name) {
    if (first >= op || last <= op) return;
    opens_[first] = std::string(name) + "((" + opens_[first];  // earlier divisions are arguments of later ones
    instead_[op] = "), (";
    ++closes_[last];
  }
  void binary(size_t op, bool division) {
    if (op + 1 >= tokens_.size()) return;
    const size_t last = right_of(op + 1);
    if (!is_harmless(op + 1, last)) spell(left_of(op), op, last, division ? "naru_div" : "naru_mod");
  }
  void assignment(size_t op, bool division) {
    size_t last = op;
    int asked = 0;
    for (size_t i = op + 1; i < tokens_.size(); ++i) {
      const std::string_view w = word(i);
      if (w == "(" || w == "[" || w == "{")
        i = partner_[i];
      else if (w == "?")
        ++asked;
      else if (w == ";" || w == "," || w == ")" || w == "]" || w == "}" || (w == ":" && asked-- == 0))
        break;
      last = i;
    }
    if (!is_harmless(op + 1, last)) spell(left_of(op), op, last, division ? "naru_div_in" : "naru_mod_in");
  }

  const std::string& s_;
  size_t end_;
  std::vector<Piece> tokens_;
  std::vector<size_t> partner_;
  std::vector<bool> in_function_;
  std::set<std::string_view> typedefs_;
  std::vector<std::string> opens_, instead_;
  std::vector<size_t> closes_;
};

}  // namespace

bool has_division(const std::string& text) {
  const std::vector<Piece> tokens = tokens_of(text, 0, text.size());
  // Also searches directives: a macro may contain a division.
  if (text.find('#') != std::string::npos) return text.find('/') != std::string::npos || text.find('%') != std::string::npos;
  return std::any_of(tokens.begin(), tokens.end(),
                     [&](const Piece& t) { return t.kind == Piece::Sign && (text[t.at] == '/' || text[t.at] == '%'); });
}

std::string with_defined_division(const std::string& text) {
  size_t begin = text.find("1 \"kernel\""), end = text.rfind("1 \"naru\"");
  if (begin == std::string::npos || end == std::string::npos) return text;
  begin = text.rfind('\n', begin) + 1, end = text.rfind('\n', end) + 1;
  return text.substr(0, begin) + kDivision + Divisions(text, begin, end).spelled(begin) + text.substr(end);
}

std::string with_defined_division_in_opencl(const std::string& text) {
  const size_t begin = text.find('\n', text.find("1 \"kernel\"")) + 1;
  return text.substr(0, begin) + kOpenClDivision + "#line 1 \"kernel\"\n" + Divisions(text, begin, text.size()).spelled(begin);
}

}  // namespace naru::render::c
