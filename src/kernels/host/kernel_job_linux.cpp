// _FORTIFY_SOURCE's check of longjmp would reject leaving a kernel from its fibers' stacks, which is intended.
#undef _FORTIFY_SOURCE
#include "kernels/host/kernel_job.h"

#include "runtime/os/fork.h"

namespace naru::cpu {
namespace {

// The signal that interrupts kernel threads. Processes ignore SIGURG unless they handle it, and a handler must expect spurious ones.
constexpr int kCancelSignal = SIGURG;
constexpr timespec kBetweenKnocks{0, 2'000'000};

struct Jobs {
  std::mutex mutex;
  std::set<KernelJob*> list;
};
Jobs& jobs() {
  static auto* const all = [] {
    auto* made = new Jobs;
    runtime::hold_at_fork(made->mutex);
    return made;
  }();
  return *all;
}

struct sigaction before;

// Maps threads to their parts. A thread only writes its own entry, and the signal handler only looks up that one. (Not thread_local: a
// signal handler can't allocate thread-local memory.)
struct Place {
  std::atomic<pthread_t> thread{0};
  std::atomic<void*> part{nullptr};
};
constexpr size_t kPlaces = 1024;
Place places[kPlaces];

Place* place_of(pthread_t thread) noexcept {
  for (Place& p : places)
    if (p.thread.load(std::memory_order_relaxed) == thread) return &p;
  return nullptr;
}
// Null if the table is full: that thread's part can't be cancelled.
Place* take_place(pthread_t thread) noexcept {
  for (Place& p : places) {
    pthread_t nobody = 0;
    if (p.thread.load(std::memory_order_relaxed) == 0 && p.thread.compare_exchange_strong(nobody, thread)) return &p;
  }
  return nullptr;
}

}  // namespace

void KernelJob::on_signal(int signal, siginfo_t* info, void* context) {
  const Place* const place = place_of(pthread_self());
  auto* const part = place ? static_cast<Part*>(place->part.load(std::memory_order_relaxed)) : nullptr;
  if (part && part->inside && part->job.cancelled()) siglongjmp(part->cancel_jump, 1);
  if (before.sa_flags & SA_SIGINFO)
    before.sa_sigaction(signal, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    before.sa_handler(signal);
}

KernelJob::KernelJob(std::thread::id owner) : owner_(owner) {
  static const bool installed = [] {
    struct sigaction ours {};
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(kCancelSignal, nullptr, &before);
    return sigaction(kCancelSignal, &ours, nullptr) == 0;
  }();
  static_cast<void>(installed);
  const std::lock_guard lock(jobs().mutex);
  jobs().list.insert(this);
}

KernelJob::~KernelJob() {
  const std::lock_guard lock(jobs().mutex);
  jobs().list.erase(this);
}

KernelJob::Part::Part(KernelJob& j) : job(j), thread(pthread_self()) {
  const std::lock_guard lock(job.mutex_);
  job.parts_.insert(this);
}
KernelJob::Part::~Part() {
  if (Place* const place = place_of(thread)) {
    place->part.store(nullptr, std::memory_order_relaxed);
    place->thread.store(0, std::memory_order_release);
  }
  const std::lock_guard lock(job.mutex_);
  job.parts_.erase(this);
}
void KernelJob::Part::enter() noexcept {
  if (Place* const place = take_place(thread)) place->part.store(this, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  inside = 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}
void KernelJob::Part::leave() noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  inside = 0;
}
void KernelJob::Part::returned() noexcept {
  inside = 0;
  sigset_t send_cancel_signal;
  sigemptyset(&send_cancel_signal);
  sigaddset(&send_cancel_signal, kCancelSignal);
  pthread_sigmask(SIG_UNBLOCK, &send_cancel_signal, nullptr);
}

void KernelJob::send_cancel_signal() {
  const std::lock_guard lock(mutex_);
  for (const Part* p : parts_) pthread_kill(p->thread, kCancelSignal);
}

void KernelJob::cancel() {
  cancelled_.store(true, std::memory_order_release);
  for (;;) {
    send_cancel_signal();
    {
      const std::lock_guard lock(mutex_);
      if (parts_.empty()) return;
    }
    nanosleep(&kBetweenKnocks, nullptr);
  }
}

void KernelJob::cancel_of(std::thread::id owner) {
  const std::lock_guard lock(jobs().mutex);
  for (KernelJob* const job : jobs().list)
    if (job->owner_ == owner) job->cancel();
}

}  // namespace naru::cpu
