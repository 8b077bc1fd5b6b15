// The virtual backend: devices made of host memory and threads, with separate addresses, asynchronous streams and a memory limit.
// NARU_VIRTUAL (or naru.virtual) selects the devices; NARU_VIRTUAL_MEMORY sets the memory of each (bytes, or 512M, 4G; default 4G);
// NARU_VIRTUAL_WRONG=cuda:1 makes a device compute wrong numbers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "backends/cpu/exec/execute.h"
#include "backends/virtual/address.h"
#include "backends/virtual/stream.h"
#include "core/aligned.h"
#include "naru/error.h"
#include "runtime/device/registry.h"

namespace naru::backends {
namespace {

using namespace runtime;

class VirtualBackend final : public Backend {
 public:
  const char* name() const noexcept override { return "virtual"; }
  bool simulated() const noexcept override { return true; }

  int device_count(DeviceType kind) noexcept override {
    try {
      return virtual_device_count(kind);
    } catch (const Error&) {
      return 0;  // NARU_VIRTUAL can't be parsed; the registry has reported it
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
    const VirtualOptions& o = state(device)->options();
    p.total_memory = o.memory;
    p.multi_processor_count = 1;
    p.on_host = true;
    p.warp_size = 32, p.max_threads_per_block = 1024, p.max_threads_per_multi_processor = 2048;
    // Invented, but always the same for a kind and index.
    const int number = virtual_device_number(device);
    p.uuid = virtual_uuid(device.type, number);
    p.pci = fmt::format("ff{:02x}:{:02x}:00.0", static_cast<int>(device.type), number + 1);
    return p;
  }
  size_t free_memory(Device device) override {
    const auto d = state(device);
    return d->options().memory - std::min(d->used(), d->options().memory);
  }
  std::string libraries(Device) override { return cpu::matmul_libraries(); }

  std::string refusal(Device device) override { return state(device)->refusal(); }

  void* allocate(Device device, MemoryKind kind, size_t bytes) override {
    if (kind == MemoryKind::Pinned) return aligned_memory((bytes + 63) / 64 * 64);
    const std::shared_ptr<VirtualDevice> d = state(device);
    const auto give_back = [&](void* memory) { d->release(memory, bytes); };
    std::unique_ptr<void, decltype(give_back)> made(d->allocate(bytes), give_back);
    if (!made) return nullptr;
    {
      const std::lock_guard lock(mutex_);
      owners_[made.get()] = d;
    }
    return d->options().unified ? made.release() : to_device(made.release(), device);
  }

  void release(Device device, MemoryKind kind, void* memory, size_t bytes) noexcept override {
    if (kind == MemoryKind::Pinned) return release_aligned(memory);
    void* const host = is_shared(memory) ? memory : to_host(memory, device);
    std::shared_ptr<VirtualDevice> owner;
    {
      const std::lock_guard lock(mutex_);
      const auto found = owners_.find(host);
      owner = std::move(found->second);
      owners_.erase(found);
    }
    owner->release(host, bytes);
  }

  std::unique_ptr<DeviceStream> create_stream(Device device, int) override {
    const std::shared_ptr<VirtualDevice> d = state(device);
    d->executor();  // opens the compiler on this thread: the process may end while a stream's thread does
    return std::make_unique<VirtualStream>(device, d);
  }
  void renew(Device device, DeviceStream& stream) override { static_cast<VirtualStream&>(stream).renew(state(device)); }
  bool can_access_peer(Device from, Device to) override {
    return state(from)->options().peer != PeerAccess::Off && state(to)->options().peer != PeerAccess::Off;
  }
  Capabilities capabilities(Device device) override {
    constexpr std::pair<std::string_view, DType> kTypes[] = {{"fp64", DType::F64}, {"fp16", DType::F16}, {"bf16", DType::BF16}};
    Capabilities c;
    if (state(device)->options().ptx) c = ptx::Executor::capabilities();
    c.unified_memory = state(device)->options().unified;
    for (const std::string& what : state(device)->options().without) {
      const auto* const type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.first == what; });
      if (type != std::end(kTypes)) {
        c.exclude(type->second);
        c.arithmetic.fp64 &= type->second != DType::F64;
      } else if (what == "elements") {
        c.elements = false;
      } else if (what == kDenormals) {
        c.arithmetic.denormals = false;
      } else {
        c.exclude(what);
      }
    }
    return c;
  }
  // As the cpu, whose executor this is, so that both have the same bits.
  bool takes(Device device, const ir::Instruction& instruction) override {
    return std::holds_alternative<ir::Attention>(instruction) && capabilities(device).supports("attention") &&
           !state(device)->options().ptx;
  }

 private:
  // The current state of the device.
  std::shared_ptr<VirtualDevice> state(Device device) {
    const uint64_t generation = virtual_generation(device.type);
    const std::lock_guard lock(mutex_);
    std::shared_ptr<VirtualDevice>& d = devices_[static_cast<size_t>(device.type)][static_cast<size_t>(device.index) & 127];
    if (!d || d->generation() != generation) d = std::make_shared<VirtualDevice>(device, virtual_options(device.type), generation);
    return d;
  }

  std::mutex mutex_;
  std::array<std::array<std::shared_ptr<VirtualDevice>, 128>, kDeviceTypes> devices_;
  std::unordered_map<void*, std::shared_ptr<VirtualDevice>> owners_;  // of allocated memory
};

}  // namespace

std::unique_ptr<runtime::Backend> make_virtual() { return std::make_unique<VirtualBackend>(); }

}  // namespace naru::backends
