// KernelCache: compiled kernels on disk, so that the second start of a program compiles nothing. One file a kernel, in NARU_CACHE_DIR, else
// $XDG_CACHE_HOME/naru, else ~/.cache/naru. Never in the way: what can't be read is a miss, what can't be written is left out.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace naru::runtime {

class KernelCache {
 public:
  // No folder: nothing is kept. `limit`: bytes of all files together; the longest unused ones go first.
  KernelCache(std::string folder, uint64_t limit);

  // What stands for a kernel: its source, the compiler's options, the device and its driver, naru's version.
  static std::string key(std::string_view source, std::string_view options, std::string_view device);
  std::optional<std::string> find(const std::string& key);
  void store(const std::string& key, std::string_view binary);

  bool enabled() const noexcept { return !folder_.empty(); }
  const std::string& folder() const noexcept { return folder_; }
  // Kernels compiled by this process, whatever the cache held.
  void count_compilation() noexcept { compilations_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t compilations() const noexcept { return compilations_.load(std::memory_order_relaxed); }

 private:
  std::string path(const std::string& key) const;
  void shrink();

  std::string folder_;
  uint64_t limit_;
  std::atomic<uint64_t> compilations_{0}, written_{0};
};

// The process's. NARU_CACHE_DIR= (empty) turns it off; NARU_CACHE_LIMIT: bytes, 256 MiB unless set.
KernelCache& kernel_cache();

}  // namespace naru::runtime
