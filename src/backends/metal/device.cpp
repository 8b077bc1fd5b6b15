#include "backends/metal/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "naru/error.h"
#include "runtime/device/kernel_cache.h"
#include "runtime/os/asked_once.h"
#include "runtime/os/fork.h"
#include "runtime/os/system.h"
#include "runtime/queue/streams.h"

namespace naru::backends::metal {
namespace {

using namespace runtime;

// Pages of Apple's processors. Metal places buffers of whole pages at page boundaries.
constexpr size_t kPage = 16384;
size_t in_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

DeviceInfo describe(Owned device) {
  const Api& m = api();
  const id d = device.get();
  DeviceInfo i;
  i.name = text_of(m.name(d));
  // Since macOS 14.
  if (m.responds(d, m.architecture.selector)) i.architecture = text_of(m.name(m.architecture(d)));
  i.system = text_of(m.system_version(m.process(m.objc_getClass("NSProcessInfo"))));
  i.registry_id = m.registry_id(d);
  i.memory = m.working_set(d);
  i.largest_buffer = m.largest_buffer(d);
  i.group_memory = m.group_memory(d);
  i.shaders = m.MPSSupportsMTLDevice && m.MPSSupportsMTLDevice(d);
  i.device = std::move(device);
  return i;
}

Found look() {
  Found f;
  const char* const named = std::getenv("NARU_METAL_LIBRARY");
  if (!system::kMetal && !(named && *named)) {
    f.state = unavailable(DriverState::OtherSystem, {{"system", "macOS and an Apple GPU"}, {"kind", "mps"}});
    return f;
  }
  if (const std::string trouble = api().trouble(); !trouble.empty()) {
    f.state = unavailable(DriverState::NoLibrary, {{"detail", trouble}, {"driver", "Metal"}, {"install", "it is a part of macOS"}});
    return f;
  }
  const Api& m = api();
  const Pool pool;
  const Owned list(m.MTLCopyAllDevices());
  const UInteger count = list ? m.count(list.get()) : 0;
  std::string others;
  for (UInteger i = 0; i < count; ++i) {
    Owned d = Owned::shared(m.element(list.get(), i));
    if (m.unified(d.get()) && m.supports_family(d.get(), MTLGPUFamilyApple7))
      f.devices.push_back(describe(std::move(d)));
    else
      others += (others.empty() ? "" : ", ") + text_of(m.name(d.get()));
  }
  if (!f.devices.empty())
    f.state = {true, "", "", DriverState::Works};
  else if (!others.empty())
    f.state = unavailable(DriverState::UnsupportedArch,
                          {{"name", others}, {"have", "another make"}, {"need", "a GPU of Apple's own (M1 or newer)"}});
  else
    f.state = unavailable(DriverState::NoDeviceNode, {{"driver", "Metal"},
                                                      {"node", "GPU that it lists"},
                                                      {"load", "Virtual machines need one that is passed through; else use device 'cpu'"}});
  return f;
}

}  // namespace

const Found& found() {
  static AskedOnce<Found> once;
  return once.get(look);
}

MetalDevice::MetalDevice(Device device, const DeviceInfo& info)
    : device_(device), info_(info), process_(system::process_id()), generation_(fork_generation()) {}

render::c::Target MetalDevice::target() const {
  render::c::Target t;
  t.dialect = &render::c::msl();
  t.largest_group = 1024;
  t.local = static_cast<int64_t>(std::min<uint64_t>(info_.group_memory, 32 << 10));
  t.units = 16;
  t.parameters = 4096;
  t.arithmetic.fp64 = false;
  t.arithmetic.denormals = false;
  return t;
}

bool MetalDevice::forked() const noexcept { return fork_generation() != generation_; }

void MetalDevice::check_process() const {
  if (forked()) raise_forked(device_, process_);
}

void* MetalDevice::allocate(size_t bytes) {
  check_process();
  const size_t taken = in_pages(std::max<size_t>(bytes, 1));
  const std::lock_guard lock(memory_mutex_);
  if (taken > info_.largest_buffer || taken > info_.memory - std::min<uint64_t>(used_, info_.memory)) return nullptr;
  const Pool pool;
  Owned buffer(api().new_buffer(info_.device.get(), taken, MTLResourceStorageModeShared));
  if (!buffer) return nullptr;
  auto* const address = static_cast<char*>(api().contents(buffer.get()));
  if (reinterpret_cast<uintptr_t>(address) % 64 != 0)
    throw RuntimeError("device {}: Metal placed {} bytes at {}, and naru needs multiples of 64", device_.str(), taken,
                       static_cast<void*>(address));
  pieces_.insert_or_assign(address, Piece{taken, std::move(buffer)});
  used_ += taken;
  return address;
}

void MetalDevice::release(void* address) noexcept {
  if (forked()) return;
  Owned buffer;
  const std::lock_guard lock(memory_mutex_);
  const auto at = pieces_.find(static_cast<char*>(address));
  if (at == pieces_.end()) return;
  buffer = std::move(at->second.buffer);
  used_ -= at->second.bytes;
  pieces_.erase(at);
}

size_t MetalDevice::free_memory() const {
  const std::lock_guard lock(memory_mutex_);
  return info_.memory - std::min<uint64_t>(used_, info_.memory);
}

std::optional<MetalDevice::Place> MetalDevice::find(const void* address) const {
  const auto* const p = static_cast<const char*>(address);
  const std::lock_guard lock(memory_mutex_);
  auto at = pieces_.upper_bound(p);
  if (at == pieces_.begin() || p >= (--at)->first + at->second.bytes) return std::nullopt;
  return Place{at->second.buffer.get(), static_cast<size_t>(p - at->first)};
}

Owned MetalDevice::make_queue() const {
  check_process();
  const Pool pool;
  Owned queue(api().new_queue(info_.device.get()));
  if (!queue) throw RuntimeError("device {}: Metal gave no command queue. End programs that use many, or restart this one", device_.str());
  return queue;
}

Owned MetalDevice::make_event() const {
  Owned event(api().new_event(info_.device.get()));
  if (!event) throw RuntimeError("device {}: Metal gave no event", device_.str());
  return event;
}

Owned MetalDevice::make_buffer(const void* bytes, size_t size) const {
  Owned buffer(api().new_buffer_of(info_.device.get(), bytes, size, MTLResourceStorageModeShared));
  if (!buffer) throw OutOfMemoryError("{}: no memory for {} bytes of a kernel's arguments. Free some tensors", device_.str(), size);
  return buffer;
}

const Kernel& MetalDevice::kernel_of(const render::c::Launch& launch) {
  return kernels_.of(launch, [&] { return compile(launch.text(), launch.group); });
}

const Kernel& MetalDevice::empty_kernel() {
  std::call_once(empty_made_, [this] { empty_ = compile("kernel void k() {}\n", 1); });
  return empty_;
}

// What Metal compiles, it keeps on disk itself.
Kernel MetalDevice::compile(const std::string& text, int group) const {
  const Api& m = api();
  const Pool pool;
  // Operations rounded one by one, as everywhere. The older property covers what the newer ones (macOS 15) split.
  const Owned options(m.make(m.objc_getClass("MTLCompileOptions")));
  m.set_fast_math(options.get(), false);
  if (m.responds(options.get(), m.set_math_mode.selector)) {
    m.set_math_mode(options.get(), MTLMathModeSafe);
    m.set_math_functions(options.get(), MTLMathFloatingPointFunctionsPrecise);
  }
  const std::string by = fmt::format("Metal's compiler ({}, {})", info_.name, info_.system);
  const auto refuse = [&](id error) -> render::c::CompilerError {
    const std::string words = words_of(error);
    return {fmt::format("device {}: {} refused a kernel of naru's: {}\n{}", device_.str(), by, words, text), by, words};
  };
  id error = nullptr;
  // With warnings alone there are both a library and an error.
  const Owned library(m.new_library(info_.device.get(), string_of(text), options.get(), &error));
  if (!library) throw refuse(error);
  kernel_cache().count_compilation();
  const Owned function(m.new_function(library.get(), string_of("k")));
  if (!function) throw refuse(nullptr);
  error = nullptr;
  Kernel kernel{Owned(m.new_pipeline(info_.device.get(), function.get(), &error))};
  if (!kernel.pipeline) throw refuse(error);
  if (const UInteger most = m.most_threads(kernel.pipeline.get()); most < static_cast<UInteger>(group))
    throw RuntimeError("device {}: a kernel in groups of {} items may have at most {} there. Make the groups smaller", device_.str(), group,
                       most);
  return kernel;
}

}  // namespace naru::backends::metal
