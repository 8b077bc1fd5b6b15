// CUDA C++ kernels in naru's dialect (docs/kernels.md): what stands in a source, and its translation, token by token, so that lines keep their numbers.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel_source.h"

namespace naru::ir {

// A declaration at file scope, by positions of tokens. Those within `extern "C" {}` and `namespace {}` are among them.
struct CudaPart {
  enum class Kind : uint8_t { Kernel, Function, Variable, Type, Other };
  Kind kind = Kind::Other;
  size_t begin = 0, end = 0;
  std::string name;                              // of a kernel or function
  size_t at = 0, open = 0, close = 0, body = 0;  // its name, the brackets of its parameters, `{`; 0 where there is none
  bool device = false, host = false, templated = false;
};

// #define NAME ...: its tokens, from # on, and where its text begins.
struct CudaMacro {
  std::string name;
  size_t begin = 0, text = 0, end = 0;
};

struct CudaLayout {
  std::vector<CudaPart> parts;
  std::vector<CudaMacro> macros;
  std::vector<size_t> around;  // extern "C" { }, namespace { }
  // Names that `first` leads to: of functions and macros, and all others in their texts; and those that conditions ask for.
  std::set<std::string> reached_from(const KernelSource& source, const std::vector<const CudaPart*>& first) const;
};

CudaLayout cuda_layout(const KernelSource& source);
// The tokens of functions that no kernel calls and nothing marks as a device's: main() and what it calls.
std::vector<bool> host_code(const KernelSource& source);

// A source's tokens, and what stands in their places.
struct Spelling {
  explicit Spelling(const KernelSource& source);
  const KernelSource& source;
  std::vector<std::string> words, before;  // of each token; and what stands in front of it
  std::vector<bool> gone;

  bool is(size_t i, std::string_view word) const { return i < words.size() && !gone[i] && source.word(i) == word; }
  bool is_name(size_t i) const { return i < words.size() && source.tokens()[i].kind == Token::Kind::Name; }
  void drop(size_t i) { words[i].clear(), gone[i] = true; }
  void drop(size_t begin, size_t end);
  std::string text() const;
  // Throws NotImplementedError with the line.
  [[noreturn]] void refuse(size_t token, const std::string& why) const;
};

// Of functions that are known under their own names, generic ones (exp, min: whatever the arguments are), and CUDA's own.
struct CudaWords {
  static const char* function(std::string_view name) noexcept;              // what stands for it in a call; null: unknown
  static const char* word(std::string_view name) noexcept;                  // for any other; null: itself
  static const char* refusal(std::string_view name, bool called) noexcept;  // why it can't be translated; null: it is none of those
  static bool is_header(std::string_view name) noexcept;                    // that a kernel does without
  static bool is_taken(std::string_view name) noexcept;                     // by the dialect, for something else
};

// Says what memory pointers lead to, as the dialect wants it: shared, private or constant before their types.
void spell_pointers(Spelling& spelling, const std::vector<const CudaPart*>& functions, const std::vector<const CudaPart*>& constants,
                    const std::set<std::string>& types);

// The one kernel, with the functions that it calls. Throws NotImplementedError that names the word and the line of what has no translation.
std::string cuda_in_dialect(const KernelSource& source, const KernelEntry& wanted);

}  // namespace naru::ir
