// What depends on the language of the user's program: lines, stacks, and how messages spell names.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "naru/device.h"

namespace naru {

// The Python module hands in its own when it is imported, before anything is computed; a C++ program has one from its first
// SourceLocationScope on. It is never destroyed.
class Language {
 public:
  // Whether messages spell names as Python does.
  virtual bool is_python() const noexcept = 0;
  // The current source location in the user's program as a number; 0 if unknown.
  virtual uint32_t line() noexcept = 0;
  // "train.py:12", or "" for 0.
  virtual std::string line_text(uint32_t line) = 0;
  // The number of the current call stack; 0 unless a memory history is recorded.
  virtual uint32_t call_stack() noexcept { return 0; }
  // The current call stack as text, where the language has one of its own.
  virtual std::optional<std::string> stack_text() { return std::nullopt; }
  // Releases the object of the language that a tensor owns, when the tensor dies.
  virtual void release(void* object) noexcept { static_cast<void>(object); }

 protected:
  ~Language() = default;
};
extern constinit std::atomic<Language*> program_language;

inline Language* language() noexcept { return program_language.load(std::memory_order_acquire); }
// As the language's functions; 0 and "" without one.
inline uint32_t current_line() noexcept {
  Language* const l = language();
  return l ? l->line() : 0;
}
std::string line_text(uint32_t line);

bool program_in_python() noexcept;
inline const char* spelled(const char* cpp, const char* python) noexcept { return program_in_python() ? python : cpp; }
// other.to(Device("cuda:0")), other.to('cuda:0')
std::string spelled_move(std::string_view tensor, Device to);

}  // namespace naru
