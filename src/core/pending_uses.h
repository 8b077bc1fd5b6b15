// PendingUses: the streams that have not finished reading or writing a piece of memory. It stays with the memory when its storage dies, so
// that memory with pending work can be reused: the next writer waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace naru {

namespace runtime {
class DeviceStream;
}  // namespace runtime

// A point in a stream's work: reached when everything up to number `seq` has been done.
struct StreamPoint {
  runtime::DeviceStream* stream = nullptr;
  uint64_t seq = 0;
};

// Pending uses of memory that its owner has released.
struct ReleasedUses {
  StreamPoint written;            // the last write; stream null: none
  std::vector<StreamPoint> read;  // reads since then; at most one per stream

  template <class F>
  void each(const F& f) const {
    if (written.stream) f(written);
    for (const StreamPoint& m : read) f(m);
  }
  // Removes the points for which `past` returns true.
  template <class F>
  void drop(const F& past) {
    if (written.stream && past(written)) written = {};
    std::erase_if(read, past);
  }
};

// Thread-safe: several streams may read a tensor on behalf of several threads. Empty on synchronous devices.
class PendingUses {
 public:
  bool empty() const noexcept { return !any_.load(std::memory_order_acquire); }
  // True if all pending uses belong to this stream, so it need not wait.
  bool only(const runtime::DeviceStream* stream) const noexcept { return only_.load(std::memory_order_acquire) == stream; }
  // The point that a reader waits for: the last write; stream null: none.
  StreamPoint written() const;
  // The points that a writer waits for: the last write and the reads since.
  std::vector<StreamPoint> points() const;
  // Throws bad_alloc and changes nothing if there is no memory to record it.
  void add_read(StreamPoint m);
  // Clears the list of reads, because the writer has waited for them.
  void set_written(StreamPoint m) noexcept;
  // The stream of `m` has reached it; forgets the uses up to it.
  void reached(StreamPoint m) noexcept;
  // Clears all uses and returns them.
  ReleasedUses take() noexcept;
  // For a new storage: the pending uses that the memory's last owner left. Only writers wait for them.
  void inherit(const ReleasedUses& uses);

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

  // With the lock held: updates the atomics that callers read without the lock.
  void tell() noexcept;

  std::atomic<bool> any_{false};
  std::atomic<const runtime::DeviceStream*> only_{nullptr};  // the stream, if all points belong to one
  mutable std::atomic_flag locked_ = ATOMIC_FLAG_INIT;
  StreamPoint written_;
  std::vector<StreamPoint> read_;  // at most one per stream
};

// Adds m, replacing an earlier point of its stream. Throws bad_alloc.
void add_point(std::vector<StreamPoint>& points, StreamPoint m);

}  // namespace naru
