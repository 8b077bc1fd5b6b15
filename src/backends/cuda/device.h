// A CUDA device in use: its primary context, which is opened with the first memory or stream, its memory and its kernels.
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
#include "backends/cuda/transforms.h"
#include "naru/device.h"
#include "render/c/kernel_table.h"
#include "runtime/gpu_driver.h"

namespace naru::backends::cuda {

// NVIDIA's libraries beside the compiler.
struct VendorLibraries {
  explicit VendorLibraries(int driver_version)
      : products(driver_version), transforms(driver_version), factors(driver_version), convolutions(driver_version) {}
  const MatMulLibrary products;
  const VendorLibrary<Cufft> transforms;
  const VendorLibrary<Cusolver> factors;
  const VendorLibrary<Cudnn> convolutions;  // and attention
  // "cuBLASLt 13.1.0, cuFFT 12.0.0", or why not.
  std::string text() const { return products.text() + ", " + transforms.text() + ", " + factors.text() + ", " + convolutions.text(); }
};

// Thread-safe.
class CudaDevice {
 public:
  // Opens the context (the process's own, which other libraries share).
  CudaDevice(Device device, const runtime::Gpu& gpu, const Api& api, const Compiler& compiler, const VendorLibraries& libraries);
  CudaDevice(const CudaDevice&) = delete;

  // Makes the context the thread's current one for the length of a scope, as each call of the driver needs. Throws where it can't be; with
  // std::nothrow it is false then, and nothing may be called: another library's context is the current one. Whatever other libraries did in between,
  // it asks which one is current, which costs next to nothing. Where a thread has none, that of the driver's first device stays: it is the one that the
  // CUDA runtime would take, so that no other library sees a difference.
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
  // The same for calls that the driver refuses while another thread records a stream in its strictest mode, and that would spoil the recording:
  // they are allowed here, for they have nothing to do with it.
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

  // Throws for a code that is not success: OutOfMemoryError, DeviceLostError for errors after which nothing works on the device any more, else
  // RuntimeError; with the function's name and the driver's words.
  void check(CUresult code, const char* function) const;
  // The same as an exception to keep, for calls that may not throw.
  std::exception_ptr error(CUresult code, const char* function) const noexcept;
  // Nothing works here any more.
  bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }
  // Throws DeviceLostError once lost; RuntimeError in a process forked after the device was opened.
  void check_usable() const;
  bool forked() const noexcept;

  // nullptr where there is no memory left.
  void* allocate(size_t bytes);
  void release(void* memory) noexcept;
  void* allocate_pinned(size_t bytes);
  void release_pinned(void* memory) noexcept;
  // Whether the host's memory there was given out by allocate_pinned, of any device.
  static bool is_pinned(const void* memory);
  size_t free_memory() const;
  // Waits for all that anybody in this process has given the device.
  void wait_for_everybody() const;
  // The driver's number of it, by which other libraries of the process know it.
  int driver_number() const noexcept { return id_; }
  // Whether this device can copy from `other`'s memory without the host, which is arranged for here.
  bool reach(const CudaDevice& other);

  // The kernel of a launch, compiled if it has not been before, ready for the memory that its groups share.
  CUfunction kernel_of(const render::c::Launch& launch);

  // Whether a library does what only hosts have code for.
  bool takes(const ir::Instruction& instruction);
  // Those that a library computes.
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
  // The driver's number of the device at the address of gpu_.
  CUdevice number() const;
  struct Kernel {
    CUfunction function = nullptr;
    int fixed = 0;                                // bytes that its groups share in any case
    std::unique_ptr<std::atomic<int>> allowed{};  // bytes beyond those that it may be launched with
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
  int shared_limit_ = 0;  // bytes that a kernel may have for its groups
  Products products_;
  Transforms transforms_;
  Factors factors_;
  Convolutions convolutions_;
  Attentions attentions_;
  Events events_;
};

// The devices in use, by number; opened at the first use and never closed.
class CudaDevices {
 public:
  // gpus: those that the environment leaves visible. driver_version: 12080 is CUDA 12.8.
  CudaDevices(std::vector<runtime::Gpu> gpus, int driver_version);
  // Throws DeviceUnavailableError.
  CudaDevice& at(Device device);
  // Whether somebody of this process has initialised the driver, naru or another library.
  static bool driver_in_use();
  const std::vector<runtime::Gpu>& gpus() const noexcept { return gpus_; }
  const Compiler& compiler() const noexcept { return compiler_; }
  const VendorLibraries& libraries() const noexcept { return libraries_; }

 private:
  void open_driver();
  const std::vector<runtime::Gpu> gpus_;
  const Compiler compiler_;
  const VendorLibraries libraries_;
  std::mutex mutex_;
  std::unique_ptr<Api> api_;
  std::vector<std::unique_ptr<CudaDevice>> opened_;
};

}  // namespace naru::backends::cuda
