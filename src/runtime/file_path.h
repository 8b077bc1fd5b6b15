// Paths are text in UTF-8 in all of naru's interfaces; a system's own form of them is std::filesystem's.
#pragma once

#include <filesystem>
#include <string>

namespace naru::runtime {

inline std::filesystem::path file_path(const std::string& text) { return {std::u8string(text.begin(), text.end())}; }
// With slashes, which every system takes.
inline std::string path_text(const std::filesystem::path& path) {
  const std::u8string text = path.generic_u8string();
  return {text.begin(), text.end()};
}

}  // namespace naru::runtime
