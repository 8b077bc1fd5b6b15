#include "runtime/device/event_stream.h"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "naru/error.h"
#include "runtime/memory/allocator.h"
#include "runtime/os/interrupt.h"

namespace naru::runtime {
namespace {

// Number of points to keep before collecting the reached ones.
constexpr size_t kPoints = 16;

// Releases the lock for the length of a scope.
class Unlocked {
 public:
  explicit Unlocked(std::mutex& mutex) : mutex_(mutex) { mutex_.unlock(); }
  ~Unlocked() { mutex_.lock(); }
  Unlocked(const Unlocked&) = delete;

 private:
  std::mutex& mutex_;
};

}  // namespace

EventStream::~EventStream() {
  if (cache_) cache_->remove_stream(*this);
}

void EventStream::close(bool usable) noexcept {
  if (!usable) return scratch_.abandon();
  if (faults_) release(std::exchange(faults_, nullptr));
  scratch_.release();
}

void EventStream::begin(bool asked) noexcept {
  event_follows_ = asked || given_.load(std::memory_order_relaxed) + 1 - recorded_ >= every_;
  at_work_ = true;
  scratch_.begin();
}

uint64_t EventStream::end(std::vector<Ref<Storage>> hold, Points& over) noexcept {
  at_work_ = false;
  const uint64_t seq = count(std::move(hold));
  if (lost()) {
    abandon(nullptr, over);
    return seq;
  }
  try {
    if (!event_follows_) {
      flush();
      return seq;
    }
    record_point();
    // Release host memory that was kept for the device soon, even if progress is never queried.
    if (points_.size() > kPoints || (points_.size() > 1 && !points_.front().keep_alive.empty())) take_reached(over);
  } catch (...) {
    abandon(std::current_exception(), over);
  }
  return seq;
}

uint64_t EventStream::count(std::vector<Ref<Storage>> hold) noexcept {
  const uint64_t seq = given_.load(std::memory_order_relaxed) + 1;
  given_.store(seq, std::memory_order_release);
  for (Ref<Storage>& s : hold) keep_alive_.push_back(std::move(s));
  return seq;
}

void EventStream::add_point(uint64_t seq, Event event) {
  points_.push_back({seq, std::move(event), {}});
  points_.back().keep_alive = std::exchange(keep_alive_, {});
  recorded_ = seq;
}

EventStream::Event EventStream::record_point() {
  Event event = record_event();
  add_point(given_.load(std::memory_order_relaxed), event);
  return event;
}

void EventStream::abandon(std::exception_ptr error, Points& over) noexcept {
  if (error) errors().keep(std::move(error));
  settle();  // drain first: memory is returned to the driver next
  over.points.splice(over.points.end(), points_);
  if (over.kept.empty()) over.kept.swap(keep_alive_);
  recorded_ = given_.load(std::memory_order_relaxed);
  done_.store(recorded_, std::memory_order_release);
}

void EventStream::take_reached(Points& over) {
  if (lost()) return abandon(nullptr, over);
  while (!points_.empty() && query_event(points_.front().event)) {
    done_.store(points_.front().seq, std::memory_order_release);
    over.points.splice(over.points.end(), points_, points_.begin());
  }
}

EventStream::Event EventStream::event_of(uint64_t seq) {
  if (done_.load(std::memory_order_relaxed) >= seq) return nullptr;
  for (const Point& p : points_)
    if (p.seq >= seq) return p.event;
  return record_point();
}

uint64_t EventStream::completed() const noexcept {
  const uint64_t done = done_.load(std::memory_order_acquire);
  if (done == given_.load(std::memory_order_acquire) || forked()) return done;
  return const_cast<EventStream*>(this)->look();
}

uint64_t EventStream::look() noexcept {
  Points over;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return done_.load(std::memory_order_acquire);
  try {
    // A caller that polls must eventually see the last number.
    if (points_.empty() && !lost() && recorded_ < given_.load(std::memory_order_relaxed)) record_point();
    take_reached(over);
  } catch (...) {
    abandon(std::current_exception(), over);
  }
  return done_.load(std::memory_order_relaxed);
}

void EventStream::reach(uint64_t seq) noexcept {
  if (forked() || (done_.load(std::memory_order_acquire) >= seq && !records_.suspicious())) return;
  Event event;
  Points over;
  try {
    {
      const std::lock_guard lock(mutex_);
      if (!lost()) event = event_of(seq);
    }
    if (event) host_wait(event);
    const std::lock_guard lock(mutex_);
    take_reached(over);
    if (records_.suspicious() && !lost()) read_faults(seq);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    abandon(std::current_exception(), over);
  }
}

void EventStream::wait_watched(uint64_t seq) {
  if (forked() || completed() >= seq) return;
  const InterruptWatch watch;
  if (!watch.active()) return;
  for (const auto until = std::chrono::steady_clock::now() + patience(); std::chrono::steady_clock::now() < until;) {
    if (completed() >= seq) return;
    std::this_thread::yield();
  }
  Event event;
  try {
    const std::lock_guard lock(mutex_);
    if (!lost()) event = event_of(seq);
  } catch (const std::exception&) {
    return;  // reach() reports the same error
  }
  const auto wait = [this, event] {
    try {
      host_wait(event);
    } catch (const std::exception&) {
    }
  };
  if (event && !wait_or_interrupt(watch, wait)) throw Interrupted(fmt::format("the wait for {} was interrupted (Ctrl-C)", place_.str()));
}

void EventStream::synchronize(uint64_t seq) {
  if (forked()) check_usable();
  wait_watched(seq);
  DeviceStream::synchronize(seq);
  check_usable();
}

void EventStream::wait(DeviceStream& other, uint64_t seq) {
  check_usable();
  if (&other == this || other.completed() >= seq) return;
  auto* const there = dynamic_cast<EventStream*>(&other);
  if (!there || !can_wait_for(*there)) return other.reach(seq);
  Event event;
  {
    const std::lock_guard lock(there->mutex_);
    if (!there->lost()) event = there->event_of(seq);
  }
  if (!event) return;
  const std::lock_guard lock(mutex_);
  device_wait(event);
}

void EventStream::use_cache(CachingAllocator& cache) {
  cache_ = &cache;
  cache.add_stream(*this);
}

void EventStream::release_scratch() noexcept {
  if (forked() || lost()) return;
  const std::lock_guard lock(mutex_);
  if (at_work_ || scratch_.empty()) return;
  try {
    drain();
    scratch_.release();
  } catch (...) {
    errors().keep(std::current_exception());
  }
}

void* EventStream::allocate_or_empty_cache(size_t bytes) {
  if (void* const memory = allocate(bytes)) return memory;
  if (!cache_) return nullptr;
  {
    // empty_cache waits for pending uses of the cache's blocks, including this stream's.
    const Unlocked scope(mutex_);
    cache_->empty_cache();
  }
  return allocate(bytes);
}

void* EventStream::get(size_t bytes) {
  void* const memory = allocate_or_empty_cache(bytes);
  if (memory && cache_) cache_->count_scratch(static_cast<int64_t>(bytes));
  return memory;
}

void EventStream::put_back(void* memory, size_t bytes) noexcept {
  release(memory);
  if (cache_) cache_->count_scratch(-static_cast<int64_t>(bytes));
}

void* EventStream::take_faults(int count, render::c::FaultError error) {
  using Fault = FaultRecords::Fault;
  constexpr size_t kBytes = FaultRecords::kCount * sizeof(Fault);
  if (count == 0) return nullptr;
  if (!faults_) {
    const std::vector<Fault> none(FaultRecords::kCount);
    void* const memory = allocate_or_empty_cache(kBytes);
    if (!memory) throw OutOfMemoryError("{}: no memory for {} bytes", place_.str(), kBytes);
    try {
      write(memory, none.data(), kBytes);
    } catch (...) {
      release(memory);
      throw;
    }
    faults_ = memory;
  }
  int first = records_.take(count, submitted() + 1, error);
  if (first < 0) {
    // All records were used once: check all of them before reusing them.
    drain();
    read_faults(submitted());
    records_.start_over();
    first = records_.take(count, submitted() + 1, std::move(error));
  }
  return static_cast<Fault*>(faults_) + first;
}

void EventStream::read_faults(uint64_t seq) {
  using Fault = FaultRecords::Fault;
  records_.look(
      seq, errors(), [&](Fault* all) { read(all, faults_, FaultRecords::kCount * sizeof(Fault)); },
      [&](int number) {
        const Fault none;
        write(static_cast<Fault*>(faults_) + number, &none, sizeof none);
      });
}

}  // namespace naru::runtime
