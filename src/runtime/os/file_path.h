// All of naru's interfaces take paths as UTF-8 text; std::filesystem converts to the system's own form.
#pragma once

#include <filesystem>
#include <string>

namespace naru::runtime {

inline std::filesystem::path file_path(const std::string& text) { return {std::u8string(text.begin(), text.end())}; }
// With forward slashes, which every system accepts.
inline std::string path_text(const std::filesystem::path& path) {
  const std::u8string text = path.generic_u8string();
  return {text.begin(), text.end()};
}

}  // namespace naru::runtime
