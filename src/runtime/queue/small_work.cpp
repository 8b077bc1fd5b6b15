#include "runtime/queue/small_work.h"

#include "runtime/device/registry.h"
#include "runtime/queue/host_loops.h"

namespace naru::runtime {
namespace {

const SmallWork& made() {
  backend_of(DeviceType::Cpu);
  return small_work;
}

}  // namespace

constinit SmallWork small_work{
    +[](const ir::Program& program) -> const DirectKernel& { return made().kernel(program); },
    +[](DType t, int64_t m, int64_t n, int64_t k, const void* a, const void* b, void* c) { return made().multiply(t, m, n, k, a, b, c); },
    +[](DType t, int64_t n, const void* in, void* out) { return made().add_up(t, n, in, out); },
};

constinit std::atomic<void (*)(const ir::HostLoop&)> run_host_loop{+[](const ir::HostLoop& loop) {
  backend_of(DeviceType::Cpu);
  run_host_loop.load(std::memory_order_acquire)(loop);
}};

}  // namespace naru::runtime
