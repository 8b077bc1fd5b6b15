// KernelJob: one run of a user's kernel, which can be ended from outside: a kernel is C that nobody has checked for loops without end.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <csetjmp>
#include <mutex>
#include <set>
#include <thread>

namespace naru::host {

class KernelJob {
 public:
  // owner: the thread on whose behalf it runs.
  explicit KernelJob(std::thread::id owner);
  ~KernelJob();
  KernelJob(const KernelJob&) = delete;

  // Calls `call`, compiled C that owns nothing, on this thread. False: it was ended, in the middle of whatever it did.
  template <class F>
  bool run(F&& call) {
    Part part(*this);
    if (cancelled_.load(std::memory_order_acquire)) return false;
    if (sigsetjmp(part.way_out, 0) != 0) {
      part.returned();
      return false;
    }
    part.enter();
    call();
    part.leave();
    return true;
  }

  // Ends it on all its threads; returns when they are out.
  void cancel();
  bool cancelled() const noexcept { return cancelled_.load(std::memory_order_acquire); }
  // The job of that owner, if there is one, is to end; does not wait.
  static void cancel_of(std::thread::id owner);

 private:
  // One thread's share.
  struct Part {
    explicit Part(KernelJob& job);
    ~Part();
    void enter() noexcept;
    void leave() noexcept;
    void returned() noexcept;
    KernelJob& job;
    pthread_t thread;
    sigjmp_buf way_out;
    volatile sig_atomic_t inside = 0;
  };
  static void on_signal(int signal, siginfo_t* info, void* context);
  void knock();

  std::thread::id owner_;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::set<Part*> parts_;
};

}  // namespace naru::host
