#include "backends/virtual/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "core/aligned.h"
#include "naru/error.h"
#include "runtime/device/peer.h"
#include "runtime/os/system.h"

namespace naru::backends {
namespace {

// True for a copy between two devices.
bool is_peer(const ir::CopyBytes& c) {
  return !c.source_device.is_cpu() && !c.target_device.is_cpu() && c.source_device != c.target_device;
}

}  // namespace

VirtualDevice::VirtualDevice(Device device, VirtualOptions options, uint64_t generation)
    : device_(device),
      options_(std::move(options)),
      generation_(generation),
      has_elements_(std::find(options_.without.begin(), options_.without.end(), "elements") == options_.without.end()),
      flushes_denormals_(std::find(options_.without.begin(), options_.without.end(), kDenormals) != options_.without.end()) {}

VirtualDevice::InjectedFault VirtualDevice::next(const ir::Instruction& instruction) {
  check();
  InjectedFault fate;
  const auto* copy = std::get_if<ir::CopyBytes>(&instruction);
  fate.corrupts = copy && is_peer(*copy) && options_.peer == PeerAccess::Corrupt;
  if (runtime::checking_peers()) return fate;
  fate.delay = copy ? options_.copy_delay : options_.launch_delay;
  if (copy && options_.bandwidth > 0) fate.delay += static_cast<double>(copy->bytes) / options_.bandwidth;
  const uint64_t number = ++(copy ? copies_ : launches_);
  if (number == (copy ? options_.fail_copy : options_.fail_launch)) fate.fails = number;
  fate.loses = options_.lose_after != 0 && copies_ + launches_ > options_.lose_after;
  return fate;
}

void VirtualDevice::before(const InjectedFault& fate, const ir::Instruction& instruction) {
  if (fate.delay > 0) std::this_thread::sleep_for(std::chrono::duration<double>(fate.delay));
  if (fate.loses) lost_ = true;
  check();
  if (!fate.fails) return;
  const bool copy = std::holds_alternative<ir::CopyBytes>(instruction);
  throw RuntimeError(
      "{} error on {}: {} number {} failed, as asked for (fail_{}={}). What it should have written is undefined; the device goes on",
      name_of(device_.type), device_.str(), copy ? "a copy," : "a launch,", fate.fails, copy ? "copy" : "launch", fate.fails);
}

void VirtualDevice::after(const InjectedFault& fate, const ir::Instruction& instruction) {
  if (!fate.corrupts) return;
  const auto& copy = std::get<ir::CopyBytes>(instruction);
  for (size_t i = 0; i < copy.bytes; i += 512) static_cast<uint8_t*>(copy.target)[i] ^= 0xff;
}

std::string VirtualDevice::refusal() {
  if (++requests_ != options_.fail_allocation) return {};
  return fmt::format("Allocation number {0} failed, as asked for (fail_allocation={0}).", options_.fail_allocation);
}

void* VirtualDevice::allocate(size_t bytes) {
  check();
  if (++allocations_ == options_.fail_driver_allocation) return nullptr;
  size_t before = used_.load();
  do {
    if (before > options_.memory || bytes > options_.memory - before) return nullptr;
  } while (!used_.compare_exchange_weak(before, before + bytes));
  void* memory = nullptr;
  const size_t gap = options_.ptx ? 512 : 0;  // behind it, so that an index that is too large does not lead into other memory
  if (has_elements_)
    memory = aligned_memory((bytes + gap + 63) / 64 * 64);
  else
    memory = runtime::system::map_addresses(bytes);
  if (!memory) used_ -= bytes;
  return memory;
}

void VirtualDevice::release(void* memory, size_t bytes) noexcept {
  if (has_elements_)
    release_aligned(memory);
  else
    runtime::system::unmap(memory, bytes);
  used_ -= bytes;
}

ptx::Executor* VirtualDevice::executor() {
  if (!options_.ptx || !has_elements_) return nullptr;
  const std::lock_guard lock(executor_mutex_);
  if (!executor_) executor_ = std::make_unique<ptx::Executor>(device_);
  return executor_.get();
}

void VirtualDevice::check() const {
  if (lost_)
    throw DeviceLostError(
        fmt::format("device '{}' was lost: it stopped working after {} copies and launches, as asked for (lose_after={}). Everything on it "
                    "is gone; define "
                    "the virtual devices anew",
                    device_.str(), options_.lose_after, options_.lose_after));
}

}  // namespace naru::backends
