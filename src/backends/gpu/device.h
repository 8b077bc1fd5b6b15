// A GPU in use: its context, which is opened with the first allocation or stream, its memory and its kernels.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "backends/gpu/compiler.h"
#include "backends/gpu/driver.h"
#include "backends/gpu/events.h"
#include "ir/instruction.h"
#include "naru/device.h"
#include "render/c/kernel_table.h"
#include "runtime/device/communicators.h"
#include "runtime/device/gpu_driver.h"

namespace naru::backends::gpu {

class StreamLauncher;

// Thread-safe.
class GpuDevice {
 public:
  // Retains the primary context, if the driver has contexts; other libraries of the process share it. target: its dialect, and what
  // kernels' text depends on besides the probed limits.
  GpuDevice(Device device, const runtime::Gpu& gpu, const Driver& driver, const Compiler& compiler, render::c::Target target);
  virtual ~GpuDevice() = default;
  GpuDevice(const GpuDevice&) = delete;

  // Makes the device current on this thread for a scope; every driver call needs that. Throws if it can't. With std::nothrow it converts to
  // false instead, and no driver call may follow, as another library's context is current. It queries what is current each time, since
  // other libraries may have changed it; the query is cheap. On a thread without a context, the context of the driver's first device stays
  // current afterwards: the CUDA runtime would select the same one, so other libraries see no difference.
  class Current {
   public:
    explicit Current(const GpuDevice& device);
    Current(const GpuDevice& device, std::nothrow_t) noexcept;
    ~Current();
    Current(const Current&) = delete;
    explicit operator bool() const noexcept { return failure_ == kSuccess; }

   private:
    const Driver& driver_;
    Result failure_ = kSuccess;
    bool pushed_ = false;
    DeviceNumber before_ = 0;  // of drivers without contexts
  };
  // Like Current, for calls that the driver refuses while another thread captures a stream in its strictest mode, and that would invalidate
  // the capture. Relaxed mode allows them here, because they do not affect the capture.
  class Relaxed {
   public:
    explicit Relaxed(const GpuDevice& device) : current_(device), driver_(device.driver_) { exchange(); }
    Relaxed(const GpuDevice& device, std::nothrow_t) noexcept : current_(device, std::nothrow), driver_(device.driver_) { exchange(); }
    ~Relaxed() { exchange(); }
    Relaxed(const Relaxed&) = delete;
    explicit operator bool() const noexcept { return static_cast<bool>(current_); }

   private:
    void exchange() noexcept {
      if (current_ && driver_.capture_mode_exchange) driver_.capture_mode_exchange(&mode_);
    }
    const Current current_;
    const Driver& driver_;
    unsigned mode_ = kRelaxedCapture;
  };

  // Throws for a code other than success: OutOfMemoryError; DeviceLostError for sticky errors; else RuntimeError with the function's name
  // and the driver's message.
  void check(Result code, const char* symbol) const;
  // Calls a function of the driver's, and checks what it returns.
  template <class Signature, class... A>
  void call(const Entry<Signature>& function, A&&... arguments) const {
    check(function(std::forward<A>(arguments)...), function.symbol);
  }
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
  DeviceNumber driver_number() const noexcept { return id_; }
  // Enables peer access to `other`'s memory. Returns whether this device can copy from it without the host.
  bool reach(const GpuDevice& other);
  // Copies from another device of the driver to this one, on a stream of this one.
  void copy_from(const GpuDevice& other, void* target, const void* source, size_t bytes, StreamHandle stream) const;

  // The kernel of a launch, compiled if necessary, and set up for the launch's shared memory.
  FunctionHandle kernel_of(const render::c::Launch& launch);

  // True if a vendor's library runs this instruction, for which there is no kernel.
  virtual bool takes(const ir::Instruction& instruction) { return static_cast<void>(instruction), false; }
  // Puts the instruction on the launcher's stream by a vendor's library. Returns false, and does nothing, if a kernel must do the work.
  virtual bool run_by_library(const ir::Instruction& instruction, StreamLauncher& launcher) {
    return static_cast<void>(instruction), static_cast<void>(launcher), false;
  }

  Events& events() noexcept { return events_; }
  const Driver& driver() const noexcept { return driver_; }
  const render::c::Target& target() const noexcept { return target_; }
  const runtime::Gpu& gpu() const noexcept { return gpu_; }
  Device device() const noexcept { return device_; }

 private:
  // The driver's number of the device whose address is gpu_.
  DeviceNumber number() const;
  struct Kernel {
    FunctionHandle function = nullptr;
    int fixed = 0;                                // bytes of static shared memory
    std::unique_ptr<std::atomic<int>> allowed{};  // bytes of dynamic shared memory that launches may use
  };
  Kernel compile(const std::string& text);
  Kernel load(const std::string& binary, std::string_view name) const;
  void allow_shared(const Kernel& kernel, int bytes) const;

  const Device device_;
  const runtime::Gpu gpu_;
  const Driver& driver_;
  const Compiler& compiler_;
  const int process_, generation_;
  DeviceNumber id_ = 0;
  ContextHandle context_ = nullptr;
  std::string architecture_;
  render::c::Target target_;
  mutable std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;
  mutable std::string why_lost_;
  render::c::KernelTable<Kernel> kernels_;
  int shared_limit_ = 0;  // limit of shared memory per group, in bytes
  Events events_;
};

// The devices of one kind in use, by index. Each is opened on first use and never closed.
class GpuDevices {
 public:
  // gpus: those that the environment makes visible.
  explicit GpuDevices(std::vector<runtime::Gpu> gpus) : gpus_(std::move(gpus)), opened_(gpus_.size()) {}
  virtual ~GpuDevices() = default;
  GpuDevices(const GpuDevices&) = delete;
  // Throws DeviceUnavailableError.
  GpuDevice& at(Device device);
  // True if naru or another library has initialised the driver in this process.
  bool driver_in_use() const;
  const std::vector<runtime::Gpu>& gpus() const noexcept { return gpus_; }
  virtual const Compiler& compiler() const noexcept = 0;
  // "NVRTC 13.0, cuBLASLt 13.1.0", or why one is unavailable.
  virtual std::string libraries() const { return compiler().name(); }
  // What exchanges tensors between processes on these devices, or null.
  virtual runtime::Communicators* communicators() noexcept { return nullptr; }

 protected:
  virtual Driver open_driver() const = 0;
  virtual std::unique_ptr<GpuDevice> open(Device device, const runtime::Gpu& gpu, const Driver& driver) const = 0;

 private:
  const std::vector<runtime::Gpu> gpus_;
  std::mutex mutex_;
  std::unique_ptr<Driver> driver_;
  std::vector<std::unique_ptr<GpuDevice>> opened_;
};

}  // namespace naru::backends::gpu
