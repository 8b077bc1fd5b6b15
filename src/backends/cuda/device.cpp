#include "backends/cuda/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string_view>

#include "backends/cuda/driver.h"
#include "naru/device/precision.h"
#include "naru/error.h"
#include "render/c/kernel_name.h"
#include "runtime/device/kernel_cache.h"
#include "runtime/os/fork.h"
#include "runtime/os/system.h"
#include "runtime/queue/streams.h"

namespace naru::backends::cuda {
namespace {

// Bytes of shared memory per group that need no opt-in.
constexpr int kSharedByDefault = 48 << 10;

// Compares without regard to case.
bool same_word(std::string_view a, std::string_view b) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

CUdeviceptr address(void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

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

CudaDevice::CudaDevice(Device device, const runtime::Gpu& gpu, const Api& api, const Compiler& compiler, const VendorLibraries& libraries)
    : device_(device),
      gpu_(gpu),
      api_(api),
      compiler_(compiler),
      process_(runtime::system::process_id()),
      generation_(runtime::fork_generation()),
      products_(*this, libraries.products),
      transforms_(*this, libraries.transforms),
      factors_(*this, libraries.factors),
      convolutions_(*this, libraries.convolutions),
      attentions_(*this, libraries.convolutions),
      events_(*this) {
  architecture_ = compiler_.architecture(gpu_.major, gpu_.minor);
  if (architecture_.empty())
    throw DeviceUnavailableError(fmt::format(
        "device {}: {} makes no code for {}, of compute capability {}.{}. Install an older one (pip install nvidia-cuda-nvrtc-cu12) and "
        "name its file in NARU_NVRTC_LIBRARY, or use device 'cpu'",
        device_.str(), compiler_.name(), gpu_.name, gpu_.major, gpu_.minor));
  id_ = number();
  check(api_.cuDevicePrimaryCtxRetain(&context_, id_), "cuDevicePrimaryCtxRetain");
  // Some devices have no opt-in limit.
  if (api_.cuDeviceGetAttribute(&shared_limit_, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, id_) != CUDA_SUCCESS)
    shared_limit_ = 0;
  shared_limit_ = std::max(shared_limit_, kSharedByDefault);
  target_.dialect = &render::c::cuda();
  target_.units = std::max(1, gpu_.multiprocessors);
  target_.largest_group = std::max(target_.group, gpu_.limits.threads_of_block);
  target_.parameters = 4096;
  target_.local = 48 << 10;  // without opt-in
}

CUdevice CudaDevice::number() const {
  CUdevice found = 0;
  const CUresult code = api_.cuDeviceGetByPCIBusId(&found, gpu_.pci.c_str());
  if (code == CUDA_SUCCESS) return found;
  // The lookup by PCI address is documented for whole devices only; slices (MIG) have that address too.
  int count = 0;
  check(api_.cuDeviceGetCount(&count), "cuDeviceGetCount");
  for (int i = 0; i < count; ++i) {
    char address[64] = "";
    if (api_.cuDeviceGet(&found, i) == CUDA_SUCCESS && api_.cuDeviceGetPCIBusId(address, sizeof address, found) == CUDA_SUCCESS &&
        same_word(address, gpu_.pci))
      return found;
  }
  check(code, "cuDeviceGetByPCIBusId");
  return found;
}

CudaDevice::Current::Current(const CudaDevice& device) : Current(device, std::nothrow) { device.check(failure_, "cuCtxPushCurrent"); }

CudaDevice::Current::Current(const CudaDevice& device, std::nothrow_t) noexcept : api_(device.api_) {
  CUcontext now = nullptr;
  const CUresult code = api_.cuCtxGetCurrent(&now);
  if (code == CUDA_SUCCESS && now == device.context_) return;
  if (code == CUDA_SUCCESS && !now && device.id_ == 0) {
    failure_ = api_.cuCtxSetCurrent(device.context_);
    return;
  }
  failure_ = api_.cuCtxPushCurrent_v2(device.context_);
  pushed_ = failure_ == CUDA_SUCCESS;
}

CudaDevice::Current::~Current() {
  CUcontext popped = nullptr;
  if (pushed_) api_.cuCtxPopCurrent_v2(&popped);
}

std::exception_ptr CudaDevice::error(CUresult code, const char* function) const noexcept {
  try {
    check(code, function);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void CudaDevice::check(CUresult code, const char* function) const {
  if (code == CUDA_SUCCESS) return;
  const std::string what = fmt::format("{} failed with {}", function, api_.error_text(code));
  if (code == CUDA_ERROR_OUT_OF_MEMORY) throw OutOfMemoryError("device {}: {}. Use smaller tensors, or free some", device_.str(), what);
  if (!is_lasting(code)) throw RuntimeError("device {}: {}", device_.str(), what);
  {
    const std::lock_guard lock(mutex_);
    if (why_lost_.empty()) why_lost_ = what;
  }
  lost_.store(true, std::memory_order_release);
  check_usable();
}

void CudaDevice::check_usable() const {
  if (forked()) runtime::raise_forked(device_, process_);
  if (!lost()) return;
  const std::lock_guard lock(mutex_);
  throw DeviceLostError(
      fmt::format("device '{}' was lost: {}. Everything on it is gone, and this process can't use it any more: start it again",
                  device_.str(), why_lost_));
}

bool CudaDevice::forked() const noexcept { return runtime::fork_generation() != generation_; }

void CudaDevice::synchronize_context() const {
  check_usable();
  const Relaxed scope(*this);
  check(api_.cuCtxSynchronize(), "cuCtxSynchronize");
}

void* CudaDevice::allocate(size_t bytes) {
  check_usable();
  const Relaxed scope(*this);
  CUdeviceptr memory = 0;
  const CUresult code = api_.cuMemAlloc_v2(&memory, bytes);
  if (code == CUDA_ERROR_OUT_OF_MEMORY) return nullptr;
  check(code, "cuMemAlloc");
  return reinterpret_cast<void*>(memory);
}

void CudaDevice::release(void* memory) noexcept {
  if (forked() || lost()) return;
  if (const Relaxed scope(*this, std::nothrow); scope) api_.cuMemFree_v2(address(memory));
}

void* CudaDevice::allocate_pinned(size_t bytes) {
  check_usable();
  const Relaxed scope(*this);
  void* memory = nullptr;
  const CUresult code = api_.cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE);
  if (code == CUDA_ERROR_OUT_OF_MEMORY) return nullptr;
  check(code, "cuMemHostAlloc");
  const std::lock_guard lock(pinned().mutex);
  try {
    pinned().bytes[static_cast<const char*>(memory)] = bytes;
  } catch (...) {
    api_.cuMemFreeHost(memory);
    throw;
  }
  return memory;
}

void CudaDevice::release_pinned(void* memory) noexcept {
  if (forked() || lost()) return;
  {
    const std::lock_guard lock(pinned().mutex);
    pinned().bytes.erase(static_cast<const char*>(memory));
  }
  if (const Relaxed scope(*this, std::nothrow); scope) api_.cuMemFreeHost(memory);
}

bool CudaDevice::is_pinned(const void* memory) {
  const auto* const p = static_cast<const char*>(memory);
  const std::lock_guard lock(pinned().mutex);
  const auto at = pinned().bytes.upper_bound(p);
  return at != pinned().bytes.begin() && p < std::prev(at)->first + std::prev(at)->second;
}

size_t CudaDevice::free_memory() const {
  check_usable();
  const Current scope(*this);
  size_t available = 0, total = 0;
  check(api_.cuMemGetInfo_v2(&available, &total), "cuMemGetInfo");
  return available;
}

bool CudaDevice::reach(const CudaDevice& other) {
  check_usable();
  int can = 0;
  check(api_.cuDeviceCanAccessPeer(&can, id_, other.id_), "cuDeviceCanAccessPeer");
  if (!can) return false;
  const Current scope(*this);
  const CUresult code = api_.cuCtxEnablePeerAccess(other.context_, 0);
  // Another library of this process, or an earlier call, may have enabled it.
  return code == CUDA_SUCCESS || code == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

CUfunction CudaDevice::kernel_of(const render::c::Launch& launch) {
  const Kernel& kernel =
      kernels_.of(launch, [&] { return compile(render::c::with_name(launch.text(), render::c::kernel_name(launch.key))); });
  if (launch.shared > kernel.allowed->load(std::memory_order_relaxed)) allow_shared(kernel, launch.shared);
  return kernel.function;
}

// More than 48 KiB needs an opt-in.
void CudaDevice::allow_shared(const Kernel& kernel, int bytes) const {
  if (kernel.fixed + bytes > shared_limit_)
    throw RuntimeError(
        "device {}: a kernel whose groups share {} bytes; at most {} are possible there{}. Give fewer with shared=, or use smaller shared "
        "arrays",
        device_.str(), kernel.fixed + bytes, shared_limit_,
        kernel.fixed ? fmt::format(" ({} are those of its own arrays)", kernel.fixed) : "");
  const Relaxed scope(*this);
  const int most = shared_limit_ - kernel.fixed;  // the same for all callers, so that no thread lowers another's limit
  check(api_.cuFuncSetAttribute(kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most), "cuFuncSetAttribute");
  kernel.allowed->store(most, std::memory_order_relaxed);
}

CudaDevice::Kernel CudaDevice::load(const std::string& binary, std::string_view name) const {
  const Relaxed scope(*this);
  CUmodule module = nullptr;
  const CUresult code = api_.cuModuleLoadData(&module, binary.c_str());
  if (code != CUDA_SUCCESS && code != CUDA_ERROR_OUT_OF_MEMORY && !is_lasting(code))
    throw RuntimeError(
        "device {}: cuModuleLoadData failed with {}: the driver does not take what {} made for {}. Install one of the driver's own version "
        "({})",
        device_.str(), api_.error_text(code), compiler_.name(), architecture_, compiler_.remedy());
  check(code, "cuModuleLoadData");
  CUfunction function = nullptr;
  if (const CUresult found = api_.cuModuleGetFunction(&function, module, std::string(name).c_str()); found != CUDA_SUCCESS) {
    api_.cuModuleUnload(module);
    check(found, "cuModuleGetFunction");
  }
  Kernel made{function, 0, nullptr};
  check(api_.cuFuncGetAttribute(&made.fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function), "cuFuncGetAttribute");
  made.allowed = std::make_unique<std::atomic<int>>(std::max(0, kSharedByDefault - made.fixed));
  return made;
}

CudaDevice::Kernel CudaDevice::compile(const std::string& text) {
  const std::string_view name = render::c::kernel_of_text(text);
  Compiler::keep_text(text);  // also for kernels from the cache
  runtime::KernelCache& cache = runtime::kernel_cache();
  const std::string key = runtime::KernelCache::key(text, Compiler::options(), compiler_.name() + "|" + architecture_);
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

bool CudaDevice::takes(const ir::Instruction& instruction) {
  if (deterministic_algorithms()) return false;  // use kernels, so that all devices give the cpu's bits
  check_usable();
  const Current scope(*this);
  if (const auto* f = std::get_if<ir::Fft>(&instruction)) return transforms_.takes(*f);
  if (const auto* l = std::get_if<ir::Lapack>(&instruction)) return factors_.takes(*l);
  if (const auto* a = std::get_if<ir::Attention>(&instruction)) return attentions_.takes(*a);
  return false;
}

CudaDevices::CudaDevices(std::vector<runtime::Gpu> gpus, int driver_version)
    : gpus_(std::move(gpus)), compiler_(driver_version), libraries_(driver_version), opened_(gpus_.size()) {}

void CudaDevices::open_driver() {
  auto api = std::make_unique<Api>(Api::open());
  if (const std::string trouble = api->library.trouble(); !trouble.empty())
    throw DeviceUnavailableError("the NVIDIA driver can't be used: " + trouble);
  if (const CUresult code = api->cuInit(0); code != CUDA_SUCCESS)
    throw DeviceUnavailableError("the NVIDIA driver can't be used: cuInit failed with " + api->error_text(code));
  api_ = std::move(api);
}

bool CudaDevices::driver_in_use() {
  const Api api = Api::open();
  int count = 0;
  return api.library.trouble().empty() && api.cuDeviceGetCount(&count) == CUDA_SUCCESS;
}

CudaDevice& CudaDevices::at(Device device) {
  const auto i = static_cast<size_t>(device.index);
  const std::lock_guard lock(mutex_);
  if (i >= gpus_.size()) throw DeviceUnavailableError("CUDA has no device " + device.str());
  if (!api_) open_driver();
  if (!opened_[i]) opened_[i] = std::make_unique<CudaDevice>(device, gpus_[i], *api_, compiler_, libraries_);
  return *opened_[i];
}

}  // namespace naru::backends::cuda
