#include "runtime/os/library.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <utility>

#include "runtime/os/file_path.h"
#include "runtime/os/system.h"

// Programs of naru's own build link another object, which defines the path of the build's Python packages (src/CMakeLists.txt).
extern "C" {
[[gnu::weak]] extern const char* naru_packages;
const char* naru_packages = nullptr;
}

namespace naru::runtime {
namespace {

struct Folders {
  std::mutex mutex;
  std::vector<std::string> list;
};
Folders& folders() {
  static auto* const f = new Folders;
  return *f;
}

// For ".../site-packages/naru/_C.so": ".../site-packages".
std::string folder_of_this_package() {
  const std::string path = system::path_of_code(reinterpret_cast<const void*>(&folder_of_this_package));
  if (path.empty()) return {};
  const size_t slash = path.rfind('/');
  return (slash == std::string::npos ? std::string(".") : path.substr(0, slash)) + "/..";
}

// The packages of the active environment (VIRTUAL_ENV), for programs that were not started by Python.
void add_active_environment(std::vector<std::string>& all) {
  const char* home = std::getenv("VIRTUAL_ENV");
  if (!home || !*home) return;
  if (const char* folder = system::own(nullptr, nullptr, "/Lib/site-packages")) {
    all.push_back(std::string(home) + folder);
    return;
  }
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(file_path(std::string(home) + "/lib"), none))
    if (path_text(entry.path().filename()).starts_with("python3")) all.push_back(path_text(entry.path()) + "/site-packages");
}

}  // namespace

const char* PerSystem::here() const noexcept { return system::own(on_linux, on_macos, on_windows); }

void Library::set_package_folders(std::vector<std::string> list) {
  const std::lock_guard lock(folders().mutex);
  folders().list = std::move(list);
}

std::vector<std::string> Library::package_folders() {
  std::vector<std::string> all;
  {
    const std::lock_guard lock(folders().mutex);
    all = folders().list;
  }
  if (std::string own = folder_of_this_package(); !own.empty()) all.push_back(std::move(own));
  add_active_environment(all);
  if (naru_packages && *naru_packages) all.emplace_back(naru_packages);
  return all;
}

Library Library::open(const char* variable, std::span<const char* const> names, std::span<const char* const> loaded) {
  const char* chosen = variable ? std::getenv(variable) : nullptr;
  if (chosen && *chosen) names = {&chosen, 1}, loaded = {};
  Library library;
  for (const char* name : loaded) {
    library.handle_ = system::loaded_library(name);
    if (!library.handle_) continue;
    library.name_ = name;
    return library;
  }
  bool said_of_bare = false;
  for (const char* name : names) {
    auto opened = system::open_library(name);
    library.handle_ = opened.library;
    if (library.handle_) {
      library.name_ = name;
      library.error_.clear();
      return library;
    }
    // Prefer the error for the bare name: it is the usual one, and the most informative.
    const bool bare = !std::strchr(name, '/');
    if (library.error_.empty() || (bare && !said_of_bare)) library.error_ = std::move(opened.error);
    said_of_bare |= bare;
  }
  if (library.error_.empty()) library.error_ = "there is none that can be used";
  return library;
}

Library Library::open(const char* variable, std::span<const PerSystem> names) {
  std::vector<const char*> own;
  for (const PerSystem& name : names)
    if (const char* here = name.here()) own.push_back(here);
  if (!own.empty()) return open(variable, own);
  Library none = open(variable, std::span<const char* const>());
  if (!none && none.error_.empty()) none.error_ = "there is none for this system";
  return none;
}

void* Library::address(const char* symbol) {
  void* found = handle_ ? system::function_of(handle_, symbol) : nullptr;
  if (handle_ && !found && missing_.empty()) missing_ = symbol;
  return found;
}

std::string Library::path() const {
  const std::string path = handle_ ? system::path_of(handle_) : "";
  return path.empty() ? name_ : path;
}

std::string Library::trouble() const {
  if (!handle_) return error_;
  return missing_.empty() ? "" : fmt::format("{} has no function {}", name_, missing_);
}

}  // namespace naru::runtime
