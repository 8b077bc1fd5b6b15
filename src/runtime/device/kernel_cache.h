// KernelCache: compiled kernels on disk, so that later runs of a program compile nothing. One file per kernel, in NARU_CACHE_DIR, else
// $XDG_CACHE_HOME/naru, else ~/.cache/naru. Failures are not errors: an unreadable file is a miss, and what can't be written is skipped.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace naru::runtime {

class KernelCache {
 public:
  // An empty folder disables the cache. `limit`: total bytes of all files; the least recently used are removed first.
  KernelCache(std::string folder, uint64_t limit);

  // Identifies a kernel: its source, the compiler's options, the device and its driver, and naru's version.
  static std::string key(std::string_view source, std::string_view options, std::string_view device);
  std::optional<std::string> find(const std::string& key);
  void store(const std::string& key, std::string_view binary);

  bool enabled() const noexcept { return !folder_.empty(); }
  const std::string& folder() const noexcept { return folder_; }
  // Number of kernels compiled by this process, regardless of the cache.
  void count_compilation() noexcept { compilations_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t compilations() const noexcept { return compilations_.load(std::memory_order_relaxed); }

 private:
  std::string path(const std::string& key) const;
  void shrink();

  std::string folder_;
  uint64_t limit_;
  std::atomic<uint64_t> compilations_{0}, written_{0};
};

// The process-wide cache. NARU_CACHE_DIR= (empty) disables it; NARU_CACHE_LIMIT: bytes, 256 MiB by default.
KernelCache& kernel_cache();

}  // namespace naru::runtime
