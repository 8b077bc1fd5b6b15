#include "runtime/os/system.h"

#include <dlfcn.h>
#include <link.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

namespace naru::runtime::system {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

// The number of processors that the cgroup's quota grants; 0 if there is no quota.
double cgroup_processors() {
  double quota = 0, period = 0;
  if (FILE* f = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {
    const int read = std::fscanf(f, "%lf %lf", &quota, &period);
    std::fclose(f);
    return read == 2 && quota > 0 && period > 0 ? quota / period : 0;
  }
  FILE* f = std::fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "r");
  FILE* g = std::fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "r");
  const bool read = f && g && std::fscanf(f, "%lf", &quota) == 1 && std::fscanf(g, "%lf", &period) == 1;
  if (f) std::fclose(f);
  if (g) std::fclose(g);
  return read && quota > 0 && period > 0 ? quota / period : 0;
}

// The text after "name : " in a file of such lines.
std::string field(const char* file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.compare(0, name.size(), name) == 0)
      if (const size_t colon = line.find(':'); colon != std::string::npos) {
        const size_t start = line.find_first_not_of(" \t", colon + 1);
        return start == std::string::npos ? "" : line.substr(start);
      }
  return {};
}

size_t limit_in(const char* file) {
  std::ifstream in(file);
  unsigned long long bytes = 0;
  return in >> bytes ? static_cast<size_t>(bytes) : 0;
}

}  // namespace

const bool kMetal = false;

const char* own(const char* on_linux, const char*, const char*) noexcept { return on_linux; }

bool on_main_thread() noexcept { return getpid() == static_cast<pid_t>(syscall(SYS_gettid)); }

void sleep_while(std::atomic<uint32_t>& word, uint32_t seen) noexcept {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}
void wake(std::atomic<uint32_t>& word, int threads) noexcept {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

int processors() noexcept {
  int n = 1;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
  if (const double share = cgroup_processors(); share > 0) n = std::min(n, static_cast<int>(std::ceil(share)));
  return std::max(n, 1);
}

std::string processor_name() { return field("/proc/cpuinfo", "model name"); }

// The machine's memory, or the cgroup's limit if that is smaller.
size_t total_memory() noexcept {
  size_t bytes = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (const char* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (const size_t limit = limit_in(file); limit && limit < bytes) bytes = limit;
  return bytes;
}

size_t free_memory() noexcept {
  size_t kib = 0;
  const std::string text = field("/proc/meminfo", "MemAvailable");
  std::from_chars(text.data(), text.data() + text.size(), kib);
  return kib * 1024;
}

size_t cache_bytes() noexcept {
  size_t best = 0;
  for (int i = 0; i < 5; ++i) {
    char path[96];
    std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
    FILE* f = std::fopen(path, "r");
    if (!f) break;
    unsigned long size = 0;
    char unit = 0;
    if (std::fscanf(f, "%lu%c", &size, &unit) >= 1) {
      size_t bytes = size;
      if (unit == 'K') bytes <<= 10;
      if (unit == 'M') bytes <<= 20;
      if (bytes > best) best = bytes;
    }
    std::fclose(f);
  }
  if (best == 0) best = static_cast<size_t>(std::max(0L, sysconf(_SC_LEVEL3_CACHE_SIZE)));
  return best;
}

bool has_bfloat16() noexcept {
#ifdef HWCAP2_BF16
  return (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
#else
  return false;
#endif
}

bool allow_tiles() noexcept {
#if defined(__x86_64__)
  constexpr int kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
#else
  return false;
#endif
}

// Not needed on x86, whose processors keep instruction fetch coherent. (Kernels before Linux 4.16 lack the call and synchronize at the next
// interrupt.)
void code_written() noexcept {
#if defined(__aarch64__)
  const auto barrier = [](int what) { return syscall(SYS_membarrier, what, 0, 0) == 0; };
  if (barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE)) return;
  if (barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE)) barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE);
#endif
}

// The first touch of a huge page costs one fault per 2 MiB.
void* map_huge(size_t bytes) noexcept {
  void* const raw = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  char* const start = static_cast<char*>(raw);
  char* const aligned = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(start) + kHugePage - 1) / kHugePage * kHugePage);
  if (aligned > start) munmap(start, static_cast<size_t>(aligned - start));
  char* const end = start + bytes + kHugePage;
  if (end > aligned + bytes) munmap(aligned + bytes, static_cast<size_t>(end - (aligned + bytes)));
  prefer_huge(aligned, bytes);
  return aligned;
}

void prefer_huge(void* memory, size_t bytes) noexcept { madvise(memory, bytes, MADV_HUGEPAGE); }

int new_shared_file(size_t bytes) noexcept {
#ifdef MFD_CLOEXEC
  const int file = memfd_create("naru-shared", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) == 0) return file;
  close(file);
#else
  static_cast<void>(bytes);
#endif
  return -1;
}

std::string path_of(void* library) {
  const link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || !map) return {};
  const std::unique_ptr<char, decltype(&free)> real(realpath(map->l_name, nullptr), &free);
  return real ? real.get() : map->l_name;
}

}  // namespace naru::runtime::system
