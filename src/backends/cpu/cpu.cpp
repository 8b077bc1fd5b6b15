// The cpu backend: instructions run on the thread that submits them (and the pool), before submit returns.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "host/execute.h"
#include "host/host_time.h"
#include "host/loops.h"
#include "host/thread_pool.h"
#include "runtime/backend.h"
#include "runtime/host_loops.h"
#include "runtime/small_work.h"

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
  host::PreparedList list;
  uint64_t count;
};

class CpuStream final : public DeviceStream {
 public:
  uint64_t submit(ir::Instruction instruction, std::vector<Ref<Storage>>) override {
    host::execute(instruction);
    return done_.fetch_add(1, std::memory_order_acq_rel) + 1;
  }
  void prepare(const ir::Instruction& instruction) override { host::prepare(instruction); }
  std::unique_ptr<Recorded> record(std::span<const ir::Instruction> work) override { return std::make_unique<CpuRecorded>(work); }
  uint64_t replay(Recorded& recorded, std::vector<Ref<Storage>>) override {
    const auto& r = static_cast<const CpuRecorded&>(recorded);
    r.list.run();
    return done_.fetch_add(r.count, std::memory_order_acq_rel) + r.count;
  }
  void wait(DeviceStream& other, uint64_t seq) override { other.synchronize(seq); }
  uint64_t completed() const noexcept override { return done_.load(std::memory_order_acquire); }
  void reach(uint64_t) noexcept override {}
  std::unique_ptr<TimeStamp> stamp() override { return std::make_unique<host::HostTime>(); }
  uint64_t submitted() const noexcept override { return completed(); }

 private:
  std::atomic<uint64_t> done_{0};
};

// What stands behind "name : " in a file of such lines.
std::string field(const char* file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.compare(0, name.size(), name) == 0)
      if (const size_t colon = line.find(':'); colon != std::string::npos) {
        const size_t start = line.find_first_not_of(" \t", colon + 1);
        return start == std::string::npos ? "" : line.substr(start);
      }
  return {};
}

size_t limit_in(const char* file) {
  std::ifstream in(file);
  unsigned long long bytes = 0;
  return in >> bytes ? static_cast<size_t>(bytes) : 0;
}

// The machine's memory, or what a cgroup grants of it.
size_t total_memory() {
  size_t bytes = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (const char* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (const size_t limit = limit_in(file); limit && limit < bytes) bytes = limit;
  return bytes;
}

class CpuBackend final : public Backend {
 public:
  const char* name() const noexcept override { return "cpu"; }
  int device_count(DeviceType kind) noexcept override { return kind == DeviceType::Cpu ? 1 : 0; }
  Availability probe(DeviceType kind) override { return {kind == DeviceType::Cpu, "", ""}; }

  Properties properties(Device) override {
    static const auto& model = *[] {
      const std::string text = field("/proc/cpuinfo", "model name");
      return new std::string(text.empty() ? "CPU" : text);
    }();
    static const size_t memory = total_memory();
    Properties p;
    p.name = model;
    p.total_memory = memory;
    p.synchronous = p.on_host = true;
    p.tested_on_hardware = kTestedOnHardware;
    p.multi_processor_count = host::num_threads();
    return p;
  }

  size_t free_memory(Device device) override {
    size_t kib = 0;
    const std::string text = field("/proc/meminfo", "MemAvailable");
    std::from_chars(text.data(), text.data() + text.size(), kib);
    return std::min(kib * 1024, properties(device).total_memory);
  }

  std::string libraries(Device) override {
    const std::string isa = host::isa_name();
    return host::matmul_libraries() + "; " + (isa == "none" ? "interpreter" : "machine code for " + isa) +
           (kTestedOnHardware ? "" : " (passes its tests under qemu; never run on hardware; speed unknown)");
  }

  // Big pieces stand on huge pages: a first touch then costs one fault for 2 MiB.
  void* allocate(Device, MemoryKind, size_t bytes) override {
    if (bytes % kHugePage != 0) return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    void* raw = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) return nullptr;
    char* const start = static_cast<char*>(raw);
    char* const aligned = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(start) + kHugePage - 1) / kHugePage * kHugePage);
    if (aligned > start) munmap(start, static_cast<size_t>(aligned - start));
    char* const end = start + bytes + kHugePage;
    if (end > aligned + bytes) munmap(aligned + bytes, static_cast<size_t>(end - (aligned + bytes)));
    madvise(aligned, bytes, MADV_HUGEPAGE);
    return aligned;
  }
  void release(Device, MemoryKind, void* memory, size_t bytes) noexcept override {
    if (bytes % kHugePage != 0)
      std::free(memory);
    else
      munmap(memory, bytes);
  }

  std::unique_ptr<DeviceStream> create_stream(Device, int) override { return std::make_unique<CpuStream>(); }
  Capabilities capabilities(Device) override {
    Capabilities c;
    c.unified_memory = c.row_fused = true;
    return c;
  }
};

}  // namespace

std::unique_ptr<runtime::Backend> make_cpu() {
  runtime::small_work.kernel_of = host::small_kernel;
  runtime::small_work.matmul = host::small_matmul;
  runtime::small_work.sum = host::small_sum;
  runtime::run_host_loop = host::run_loop;
  return std::make_unique<CpuBackend>();
}

}  // namespace naru::backends
