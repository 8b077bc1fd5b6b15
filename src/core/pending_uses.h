// PendingUses: which streams have still to write or read a piece of memory. It stays with the memory when a storage dies, so that memory
// can be handed on while work on it is under way: whoever writes it next waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace naru {

namespace runtime {
class DeviceStream;
}  // namespace runtime

// A point in the work of a stream: everything submitted up to number `seq` has been done once the stream has reached it.
struct StreamPoint {
  runtime::DeviceStream* stream = nullptr;
  uint64_t seq = 0;
};

// Who still uses memory that its owner has let go.
struct PastUses {
  StreamPoint written;            // no stream: nobody
  std::vector<StreamPoint> read;  // since; at most one a stream

  template <class F>
  void each(const F& f) const {
    if (written.stream) f(written);
    for (const StreamPoint& m : read) f(m);
  }
  // Forgets those for whom `past` holds.
  template <class F>
  void drop(const F& past) {
    if (written.stream && past(written)) written = {};
    std::erase_if(read, past);
  }
};

// Thread-safe: several streams may read a tensor for several threads. Empty on synchronous devices.
class PendingUses {
 public:
  bool empty() const noexcept { return !any_.load(std::memory_order_acquire); }
  // Whether nobody but this stream is in it: the stream itself has nothing to wait for.
  bool only(const runtime::DeviceStream* stream) const noexcept { return only_.load(std::memory_order_acquire) == stream; }
  // What a reader waits for: the last write; no stream where there is none.
  StreamPoint written() const;
  // What a writer waits for: the last write and what was read since.
  std::vector<StreamPoint> points() const;
  // Throws bad_alloc, and nothing has changed, where there is no memory to remember it by.
  void add_read(StreamPoint m);
  // Ends the list of reads: who wrote has waited for them.
  void set_written(StreamPoint m) noexcept;
  // The stream of `m` has reached it, which need not be waited for any more.
  void reached(StreamPoint m) noexcept;
  // Forgets everything; what it was.
  PastUses take() noexcept;
  // Of a new storage: what the memory's last owner left under way. Only writers wait for them.
  void inherit(const PastUses& uses);

 private:
  class Guard {
   public:
    explicit Guard(std::atomic_flag& f) noexcept : flag_(f) {
      while (flag_.test_and_set(std::memory_order_acquire)) flag_.wait(true, std::memory_order_relaxed);
    }
    ~Guard() {
      flag_.clear(std::memory_order_release);
      flag_.notify_one();
    }

   private:
    std::atomic_flag& flag_;
  };

  // With the lock held: says what there is now, for those who ask without.
  void tell() noexcept;

  std::atomic<bool> any_{false};
  std::atomic<const runtime::DeviceStream*> only_{nullptr};  // of all points, where that is one
  mutable std::atomic_flag locked_ = ATOMIC_FLAG_INIT;
  StreamPoint written_;
  std::vector<StreamPoint> read_;  // at most one a stream
};

// Adds m, in place of an earlier point of its stream. Throws bad_alloc.
void add_point(std::vector<StreamPoint>& points, StreamPoint m);

}  // namespace naru
