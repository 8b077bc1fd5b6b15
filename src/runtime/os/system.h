// Operating system services beyond the C++ standard library. Implemented in system_linux.cpp, system_macos.cpp and system_windows.cpp, with
// the part common to the first two in system_posix.cpp; CMake selects those of its target (cmake/NaruCompile.cmake). No other file needs to
// know the system.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace naru::runtime::system {

// --- the process ---
int process_id() noexcept;
bool on_main_thread() noexcept;
// Registers functions to call whenever the process forks (null: none). Returns false if unsupported; there is no fork on Windows.
bool at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) noexcept;
// Environment variables, for this process and the libraries in it.
void set_variable(const char* name, const char* value, bool replace = true) noexcept;
void unset_variable(const char* name) noexcept;
bool random_bytes(void* to, size_t bytes) noexcept;
// True if a file matches the pattern ("/dev/nvidia[0-9]*"); for device nodes of drivers.
bool has_file_like(const char* pattern) noexcept;

// --- threads ---
// Blocks while `word` == `seen`; may wake spuriously.
void sleep_while(std::atomic<uint32_t>& word, uint32_t seen) noexcept;
void wake(std::atomic<uint32_t>& word, int threads) noexcept;
// Number of processors that this process may use, at least 1.
int processors() noexcept;

// --- the machine ---
extern const bool kMetal;      // Apple's GPU API
std::string processor_name();  // "" if unknown
size_t total_memory() noexcept;
size_t free_memory() noexcept;
size_t cache_bytes() noexcept;  // size of the last-level cache; 0 if unknown
bool has_bfloat16() noexcept;   // aarch64's bfloat16 instructions
bool allow_tiles() noexcept;    // asks that this process may use the tiles of x86-64 (AMX)

// Call after writing machine code to memory: other cores may have prefetched the old contents and must resynchronize their instruction
// streams. asmjit's cache flush does that only for the calling core.
void code_written() noexcept;

// --- pages of memory: null where there is none ---
size_t page_bytes() noexcept;
void* map_pages(size_t bytes) noexcept;      // zero-filled, committed on first touch
void* map_addresses(size_t bytes) noexcept;  // reserved address range, not accessible
// On huge pages, if the system allows them for all processes. bytes: a multiple of 2 MiB.
void* map_huge(size_t bytes) noexcept;
// Unmaps a complete mapping made by one of the functions above.
void unmap(void* memory, size_t bytes) noexcept;
// Advises the system to use huge pages; whole pages only.
void prefer_huge(void* memory, size_t bytes) noexcept;

// Memory shared between processes: an anonymous file; -1 if unsupported. map_shared(-1): pages shared only with forked children.
int new_shared_file(size_t bytes) noexcept;
void* map_shared(int file, size_t bytes) noexcept;
void unmap_shared(void* memory, size_t bytes) noexcept;
void close_shared(int file) noexcept;

// --- libraries opened at run time ---
// The one of these that is for this system: names and folders of libraries differ. Null: there is none on that system.
const char* own(const char* on_linux, const char* on_macos, const char* on_windows) noexcept;
struct Opened {
  void* library = nullptr;
  std::string error;
};
// own_symbols: the library's own definitions take precedence over the process's symbols of the same name.
Opened open_library(const std::string& name, bool own_symbols = false);
void* loaded_library(const char* name) noexcept;  // one that this process has already opened; null: none
void* function_of(void* library, const char* name) noexcept;
std::string path_of(void* library);          // "" if unknown
std::string path_of_code(const void* code);  // of the program or library that contains it

}  // namespace naru::runtime::system
