// The virtual backend: devices made of host memory and threads, with addresses of their own, asynchronous streams and a
// limit on memory. NARU_VIRTUAL (or naru.virtual) says which there are; NARU_VIRTUAL_MEMORY how much memory each has
// (bytes, or 512M, 4G; default 4G); NARU_VIRTUAL_WRONG=cuda:1 which of them computes wrong numbers.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "backends/virtual/address.h"
#include "backends/virtual/stream.h"
#include "host/execute.h"
#include "naru/error.h"
#include "runtime/registry.h"

namespace naru::backends {
namespace {

using namespace runtime;

size_t memory_of_each() {
  const char* text = std::getenv("NARU_VIRTUAL_MEMORY");
  if (!text || !*text) return size_t{4} << 30;
  const std::string_view s = text;
  size_t n = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), n);
  const std::string_view unit(end, static_cast<size_t>(s.data() + s.size() - end));
  const int shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : unit.empty() ? 0 : -1;
  if (error != std::errc() || shift < 0 || n == 0)
    throw RuntimeError("NARU_VIRTUAL_MEMORY: wanted a number of bytes, as in 512M or 4G, got '{}'", s);
  return n << shift;
}

class VirtualBackend final : public Backend {
 public:
  const char* name() const noexcept override { return "virtual"; }

  int device_count(DeviceType kind) noexcept override {
    try {
      return virtual_device_count(kind);
    } catch (const Error&) {
      return 0;  // NARU_VIRTUAL can't be read; the registry has said so
    }
  }

  Availability probe(DeviceType kind) override { return virtual_availability(kind); }

  Availability self_check(DeviceType kind) override {
    for (int i = 0; i < device_count(kind); ++i)
      if (is_wrong(Device(kind, i))) return Backend::self_check(kind);
    return {true, "", ""};
  }

  Properties properties(Device device) override {
    Properties p;
    p.name = fmt::format("Virtual {}", name_of(device.type));
    p.total_memory = memory();
    p.multi_processor_count = 1;
    p.warp_size = 32, p.max_threads_per_block = 1024, p.max_threads_per_multi_processor = 2048;
    // Made up, and always the same: the kind and the number.
    const int number = virtual_device_number(device);
    p.uuid = virtual_uuid(device.type, number);
    p.pci = fmt::format("ff{:02x}:{:02x}:00.0", static_cast<int>(device.type), number + 1);
    return p;
  }
  size_t free_memory(Device device) override {
    const size_t used = used_of(device).load();
    return memory() - std::min(used, memory());
  }
  std::string libraries(Device) override { return host::product_libraries(); }

  void* allocate(Device device, MemoryKind kind, size_t bytes) override {
    if (kind == MemoryKind::Pinned) return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    std::atomic<size_t>& used = used_of(device);
    size_t before = used.load();
    do {
      if (bytes > memory() - std::min(before, memory())) return nullptr;
    } while (!used.compare_exchange_weak(before, before + bytes));
    void* host = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!host) {
      used -= bytes;
      return nullptr;
    }
    return to_device(host, device);
  }

  void release(Device device, MemoryKind kind, void* memory, size_t bytes) noexcept override {
    if (kind == MemoryKind::Pinned) return std::free(memory);
    used_of(device) -= bytes;
    std::free(to_host(memory, device));
  }

  std::unique_ptr<DeviceStream> create_stream(Device device, int) override {
    return std::make_unique<VirtualStream>(device);
  }

 private:
  static size_t memory() {
    static const size_t bytes = memory_of_each();
    return bytes;
  }
  std::atomic<size_t>& used_of(Device d) noexcept { return used_[static_cast<int>(d.type)][d.index & 127]; }

  std::atomic<size_t> used_[kDeviceTypes][128] = {};
};

}  // namespace

std::unique_ptr<runtime::Backend> make_virtual() {
  return std::make_unique<VirtualBackend>();
}

}  // namespace naru::backends
