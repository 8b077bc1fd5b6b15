#include "runtime/device/kernel_cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace naru::runtime {
namespace {

namespace fs = std::filesystem;

struct CacheFolder {
  CacheFolder() {
    std::string name = (fs::temp_directory_path() / "naru-cache-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~CacheFolder() { fs::remove_all(path); }
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(path)) all.push_back(entry.path());
    return all;
  }
  fs::path path;
};

TEST(KernelCache, gives_back_what_was_stored_for_exactly_that_source_options_and_device) {
  const CacheFolder folder;
  KernelCache cache(folder.path / "made" / "here", 1 << 20);
  const std::string key = KernelCache::key("source", "-O", "device 1");
  EXPECT_FALSE(cache.find(key));
  const std::string binary("\0binary\n\xff", 9);
  cache.store(key, binary);
  EXPECT_EQ(cache.find(key), binary);
  for (const auto& other : {KernelCache::key("Source", "-O", "device 1"), KernelCache::key("source", "-o", "device 1"),
                            KernelCache::key("source", "-O", "device 2")})
    EXPECT_FALSE(cache.find(other));
  EXPECT_EQ(KernelCache(folder.path / "made" / "here", 1 << 20).find(key), binary);
}

TEST(KernelCache, takes_a_damaged_or_cut_entry_for_none) {
  const CacheFolder folder;
  KernelCache cache(folder.path, 1 << 20);
  const std::string key = KernelCache::key("source", "", "device"), binary(1000, 'b');
  cache.store(key, binary);
  const fs::path file = folder.files().at(0);
  const auto size = static_cast<int64_t>(fs::file_size(file));
  for (int64_t at = 0; at < size; at += 37) {
    cache.store(key, binary);
    {
      std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
      f.seekg(at);
      const char was = static_cast<char>(f.get());
      f.seekp(at);
      f.put(static_cast<char>(was ^ 1));
    }
    EXPECT_FALSE(cache.find(key)) << "byte " << at;
    fs::resize_file(file, static_cast<uintmax_t>(at));
    EXPECT_FALSE(cache.find(key)) << "cut at " << at;
  }
  cache.store(key, binary);
  EXPECT_EQ(cache.find(key), binary);
}

TEST(KernelCache, stays_below_its_limit_and_keeps_what_was_used_last) {
  const CacheFolder folder;
  const std::string binary(1 << 20, 'b');
  for (int i = 0; i < 24; ++i) {
    KernelCache cache(folder.path, 10 << 20);  // like a new process: the folder is scanned when the first entry is stored
    const std::string first = KernelCache::key("0", "", "");
    cache.store(KernelCache::key(std::to_string(i), "", ""), binary);
    EXPECT_TRUE(cache.find(first)) << "after " << i;
  }
  uint64_t bytes = 0;
  for (const auto& f : folder.files()) bytes += fs::file_size(f);
  EXPECT_LE(bytes, uint64_t{10} << 20);
}

TEST(KernelCache, several_writers_of_one_entry_leave_a_whole_one) {
  const CacheFolder folder;
  const std::string key = KernelCache::key("source", "", "device"), binary(100000, 'b');
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      KernelCache cache(folder.path, 1 << 30);
      for (int i = 0; i < 50; ++i) {
        cache.store(key, binary);
        const auto found = cache.find(key);
        wrong += !found || *found != binary;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(folder.files().size(), 1u);
}

TEST(KernelCache, without_a_folder_or_where_nothing_can_be_written_everything_is_a_miss) {
  const std::string key = KernelCache::key("source", "", "device");
  for (const char* folder : {"", "/proc/naru"}) {
    KernelCache cache(folder, 1 << 20);
    cache.store(key, "binary");
    EXPECT_FALSE(cache.find(key));
  }
}

}  // namespace
}  // namespace naru::runtime
