#include "core/language.h"

#include <fmt/format.h>

namespace naru {

constinit std::atomic<Language*> program_language{nullptr};

std::string line_text(uint32_t line) {
  Language* const l = language();
  return l && line ? l->line_text(line) : std::string();
}

bool program_in_python() noexcept {
  const Language* const l = language();
  return l && l->is_python();
}

std::string spelled_move(std::string_view tensor, Device to) {
  return program_in_python() ? fmt::format("{}.to('{}')", tensor, to.str()) : fmt::format("{}.to(Device(\"{}\"))", tensor, to.str());
}

}  // namespace naru
