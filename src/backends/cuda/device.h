// A CUDA device in use: its primary context, which is opened with the first allocation or stream, its memory and its kernels.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "backends/cuda/api.h"
#include "backends/cuda/attention.h"
#include "backends/cuda/compiler.h"
#include "backends/cuda/convolutions.h"
#include "backends/cuda/events.h"
#include "backends/cuda/factors.h"
#include "backends/cuda/matmul.h"
#include "backends/cuda/nccl.h"
#include "backends/cuda/transforms.h"
#include "naru/device.h"
#include "render/c/kernel_table.h"
#include "runtime/device/gpu_driver.h"

namespace naru::backends::cuda {

// NVIDIA's libraries besides the compiler.
struct VendorLibraries {
  explicit VendorLibraries(int driver_version)
      : products(driver_version),
        transforms(driver_version),
        factors(driver_version),
        convolutions(driver_version),
        collectives(driver_version) {}
  const MatMulLibrary products;
  const VendorLibrary<Cufft> transforms;
  const VendorLibrary<Cusolver> factors;
  const VendorLibrary<Cudnn> convolutions;  // and attention
  const VendorLibrary<Nccl> collectives;
  // "cuBLASLt 13.1.0, cuFFT 12.0.0", or why one is unavailable.
  std::string text() const {
    return products.text() + ", " + transforms.text() + ", " + factors.text() + ", " + convolutions.text() + ", " + collectives.text();
  }
};

// Thread-safe.
class CudaDevice {
 public:
  // Retains the primary context, which other libraries of the process share.
  CudaDevice(Device device, const runtime::Gpu& gpu, const Api& api, const Compiler& compiler, const VendorLibraries& libraries);
  CudaDevice(const CudaDevice&) = delete;

  // Makes the device's context current on this thread for a scope; every driver call needs that. Throws if it can't. With std::nothrow it
  // converts to false instead, and no driver call may follow, as another library's context is current. It queries the current context each
  // time, since other libraries may have changed it; the query is cheap. On a thread without a context, the context of the driver's first
  // device stays current afterwards: the CUDA runtime would select the same one, so other libraries see no difference.
  class Current {
   public:
    explicit Current(const CudaDevice& device);
    Current(const CudaDevice& device, std::nothrow_t) noexcept;
    ~Current();
    Current(const Current&) = delete;
    explicit operator bool() const noexcept { return failure_ == CUDA_SUCCESS; }

   private:
    const Api& api_;
    CUresult failure_ = CUDA_SUCCESS;
    bool pushed_ = false;
  };
  // Like Current, for calls that the driver refuses while another thread captures a stream in its strictest mode, and that would invalidate
  // the capture. Relaxed mode allows them here, because they do not affect the capture.
  class Relaxed {
   public:
    explicit Relaxed(const CudaDevice& device) : current_(device), api_(device.api_) { exchange(); }
    Relaxed(const CudaDevice& device, std::nothrow_t) noexcept : current_(device, std::nothrow), api_(device.api_) { exchange(); }
    ~Relaxed() { exchange(); }
    Relaxed(const Relaxed&) = delete;
    explicit operator bool() const noexcept { return static_cast<bool>(current_); }

   private:
    void exchange() noexcept {
      if (current_ && api_.cuThreadExchangeStreamCaptureMode) api_.cuThreadExchangeStreamCaptureMode(&mode_);
    }
    const Current current_;
    const Api& api_;
    unsigned mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  };

  // Throws for a code other than success: OutOfMemoryError; DeviceLostError for sticky errors; else RuntimeError with the function's name
  // and the driver's message.
  void check(CUresult code, const char* function) const;
  // The same error as a stored exception, for functions that may not throw.
  std::exception_ptr error(CUresult code, const char* function) const noexcept;
  // True after a sticky error: the device can't be used any more.
  bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }
  // Throws DeviceLostError once lost; RuntimeError in a process forked after the device was opened.
  void check_usable() const;
  bool forked() const noexcept;

  // nullptr if there is no memory left.
  void* allocate(size_t bytes);
  void release(void* memory) noexcept;
  void* allocate_pinned(size_t bytes);
  void release_pinned(void* memory) noexcept;
  // True if allocate_pinned, of any device, returned this host memory.
  static bool is_pinned(const void* memory);
  size_t free_memory() const;
  // Waits for all work that this process has given the device, including that of other libraries.
  void synchronize_context() const;
  // The driver's device number, by which other libraries of the process identify it.
  int driver_number() const noexcept { return id_; }
  // Enables peer access to `other`'s memory. Returns whether this device can copy from it without the host.
  bool reach(const CudaDevice& other);

  // The kernel of a launch, compiled if necessary, and set up for the launch's shared memory.
  CUfunction kernel_of(const render::c::Launch& launch);

  // True if a vendor library runs this instruction, for which there is no device kernel.
  bool takes(const ir::Instruction& instruction);
  // The vendor libraries.
  Products& products() noexcept { return products_; }
  Transforms& transforms() noexcept { return transforms_; }
  Factors& factors() noexcept { return factors_; }
  Convolutions& convolutions() noexcept { return convolutions_; }
  Attentions& attentions() noexcept { return attentions_; }
  Events& events() noexcept { return events_; }

  const Api& api() const noexcept { return api_; }
  const render::c::Target& target() const noexcept { return target_; }
  const runtime::Gpu& gpu() const noexcept { return gpu_; }
  CUcontext context() const noexcept { return context_; }
  Device device() const noexcept { return device_; }

 private:
  // The driver's number of the device whose address is gpu_.
  CUdevice number() const;
  struct Kernel {
    CUfunction function = nullptr;
    int fixed = 0;                                // bytes of static shared memory
    std::unique_ptr<std::atomic<int>> allowed{};  // bytes of dynamic shared memory that launches may use
  };
  Kernel compile(const std::string& text);
  Kernel load(const std::string& binary, std::string_view name) const;
  void allow_shared(const Kernel& kernel, int bytes) const;

  const Device device_;
  const runtime::Gpu gpu_;
  const Api& api_;
  const Compiler& compiler_;
  const int process_, generation_;
  CUdevice id_ = 0;
  CUcontext context_ = nullptr;
  std::string architecture_;
  render::c::Target target_;
  mutable std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;
  mutable std::string why_lost_;
  render::c::KernelTable<Kernel> kernels_;
  int shared_limit_ = 0;  // limit of shared memory per group, in bytes
  Products products_;
  Transforms transforms_;
  Factors factors_;
  Convolutions convolutions_;
  Attentions attentions_;
  Events events_;
};

// The devices in use, by index. Each is opened on first use and never closed.
class CudaDevices {
 public:
  // gpus: those that the environment makes visible. driver_version: 12080 is CUDA 12.8.
  CudaDevices(std::vector<runtime::Gpu> gpus, int driver_version);
  // Throws DeviceUnavailableError.
  CudaDevice& at(Device device);
  // True if naru or another library has initialised the driver in this process.
  static bool driver_in_use();
  const std::vector<runtime::Gpu>& gpus() const noexcept { return gpus_; }
  const Compiler& compiler() const noexcept { return compiler_; }
  const VendorLibraries& libraries() const noexcept { return libraries_; }
  NcclCommunicators& communicators() noexcept { return communicators_; }

 private:
  void open_driver();
  const std::vector<runtime::Gpu> gpus_;
  const Compiler compiler_;
  const VendorLibraries libraries_;
  NcclCommunicators communicators_{*this, libraries_.collectives};
  std::mutex mutex_;
  std::unique_ptr<Api> api_;
  std::vector<std::unique_ptr<CudaDevice>> opened_;
};

}  // namespace naru::backends::cuda
