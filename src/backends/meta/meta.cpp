// The meta backend: one device whose tensors have no elements. Its instructions are dropped, so operators only infer shapes and dtypes. Its
// storages have addresses without memory, which must never be read (runtime/memory/memory.cpp).
#include <atomic>

#include "backends/cpu/exec/host_time.h"
#include "naru/error.h"
#include "runtime/device/backend.h"

namespace naru::backends {
namespace {

using namespace runtime;

class MetaStream final : public DeviceStream {
 public:
  uint64_t submit(ir::Instruction, std::vector<Ref<Storage>>) override { return ++done_; }
  void wait(DeviceStream&, uint64_t) override {}
  uint64_t completed() const noexcept override { return done_; }
  uint64_t submitted() const noexcept override { return done_; }
  void reach(uint64_t) noexcept override {}
  std::unique_ptr<TimeStamp> stamp() override { return std::make_unique<cpu::HostTime>(); }

 private:
  std::atomic<uint64_t> done_{0};
};

class MetaBackend final : public Backend {
 public:
  const char* name() const noexcept override { return "meta"; }
  int device_count(DeviceType kind) noexcept override { return kind == DeviceType::Meta ? 1 : 0; }
  Availability probe(DeviceType kind) override { return {kind == DeviceType::Meta, "", ""}; }
  Availability self_check(DeviceType) override { return {true, "", ""}; }
  Properties properties(Device) override {
    Properties p;
    p.name = "Meta";
    p.total_memory = size_t{1} << 62;
    p.synchronous = true;
    return p;
  }
  Capabilities capabilities(Device) override {
    Capabilities c;
    c.elements = false;
    return c;
  }
  void* allocate(Device, MemoryKind, size_t) override { return nullptr; }
  void release(Device, MemoryKind, void*, size_t) noexcept override {}
  std::unique_ptr<DeviceStream> create_stream(Device, int) override { return std::make_unique<MetaStream>(); }
};

}  // namespace

std::unique_ptr<Backend> make_meta() { return std::make_unique<MetaBackend>(); }

}  // namespace naru::backends
