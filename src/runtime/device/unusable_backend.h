// UnusableBackend: for a kind of device that this build can detect but not compute on. It has no devices, and reports why.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "naru/error.h"
#include "runtime/device/backend.h"

namespace naru::runtime {

class UnusableBackend final : public Backend {
 public:
  // `ask` is called once, at the first probe.
  UnusableBackend(const char* name, DeviceType kind, std::function<Availability()> ask) : name_(name), kind_(kind), ask_(std::move(ask)) {}
  ~UnusableBackend() override { delete known_.load(); }

  const char* name() const noexcept override { return name_; }
  int device_count(DeviceType) noexcept override { return 0; }
  Availability probe(DeviceType kind) override {
    if (kind != kind_) return {};
    // No lock, because a forked child could inherit it locked. Two threads that probe at the same time may both call ask_.
    if (const Availability* a = known_.load(std::memory_order_acquire)) return *a;
    auto found = std::make_unique<Availability>(ask_());
    const Availability* none = nullptr;
    if (known_.compare_exchange_strong(none, found.get(), std::memory_order_acq_rel)) return *found.release();
    return *none;
  }

  Properties properties(Device) override { raise(); }
  void* allocate(Device, MemoryKind, size_t) override { raise(); }
  void release(Device, MemoryKind, void*, size_t) noexcept override {}
  std::unique_ptr<DeviceStream> create_stream(Device, int) override { raise(); }

 private:
  [[noreturn]] void raise() const { throw DeviceUnavailableError(std::string(name_) + " has no devices"); }

  const char* name_;
  const DeviceType kind_;
  const std::function<Availability()> ask_;
  std::atomic<const Availability*> known_{nullptr};
};

}  // namespace naru::runtime
