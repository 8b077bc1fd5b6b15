// Backend: the interface that each device backend implements, in a folder of its own. Caching, fusion, ordering of streams and errors are
// written once, on top of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/capabilities.h"
#include "core/storage.h"
#include "ir/instruction.h"
#include "naru/device.h"
#include "runtime/device/availability.h"

namespace naru::runtime {

class CachingAllocator;

// How other libraries in the process name a device whose memory they can use directly: DLPack's device type and device id.
struct SharedName {
  int32_t kind = 0, number = 0;
  bool operator==(const SharedName&) const = default;
};

struct Properties {
  std::string name;               // "AMD EPYC", "Virtual cuda"
  size_t total_memory = 0;        // bytes
  size_t largest_piece = 0;       // bytes that one request can get at most; 0: all of the memory
  bool integrated = false;        // it uses the host's memory, whether or not the host may access its addresses
  bool synchronous = false;       // run() has finished when it returns
  std::string driver, libraries;  // "", "oneDNN 2.6.3, OpenBLAS 0.3.34 (SkylakeX)"
  bool tested_on_hardware = false;
  std::string uuid, pci;     // "" if the device has none
  std::string architecture;  // "gfx90a:sramecc+:xnack-"; "" if its driver names none
  int multi_processor_count = 0, major = 0, minor = 0;
  // 0 if not applicable to the device.
  int warp_size = 0, max_threads_per_block = 0, max_threads_per_multi_processor = 0, regs_per_multiprocessor = 0;
  size_t shared_memory_per_block = 0, l2_cache_size = 0;  // bytes
  int clock_rate = 0;                                     // kHz
  bool on_host = false;                                   // it computes on the host's processors
};

enum class MemoryKind : uint8_t { Device, Pinned };

// Errors of asynchronous work that no wait has reported yet; only the first one is kept. One per device, shared by its streams.
// Thread-safe.
class DeferredErrors {
 public:
  void keep(std::exception_ptr error) noexcept;
  // From now on raise() here also throws errors kept by `other`: work here reads results of work there.
  void follow(DeferredErrors& other);
  // Throws the error kept here, or by one of the followed objects, and clears it.
  void raise();
  // Resets to the initial state.
  void forget() noexcept;

 private:
  std::exception_ptr take() noexcept;
  std::mutex mutex_;
  std::exception_ptr error_;
  std::atomic<bool> any_{false};
  std::vector<DeferredErrors*> followed_;
};

// A point in a device's time; valid once its stream has reached it.
class TimeStamp {
 public:
  virtual ~TimeStamp() = default;
  // Both must be of the same kind of device, and reached.
  virtual double milliseconds_since(const TimeStamp& earlier) const = 0;
};

// Instructions that a stream has prepared for repeated execution. Destroyed only after all replays have finished.
class Recorded {
 public:
  virtual ~Recorded() = default;
};

// An in-order queue of work on one device. Thread-safe. Work is numbered 1, 2, 3 ... in the order of submission. A stream must not be
// destroyed while a storage or block still refers to it (see core/pending_uses.h).
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;
  // Enqueues the instruction after all earlier work. `hold` is kept alive until it has run: host memory whose pending uses do not keep it
  // alive; everything else may be released before that. On synchronous devices the instruction has finished on return and submit() throws
  // its errors; on others errors are kept for synchronize().
  virtual uint64_t submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) = 0;
  // Optional: compiles what the instruction needs on the calling thread, so that compiler errors are thrown here.
  virtual void prepare(const ir::Instruction& instruction) { static_cast<void>(instruction); }
  // Optional: prepares work that will be submitted repeatedly. The instructions must stay at the same address while the result lives; only
  // the parameters of their programs change. Null: they are submitted one by one. Any stream of the device can replay it.
  virtual std::unique_ptr<Recorded> record(std::span<const ir::Instruction> work) { return static_cast<void>(work), nullptr; }
  // Equivalent to submitting all of it; returns the number of the last instruction.
  virtual uint64_t replay(Recorded& work, std::vector<Ref<Storage>> hold) { return static_cast<void>(work), static_cast<void>(hold), 0; }
  // True if submit() returns only after a copy from host memory has read its source.
  virtual bool reads_at_once(const ir::CopyBytes& copy) const { return static_cast<void>(copy), false; }
  // Later work of this stream waits until `other` has reached `seq`.
  virtual void wait(DeviceStream& other, uint64_t seq) = 0;
  // The highest number that has completed.
  virtual uint64_t completed() const noexcept = 0;
  // The number given out last.
  virtual uint64_t submitted() const noexcept = 0;
  // Blocks until `seq` has completed; errors stay kept.
  virtual void reach(uint64_t seq) noexcept = 0;
  // reach(), then throws the kept error, once.
  virtual void synchronize(uint64_t seq) {
    reach(seq);
    errors().raise();
  }
  // Optional, for streams that allocate scratch memory outside their device's caching allocator. use_cache: `cache` counts that memory, and
  // is emptied when the device runs out. release_scratch: returns the memory to the device, unless an instruction being submitted uses it.
  virtual void use_cache(CachingAllocator& cache) { static_cast<void>(cache); }
  virtual void release_scratch() noexcept {}
  // Records the time after all work submitted so far; it counts as work and has its own number.
  virtual std::unique_ptr<TimeStamp> stamp() = 0;

  DeferredErrors& errors() const noexcept { return *errors_; }
  Device device() const noexcept { return device_; }
  void belong_to(Device device, DeferredErrors& errors) noexcept { device_ = device, errors_ = &errors; }

 private:
  Device device_;
  DeferredErrors own_;
  DeferredErrors* errors_ = &own_;
};

class HostWork;
class Communicators;

class Backend {
 public:
  virtual ~Backend() = default;
  // "cpu", "virtual", "cuda" ...
  virtual const char* name() const noexcept = 0;
  // True if its devices are simulated; simulated devices replace real ones of their kind.
  virtual bool simulated() const noexcept { return false; }
  // Number of devices of this kind. Opens no driver context, never throws.
  virtual int device_count(DeviceType kind) noexcept = 0;
  // An empty reason means that this backend does not serve the kind.
  virtual Availability probe(DeviceType kind) = 0;
  // Checks that a kernel runs on each device of the kind and gives the right bits. Called once, before the first use. If checking would
  // leave traces in the process (threads, contexts), a backend overrides this and checks in a child process.
  virtual Availability self_check(DeviceType kind);
  // Cheap: called whenever a queue or an allocator is created. Leaves `libraries` empty.
  virtual Properties properties(Device device) = 0;
  // Bytes that neither this process nor another has allocated: the most that a new request could get.
  virtual size_t free_memory(Device device) { return properties(device).total_memory; }
  // Optional: names of the libraries in use for matrix products and the like; may open them first.
  virtual std::string libraries(Device) { return {}; }
  // Optional: a reason to fail an allocation request regardless of free memory. Called for every request, including those that the cache
  // serves. Empty: no reason.
  virtual std::string refusal(Device device) { return static_cast<void>(device), std::string(); }
  // Raw memory, at least 64-byte aligned; nullptr when there is none left. Caching is done by the caller.
  virtual void* allocate(Device device, MemoryKind kind, size_t bytes) = 0;
  virtual void release(Device device, MemoryKind kind, void* memory, size_t bytes) noexcept = 0;
  // Work of streams with a lower priority number runs first, if the device supports priorities.
  virtual std::unique_ptr<DeviceStream> create_stream(Device device, int priority) = 0;
  // For devices that are removed and replaced: rebinds an idle stream of a removed device to its replacement.
  virtual void renew(Device device, DeviceStream& stream) { static_cast<void>(device), static_cast<void>(stream); }
  // Optional: true if a stream of `to` can copy from `from`'s memory. If not, copies between them go through host memory.
  virtual bool can_access_peer(Device from, Device to) { return static_cast<void>(from), static_cast<void>(to), false; }
  // Optional: the device's name in other libraries, if they can use its memory addresses.
  virtual std::optional<SharedName> shared_name(Device device) { return static_cast<void>(device), std::nullopt; }
  // Waits for the work that other libraries in the process have submitted to such a device.
  virtual void wait_for_others(Device device) { static_cast<void>(device); }
  // The cpu backend only: small work that needs no stream (runtime/queue/host_work.h).
  virtual HostWork* host_work() noexcept { return nullptr; }
  // Optional: what joins its devices of this kind with those of other processes; null: nothing does.
  virtual Communicators* communicators(DeviceType kind) { return static_cast<void>(kind), nullptr; }
  // Optional: what the device supports; by default everything that an instruction can need. See runtime/queue/fallback.h.
  virtual Capabilities capabilities(Device device) { return static_cast<void>(device), Capabilities(); }
  // Optional: true if its streams can run an instruction that capabilities() leaves out, by means of an optional library. Called for each
  // such instruction; the first call opens the library. Instructions that are not accepted run on the cpu, and are counted as fallbacks.
  virtual bool takes(Device device, const ir::Instruction& instruction) {
    return static_cast<void>(device), static_cast<void>(instruction), false;
  }
};

// All backends of this build, in the order of src/backends/CMakeLists.txt (generated).
std::vector<std::unique_ptr<Backend>> make_all_backends();

}  // namespace naru::runtime
