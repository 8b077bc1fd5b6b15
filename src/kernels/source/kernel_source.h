// KernelSource: user kernels in a small C dialect (docs/kernels.md), parsed as far as needed to check arguments and to render them for a
// device: tokens, kernels with their parameters, and other functions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "naru/dtype.h"

namespace naru::ir {

// Types of parameters.
enum class CType : uint8_t { Bool, I8, U8, I16, U16, I32, U32, I64, U64, Half, BFloat, F32, F64 };
// The dtype of tensors that a pointer to it accepts; none for unsigned types wider than 8 bits.
std::optional<DType> dtype_of(CType type) noexcept;

// True if the word is part of a type's name: "unsigned", "int", "half".
bool is_type_word(std::string_view word) noexcept;

struct KernelParam {
  std::string name;
  CType type = CType::F32;
  bool pointer = false, constant = false;
  // "const float* a".
  std::string text() const;
};

struct Token {
  enum class Kind : uint8_t { Name, Number, Text, Sign } kind;
  bool directive = false;  // on a line that starts with #
  uint32_t at = 0, size = 0;
};

// A kernel, as token indices.
struct KernelEntry {
  std::string name;
  std::vector<KernelParam> params;
  size_t head, body, end;    // `kernel` (`__global__`), `{`, one past `}`
  bool barriers = false;     // it may reach a barrier
  bool groups = false;       // it may read its group's index or size
  bool open_shared = false;  // it has a shared array whose size the call gives
};

// A function that is not a kernel: the token of its name and the brackets of its parameters. Includes declarations.
struct FunctionHead {
  std::string name;
  size_t at, open, close;
};

class KernelSource {
 public:
  // The parsed source, the same object for equal text; lives as long as the process. Throws ValueError that names the line if the text is
  // no valid kernel source.
  static const KernelSource& of(const std::string& text);

  uint64_t id() const noexcept { return id_; }
  const std::string& text() const noexcept { return text_; }
  // CUDA C++, with __global__. Only real cuda devices compile it untranslated.
  bool native() const noexcept { return native_; }
  // For a native source: its kernel with that number, translated to the dialect on its own, with the lines and errors of this source.
  // Throws NotImplementedError that names the line of what can't be translated.
  const KernelSource& in_dialect(int kernel) const;
  bool was_cuda() const noexcept { return original_ != nullptr; }
  const std::vector<KernelEntry>& kernels() const noexcept { return kernels_; }
  // The number of a kernel. Throws ValueError that lists the existing names.
  int find(const std::string& name) const;

  const std::vector<Token>& tokens() const noexcept { return tokens_; }
  std::string_view word(size_t token) const noexcept { return std::string_view(text_).substr(tokens_[token].at, tokens_[token].size); }
  const std::vector<FunctionHead>& functions() const noexcept { return functions_; }
  // True if the function or macro of that name uses the item's position (global_id(), barrier() ...), directly or through others.
  bool uses_item_position(std::string_view name) const noexcept;
  bool is_function(std::string_view name) const noexcept;
  // Line numbers start from 1. line() returns a line's text without surrounding space.
  int line_at(size_t offset) const noexcept;
  std::string line(int number) const;
  size_t matching(size_t open) const noexcept;  // the closing bracket's token; tokens().size() if there is none

 private:
  struct Body {
    std::string name;
    size_t begin, end;
    bool asks = false, barriers = false, groups = false;
  };

  KernelSource(std::string text, const KernelSource* original = nullptr);
  void tokenize();
  void parse();
  void parse_kernel(size_t& at);
  KernelParam parse_param(size_t begin, size_t end, const std::string& kernel) const;
  void find_macros();
  void find_uses();
  void refuse_recursion() const;
  [[noreturn]] void refuse(size_t token, const std::string& why) const;

  uint64_t id_;
  std::string text_;
  bool native_ = false;
  std::vector<Token> tokens_;
  std::vector<KernelEntry> kernels_;
  std::vector<FunctionHead> functions_;
  std::vector<Body> bodies_;                // of functions and macros
  const KernelSource* original_ = nullptr;  // the source that this is a translation of
  mutable std::mutex translating_;
  mutable std::map<int, std::unique_ptr<const KernelSource>> translated_;  // by kernel number
};

// A compiler's error message about a kernel, with the user's line numbers: "vec_add: the C compiler (gcc 12.2.0) refused it: line 3: ...".
// In the compiled text, #line must name the source "kernel".
std::string refusal(const KernelSource& source, const std::string& kernel, const std::string& compiler, const std::string& log);

}  // namespace naru::ir
