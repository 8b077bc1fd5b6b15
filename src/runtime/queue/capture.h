// Captures: the work that a thread gives a device is recorded instead of run (naru/device/graph.h). While a capture is active, host waits
// and reads of captured results are refused, because nothing has been computed.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/queue/queue.h"

namespace naru::runtime {

// Work recorded once, and all the storages that it accesses. No other owner may reuse that memory while the recording lives.
struct Recording {
  struct Accessed {
    Ref<Storage> storage;
    bool written;
  };
  // Where a program's parameters hold a random draw's key and offset (see ir/op_ids.h).
  struct Draw {
    uint64_t *key, *offset;
  };
  // A run of instructions. Those that draw random numbers are submitted one by one, because their parameters change; others are prepared by
  // DeviceStream::record if the device supports it.
  struct Part {
    std::span<const ir::Instruction> work;
    bool draws = false;
    std::unique_ptr<Recorded> ready;
  };

  Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  // Waits for the last replay.
  ~Recording();

  // Finishes the list: finds the draws and prepares the parts. `stream`: a stream of the device.
  void finish(DeviceStream& stream);
  void submit(DeviceStream& stream, const std::vector<Ref<Storage>>& hold);

  Device device;
  std::vector<ir::Instruction> work;
  std::vector<Accessed> storages;  // each once
  std::vector<Draw> draws;
  std::vector<std::pair<uint64_t, uint64_t>> dropped;  // (key, offset) of draws whose results were unused and not recorded
  std::vector<Part> parts;
  StreamPoint last;
};

// Number of active captures in the process.
inline std::atomic<int> captures_under_way{0};

// At most one per thread; it must end on the thread that began it.
class Capture {
 public:
  // Throws RuntimeError if the thread or the queue already has one.
  explicit Capture(Queue& queue);
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  // Without end(), discards the recorded work.
  ~Capture();
  // The calling thread's capture; null: none.
  static Capture* current() noexcept;

  // The recorded work. Throws RuntimeError if anything was refused.
  std::unique_ptr<Recording> end();
  // Invalidates the capture and throws a RuntimeError that names the source location.
  [[noreturn]] void refuse(const std::string& why);
  // Invalidates the capture, because requested work could not be recorded.
  void spoil() noexcept { spoiled_ = true; }
  // Called by the queue, in program order.
  void add(ir::Instruction&& instruction, const Accesses& accesses);
  void add(const Recording& other);
  // A program whose results are unused and which is not recorded.
  void drop(const ir::Program& program, std::vector<uint64_t>& params);

  // Reuses memory within a capture: gives a storage that has none the memory of one that was made in the capture and that only the
  // recording still references. The recorded work on that one runs first in each replay. False: no such storage fits.
  bool lend(Storage& storage);

  Queue& queue() const noexcept { return queue_; }
  // made: whether the storage was created after the capture began. touched: whether recorded work accesses it.
  bool made(const Storage& s) const noexcept { return s.born >= number_; }
  bool touched(const Storage& s) const { return places_.contains(&s); }

 private:
  void touch(Storage& s, bool write);
  // An instruction that writes the current contents of the host storage back to it.
  ir::Instruction restored(const Storage& s);
  void leave() noexcept;

  Queue& queue_;
  uint32_t number_ = 0;
  bool open_ = false, spoiled_ = false;
  std::string refused_;  // the first reason
  std::unique_ptr<Recording> recording_;
  std::unordered_map<const Storage*, size_t> places_;  // index in recording_->storages
  std::vector<Storage*> made_;                         // the storages in recording_ that the capture made, whose memory may be lent
  bool lends_ = true;
  std::vector<ir::Instruction> first_;  // instructions at the start of each replay
};

// "CUDA error: operation not permitted when stream is capturing (why, at train.py:12)".
std::string not_permitted(Device device, const std::string& why);
// Throws if the host may not wait for the device because the calling thread is capturing it.
void check_wait(const char* what, Device device);
// Throws if the host may not read (or write) the storage: a capture writes it; or the calling thread captures cpu and the storage is older
// than the capture, so its contents at replay are unknown; or (write) captured work reads it.
void check_host_access(Storage& storage, bool write);
// Throws because code outside an active capture uses a storage that the capture writes.
[[noreturn]] void refuse_captured(const Storage& storage);

}  // namespace naru::runtime
