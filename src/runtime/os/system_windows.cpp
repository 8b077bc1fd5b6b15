#include "runtime/os/system.h"

#include <windows.h>

// (after windows.h)
#include <bcrypt.h>
#include <io.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "runtime/os/file_path.h"

namespace naru::runtime::system {
namespace {

const DWORD main_thread = GetCurrentThreadId();  // the thread that loads the library

std::string error_text(DWORD number) {
  char text[512] = "";
  const DWORD n =
      FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, nullptr, number, 0, text, sizeof text, nullptr);
  std::string said(text, n);
  while (!said.empty() && (said.back() == '\n' || said.back() == '\r' || said.back() == '.')) said.pop_back();
  return said.empty() ? "error " + std::to_string(number) : said;
}

std::string path_of_module(HMODULE module) {
  std::wstring path(32768, L'\0');
  const DWORD n = GetModuleFileNameW(module, path.data(), static_cast<DWORD>(path.size()));
  path.resize(n);
  return path_text(std::filesystem::path(path));
}

}  // namespace

const bool kMetal = false;

const char* own(const char*, const char*, const char* on_windows) noexcept { return on_windows; }

int process_id() noexcept { return static_cast<int>(GetCurrentProcessId()); }
bool on_main_thread() noexcept { return GetCurrentThreadId() == main_thread; }
bool at_fork(void (*)(), void (*)(), void (*)()) noexcept { return true; }

// Libraries read either the C runtime's environment or the system's: _putenv_s sets both.
void set_variable(const char* name, const char* value, bool replace) noexcept {
  if (replace || !std::getenv(name)) _putenv_s(name, value);
}
void unset_variable(const char* name) noexcept { _putenv_s(name, ""); }

bool random_bytes(void* to, size_t bytes) noexcept {
  return BCryptGenRandom(nullptr, static_cast<PUCHAR>(to), static_cast<ULONG>(bytes), BCRYPT_USE_SYSTEM_PREFERRED_RNG) == 0;
}

// Drivers have no device nodes: a driver is present if its libraries are.
bool has_file_like(const char*) noexcept { return true; }

void sleep_while(std::atomic<uint32_t>& word, uint32_t seen) noexcept { WaitOnAddress(&word, &seen, sizeof seen, INFINITE); }
void wake(std::atomic<uint32_t>& word, int threads) noexcept {
  if (threads == 1)
    WakeByAddressSingle(&word);
  else
    WakeByAddressAll(&word);
}

int processors() noexcept {
  DWORD_PTR ours = 0, all = 0;
  const bool known = GetProcessAffinityMask(GetCurrentProcess(), &ours, &all) && ours != 0;  // 0: in several processor groups
  return known ? std::popcount(static_cast<uint64_t>(ours)) : std::max(1, static_cast<int>(GetActiveProcessorCount(ALL_PROCESSOR_GROUPS)));
}

std::string processor_name() {
  char text[256] = "";
  DWORD bytes = sizeof text;
  const LSTATUS status = RegGetValueA(HKEY_LOCAL_MACHINE, "HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0", "ProcessorNameString",
                                      RRF_RT_REG_SZ, nullptr, text, &bytes);
  return status == ERROR_SUCCESS ? text : "";
}

size_t total_memory() noexcept {
  MEMORYSTATUSEX memory{};
  memory.dwLength = sizeof memory;
  return GlobalMemoryStatusEx(&memory) ? static_cast<size_t>(memory.ullTotalPhys) : 0;
}

size_t free_memory() noexcept {
  MEMORYSTATUSEX memory{};
  memory.dwLength = sizeof memory;
  return GlobalMemoryStatusEx(&memory) ? static_cast<size_t>(memory.ullAvailPhys) : 0;
}

size_t cache_bytes() noexcept {
  DWORD bytes = 0;
  GetLogicalProcessorInformation(nullptr, &bytes);
  std::vector<SYSTEM_LOGICAL_PROCESSOR_INFORMATION> parts(bytes / sizeof(SYSTEM_LOGICAL_PROCESSOR_INFORMATION));
  size_t best = 0;
  if (!parts.empty() && GetLogicalProcessorInformation(parts.data(), &bytes))
    for (const auto& part : parts)
      if (part.Relationship == RelationCache) best = std::max(best, size_t{part.Cache.Size});
  return best;
}

bool allow_tiles() noexcept { return false; }
bool has_bfloat16() noexcept { return false; }

// FlushInstructionCache, which asmjit calls, affects all processors.
void code_written() noexcept {}

size_t page_bytes() noexcept {
  static const size_t bytes = [] {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return size_t{info.dwPageSize};
  }();
  return bytes;
}

void* map_pages(size_t bytes) noexcept { return VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE); }
void* map_addresses(size_t bytes) noexcept { return VirtualAlloc(nullptr, bytes, MEM_RESERVE, PAGE_NOACCESS); }
// Large pages need a privilege that users do not have.
void* map_huge(size_t bytes) noexcept { return map_pages(bytes); }
void prefer_huge(void*, size_t) noexcept {}
void unmap(void* memory, size_t) noexcept { VirtualFree(memory, 0, MEM_RELEASE); }

// Not supported: a file handle can't be sent by number, and there is no fork.
int new_shared_file(size_t) noexcept { return -1; }
void* map_shared(int, size_t bytes) noexcept { return map_pages(bytes); }
void unmap_shared(void* memory, size_t bytes) noexcept { unmap(memory, bytes); }
void close_shared(int file) noexcept { _close(file); }

// Each library always has its own symbols.
void* loaded_library(const char* name) noexcept { return GetModuleHandleA(name); }

Opened open_library(const std::string& name, bool) {
  Opened opened;
  // By a full path, the libraries that it needs are looked for beside it. (Windows asks for backslashes here, and for no "..".)
  std::error_code none;
  std::filesystem::path path = file_path(name);
  const bool bare = !path.has_parent_path();
  if (!bare) path = std::filesystem::absolute(path, none).lexically_normal().make_preferred();
  const DWORD where = bare ? LOAD_LIBRARY_SEARCH_DEFAULT_DIRS : LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR;
  opened.library = LoadLibraryExW(path.c_str(), nullptr, where);
  if (!opened.library) opened.error = name + ": " + error_text(GetLastError());
  return opened;
}

void* function_of(void* library, const char* name) noexcept {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name));
}

std::string path_of(void* library) { return path_of_module(static_cast<HMODULE>(library)); }

std::string path_of_code(const void* code) {
  HMODULE module = nullptr;
  constexpr DWORD kHow = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  return GetModuleHandleExW(kHow, static_cast<LPCWSTR>(code), &module) ? path_of_module(module) : "";
}

}  // namespace naru::runtime::system
