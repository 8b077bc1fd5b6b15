// A whole backend: one device of kind rocm, made of the host's memory, that does its work at once.
#include <cstdlib>

#include "backends/cpu/exec/execute.h"
#include "backends/cpu/exec/host_time.h"
#include "runtime/device/backend.h"

namespace naru {
namespace {

using namespace runtime;

// Work is done when submit returns, so there is nothing to wait for.
class ToyStream final : public DeviceStream {
 public:
  uint64_t submit(ir::Instruction instruction, std::vector<Ref<Storage>>) override {
    cpu::execute(instruction);
    return ++done_;
  }
  void wait(DeviceStream& other, uint64_t seq) override { other.synchronize(seq); }
  uint64_t completed() const noexcept override { return done_; }
  uint64_t submitted() const noexcept override { return done_; }
  void reach(uint64_t) noexcept override {}
  std::unique_ptr<TimeStamp> stamp() override { return std::make_unique<cpu::HostTime>(); }

 private:
  std::atomic<uint64_t> done_{0};
};

class ToyBackend final : public Backend {
 public:
  const char* name() const noexcept override { return "toy"; }
  int device_count(DeviceType kind) noexcept override { return kind == DeviceType::Rocm ? 1 : 0; }
  Availability probe(DeviceType kind) override { return {kind == DeviceType::Rocm, "", ""}; }
  Properties properties(Device) override {
    Properties p;
    p.name = "Toy";
    p.total_memory = size_t{1} << 30;
    p.synchronous = true;
    return p;
  }
  void* allocate(Device, MemoryKind, size_t bytes) override { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); }
  void release(Device, MemoryKind, void* memory, size_t) noexcept override { std::free(memory); }
  std::unique_ptr<DeviceStream> create_stream(Device, int) override { return std::make_unique<ToyStream>(); }
};

}  // namespace

namespace backends {
std::unique_ptr<Backend> make_cpu();
std::unique_ptr<Backend> make_toy() { return std::make_unique<ToyBackend>(); }
}  // namespace backends

// What CMake writes from the list in src/backends/CMakeLists.txt, for the two of this program.
std::vector<std::unique_ptr<runtime::Backend>> runtime::make_all_backends() {
  std::vector<std::unique_ptr<Backend>> all;
  all.push_back(backends::make_cpu());
  all.push_back(backends::make_toy());
  return all;
}

}  // namespace naru
