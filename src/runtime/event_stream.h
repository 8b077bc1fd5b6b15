// EventStream: a stream over a driver that has in-order queues and events. Written here, once: the numbers of instructions, the points behind
// which an event of the driver's was recorded, what is kept alive until one is reached, waits, what becomes of a stream whose device is lost,
// memory for intermediate values, and the records of what kernels have found wrong. A backend says what the driver's functions are (record, query,
// wait; an event is destroyed by its handle's deleter), and what an instruction is there.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "core/small_vector.h"
#include "runtime/backend.h"
#include "runtime/launching.h"

namespace naru::runtime {

class EventStream : public DeviceStream, private LaunchMemory {
 public:
  ~EventStream() override;
  void wait(DeviceStream& other, uint64_t seq) override;
  // Never waits: while another thread hands something over, which may take as long as the driver likes, it is what was known before.
  uint64_t completed() const noexcept override;
  uint64_t submitted() const noexcept override { return given_.load(std::memory_order_acquire); }
  void reach(uint64_t seq) noexcept override;
  void synchronize(uint64_t seq) override;
  void use_cache(CachingAllocator& cache) override;
  void release_scratch() noexcept override;

 protected:
  // One of the driver's events; the last copy destroys it.
  using Event = std::shared_ptr<const void>;

  // every: an event is recorded behind so many instructions, and between them only when somebody asks.
  EventStream(Device device, uint64_t every) : place_(device), every_(every), scratch_(device, *this) {}

  // The driver. The lock is held, but in host_wait, can_wait_for and where the process or the device is asked for.
  virtual Event record_event() = 0;                  // behind all that it was given
  virtual bool query_event(const Event& event) = 0;  // whether it was reached; throws where no more can be said of the stream
  virtual void host_wait(const Event& event) = 0;    // returns when it was reached
  virtual bool can_wait_for(const EventStream& other) const noexcept = 0;  // whether device_wait takes events of the other stream
  virtual void device_wait(const Event& event) = 0;                        // what comes later waits
  virtual void flush() {}                                                  // what it was given begins
  virtual void drain() = 0;                                                // returns when all of it is done
  virtual void settle() noexcept {}                                        // as drain(), as far as a driver still can that has failed
  virtual void* allocate(size_t bytes) = 0;                                // the device's memory; nullptr: there is none
  virtual void release(void* memory) noexcept = 0;
  virtual void read(void* host, const void* memory, size_t bytes) = 0;   // beside the stream, done on return
  virtual void write(void* memory, const void* host, size_t bytes) = 0;  // likewise
  virtual void check_usable() const = 0;                                 // throws in a forked process, and once the device is lost
  virtual bool forked() const noexcept = 0;
  virtual bool lost() const noexcept { return false; }
  // How long the main thread asks again and again, as drivers do in their own waits, before another thread waits for it (see wait_watched).
  virtual std::chrono::microseconds patience() const noexcept { return {}; }

  // On the main thread of a Python program: waits for `seq`. Throws Interrupted at Ctrl-C. Elsewhere it does nothing.
  void wait_watched(uint64_t seq);

  // Does `work`, which hands one instruction to the driver, with the lock held. What it throws is kept for whoever waits. asked: others will wait for it
  // soon. Returns its number.
  template <class Work>
  uint64_t give(std::vector<Ref<Storage>> hold, bool asked, const Work& work) {
    if (forked()) check_usable();
    Points over;
    const std::lock_guard lock(mutex_);
    make_room(keep_alive_, hold.size());  // once the work is under way, counting it must not fail
    begin(asked || !hold.empty());
    try {
      check_usable();
      work();
    } catch (...) {
      errors().keep(std::current_exception());
    }
    return end(std::move(hold), over);
  }
  // An event of its own, made by `make` with the lock held, that counts as an instruction.
  template <class Make>
  Event give_event(const Make& make) {
    check_usable();
    const std::lock_guard lock(mutex_);
    Event event = make();
    add_point(count({}), event);
    return event;
  }

  // Within `work`: whether an event is recorded behind the instruction, memory for it alone, and records of what its kernels find wrong (see
  // render::c::Launcher).
  bool event_follows() const noexcept { return event_follows_; }
  void* take_scratch(size_t bytes) { return scratch_.take(bytes); }
  void* take_faults(int count, std::function<std::string(int, uint32_t, int64_t)> text);
  // With the lock held: an event behind all so far.
  Event record_point();
  // For the destructors of those who are the driver: gives memory back, or leaves it where it is.
  void close(bool usable) noexcept;
  CachingAllocator* cache() const noexcept { return cache_; }

 private:
  // Behind the instruction `seq`: reached when the event is.
  struct Point {
    uint64_t seq;
    Event event;
    std::vector<Ref<Storage>> keep_alive;
  };
  // Points that go: handing them over asks for no memory.
  struct Points {
    std::list<Point> points;
    std::vector<Ref<Storage>> kept;
  };

  void* get(size_t bytes) override;
  void put_back(void* memory, size_t bytes) noexcept override;
  void finish() override { drain(); }
  void* allocate_or_empty_cache(size_t bytes);

  // With the lock held. Points that go are to die without it.
  void begin(bool asked) noexcept;
  uint64_t end(std::vector<Ref<Storage>> hold, Points& over) noexcept;
  uint64_t count(std::vector<Ref<Storage>> hold) noexcept;  // there is room for them
  void add_point(uint64_t seq, Event event);
  void take_reached(Points& over);
  // An event behind which `seq` is reached, null where it is already.
  Event event_of(uint64_t seq);
  // Nothing can be said of what is under way any more: all of it counts as reached, and whoever waits hears of it.
  void abandon(std::exception_ptr error, Points& over) noexcept;
  void read_faults(uint64_t seq);
  uint64_t look() noexcept;

  const Device place_;
  const uint64_t every_;
  std::mutex mutex_;
  std::list<Point> points_;
  std::vector<Ref<Storage>> keep_alive_;  // by the next point
  uint64_t recorded_ = 0;                 // the number of the last point
  std::atomic<uint64_t> given_{0}, done_{0};
  bool event_follows_ = false, at_work_ = false;
  Scratch scratch_;
  void* faults_ = nullptr;  // the memory of records_
  FaultRecords records_;
  CachingAllocator* cache_ = nullptr;
};

}  // namespace naru::runtime
