// Library: a driver or a vendor's library, opened at run time. Nothing of them is linked.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace naru::runtime {

class Library {
 public:
  Library() = default;
  // Opens the file that the environment's `variable` names, where it is set; else the first of `loaded` that this process has opened
  // already; else the first of `names` that there is. Libraries are never closed: drivers leave threads and exit handlers behind.
  static Library open(const char* variable, std::span<const char* const> names, std::span<const char* const> loaded = {});
  static Library open(const char* variable, std::initializer_list<const char*> names) {
    return open(variable, std::span(names.begin(), names.size()));
  }

  // Folders that hold Python packages, some of which bring libraries of their own ("wheels"): those last set, the one that this library's
  // package lies in, those of the active environment (VIRTUAL_ENV), and the one named when this was built. Thread-safe.
  static void set_package_folders(std::vector<std::string> folders);
  static std::vector<std::string> package_folders();

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  // Sets `function` to the library's function; false (and `function` null) where it has none: see missing().
  template <class F>
  bool find(F*& function, const char* symbol) {
    function = reinterpret_cast<F*>(address(symbol));
    return function != nullptr;
  }
  // One that older libraries lack, which is no trouble.
  template <class F>
  bool find_optional(F*& function, const char* symbol) {
    const std::string missing = missing_;
    const bool found = find(function, symbol);
    missing_ = missing;
    return found;
  }
  // The name under which it was opened: "libcuda.so.1".
  const std::string& name() const noexcept { return name_; }
  // The file that was opened: "/usr/lib/x86_64-linux-gnu/libcuda.so.570.86".
  std::string path() const;
  // The first function that was looked for in vain; "" where all were found.
  const std::string& missing() const noexcept { return missing_; }
  // In a few words why it can't be used: not there, damaged, or lacking a function; "" where nothing is wrong.
  std::string trouble() const;

 private:
  void* address(const char* symbol);

  void* handle_ = nullptr;
  std::string name_, error_, missing_;
};

}  // namespace naru::runtime
