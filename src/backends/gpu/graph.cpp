#include "backends/gpu/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "core/small_vector.h"
#include "naru/error.h"
#include "runtime/memory/allocator.h"
#include "runtime/queue/fallback.h"

namespace naru::backends::gpu {
namespace {

// Minimum number of instructions: launching a graph with an event after it must cost less than submitting the instructions.
constexpr size_t kLeast = 2;

bool fits(const ir::Instruction& i) {
  if (const auto* g = std::get_if<ir::Gather>(&i)) return g->indices.empty();
  if (const auto* s = std::get_if<ir::Scatter>(&i)) return s->indices.empty();
  if (std::holds_alternative<ir::Lapack>(i)) return false;  // libraries may wait for the device
  if (const auto* c = std::get_if<ir::CopyBytes>(&i)) return c->source_device == c->target_device;
  return true;
}

// Warns once per device; the program continues, more slowly.
void tell_refused(Device device, const std::string& why) {
  static std::array<std::atomic<bool>, 128> told{};
  if (told[static_cast<size_t>(device.index)].exchange(true)) return;
  warn(fmt::format("device {} replays a graph as single instructions, which is slower: {}", device.str(), why));
}

}  // namespace

GpuGraph::GpuGraph(GpuDevice& device, GpuDevices& devices, runtime::CachingAllocator* cache)
    : StreamLauncher(device, devices), cache_(cache) {}

void GpuGraph::open() {
  const Driver& driver = device_.driver();
  device_.call(driver.stream_create, &stream_, kNonBlockingStream, 0);
  device_.call(driver.stream_create, &filling_, kNonBlockingStream, 0);
}

GpuGraph::~GpuGraph() {
  if (device_.forked() || device_.lost()) return;
  const GpuDevice::Current scope(device_, std::nothrow);
  if (!scope) return;
  const Driver& driver = device_.driver();
  for (const Part& p : parts_)
    if (p.graph) driver.graph_exec_destroy(p.graph);
  for (const auto* list : {&memory_, &arguments_})
    for (const auto& [memory, bytes] : *list) {
      device_.release(memory);
      if (cache_) cache_->count_scratch(-static_cast<int64_t>(bytes));
    }
  for (StreamHandle s : {stream_, filling_})
    if (s) driver.stream_destroy(s);
}

std::unique_ptr<GpuGraph> GpuGraph::record(GpuDevice& device, GpuDevices& devices, std::span<const ir::Instruction> work,
                                           runtime::CachingAllocator* cache) {
  device.check_usable();
  if (!device.driver().has_graphs()) return nullptr;
  const GpuDevice::Current scope(device);
  try {
    std::unique_ptr<GpuGraph> made(new GpuGraph(device, devices, cache));
    made->open();
    for (size_t begin = 0; begin < work.size();) {
      const bool fit = fits(work[begin]);
      size_t end = begin + 1;
      while (end < work.size() && fits(work[end]) == fit) ++end;
      const auto part = work.subspan(begin, end - begin);
      made->parts_.push_back({part, nullptr});
      if (fit && part.size() >= kLeast) made->parts_.back().graph = made->capture(part);
      begin = end;
    }
    return made;
  } catch (const DeviceLostError&) {
    throw;
  } catch (const Error& error) {
    tell_refused(device.device(), error.what());
    return nullptr;  // submitted one by one, the instructions report the error if it persists
  }
}

// Compiling, loading, opening a library or allocating may synchronise the device, which would invalidate the capture. All of that is done
// before it.
GraphExecHandle GpuGraph::capture(std::span<const ir::Instruction> work) {
  const Driver& driver = device_.driver();
  only_prepares_ = true;
  for (const ir::Instruction& i : work) {
    used_ = 0;
    run(i);
  }
  only_prepares_ = false;
  device_.call(driver.capture_begin, stream_, kRelaxedCapture);
  GraphHandle graph = nullptr;
  GraphExecHandle made = nullptr;
  try {
    for (const ir::Instruction& i : work) {
      used_ = 0;
      run(i);
    }
  } catch (...) {
    if (driver.capture_end(stream_, &graph) == kSuccess && graph) driver.graph_destroy(graph);
    throw;
  }
  device_.call(driver.capture_end, stream_, &graph);
  const Result code = driver.graph_instantiate(&made, graph, 0);
  driver.graph_destroy(graph);
  device_.check(code, driver.graph_instantiate.symbol);
  return made;
}

// Instructions run one after another, so they can share the same blocks. A block that is too small stays allocated for earlier
// instructions.
void* GpuGraph::scratch(size_t bytes) {
  for (; used_ < memory_.size(); ++used_)
    if (memory_[used_].second >= bytes) return memory_[used_++].first;
  make_room(memory_, 1);
  void* const memory = take(bytes, "intermediate values");
  memory_.push_back({memory, bytes});
  ++used_;
  return memory;
}

void* GpuGraph::take(size_t bytes, const char* what) {
  void* memory = device_.allocate(bytes);
  if (!memory && cache_) {
    cache_->empty_cache();
    memory = device_.allocate(bytes);
  }
  if (!memory)
    throw OutOfMemoryError("{}: no memory for {} bytes of {}. Use smaller tensors, or free some", device_.device().str(), bytes, what);
  if (cache_) cache_->count_scratch(static_cast<int64_t>(bytes));
  return memory;
}

// The arguments are the same in each replay, so they are written now.
void* GpuGraph::large_arguments(const void* bytes, size_t count) {
  const Driver& driver = device_.driver();
  make_room(arguments_, 1);
  void* const memory = take(count, "arguments");
  arguments_.push_back({memory, count});
  device_.call(driver.copy_up, address(memory), bytes, count, filling_);
  device_.call(driver.stream_synchronize, filling_);
  return memory;
}

void* GpuGraph::faults(int count, render::c::FaultError) {
  if (count == 0) return nullptr;
  throw RuntimeError("an instruction that may find something wrong is not recorded");
}

}  // namespace naru::backends::gpu
