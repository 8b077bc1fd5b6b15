// Written from Apple's documentation; only cross-compiled, never run.
#include "runtime/os/system.h"

#include <fcntl.h>
#include <mach/mach.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace naru::runtime::system {
namespace {

// 0 if there is no value of that name.
uint64_t number(const char* name) noexcept {
  uint64_t value = 0;  // 4-byte values leave the upper half zero: Apple's processors are little-endian
  size_t bytes = sizeof value;
  return sysctlbyname(name, &value, &bytes, nullptr, 0) == 0 ? value : 0;
}

}  // namespace

const bool kMetal = true;

const char* own(const char*, const char* on_macos, const char*) noexcept { return on_macos; }

bool on_main_thread() noexcept { return pthread_main_np() != 0; }

// std::atomic::wait uses the system's wait primitive here.
void sleep_while(std::atomic<uint32_t>& word, uint32_t seen) noexcept { word.wait(seen, std::memory_order_seq_cst); }
void wake(std::atomic<uint32_t>& word, int threads) noexcept {
  if (threads == 1)
    word.notify_one();
  else
    word.notify_all();
}

int processors() noexcept { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

std::string processor_name() {
  char text[256] = "";
  size_t bytes = sizeof text - 1;
  return sysctlbyname("machdep.cpu.brand_string", text, &bytes, nullptr, 0) == 0 ? text : "";
}

size_t total_memory() noexcept { return number("hw.memsize"); }

size_t free_memory() noexcept {
  vm_statistics64_data_t pages{};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  if (host_statistics64(mach_host_self(), HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages), &count) != KERN_SUCCESS) return 0;
  return (size_t{pages.free_count} + pages.inactive_count) * page_bytes();
}

// The L2 cache of the performance cores; the system reports no third level.
size_t cache_bytes() noexcept {
  const uint64_t fast = number("hw.perflevel0.l2cachesize");
  return fast ? fast : number("hw.l2cachesize");
}

bool allow_tiles() noexcept { return false; }
bool has_bfloat16() noexcept { return number("hw.optional.arm.FEAT_BF16") != 0; }

// sys_icache_invalidate, which asmjit calls, affects all processors.
void code_written() noexcept {}

// Pages have 16 KiB, and processes can't request larger ones.
void* map_huge(size_t bytes) noexcept { return map_pages(bytes); }
void prefer_huge(void*, size_t) noexcept {}

// The name exists only briefly; the file descriptor is passed on.
int new_shared_file(size_t bytes) noexcept {
  static std::atomic<uint32_t> count{0};
  const std::string name = "/naru-" + std::to_string(getpid()) + "-" + std::to_string(count++);
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  if (file < 0) return -1;
  shm_unlink(name.c_str());
  fcntl(file, F_SETFD, FD_CLOEXEC);
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) return file;
  close(file);
  return -1;
}

std::string path_of(void*) { return {}; }

}  // namespace naru::runtime::system
