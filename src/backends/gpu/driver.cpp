#include "backends/gpu/driver.h"

#include <fmt/format.h>

#include <string_view>

namespace naru::backends::gpu {

std::string Driver::error_text(Result code) const {
  const char* name = error_word ? error_word(code) : nullptr;
  const char* text = error_sentence ? error_sentence(code) : nullptr;
  if (error_name && error_name(code, &name) != kSuccess) name = nullptr;
  if (!name) return std::to_string(code);
  if (error_string && error_string(code, &text) != kSuccess) text = nullptr;
  return fmt::format("{} {}{}", code, name, text ? fmt::format(" ({})", text) : "");
}

std::string_view plain_name(const char* symbol) noexcept {
  std::string_view name(symbol);
  const size_t end = name.rfind("_v");
  return end == name.npos ? name : name.substr(0, end);
}

}  // namespace naru::backends::gpu
