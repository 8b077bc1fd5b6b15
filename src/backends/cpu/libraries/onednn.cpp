#include "backends/cpu/libraries/onednn.h"

#include <fmt/format.h>

#include <vector>

#include "runtime/os/library.h"
#include "runtime/os/system.h"

namespace naru::cpu {
namespace {

struct Version {
  int major, minor, patch;
};

struct OneDnn {
  void* library = nullptr;
  std::string name;
  int major = 0;
  // Looked up in the libraries that oneDNN itself uses. If they are missing, oneDNN was built for one thread.
  void (*omp_set_num_threads)(int) = nullptr;
  int (*omp_get_max_threads)() = nullptr;

  OneDnn() {
    // The system's, else that of a wheel (onednn-cpu-gomp), which is two folders above Python's packages.
    // (On Windows in the environment's folder Library; there are none for macOS, and Homebrew's are in no folder of the system's.)
    constexpr runtime::PerSystem kNames[] = {{"libdnnl.so.2", "/opt/homebrew/opt/onednn/lib/libdnnl.3.dylib", "dnnl.dll"},
                                             {"libdnnl.so.3", "/usr/local/opt/onednn/lib/libdnnl.3.dylib"}};
    std::vector<std::string> names;
    for (const runtime::PerSystem& name : kNames)
      if (const char* here = name.here()) names.push_back(here);
    if (const char* wheel = runtime::system::own("/../../libdnnl.so.3", nullptr, "/../../Library/bin/dnnl.dll"))
      for (const std::string& folder : runtime::Library::package_folders()) names.push_back(folder + wheel);
    for (const std::string& place : names)
      // The process may have loaded another version of oneDNN with global symbols (libtorch has one): bind ours to its own symbols.
      if ((library = runtime::system::open_library(place, true).library)) break;
    if (!library) return;
    omp_set_num_threads = reinterpret_cast<void (*)(int)>(runtime::system::function_of(library, "omp_set_num_threads"));
    omp_get_max_threads = reinterpret_cast<int (*)()>(runtime::system::function_of(library, "omp_get_max_threads"));
    if (!omp_set_num_threads) omp_get_max_threads = nullptr;
    name = "oneDNN";
    if (auto version = reinterpret_cast<const Version* (*)()>(runtime::system::function_of(library, "dnnl_version"))) {
      const Version* v = version();
      name += fmt::format(" {}.{}.{}", v->major, v->minor, v->patch);
      major = v->major;
    }
  }
};

const OneDnn& onednn() {
  static const auto* const one = new OneDnn;
  return *one;
}

}  // namespace

void* onednn_function(const char* name) { return onednn().library ? runtime::system::function_of(onednn().library, name) : nullptr; }
const std::string& onednn_name() { return onednn().name; }
int onednn_major() { return onednn().major; }

OneOpenMpThread::OneOpenMpThread() noexcept : before_(onednn().omp_get_max_threads ? onednn().omp_get_max_threads() : 1) {
  if (before_ != 1) onednn().omp_set_num_threads(1);
}
OneOpenMpThread::~OneOpenMpThread() {
  if (before_ != 1) onednn().omp_set_num_threads(before_);
}

}  // namespace naru::cpu
