#include "backends/gpu/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string_view>

#include "naru/error.h"
#include "render/c/kernel_name.h"
#include "runtime/device/kernel_cache.h"
#include "runtime/os/fork.h"
#include "runtime/os/system.h"
#include "runtime/queue/streams.h"

namespace naru::backends::gpu {
namespace {

// Compares without regard to case.
bool same_word(std::string_view a, std::string_view b) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

// The sizes of all memory from allocate_pinned. Lives as long as the process.
struct Pinned {
  std::mutex mutex;
  std::map<const char*, size_t> bytes;
};
Pinned& pinned() {
  static auto* const all = new Pinned;
  return *all;
}

}  // namespace

GpuDevice::GpuDevice(Device device, const runtime::Gpu& gpu, const Driver& driver, const Compiler& compiler, render::c::Target target)
    : device_(device),
      gpu_(gpu),
      driver_(driver),
      compiler_(compiler),
      process_(runtime::system::process_id()),
      generation_(runtime::fork_generation()),
      target_(target),
      events_(*this) {
  architecture_ = compiler_.architecture(gpu_, device_);
  id_ = number();
  if (driver_.context_retain) call(driver_.context_retain, &context_, id_);
  // Some devices have no opt-in limit.
  if (driver_.optin_attribute == 0 || driver_.device_attribute(&shared_limit_, driver_.optin_attribute, id_) != kSuccess) shared_limit_ = 0;
  shared_limit_ = std::max(shared_limit_, static_cast<int>(target_.local));
  target_.units = std::max(1, gpu_.multiprocessors);
  target_.largest_group = std::max(target_.group, gpu_.limits.threads_of_block);
}

DeviceNumber GpuDevice::number() const {
  DeviceNumber found = 0;
  const Result code = driver_.device_by_pci(&found, gpu_.pci.c_str());
  if (code == kSuccess) return found;
  // The lookup by PCI address is documented for whole devices only; slices (MIG) have that address too.
  int count = 0;
  call(driver_.device_count, &count);
  for (int i = 0; i < count; ++i) {
    char address[64] = "";
    if (driver_.device_get(&found, i) == kSuccess && driver_.device_pci(address, sizeof address, found) == kSuccess &&
        same_word(address, gpu_.pci))
      return found;
  }
  check(code, driver_.device_by_pci.symbol);
  return found;
}

GpuDevice::Current::Current(const GpuDevice& device) : Current(device, std::nothrow) {
  device.check(failure_, driver_.context_push ? driver_.context_push.symbol : driver_.set_device.symbol);
}

GpuDevice::Current::Current(const GpuDevice& device, std::nothrow_t) noexcept : driver_(device.driver_) {
  if (!driver_.context_push) {
    failure_ = driver_.current_device(&before_);
    if (failure_ != kSuccess || before_ == device.id_) return;
    failure_ = driver_.set_device(device.id_);
    pushed_ = failure_ == kSuccess;
    return;
  }
  ContextHandle now = nullptr;
  const Result code = driver_.context_get(&now);
  if (code == kSuccess && now == device.context_) return;
  if (code == kSuccess && !now && device.id_ == 0) {
    failure_ = driver_.context_set(device.context_);
    return;
  }
  failure_ = driver_.context_push(device.context_);
  pushed_ = failure_ == kSuccess;
}

GpuDevice::Current::~Current() {
  if (!pushed_) return;
  ContextHandle popped = nullptr;
  driver_.context_pop ? driver_.context_pop(&popped) : driver_.set_device(before_);
}

void GpuDevice::check(Result code, const char* symbol) const {
  if (code == kSuccess) return;
  const std::string what = fmt::format("{} failed with {}", plain_name(symbol), driver_.error_text(code));
  if (code == kOutOfMemory) throw OutOfMemoryError("device {}: {}. Use smaller tensors, or free some", device_.str(), what);
  if (!driver_.is_lasting(code)) throw RuntimeError("device {}: {}", device_.str(), what);
  {
    const std::lock_guard lock(mutex_);
    if (why_lost_.empty()) why_lost_ = what;
  }
  lost_.store(true, std::memory_order_release);
  check_usable();
}

void GpuDevice::check_usable() const {
  if (forked()) runtime::raise_forked(device_, process_);
  if (!lost()) return;
  const std::lock_guard lock(mutex_);
  throw DeviceLostError(
      fmt::format("device '{}' was lost: {}. Everything on it is gone, and this process can't use it any more: start it again",
                  device_.str(), why_lost_));
}

bool GpuDevice::forked() const noexcept { return runtime::fork_generation() != generation_; }

void GpuDevice::synchronize_context() const {
  check_usable();
  const Relaxed scope(*this);
  call(driver_.synchronize);
}

void* GpuDevice::allocate(size_t bytes) {
  check_usable();
  const Relaxed scope(*this);
  Address memory = 0;
  const Result code = driver_.memory_take(&memory, bytes);
  if (code == kOutOfMemory) return nullptr;
  check(code, driver_.memory_take.symbol);
  return reinterpret_cast<void*>(memory);
}

void GpuDevice::release(void* memory) noexcept {
  if (forked() || lost()) return;
  if (const Relaxed scope(*this, std::nothrow); scope) driver_.memory_free(address(memory));
}

void* GpuDevice::allocate_pinned(size_t bytes) {
  check_usable();
  const Relaxed scope(*this);
  void* memory = nullptr;
  const Result code = driver_.host_take(&memory, bytes, kPortableMemory);
  if (code == kOutOfMemory) return nullptr;
  check(code, driver_.host_take.symbol);
  const std::lock_guard lock(pinned().mutex);
  try {
    pinned().bytes[static_cast<const char*>(memory)] = bytes;
  } catch (...) {
    driver_.host_free(memory);
    throw;
  }
  return memory;
}

void GpuDevice::release_pinned(void* memory) noexcept {
  if (forked() || lost()) return;
  {
    const std::lock_guard lock(pinned().mutex);
    pinned().bytes.erase(static_cast<const char*>(memory));
  }
  if (const Relaxed scope(*this, std::nothrow); scope) driver_.host_free(memory);
}

bool GpuDevice::is_pinned(const void* memory) {
  const auto* const p = static_cast<const char*>(memory);
  const std::lock_guard lock(pinned().mutex);
  const auto at = pinned().bytes.upper_bound(p);
  return at != pinned().bytes.begin() && p < std::prev(at)->first + std::prev(at)->second;
}

size_t GpuDevice::free_memory() const {
  check_usable();
  const Current scope(*this);
  size_t available = 0, total = 0;
  call(driver_.memory_info, &available, &total);
  return available;
}

bool GpuDevice::reach(const GpuDevice& other) {
  check_usable();
  int can = 0;
  call(driver_.can_access_peer, &can, id_, other.id_);
  if (!can) return false;
  const Current scope(*this);
  const Result code = driver_.context_enable_peer ? driver_.context_enable_peer(other.context_, 0) : driver_.enable_peer(other.id_, 0);
  // Another library of this process, or an earlier call, may have enabled it.
  return code == kSuccess || code == kPeerAccessAlreadyEnabled;
}

void GpuDevice::copy_from(const GpuDevice& other, void* target, const void* source, size_t bytes, StreamHandle stream) const {
  if (driver_.copy_between_contexts)
    call(driver_.copy_between_contexts, address(target), context_, address(source), other.context_, bytes, stream);
  else
    call(driver_.copy_between_devices, address(target), id_, address(source), other.id_, bytes, stream);
}

FunctionHandle GpuDevice::kernel_of(const render::c::Launch& launch) {
  const Kernel& kernel =
      kernels_.of(launch, [&] { return compile(render::c::with_name(launch.text(), render::c::kernel_name(launch.key))); });
  if (launch.shared > kernel.allowed->load(std::memory_order_relaxed)) allow_shared(kernel, launch.shared);
  return kernel.function;
}

// CUDA wants an opt-in for more than 48 KiB.
void GpuDevice::allow_shared(const Kernel& kernel, int bytes) const {
  if (kernel.fixed + bytes > shared_limit_)
    throw RuntimeError(
        "device {}: a kernel whose groups share {} bytes; at most {} are possible there{}. Give fewer with shared=, or use smaller shared "
        "arrays",
        device_.str(), kernel.fixed + bytes, shared_limit_,
        kernel.fixed ? fmt::format(" ({} are those of its own arrays)", kernel.fixed) : "");
  const Relaxed scope(*this);
  const int most = shared_limit_ - kernel.fixed;  // the same for all callers, so that no thread lowers another's limit
  call(driver_.function_set_attribute, kernel.function, kFunctionMaxDynamicSharedBytes, most);
  kernel.allowed->store(most, std::memory_order_relaxed);
}

GpuDevice::Kernel GpuDevice::load(const std::string& binary, std::string_view name) const {
  const Relaxed scope(*this);
  ModuleHandle module = nullptr;
  const Result code = driver_.module_load(&module, binary.c_str());
  if (code != kSuccess && code != kOutOfMemory && !driver_.is_lasting(code))
    throw RuntimeError(
        "device {}: {} failed with {}: the driver does not take what {} made for {}. Install one of the driver's own version ({})",
        device_.str(), plain_name(driver_.module_load.symbol), driver_.error_text(code), compiler_.name(), architecture_,
        compiler_.remedy());
  check(code, driver_.module_load.symbol);
  FunctionHandle function = nullptr;
  if (const Result found = driver_.module_function(&function, module, std::string(name).c_str()); found != kSuccess) {
    driver_.module_unload(module);
    check(found, driver_.module_function.symbol);
  }
  Kernel made{function, 0, nullptr};
  call(driver_.function_attribute, &made.fixed, kFunctionSharedBytes, function);
  made.allowed = std::make_unique<std::atomic<int>>(std::max(0, static_cast<int>(target_.local) - made.fixed));
  return made;
}

GpuDevice::Kernel GpuDevice::compile(const std::string& text) {
  const std::string_view name = render::c::kernel_of_text(text);
  compiler_.keep_text(text);  // also for kernels from the cache
  runtime::KernelCache& cache = runtime::kernel_cache();
  const std::string key = runtime::KernelCache::key(text, compiler_.options(), compiler_.name() + "|" + architecture_);
  if (const auto binary = cache.find(key)) {
    try {
      return load(*binary, name);
    } catch (const DeviceLostError&) {
      throw;
    } catch (const Error&) {
      // The driver no longer accepts the cached code: compile as if there were none.
    }
  }
  const std::string binary = compiler_.compile(text, architecture_, device_);
  cache.count_compilation();
  Kernel made = load(binary, name);
  cache.store(key, binary);
  return made;
}

bool GpuDevices::driver_in_use() const {
  const Driver driver = open_driver();
  int count = 0;
  return driver.library.trouble().empty() && driver.device_count(&count) == kSuccess;
}

GpuDevice& GpuDevices::at(Device device) {
  const auto i = static_cast<size_t>(device.index);
  const std::lock_guard lock(mutex_);
  if (i >= gpus_.size()) throw DeviceUnavailableError("there is no device " + device.str());
  if (!driver_) {
    auto driver = std::make_unique<Driver>(open_driver());
    std::string trouble = driver->library.trouble();
    if (const Result code = trouble.empty() ? driver->init(0) : kSuccess; code != kSuccess)
      trouble = fmt::format("{} failed with {}", driver->init.symbol, driver->error_text(code));
    if (!trouble.empty()) throw DeviceUnavailableError(fmt::format("{} can't be used: {}", driver->words, trouble));
    driver_ = std::move(driver);
  }
  if (!opened_[i]) opened_[i] = open(device, gpus_[i], *driver_);
  return *opened_[i];
}

}  // namespace naru::backends::gpu
