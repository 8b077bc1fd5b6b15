// Library: a driver or a vendor's library, opened at run time. None of them is linked.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace naru::runtime {

// What a library is called on each system, as a bare name, which the system looks up in its own folders, or as a path. Null: not there.
struct PerSystem {
  const char *on_linux, *on_macos = nullptr, *on_windows = nullptr;
  const char* here() const noexcept;
};

class Library {
 public:
  Library() = default;
  // Opens the file that the environment variable `variable` names, if set; else the first of `loaded` that is already loaded in this
  // process; else the first of `names` that exists. Libraries are never closed, because drivers leave threads and exit handlers.
  static Library open(const char* variable, std::span<const char* const> names, std::span<const char* const> loaded = {});
  static Library open(const char* variable, std::initializer_list<const char*> names) {
    return open(variable, std::span(names.begin(), names.size()));
  }
  // Of the names, those of this system.
  static Library open(const char* variable, std::span<const PerSystem> names);

  // Folders of Python packages, some of which bring their own libraries ("wheels"): those set last, the one that contains this library's
  // package, those of the active environment (VIRTUAL_ENV), and the one configured at build time. Thread-safe.
  static void set_package_folders(std::vector<std::string> folders);
  static std::vector<std::string> package_folders();

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  // Sets `function` to the library's function. Returns false and sets null if it has none; see missing().
  template <class F>
  bool find(F*& function, const char* symbol) {
    function = reinterpret_cast<F*>(address(symbol));
    return function != nullptr;
  }
  // For a function that older libraries lack: does not change missing().
  template <class F>
  bool find_optional(F*& function, const char* symbol) {
    const std::string missing = missing_;
    const bool found = find(function, symbol);
    missing_ = missing;
    return found;
  }
  // The name it was opened by: "libcuda.so.1".
  const std::string& name() const noexcept { return name_; }
  // The path of the opened file: "/usr/lib/x86_64-linux-gnu/libcuda.so.570.86".
  std::string path() const;
  // The first function that was not found; "" if all were found.
  const std::string& missing() const noexcept { return missing_; }
  // Why it can't be used, in a few words: not found, damaged, or lacking a function; "" if it is usable.
  std::string trouble() const;

 private:
  void* address(const char* symbol);

  void* handle_ = nullptr;
  std::string name_, error_, missing_;
};

}  // namespace naru::runtime
