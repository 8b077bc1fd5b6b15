#include "runtime/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <utility>

// In the programs of naru's own build: where the build's Python packages are (src/CMakeLists.txt).
extern "C" [[gnu::weak]] const char naru_packages[];

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

// ".../site-packages" of ".../site-packages/naru/_C.so".
std::string folder_of_this_package() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&folder_of_this_package), &info) || !info.dli_fname) return {};
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return (slash == std::string::npos ? std::string(".") : path.substr(0, slash)) + "/..";
}

// The packages of the environment that is active (VIRTUAL_ENV), for programs that no Python started.
void add_active_environment(std::vector<std::string>& all) {
  const char* home = std::getenv("VIRTUAL_ENV");
  if (!home || !*home) return;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(home) + "/lib", none))
    if (entry.path().filename().string().starts_with("python3")) all.push_back(entry.path().string() + "/site-packages");
}

}  // namespace

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
  if (&naru_packages[0] && naru_packages[0]) all.emplace_back(naru_packages);
  return all;
}

Library Library::open(const char* variable, std::span<const char* const> names) {
  const char* chosen = variable ? std::getenv(variable) : nullptr;
  if (chosen && *chosen) names = {&chosen, 1};
  Library library;
  for (const char* name : names) {
    library.handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library.handle_) {
      library.name_ = name;
      library.error_.clear();
      return library;
    }
    // The first name is the usual one: what is said of it tells most.
    const char* error = dlerror();
    if (library.error_.empty()) library.error_ = error ? error : fmt::format("{}: can't be opened", name);
  }
  return library;
}

void* Library::address(const char* symbol) {
  void* found = handle_ ? dlsym(handle_, symbol) : nullptr;
  if (handle_ && !found && missing_.empty()) missing_ = symbol;
  return found;
}

std::string Library::path() const {
  const link_map* map = nullptr;
  if (!handle_ || dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || !map) return name_;
  const std::unique_ptr<char, decltype(&free)> real(realpath(map->l_name, nullptr), &free);
  return real ? real.get() : map->l_name;
}

std::string Library::trouble() const {
  if (!handle_) return error_;
  return missing_.empty() ? "" : fmt::format("{} has no function {}", name_, missing_);
}

}  // namespace naru::runtime
