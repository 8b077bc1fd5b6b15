// Backend: what a device backend implements, one folder each. Everything above (caching, fusion, streams' ordering,
// errors) is written once, over this.
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
#include "runtime/availability.h"

namespace naru::runtime {

class CachingAllocator;

// What other libraries of the process call a device whose memory they can use as it is: DLPack's kind of device, and a number.
struct SharedName {
  int32_t kind = 0, number = 0;
  bool operator==(const SharedName&) const = default;
};

struct Properties {
  std::string name;               // "AMD EPYC", "Virtual cuda"
  size_t total_memory = 0;        // bytes
  size_t largest_piece = 0;       // bytes that one request can get; 0: all of it
  bool integrated = false;        // its memory is the host's, whether the host may use its addresses or not
  bool synchronous = false;       // run() has finished when it returns
  std::string driver, libraries;  // "", "oneDNN 2.6.3, OpenBLAS 0.3.34 (SkylakeX)"
  bool tested_on_hardware = false;
  std::string uuid, pci;  // "GPU-5a1b...", "0000:17:00.0"; "" where the device has none
  int multi_processor_count = 0, major = 0, minor = 0;
  // 0 where it means nothing for the device.
  int warp_size = 0, max_threads_per_block = 0, max_threads_per_multi_processor = 0, regs_per_multiprocessor = 0;
  size_t shared_memory_per_block = 0, l2_cache_size = 0;  // bytes
  int clock_rate = 0;                                     // kHz
  bool on_host = false;                                   // it computes on the host's processors
};

enum class MemoryKind : uint8_t { Device, Pinned };

// Errors of work that nobody has waited for yet; the first one stays. One a device, shared by its streams. Thread-safe.
class DeferredErrors {
 public:
  void keep(std::exception_ptr error) noexcept;
  // From now on whoever waits here also hears of the errors there: work here reads what was made there.
  void follow(DeferredErrors& other);
  // Throws the error kept here, or by one that is followed, and forgets it.
  void raise();
  // As made anew.
  void forget() noexcept;

 private:
  std::exception_ptr take() noexcept;
  std::mutex mutex_;
  std::exception_ptr error_;
  std::atomic<bool> any_{false};
  std::vector<DeferredErrors*> followed_;
};

// A point in the time of a device, once its stream has reached it.
class TimeStamp {
 public:
  virtual ~TimeStamp() = default;
  // Both of one kind of device, and reached.
  virtual double milliseconds_since(const TimeStamp& earlier) const = 0;
};

// Instructions that a stream has made ready to be done again and again. Destroyed only when all replays have been reached.
class Recorded {
 public:
  virtual ~Recorded() = default;
};

// An in-order queue of work of one device. Thread-safe. Work has numbers 1, 2, 3 ... in the order of submission. A stream is never
// destroyed while memory remembers it (see core/pending_uses.h).
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;
  // Starts the instruction behind all that was submitted before; `hold` is kept alive until it has run (memory of the host that is not
  // handed on with its pending uses; all else may be gone by then). Synchronous devices have finished it, and throw its errors, on return;
  // others keep the errors for synchronize().
  virtual uint64_t submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) = 0;
  // Optional: compiles what the instruction needs, on the calling thread, so that the compiler's errors are thrown here.
  virtual void prepare(const ir::Instruction& instruction) { static_cast<void>(instruction); }
  // Optional: makes ready what will be submitted again and again; the instructions stay where they are as long as it lives, and only
  // the parameters of programs change. Null: they are submitted one by one. Any stream of the device replays it.
  virtual std::unique_ptr<Recorded> record(std::span<const ir::Instruction> work) { return static_cast<void>(work), nullptr; }
  // As if all of it was submitted; the number of the last.
  virtual uint64_t replay(Recorded& work, std::vector<Ref<Storage>> hold) { return static_cast<void>(work), static_cast<void>(hold), 0; }
  // Whether a copy from memory of the host has read it when submit() returns.
  virtual bool reads_at_once(const ir::CopyBytes& copy) const { return static_cast<void>(copy), false; }
  // Later work of this stream waits until `other` has reached `seq`.
  virtual void wait(DeviceStream& other, uint64_t seq) = 0;
  // The highest number reached.
  virtual uint64_t completed() const noexcept = 0;
  // The number last given out.
  virtual uint64_t submitted() const noexcept = 0;
  // Returns when `seq` has been reached; errors stay kept.
  virtual void reach(uint64_t seq) noexcept = 0;
  // reach(), then throws the error kept, once.
  virtual void synchronize(uint64_t seq) {
    reach(seq);
    errors().raise();
  }
  // Optional, for streams that keep memory for intermediate values beside the cache of their device: what counts it, and is emptied where the device
  // has no more. And: gives the memory back, unless it is in use by an instruction being handed over.
  virtual void use_cache(CachingAllocator& cache) { static_cast<void>(cache); }
  virtual void release_scratch() noexcept {}
  // Takes the time behind all that was submitted; it counts as work, with a number of its own.
  virtual std::unique_ptr<TimeStamp> stamp() = 0;

  DeferredErrors& errors() const noexcept { return *errors_; }
  Device device() const noexcept { return device_; }
  void belong_to(Device device, DeferredErrors& errors) noexcept { device_ = device, errors_ = &errors; }

 private:
  Device device_;
  DeferredErrors own_;
  DeferredErrors* errors_ = &own_;
};

class Backend {
 public:
  virtual ~Backend() = default;
  // "cpu", "virtual", "cuda" ...
  virtual const char* name() const noexcept = 0;
  // Whether its devices are simulated: they take the place of real ones of their kind.
  virtual bool simulated() const noexcept { return false; }
  // How many devices of this kind it offers. Opens no driver context, never throws.
  virtual int device_count(DeviceType kind) noexcept = 0;
  // An empty reason: this backend has nothing to do with the kind.
  virtual Availability probe(DeviceType kind) = 0;
  // Whether a kernel runs on each device of the kind and gives the right bits. Asked once, before the first use. Where that
  // would leave traces in the process, a backend overrides it and asks a child.
  virtual Availability self_check(DeviceType kind);
  // Cheap: asked for whenever a queue or an allocator is made. Leaves out `libraries`.
  virtual Properties properties(Device device) = 0;
  // Bytes that nobody holds, this process or another; what a new request could get at most.
  virtual size_t free_memory(Device device) { return properties(device).total_memory; }
  // Optional: the libraries in use for products and such, which may have to be opened first.
  virtual std::string libraries(Device) { return {}; }
  // Optional: why a request of the program is to fail, whatever memory there is; asked for each of them, those that the cache meets among them.
  // Empty: it is not.
  virtual std::string refusal(Device device) { return static_cast<void>(device), std::string(); }
  // Raw memory, 64-byte aligned at least; nullptr when there is none left. Caching is done above.
  virtual void* allocate(Device device, MemoryKind kind, size_t bytes) = 0;
  virtual void release(Device device, MemoryKind kind, void* memory, size_t bytes) noexcept = 0;
  // Work of streams of a lower priority number goes first, where the device can.
  virtual std::unique_ptr<DeviceStream> create_stream(Device device, int priority) = 0;
  // For devices that come and go: makes an idle stream of a device that went one of the device that has come in its place.
  virtual void renew(Device device, DeviceStream& stream) { static_cast<void>(device), static_cast<void>(stream); }
  // Optional: whether a stream of `to` can copy from `from`'s memory. If not, copies between them pass through the host's.
  virtual bool can_access_peer(Device from, Device to) { return static_cast<void>(from), static_cast<void>(to), false; }
  // Optional: the device as other libraries know it, where they can use its memory's addresses.
  virtual std::optional<SharedName> shared_name(Device device) { return static_cast<void>(device), std::nullopt; }
  // Waits for what other libraries of the process have given such a device.
  virtual void wait_for_others(Device device) { static_cast<void>(device); }
  // Optional: what a device can do; unless a backend says otherwise, all that instructions can ask for. See runtime/fallback.h.
  virtual Capabilities capabilities(Device device) { return static_cast<void>(device), Capabilities(); }
  // Optional: whether its streams can do an instruction that capabilities() leaves out, by a library that may be there or not. Asked for each one,
  // the library is opened when first asked; what is not taken is done on the cpu, and counted.
  virtual bool takes(Device device, const ir::Instruction& instruction) {
    return static_cast<void>(device), static_cast<void>(instruction), false;
  }
};

// All backends of this build, in the order of src/backends/CMakeLists.txt (generated).
std::vector<std::unique_ptr<Backend>> make_all_backends();

}  // namespace naru::runtime
