// The lower layers of the reader of PTX: its tokens, and what names and numbers stand for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/ptx/decode.h"

namespace naru::backends::ptx {

// The text, token by token.
class Tokens {
 protected:
  explicit Tokens(std::string_view text) : text_(text) {}
  // The next token: a word, a sign, a quoted text; empty at the end.
  void next();
  bool is(std::string_view word) const noexcept { return token_ == word; }
  bool take(std::string_view word);
  void expect(std::string_view word);
  std::string take_word();
  void skip_line();
  void skip_braces();
  int64_t number(const std::string& word) const;
  int64_t take_number();

  const std::string_view text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  std::string_view token_;
};

// What the names of a module stand for, and immediates, which become constants of the program.
class Scopes : public Names, protected Tokens {
 public:
  Operand source(const Arg& arg, Type type) override;
  Operand destination(const Arg& arg, Type type) override;
  Operand any_register(const std::string& word, int& bytes) override;
  bool is_register(const std::string& word) const override;
  int16_t predicate(const Arg& arg) override;
  int16_t predicate_destination(const std::string& word) override;
  void add_to_list(Instruction& i, Operand element) override;

 protected:
  struct Symbol {
    enum Kind : uint8_t { Register, Predicate, Variable, EntryParameter, Argument, Local, Function } kind = Register;
    uint64_t at = 0;    // of registers: bytes; of predicates: the number; else as in its space
    int bytes = 0;      // of a register
    uint64_t size = 0;  // of memory
    Space space = Space::Generic;
  };

  explicit Scopes(std::string_view text) : Tokens(text), program_(std::make_unique<Program>()) {}
  const Symbol* find(const std::string& word) const;
  static Operand check_size(const Symbol& s, const std::string& word, Type type);
  uint32_t take_register(int bytes);
  Operand constant(const void* value, int bytes);
  static double float_of(const std::string& word);
  static bool is_float_text(const std::string& word) noexcept;
  Operand immediate(const std::string& word, Type type);
  std::optional<Operand> special_of(const std::string& word, int bytes);
  // The address of a variable, as a value of so many bytes.
  Operand address_of(const Symbol& s, int64_t offset, int bytes);

  std::unique_ptr<Program> program_;
  std::vector<std::map<std::string, Symbol>> scopes_;
  std::map<std::string, int32_t> constants_;
  std::map<std::pair<Special, int>, Operand> specials_;
  std::vector<int> special_bytes_;
  std::vector<uint32_t> addresses_;
};

}  // namespace naru::backends::ptx
