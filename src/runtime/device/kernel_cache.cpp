#include "runtime/device/kernel_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "naru/version.h"
#include "runtime/os/file_path.h"
#include "runtime/os/system.h"

namespace naru::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "naru kernel 1\n";
constexpr uint64_t kLimit = uint64_t{256} << 20;
// Check the folder's size after this many bytes were written.
constexpr uint64_t kLookAfter = uint64_t{8} << 20;

uint64_t hash_of(std::string_view text, uint64_t seed) noexcept {
  uint64_t h = seed ^ text.size() * 0x9e3779b97f4a7c15u;
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + i, 8);
    h = (h ^ word) * 0x9fb21c651e98df25u;
    h ^= h >> 32;
  }
  uint64_t rest = 0;
  std::memcpy(&rest, text.data() + i, text.size() - i);
  h = (h ^ rest) * 0x9fb21c651e98df25u;
  h = (h ^ h >> 28) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 32;
}

// 32 hexadecimal digits.
std::string digest(std::string_view text) { return fmt::format("{:016x}{:016x}", hash_of(text, 1), hash_of(text, 0x5bd1e995)); }

std::string default_folder() {
  if (const char* chosen = std::getenv("NARU_CACHE_DIR")) return chosen;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/') return std::string(cache) + "/naru";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/naru";
  return {};
}

uint64_t default_limit() {
  const char* text = std::getenv("NARU_CACHE_LIMIT");
  const uint64_t bytes = text ? std::strtoull(text, nullptr, 10) : 0;
  return bytes ? bytes : kLimit;
}

}  // namespace

KernelCache::KernelCache(std::string folder, uint64_t limit) : folder_(std::move(folder)), limit_(limit) {}

std::string KernelCache::key(std::string_view source, std::string_view options, std::string_view device) {
  return fmt::format("{}\n{}\n{}\n{}", version(), device, options, source);
}

std::string KernelCache::path(const std::string& key) const { return folder_ + "/" + digest(key) + ".kernel"; }

// File format: magic, digest of key and binary, length of the key, key, binary. The file contains the whole key, so that a hash collision
// can't return another kernel.
std::optional<std::string> KernelCache::find(const std::string& key) {
  if (!enabled()) return {};
  const std::string file = path(key);
  std::ifstream in(file_path(file), std::ios::binary);
  if (!in) return {};
  const std::string all((std::istreambuf_iterator<char>(in)), {});
  const size_t head = kMagic.size() + 32 + 8;
  if (all.size() < head + key.size() || !std::string_view(all).starts_with(kMagic)) return {};
  uint64_t length = 0;
  std::memcpy(&length, all.data() + kMagic.size() + 32, 8);
  if (length != key.size() || all.compare(head, key.size(), key) != 0) return {};
  const std::string_view content = std::string_view(all).substr(head);
  if (all.compare(kMagic.size(), 32, digest(content)) != 0) return {};
  // Mark it as the most recently used.
  std::error_code unknown;
  fs::last_write_time(file_path(file), fs::file_time_type::clock::now(), unknown);
  return std::string(content.substr(key.size()));
}

void KernelCache::store(const std::string& key, std::string_view binary) {
  if (!enabled()) return;
  std::error_code error;
  fs::create_directories(file_path(folder_), error);
  const std::string content = key + std::string(binary);
  const uint64_t length = key.size();
  std::string all = std::string(kMagic) + digest(content);
  all.append(reinterpret_cast<const char*>(&length), 8).append(content);
  // Write under a temporary name first, so that no reader sees a partial file.
  uint64_t name = 0;
  if (!system::random_bytes(&name, sizeof name)) return;
  const fs::path temporary = file_path(fmt::format("{}/.{:016x}", folder_, name));
  std::ofstream file(temporary, std::ios::binary);
  file.write(all.data(), static_cast<std::streamsize>(all.size()));
  file.close();
  if (file) fs::rename(temporary, file_path(path(key)), error);
  if (!file || error) {
    fs::remove(temporary, error);
    return;
  }
  const uint64_t before = written_.fetch_add(all.size());
  if (before == 0 || before / kLookAfter != (before + all.size()) / kLookAfter) shrink();
}

void KernelCache::shrink() {
  struct File {
    fs::file_time_type used;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator at(file_path(folder_), error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    const uint64_t bytes = at->file_size(gone);
    const auto used = at->last_write_time(gone);
    if (gone || at->path().extension() != ".kernel") continue;
    files.push_back({used, bytes, at->path()});
    total += bytes;
  }
  if (total <= limit_) return;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.used < b.used; });
  for (const File& f : files) {
    if (total <= limit_ / 4 * 3) return;
    fs::remove(f.path, error);
    total -= f.bytes;
  }
}

KernelCache& kernel_cache() {
  static auto* const cache = new KernelCache(default_folder(), default_limit());
  return *cache;
}

}  // namespace naru::runtime
