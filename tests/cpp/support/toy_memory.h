// ToyMemory: a backend with nothing but a limited amount of memory, which tracks its allocations.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/device/backend.h"

namespace naru::testing {

class ToyMemory : public runtime::Backend {
 public:
  explicit ToyMemory(size_t total = std::numeric_limits<size_t>::max()) : total_(total) {}
  ~ToyMemory() override { EXPECT_TRUE(given.empty()) << "memory was not given back"; }
  const char* name() const noexcept override { return "toy memory"; }
  int device_count(DeviceType) noexcept override { return 1; }
  runtime::Availability probe(DeviceType) override { return {true, "", ""}; }
  runtime::Properties properties(Device) override {
    runtime::Properties p;
    p.total_memory = total_;
    return p;
  }
  void* allocate(Device, runtime::MemoryKind, size_t bytes) override { return take(bytes); }
  void release(Device, runtime::MemoryKind, void* memory, size_t bytes) noexcept override {
    EXPECT_EQ(given.at(memory), bytes);
    give_back(memory);
  }
  std::unique_ptr<runtime::DeviceStream> create_stream(Device, int) override { return nullptr; }

  // Allocates exactly `bytes`, so that an address sanitizer detects accesses past the end.
  void* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > total_ - used) return nullptr;
    void* p = nullptr;
    if (posix_memalign(&p, 64, bytes) != 0) return nullptr;
    used += given[p] = bytes;
    return p;
  }
  void give_back(void* memory) noexcept {
    const std::lock_guard lock(mutex_);
    used -= given.at(memory);
    given.erase(memory);
    std::free(memory);
  }

  std::map<void*, size_t> given;
  size_t used = 0;

 private:
  const size_t total_;
  std::mutex mutex_;
};

}  // namespace naru::testing
