// What naru asks of the operating system beyond C++'s library. system_linux.cpp, system_macos.cpp and system_windows.cpp answer, and system_posix.cpp where
// the first two agree; CMake takes those of its target (cmake/NaruCompile.cmake). No other file need know which system it is for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace naru::runtime::system {

// --- the process ---
int process_id() noexcept;
bool on_main_thread() noexcept;
// Calls them whenever the process forks (null: nothing to call). False where that can't be had; no process forks on Windows.
bool at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) noexcept;
// The variables of the environment, for this process and the libraries in it.
void set_variable(const char* name, const char* value, bool replace = true) noexcept;
void unset_variable(const char* name) noexcept;
bool random_bytes(void* to, size_t bytes) noexcept;
// Whether a file has a name of that pattern ("/dev/nvidia[0-9]*"): nodes of drivers.
bool has_file_like(const char* pattern) noexcept;

// --- threads ---
// Until `word` is no longer `seen`, or for no reason.
void sleep_while(std::atomic<uint32_t>& word, uint32_t seen) noexcept;
void wake(std::atomic<uint32_t>& word, int threads) noexcept;
// Those that this process may use, at least 1.
int processors() noexcept;

// --- the machine ---
extern const bool kMetal;      // Apple's interface to GPUs
std::string processor_name();  // "" where it has none
size_t total_memory() noexcept;
size_t free_memory() noexcept;
size_t cache_bytes() noexcept;  // of the last level; 0 where that is not known
bool has_bfloat16() noexcept;   // aarch64's instructions for it

// After code was written to memory: other processors may have fetched, ahead of time, what stood there before, and each must start anew, which
// asmjit's clearing of caches makes only this one do.
void code_written() noexcept;

// --- pages of memory: null where there is none ---
size_t page_bytes() noexcept;
void* map_pages(size_t bytes) noexcept;      // zeros, taken when they are touched
void* map_addresses(size_t bytes) noexcept;  // nobody may touch them
// On huge pages, where the system has those for everybody. bytes: a multiple of 2 MiB.
void* map_huge(size_t bytes) noexcept;
// What one of these gave, whole.
void unmap(void* memory, size_t bytes) noexcept;
// Whole pages, better on huge ones: a wish.
void prefer_huge(void* memory, size_t bytes) noexcept;

// Memory that processes share: a file without a name; -1 where there is none such. map_shared of -1: pages that only forked children share.
int new_shared_file(size_t bytes) noexcept;
void* map_shared(int file, size_t bytes) noexcept;
void unmap_shared(void* memory, size_t bytes) noexcept;
void close_shared(int file) noexcept;

// --- libraries opened at run time ---
struct Opened {
  void* library = nullptr;
  std::string error;
};
// own_symbols: what it defines itself goes before what the process has of the same name.
Opened open_library(const std::string& name, bool own_symbols = false);
void* loaded_library(const char* name) noexcept;  // one that this process has opened already; null: there is none
void* function_of(void* library, const char* name) noexcept;
std::string path_of(void* library);          // "" where the system does not say
std::string path_of_code(const void* code);  // of the program or library that has it

}  // namespace naru::runtime::system
