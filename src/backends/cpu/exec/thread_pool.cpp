// Workers spin briefly, then sleep. There is one job slot, which idle workers join; a counter hands out the job's items.
#include "backends/cpu/exec/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "naru/error.h"
#include "runtime/os/system.h"

namespace naru::cpu {
namespace {

constexpr int kMaxThreads = 1024;
using Clock = std::chrono::steady_clock;
constexpr auto kSpin = std::chrono::microseconds(50);

// When the machine is busy with other work, a worker that holds an item may lose its processor for milliseconds. A job is late if it waits
// for its workers longer than kLate and longer than the caller itself worked. After a late job the pool runs jobs serially for a while; the
// pause grows while jobs stay late.
constexpr auto kLate = std::chrono::microseconds(150);
// In nanoseconds. Waking a worker costs the caller 5 us, and the worker needs 50 us to arrive.
constexpr double kBrief = 20000;
constexpr int kAlone = 4;
constexpr auto kShortRest = std::chrono::milliseconds(5), kLongRest = std::chrono::milliseconds(160);

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int default_threads() {
  for (const char* name : {"NARU_NUM_THREADS", "OMP_NUM_THREADS"})
    if (const char* text = std::getenv(name))
      if (const int n = std::atoi(text); n >= 1) return std::min(n, kMaxThreads);
  return std::min(runtime::system::processors(), kMaxThreads);
}

// `state` holds which job is open and how many workers have joined: epoch << 32 | open << 31 | joined. A worker joins by incrementing an
// open state. The caller closes the job and waits until `joined` is 0, so a worker that wakes up late can't join a closed job.
constexpr uint64_t kOpen = uint64_t{1} << 31, kJoined = kOpen - 1, kEpoch = uint64_t{1} << 32;

thread_local bool inside_pool = false;

class Pool {
 public:
  explicit Pool(int threads) {
    for (int i = 1; i < threads; ++i) {
      try {
        std::thread([this] { work(); }).detach();
        ++workers_;
      } catch (const std::exception&) {
        break;  // fewer threads can do the work
      }
    }
  }

  // Ends the workers. The pool itself is never destroyed, as workers may still access it. `before`: the pool that was retired last.
  void retire(Pool* before) noexcept {
    retired_before_ = before;
    stop_.store(true, std::memory_order_seq_cst);
    signal_.fetch_add(1, std::memory_order_seq_cst);
    runtime::system::wake(signal_, INT_MAX);
  }

  bool run(int64_t count, const std::function<void(int64_t)>& body, bool brief) {
    if (workers_ == 0 || busy_.exchange(true, std::memory_order_acquire)) return false;
    const auto start = Clock::now();
    if (start < resting_until_ || (brief && start < alone_until_ && asleep_.load(std::memory_order_relaxed) == workers_)) {
      busy_.store(false, std::memory_order_release);
      return false;
    }
    body_ = &body;
    count_ = count;
    next_.store(0, std::memory_order_relaxed);
    error_ = nullptr;
    failed_.store(false, std::memory_order_relaxed);
    helped_.store(false, std::memory_order_relaxed);
    epoch_ += kEpoch;
    state_.store(epoch_ | kOpen, std::memory_order_seq_cst);
    signal_.fetch_add(1, std::memory_order_seq_cst);
    if (const int asleep = asleep_.load(std::memory_order_seq_cst); asleep > 0)
      runtime::system::wake(signal_, static_cast<int>(std::min<int64_t>(asleep, count - 1)));
    inside_pool = true;
    take_items();
    inside_pool = false;
    const auto done = Clock::now();
    state_.fetch_and(~kOpen, std::memory_order_acq_rel);
    for (int spins = 0; state_.load(std::memory_order_acquire) & kJoined;) {
      pause();
      // A worker that holds an item may have been preempted; yield our processor to it.
      if (++spins > 20000) std::this_thread::yield();
    }
    rest_if_late(start, done, Clock::now());
    if (helped_.load(std::memory_order_relaxed))
      alone_ = 0;
    else if (brief && ++alone_ > kAlone)
      alone_until_ = done + kShortRest;
    const std::exception_ptr error = std::exchange(error_, nullptr);
    busy_.store(false, std::memory_order_release);
    if (error) std::rethrow_exception(error);
    return true;
  }

 private:
  void rest_if_late(Clock::time_point start, Clock::time_point done, Clock::time_point end) noexcept {
    if (end - done < kLate || end - done < done - start) {
      rest_ = std::max<Clock::duration>(kShortRest, rest_ * 7 / 8);
      return;
    }
    resting_until_ = end + rest_;
    rest_ = std::min<Clock::duration>(kLongRest, rest_ * 2);
  }

  void take_items() noexcept {
    for (;;) {
      const int64_t i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= count_) return;
      if (failed_.load(std::memory_order_relaxed)) continue;
      try {
        (*body_)(i);
      } catch (...) {
        const std::lock_guard lock(error_mutex_);
        if (!error_) error_ = std::current_exception();
        failed_.store(true, std::memory_order_relaxed);
      }
    }
  }

  // Joins the open job, if there is one that this worker has not seen yet.
  bool join(uint64_t& seen) noexcept {
    uint64_t state = state_.load(std::memory_order_acquire);
    if (!(state & kOpen) || (state & ~(kEpoch - 1)) == seen) return false;
    while (state & kOpen) {
      if (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      seen = state & ~(kEpoch - 1);
      helped_.store(true, std::memory_order_relaxed);
      take_items();
      state_.fetch_sub(1, std::memory_order_acq_rel);
      return true;
    }
    return false;
  }

  void work() noexcept {
    inside_pool = true;
    uint64_t seen = 0;
    while (!stop_.load(std::memory_order_acquire)) {
      const auto deadline = Clock::now() + kSpin;
      bool joined = false;
      do {
        for (int i = 0; i < 64 && !joined; ++i) {
          joined = join(seen);
          if (!joined) pause();
        }
      } while (!joined && Clock::now() < deadline);
      if (joined) continue;
      const uint32_t before = signal_.load(std::memory_order_seq_cst);
      asleep_.fetch_add(1, std::memory_order_seq_cst);
      // A job opened before we incremented asleep_ has not woken us: check once more.
      if (!join(seen) && !stop_.load(std::memory_order_acquire)) runtime::system::sleep_while(signal_, before);
      asleep_.fetch_sub(1, std::memory_order_seq_cst);
    }
  }

  alignas(64) std::atomic<uint64_t> state_{0};
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<uint32_t> signal_{0};
  std::atomic<int> asleep_{0};
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<bool> busy_{false};
  const std::function<void(int64_t)>* body_ = nullptr;
  int64_t count_ = 0;
  uint64_t epoch_ = 0;
  std::atomic<bool> failed_{false}, helped_{false};
  std::mutex error_mutex_;
  std::exception_ptr error_;
  // Guarded by busy_.
  Clock::time_point resting_until_{};
  Clock::duration rest_ = kShortRest;
  Clock::time_point alone_until_{};
  int alone_ = 0;  // consecutive jobs that no worker joined
  int workers_ = 0;
  Pool* retired_before_ = nullptr;  // keeps it reachable, for leak checkers
};

std::atomic<Pool*> the_pool{nullptr};
std::atomic<int> threads{0};
std::atomic_flag making = ATOMIC_FLAG_INIT;

// A forked child has none of the threads; it creates a new pool on demand.
void forget_pool_in_child() {
  the_pool.store(nullptr, std::memory_order_relaxed);
  making.clear();
  inside_pool = false;
}

// The pool; nullptr while another thread creates it.
Pool* pool() {
  if (Pool* p = the_pool.load(std::memory_order_acquire)) return p;
  if (making.test_and_set(std::memory_order_acquire)) return nullptr;
  Pool* p = the_pool.load(std::memory_order_acquire);
  if (!p) {
    static const bool registered = runtime::system::at_fork(nullptr, nullptr, forget_pool_in_child);
    (void)registered;
    p = new Pool(num_threads());
    the_pool.store(p, std::memory_order_release);
  }
  making.clear(std::memory_order_release);
  return p;
}

}  // namespace

int num_threads() noexcept {
  int n = threads.load(std::memory_order_relaxed);
  if (n == 0) {
    n = default_threads();
    int none = 0;
    if (!threads.compare_exchange_strong(none, n)) n = none;
  }
  return n;
}

void set_num_threads(int n) {
  if (n < 1 || n > kMaxThreads) throw RuntimeError("set_num_threads expects a positive integer: wanted 1 to {}, got {}", kMaxThreads, n);
  if (num_threads() == n) return;
  threads.store(n, std::memory_order_relaxed);
  // The old pool's workers end by themselves; jobs that still run in it are not disturbed.
  static std::mutex mutex;
  static Pool* retired = nullptr;
  const std::lock_guard lock(mutex);
  if (Pool* old = the_pool.exchange(nullptr, std::memory_order_acq_rel)) old->retire(std::exchange(retired, old));
}

void parallel_for(int64_t count, const std::function<void(int64_t)>& body, double nanoseconds) {
  if (count > 1 && !inside_pool && num_threads() > 1)
    if (Pool* p = pool(); p && p->run(count, body, nanoseconds < kBrief)) return;
  for (int64_t i = 0; i < count; ++i) body(i);
}

}  // namespace naru::cpu
