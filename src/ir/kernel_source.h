// KernelSource: kernels written by users, in a small C dialect (docs/kernels.md), as far as they must be understood to check arguments and to
// be spelled out for a device: tokens, kernels with their parameters, and functions beside them.
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
// The tensors a pointer to it takes; none for unsigned types beyond 8 bits.
std::optional<DType> dtype_of(CType type) noexcept;

// Whether it is part of a type's name: "unsigned", "int", "half".
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
  bool directive = false;  // of a line that starts with #
  uint32_t at = 0, size = 0;
};

// A kernel, by positions of tokens.
struct KernelEntry {
  std::string name;
  std::vector<KernelParam> params;
  size_t head, body, end;    // `kernel` (`__global__`), `{`, one behind `}`
  bool barriers = false;     // it may meet one
  bool groups = false;       // it may see how items are grouped
  bool open_shared = false;  // it has a shared array whose length the call gives
};

// A function beside the kernels: where its name stands, and the brackets of its parameters. A declaration is one too.
struct FunctionHead {
  std::string name;
  size_t at, open, close;
};

class KernelSource {
 public:
  // The parsed source, the same object for the same text; lives as long as the process. Throws ValueError that names the line for what is no
  // kernel source.
  static const KernelSource& of(const std::string& text);

  uint64_t id() const noexcept { return id_; }
  const std::string& text() const noexcept { return text_; }
  // CUDA C++, with __global__: only real cuda devices take it as it is.
  bool native() const noexcept { return native_; }
  // Of such a source: the kernel of that number in the dialect, by itself, with lines and errors of this one. Throws NotImplementedError that names
  // the line of what can't be said there.
  const KernelSource& in_dialect(int kernel) const;
  bool was_cuda() const noexcept { return original_ != nullptr; }
  const std::vector<KernelEntry>& kernels() const noexcept { return kernels_; }
  // The number of a kernel. Throws ValueError with the names there are.
  int find(const std::string& name) const;

  const std::vector<Token>& tokens() const noexcept { return tokens_; }
  std::string_view word(size_t token) const noexcept { return std::string_view(text_).substr(tokens_[token].at, tokens_[token].size); }
  const std::vector<FunctionHead>& functions() const noexcept { return functions_; }
  // Whether the function, or macro, of that name asks where it runs (global_id(), barrier() ...), itself or through others.
  bool asks_where(std::string_view name) const noexcept;
  bool is_function(std::string_view name) const noexcept;
  // Lines count from 1. The text of one, without the space around it.
  int line_at(size_t offset) const noexcept;
  std::string line(int number) const;
  size_t matching(size_t open) const noexcept;  // the token that closes the bracket; tokens().size() where there is none

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
  const KernelSource* original_ = nullptr;  // which this is a translation of
  mutable std::mutex translating_;
  mutable std::map<int, std::unique_ptr<const KernelSource>> translated_;  // by kernel
};

// What a compiler said of a kernel, told in the user's lines: "vec_add: the C compiler (gcc 12.2.0) refused it: line 3: ...". The text that was
// compiled calls the source "kernel".
std::string refusal(const KernelSource& source, const std::string& kernel, const std::string& compiler, const std::string& log);

}  // namespace naru::ir
