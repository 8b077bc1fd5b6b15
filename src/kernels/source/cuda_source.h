// Translates CUDA C++ kernels to naru's dialect (docs/kernels.md): the structure of a source, and its translation token by token, which
// keeps line numbers.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/source/kernel_source.h"

namespace naru::ir {

// A declaration at file scope, as token indices. Includes those within `extern "C" {}` and `namespace {}`.
struct CudaPart {
  enum class Kind : uint8_t { Kernel, Function, Variable, Type, Other };
  Kind kind = Kind::Other;
  size_t begin = 0, end = 0;
  std::string name;                              // for a kernel or function
  size_t at = 0, open = 0, close = 0, body = 0;  // tokens: its name, the brackets of its parameters, `{`; 0: none
  bool device = false, host = false, templated = false;
};

// #define NAME ...: its tokens, starting at #, and the first token of its body.
struct CudaMacro {
  std::string name;
  size_t begin = 0, text = 0, end = 0;
};

struct CudaLayout {
  std::vector<CudaPart> parts;
  std::vector<CudaMacro> macros;
  std::vector<size_t> around;  // tokens of extern "C" { } and namespace { }
  // All names reachable from `first`: functions and macros, every other name in their bodies, and names in preprocessor conditions.
  std::set<std::string> reached_from(const KernelSource& source, const std::vector<const CudaPart*>& first) const;
};

CudaLayout cuda_layout(const KernelSource& source);
// Marks the tokens of host functions: those that no kernel calls and that have no device attribute, such as main() and what it calls.
std::vector<bool> host_code(const KernelSource& source);

// A source's tokens and their replacements.
struct Spelling {
  explicit Spelling(const KernelSource& source);
  const KernelSource& source;
  std::vector<std::string> words, before;  // per token: its text, and text to insert before it
  std::vector<bool> gone;

  bool is(size_t i, std::string_view word) const { return i < words.size() && !gone[i] && source.word(i) == word; }
  bool is_name(size_t i) const { return i < words.size() && source.tokens()[i].kind == Token::Kind::Name; }
  void drop(size_t i) { words[i].clear(), gone[i] = true; }
  void drop(size_t begin, size_t end);
  std::string text() const;
  // Throws NotImplementedError that names the line.
  [[noreturn]] void refuse(size_t token, const std::string& why) const;
};

// Tables of names: functions with the same name in the dialect, generic functions (exp, min: chosen by argument type), and CUDA's own.
struct CudaWords {
  static const char* function(std::string_view name) noexcept;              // its replacement in a call; null: unknown
  static const char* word(std::string_view name) noexcept;                  // replacement of any other word; null: unchanged
  static const char* refusal(std::string_view name, bool called) noexcept;  // why it can't be translated; null: it can
  static bool is_header(std::string_view name) noexcept;                    // a header that kernels do not need
  static bool is_taken(std::string_view name) noexcept;                     // the dialect uses the name for something else
};

// Writes the address space that the dialect requires before the types of pointers: shared, private or constant.
void write_address_spaces(Spelling& spelling, const std::vector<const CudaPart*>& functions, const std::vector<const CudaPart*>& constants,
                          const std::set<std::string>& types);

// The text of one kernel in the dialect, with the functions that it calls. Throws NotImplementedError that names the word and the line if
// something has no translation.
std::string cuda_in_dialect(const KernelSource& source, const KernelEntry& wanted);

}  // namespace naru::ir
