// Captures: what a thread gives a device is recorded instead of done (naru/graph.h). Every wait of the host and every read of what would
// have been written is refused meanwhile, for nothing has been.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/queue.h"

namespace naru::runtime {

// Work recorded once, and all the memory that it accesses, which is nobody else's as long as the recording lives.
struct Recording {
  struct Accessed {
    Ref<Storage> storage;
    bool written;
  };
  // Where a program's parameters hold a draw of the random generator (see ir/op_ids.h).
  struct Draw {
    uint64_t *key, *offset;
  };
  // A run of instructions: those that draw are submitted as they are, for their numbers change; others are made ready where the
  // device can.
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

  // Ends the list: finds the draws and makes the parts ready. `stream`: one of the device's.
  void finish(DeviceStream& stream);
  void submit(DeviceStream& stream, const std::vector<Ref<Storage>>& hold);

  Device device;
  std::vector<ir::Instruction> work;
  std::vector<Accessed> storages;  // each once
  std::vector<Draw> draws;
  std::vector<std::pair<uint64_t, uint64_t>> dropped;  // (key, offset) of draws that nothing came of
  std::vector<Part> parts;
  StreamPoint last;
};

// How many captures are under way in the process.
inline std::atomic<int> captures_under_way{0};

// One thread has one at a time; it ends on the thread that began it.
class Capture {
 public:
  // Throws RuntimeError where the thread or the queue has one already.
  explicit Capture(Queue& queue);
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  // Without end(): what was recorded is forgotten.
  ~Capture();
  // Of the calling thread; null where there is none.
  static Capture* current() noexcept;

  // What was recorded. Throws RuntimeError if anything was refused.
  std::unique_ptr<Recording> end();
  // Makes the capture invalid and throws RuntimeError, with the line of the program.
  [[noreturn]] void refuse(const std::string& why);
  // What was asked for could not be recorded: the capture is invalid.
  void spoil() noexcept { spoiled_ = true; }
  // By the queue, in order.
  void add(ir::Instruction&& instruction, const Accesses& accesses);
  void add(const Recording& other);
  // A program whose results nobody wants, and which is not recorded.
  void drop(const ir::Program& program, std::vector<uint64_t>& params);

  // Gives a storage without memory that of one that was made in the capture and that only the recording knows any more: what was asked of it comes
  // first in each replay. False: there is none that fits.
  bool lend(Storage& storage);

  Queue& queue() const noexcept { return queue_; }
  // Whether the storage was made since the capture began; whether what was recorded accesses it.
  bool made(const Storage& s) const noexcept { return s.born >= number_; }
  bool touched(const Storage& s) const { return places_.contains(&s); }

 private:
  void touch(Storage& s, bool write);
  // What writes into the host's storage what it holds now.
  ir::Instruction restored(const Storage& s);
  void leave() noexcept;

  Queue& queue_;
  uint32_t number_ = 0;
  bool open_ = false, spoiled_ = false;
  std::string refused_;  // why, the first time
  std::unique_ptr<Recording> recording_;
  std::unordered_map<const Storage*, size_t> places_;  // in recording_->storages
  std::vector<Storage*> made_;                         // those of them that the capture made, whose memory may be lent
  bool lends_ = true;
  std::vector<ir::Instruction> first_;  // what each replay begins with
};

// "CUDA error: operation not permitted when stream is capturing (why, at train.py:12)".
std::string not_permitted(Device device, const std::string& why);
// Throws where the host may not wait for the device, for the calling thread records it.
void check_wait(const char* what, Device device);
// Throws where the host may not read the storage (or write there): a capture writes it, or the calling thread records cpu and the storage is
// older than that, so that what it holds at replay is not known yet, or (write) what was recorded reads it.
void check_host_access(Storage& storage, bool write);
// Throws, as somebody outside a capture under way uses what it writes.
[[noreturn]] void refuse_captured(const Storage& storage);

}  // namespace naru::runtime
