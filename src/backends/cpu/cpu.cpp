// The cpu backend: submit runs an instruction on the calling thread (and the pool) before it returns.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "backends/cpu/exec/execute.h"
#include "backends/cpu/exec/host_time.h"
#include "backends/cpu/exec/thread_pool.h"
#include "backends/cpu/loops/loops.h"
#include "core/aligned.h"
#include "runtime/device/backend.h"
#include "runtime/os/system.h"
#include "runtime/queue/host_work.h"

namespace naru::backends {
namespace {

#if defined(__x86_64__)
constexpr bool kTestedOnHardware = true;
#else
constexpr bool kTestedOnHardware = false;
#endif

using namespace runtime;

constexpr size_t kHugePage = size_t{2} << 20;

struct CpuRecorded final : Recorded {
  explicit CpuRecorded(std::span<const ir::Instruction> work) : list(work), count(work.size()) {}
  cpu::PreparedList list;
  uint64_t count;
};

class CpuStream final : public DeviceStream {
 public:
  uint64_t submit(ir::Instruction instruction, std::vector<Ref<Storage>>) override {
    cpu::execute(instruction);
    return done_.fetch_add(1, std::memory_order_acq_rel) + 1;
  }
  void prepare(const ir::Instruction& instruction) override { cpu::prepare(instruction); }
  std::unique_ptr<Recorded> record(std::span<const ir::Instruction> work) override { return std::make_unique<CpuRecorded>(work); }
  uint64_t replay(Recorded& recorded, std::vector<Ref<Storage>>) override {
    const auto& r = static_cast<const CpuRecorded&>(recorded);
    r.list.run();
    return done_.fetch_add(r.count, std::memory_order_acq_rel) + r.count;
  }
  void wait(DeviceStream& other, uint64_t seq) override { other.synchronize(seq); }
  uint64_t completed() const noexcept override { return done_.load(std::memory_order_acquire); }
  void reach(uint64_t) noexcept override {}
  std::unique_ptr<TimeStamp> stamp() override { return std::make_unique<cpu::HostTime>(); }
  uint64_t submitted() const noexcept override { return completed(); }

 private:
  std::atomic<uint64_t> done_{0};
};

class CpuWork final : public HostWork {
 public:
  const DirectKernel& kernel(const ir::Program& program) override { return cpu::small_kernel(program); }
  bool multiply(DType type, int64_t m, int64_t n, int64_t k, const void* a, const void* b, void* c) override {
    return cpu::small_matmul(type, m, n, k, a, b, c);
  }
  bool add_up(DType type, int64_t n, const void* in, void* out) override { return cpu::small_sum(type, n, in, out); }
  void run(const ir::HostLoop& loop) override { cpu::run_loop(loop); }
};

class CpuBackend final : public Backend {
 public:
  const char* name() const noexcept override { return "cpu"; }
  int device_count(DeviceType kind) noexcept override { return kind == DeviceType::Cpu ? 1 : 0; }
  Availability probe(DeviceType kind) override { return {kind == DeviceType::Cpu, "", ""}; }

  Properties properties(Device) override {
    static const auto& model = *[] {
      const std::string text = system::processor_name();
      return new std::string(text.empty() ? "CPU" : text);
    }();
    static const size_t memory = system::total_memory();
    Properties p;
    p.name = model;
    p.total_memory = memory;
    p.synchronous = p.on_host = true;
    p.tested_on_hardware = kTestedOnHardware;
    p.multi_processor_count = cpu::num_threads();
    return p;
  }

  size_t free_memory(Device device) override { return std::min(system::free_memory(), properties(device).total_memory); }

  std::string libraries(Device) override {
    const std::string isa = cpu::isa_name();
    return cpu::matmul_libraries() + "; " + (isa == "none" ? "interpreter" : "machine code for " + isa) +
           (kTestedOnHardware ? "" : " (passes its tests under qemu; never run on hardware; speed unknown)");
  }

  // Large blocks use huge pages: a first touch then costs one page fault per 2 MiB.
  void* allocate(Device, MemoryKind, size_t bytes) override {
    if (bytes % kHugePage != 0) return aligned_memory((bytes + 63) / 64 * 64);
    return system::map_huge(bytes);
  }
  void release(Device, MemoryKind, void* memory, size_t bytes) noexcept override {
    if (bytes % kHugePage != 0)
      release_aligned(memory);
    else
      system::unmap(memory, bytes);
  }

  std::unique_ptr<DeviceStream> create_stream(Device, int) override { return std::make_unique<CpuStream>(); }
  HostWork* host_work() noexcept override { return &work_; }
  Capabilities capabilities(Device) override {
    Capabilities c;
    c.unified_memory = c.row_fused = true;
    c.longest_chosen_row = std::numeric_limits<int64_t>::max();
    return c;
  }
  bool takes(Device, const ir::Instruction& instruction) override { return std::holds_alternative<ir::Attention>(instruction); }

 private:
  CpuWork work_;
};

}  // namespace

std::unique_ptr<runtime::Backend> make_cpu() { return std::make_unique<CpuBackend>(); }

}  // namespace naru::backends
