// The parts common to Linux and macOS.
#include "runtime/os/system.h"

#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

namespace naru::runtime::system {

int process_id() noexcept { return getpid(); }

bool at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) noexcept {
  return pthread_atfork(before, in_parent, in_child) == 0;
}

void set_variable(const char* name, const char* value, bool replace) noexcept { ::setenv(name, value, replace ? 1 : 0); }
void unset_variable(const char* name) noexcept { ::unsetenv(name); }

bool random_bytes(void* to, size_t bytes) noexcept { return getentropy(to, bytes) == 0; }

bool has_file_like(const char* pattern) noexcept {
  glob_t found{};
  const int status = ::glob(pattern, 0, nullptr, &found);
  ::globfree(&found);
  return status == 0;
}

size_t page_bytes() noexcept {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void* map_pages(size_t bytes) noexcept {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void* map_addresses(size_t bytes) noexcept {
  void* const memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void unmap(void* memory, size_t bytes) noexcept { munmap(memory, bytes); }

void* map_shared(int file, size_t bytes) noexcept {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (file < 0 ? MAP_ANONYMOUS : 0), file, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}
void unmap_shared(void* memory, size_t bytes) noexcept { munmap(memory, bytes); }
void close_shared(int file) noexcept { close(file); }

void* loaded_library(const char* name) noexcept { return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); }

Opened open_library(const std::string& name, bool own_symbols) {
  // Sanitizers do not support RTLD_DEEPBIND; on macOS each library always has its own symbols (two-level namespaces).
#if !defined(RTLD_DEEPBIND) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kOwnSymbols = 0;
#else
  constexpr int kOwnSymbols = RTLD_DEEPBIND;
#endif
  Opened opened;
  opened.library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | (own_symbols ? kOwnSymbols : 0));
  if (opened.library) return opened;
  const char* const error = dlerror();
  opened.error = error ? error : name + ": can't be opened";
  return opened;
}

void* function_of(void* library, const char* name) noexcept { return dlsym(library, name); }

std::string path_of_code(const void* code) {
  Dl_info info;
  return dladdr(code, &info) && info.dli_fname ? info.dli_fname : "";
}

}  // namespace naru::runtime::system
