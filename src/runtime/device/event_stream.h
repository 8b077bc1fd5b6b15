// EventStream: a stream over a driver that has in-order queues and events. It implements, for all such backends: numbering of instructions,
// the points after which a driver event was recorded, keeping memory alive until a point is reached, waits, failure when the device is
// lost, scratch memory, and the records of faults that kernels write. A backend supplies the driver's functions (record, query, wait; the
// deleter of an event's handle destroys it) and what running an instruction means.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "core/small_vector.h"
#include "runtime/device/backend.h"
#include "runtime/device/launching.h"

namespace naru::runtime {

class EventStream : public DeviceStream, private LaunchMemory {
 public:
  ~EventStream() override;
  void wait(DeviceStream& other, uint64_t seq) override;
  // Never waits: while another thread is submitting, which may take as long as the driver likes, returns the last known value.
  uint64_t completed() const noexcept override;
  uint64_t submitted() const noexcept override { return given_.load(std::memory_order_acquire); }
  void reach(uint64_t seq) noexcept override;
  void synchronize(uint64_t seq) override;
  void use_cache(CachingAllocator& cache) override;
  void release_scratch() noexcept override;

 protected:
  // A driver event; the last copy destroys it.
  using Event = std::shared_ptr<const void>;

  // every: an event is recorded after this many instructions, and between them only on demand.
  EventStream(Device device, uint64_t every) : place_(device), every_(every), scratch_(device, *this) {}

  // Driver functions. Called with the lock held, except host_wait and can_wait_for; check_usable, forked and lost are called both ways.
  virtual Event record_event() = 0;                  // after all work submitted so far
  virtual bool query_event(const Event& event) = 0;  // true if it was reached; throws if the stream's state can't be determined any more
  virtual void host_wait(const Event& event) = 0;    // blocks until it was reached
  virtual bool can_wait_for(const EventStream& other) const noexcept = 0;  // true if device_wait accepts events of `other`
  virtual void device_wait(const Event& event) = 0;                        // later work waits for it
  virtual void flush() {}                                                  // starts the work submitted so far
  virtual void drain() = 0;                                                // blocks until all submitted work is done
  virtual void settle() noexcept {}                                        // as drain(), as far as a failed driver still allows
  virtual void* allocate(size_t bytes) = 0;                                // device memory; nullptr: out of memory
  virtual void release(void* memory) noexcept = 0;
  virtual void read(void* host, const void* memory, size_t bytes) = 0;   // not ordered with the stream; done on return
  virtual void write(void* memory, const void* host, size_t bytes) = 0;  // likewise
  virtual void check_usable() const = 0;                                 // throws in a forked process, and after the device was lost
  virtual bool forked() const noexcept = 0;
  virtual bool lost() const noexcept { return false; }
  // How long the main thread polls, as drivers do in their own waits, before another thread waits on its behalf (see wait_watched).
  virtual std::chrono::microseconds patience() const noexcept { return {}; }

  // On the main thread of a Python program: waits for `seq`; throws Interrupted at Ctrl-C. On other threads it does nothing.
  void wait_watched(uint64_t seq);

  // Calls `work`, which submits one instruction to the driver, with the lock held. What it throws is kept for the next wait. asked: other
  // streams will wait for it soon, so an event is recorded. Returns its number.
  template <class Work>
  uint64_t give(std::vector<Ref<Storage>> hold, bool asked, const Work& work) {
    if (forked()) check_usable();
    Points over;
    const std::lock_guard lock(mutex_);
    make_room(keep_alive_, hold.size());  // after submission, counting the work must not fail
    begin(asked || !hold.empty());
    try {
      check_usable();
      work();
    } catch (...) {
      errors().keep(std::current_exception());
    }
    return end(std::move(hold), over);
  }
  // Creates a separate event by `make`, with the lock held; it counts as an instruction.
  template <class Make>
  Event give_event(const Make& make) {
    check_usable();
    const std::lock_guard lock(mutex_);
    Event event = make();
    add_point(count({}), event);
    return event;
  }

  // For use within `work`: whether an event is recorded after the instruction, scratch memory for this instruction alone, and records for
  // the faults that its kernels find (see render::c::Launcher).
  bool event_follows() const noexcept { return event_follows_; }
  void* take_scratch(size_t bytes) { return scratch_.take(bytes); }
  void* take_faults(int count, render::c::FaultError error);
  // With the lock held: an event after all work so far.
  Event record_point();
  // For destructors of derived classes, which still implement the driver functions: releases memory, or leaks it if the device is not
  // usable.
  void close(bool usable) noexcept;
  CachingAllocator* cache() const noexcept { return cache_; }

 private:
  // Instruction `seq` has completed when the event is reached.
  struct Point {
    uint64_t seq;
    Event event;
    std::vector<Ref<Storage>> keep_alive;
  };
  // Points to be destroyed outside the lock. Moving them here allocates nothing.
  struct Points {
    std::list<Point> points;
    std::vector<Ref<Storage>> kept;
  };

  void* get(size_t bytes) override;
  void put_back(void* memory, size_t bytes) noexcept override;
  void finish() override { drain(); }
  void* allocate_or_empty_cache(size_t bytes);

  // With the lock held. The points in `over` must be destroyed after unlocking.
  void begin(bool asked) noexcept;
  uint64_t end(std::vector<Ref<Storage>> hold, Points& over) noexcept;
  uint64_t count(std::vector<Ref<Storage>> hold) noexcept;  // the caller has reserved room for `hold`
  void add_point(uint64_t seq, Event event);
  void take_reached(Points& over);
  // An event after which `seq` is complete; null if it is already.
  Event event_of(uint64_t seq);
  // Called when the state of submitted work can't be known any more: all of it counts as completed, and the next wait throws `error`.
  void abandon(std::exception_ptr error, Points& over) noexcept;
  void read_faults(uint64_t seq);
  uint64_t look() noexcept;

  const Device place_;
  const uint64_t every_;
  std::mutex mutex_;
  std::list<Point> points_;
  std::vector<Ref<Storage>> keep_alive_;  // kept alive until the next point
  uint64_t recorded_ = 0;                 // the number of the last point
  std::atomic<uint64_t> given_{0}, done_{0};
  bool event_follows_ = false, at_work_ = false;
  Scratch scratch_;
  void* faults_ = nullptr;  // device memory of records_
  FaultRecords records_;
  CachingAllocator* cache_ = nullptr;
};

}  // namespace naru::runtime
