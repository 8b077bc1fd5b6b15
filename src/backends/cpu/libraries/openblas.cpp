#include "backends/cpu/libraries/openblas.h"

#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/os/library.h"
#include "runtime/os/system.h"

namespace naru::cpu {
namespace {

// Sets an environment variable while a library loads.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    runtime::system::set_variable(name, value);
  }
  Environment(const Environment&) = delete;
  ~Environment() {
    if (before_)
      runtime::system::set_variable(name_, before_->c_str());
    else
      runtime::system::unset_variable(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

// Apple's library has BLAS and LAPACK by the same names as OpenBLAS.
constexpr const char* kAccelerate = "/System/Library/Frameworks/Accelerate.framework/Accelerate";

std::vector<std::string> places() {
  std::vector<std::string> all;
  if (const char* path = std::getenv("NARU_OPENBLAS"); path && *path) all.push_back(path);
  // The wheel scipy-openblas32.
  const char* const wheel = runtime::system::own("libscipy_openblas.so", "libscipy_openblas.dylib", "libscipy_openblas.dll");
  for (const std::string& folder : runtime::Library::package_folders()) all.push_back(folder + "/scipy_openblas32/lib/" + wheel);
  // The system's own. (macOS: Homebrew's for both kinds of processors, which no folder of the system's has; then Apple's library.)
  constexpr runtime::PerSystem kNames[] = {{"libopenblas.so.0", "/opt/homebrew/opt/openblas/lib/libopenblas.dylib", "libopenblas.dll"},
                                           {nullptr, "/usr/local/opt/openblas/lib/libopenblas.dylib"},
                                           {nullptr, kAccelerate}};
  for (const runtime::PerSystem& name : kNames)
    if (const char* here = name.here()) all.push_back(here);
  return all;
}

const char* core_type() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return "SKYLAKEX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "HASWELL";
#endif
  return nullptr;
}

struct OpenBlas {
  void* library = nullptr;
  std::string name;

  OpenBlas() {
    // Read when the library loads; restored before another library could read it.
    // One thread, whatever the user's settings: OpenBLAS's own threads would busy-wait on the processors of our pool.
    const Environment one("OPENBLAS_NUM_THREADS", "1");
    std::optional<Environment> kernel;
    if (const char* core = core_type(); core && !std::getenv("OPENBLAS_CORETYPE")) kernel.emplace("OPENBLAS_CORETYPE", core);
    const Environment one_of_apple("VECLIB_MAXIMUM_THREADS", "1");
    for (const std::string& place : places()) {
      if (!(library = runtime::system::open_library(place).library)) continue;
      name = place == kAccelerate ? "Accelerate" : "OpenBLAS";
      break;
    }
    if (!library) return;
    if (auto set = reinterpret_cast<void (*)(int)>(find("openblas_set_num_threads"))) set(1);
    if (auto config = reinterpret_cast<const char* (*)()>(find("openblas_get_config"))) {
      // "OpenBLAS 0.3.34 DYNAMIC_ARCH ..."
      const std::string_view text = config();
      name = std::string(text.substr(0, text.find(' ', text.find(' ') + 1)));
    }
    if (auto corename = reinterpret_cast<const char* (*)()>(find("openblas_get_corename"))) name += std::string(" (") + corename() + ")";
  }
  // The wheel's names have a prefix, Debian's do not.
  void* find(const char* function) const {
    if (!library) return nullptr;
    if (void* f = runtime::system::function_of(library, (std::string("scipy_") + function).c_str())) return f;
    return runtime::system::function_of(library, function);
  }
};

const OpenBlas& openblas() {
  static const auto* const one = new OpenBlas;
  return *one;
}

}  // namespace

void* openblas_function(const char* name) { return openblas().find(name); }
const std::string& openblas_name() { return openblas().name; }

}  // namespace naru::cpu
