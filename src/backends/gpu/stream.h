// A stream of a GPU.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "backends/gpu/device.h"
#include "backends/gpu/launcher.h"
#include "backends/gpu/staging.h"
#include "runtime/device/event_stream.h"

namespace naru::backends::gpu {

class GpuStream final : public runtime::EventStream, private StreamLauncher {
 public:
  GpuStream(GpuDevice& device, GpuDevices& devices, int priority);
  ~GpuStream() override;

  uint64_t submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) override;
  void prepare(const ir::Instruction& instruction) override;
  std::unique_ptr<runtime::Recorded> record(std::span<const ir::Instruction> work) override;
  uint64_t replay(runtime::Recorded& work, std::vector<Ref<Storage>> hold) override;
  std::unique_ptr<runtime::TimeStamp> stamp() override;
  bool reads_at_once(const ir::CopyBytes& copy) const override;
  void synchronize(uint64_t seq) override;

  // The driver's handle. Other libraries may put work on it from then on; synchronize() waits for that too.
  uint64_t handle() noexcept;
  // Makes later work wait for all work given so far to another library's stream (1: the default one, as DLPack counts). Returns the sequence number from which on that has been
  // waited for.
  uint64_t follow(uint64_t handle);

 private:
  using StreamLauncher::device_;  // the runtime's stream class also has a device_

  Event record_event() override;
  bool query_event(const Event& event) override;
  void host_wait(const Event& event) override;
  bool can_wait_for(const EventStream& other) const noexcept override;
  void device_wait(const Event& event) override;
  void drain() override;
  void* allocate(size_t bytes) override { return device_.allocate(bytes); }
  void release(void* memory) noexcept override { device_.release(memory); }
  void read(void* host, const void* memory, size_t bytes) override;
  void write(void* memory, const void* host, size_t bytes) override;
  void check_usable() const override { device_.check_usable(); }
  bool forked() const noexcept override { return device_.forked(); }
  bool lost() const noexcept override { return device_.lost(); }
  std::chrono::microseconds patience() const noexcept override { return std::chrono::milliseconds(1); }

  void* scratch(size_t bytes) override { return take_scratch(bytes); }
  void* faults(int count, render::c::FaultError error) override { return take_faults(count, std::move(error)); }
  void* large_arguments(const void* bytes, size_t count) override;
  uint64_t put(const ir::Instruction& instruction, std::vector<Ref<Storage>> hold, bool asked);
  // Copies between the device and pageable host memory, in pieces through page-locked memory. On return the host memory has been read or
  // written.
  uint64_t copy_staged(const ir::CopyBytes& copy, std::vector<Ref<Storage>> hold);
  uint64_t copy_up(ir::CopyBytes copy, const std::vector<Ref<Storage>>& hold, Staging& staging);
  uint64_t copy_down(ir::CopyBytes copy, const std::vector<Ref<Storage>>& hold, Staging& staging);
  void await(uint64_t seq) {
    wait_watched(seq);
    reach(seq);
  }
  StreamHandle beside();

  std::atomic<bool> known_to_others_{false};
  StreamHandle beside_ = nullptr;  // for read() and write()
  std::mutex staging_mutex_;       // lock it before the stream's own mutex
  std::optional<Staging> small_, large_;
};

}  // namespace naru::backends::gpu
