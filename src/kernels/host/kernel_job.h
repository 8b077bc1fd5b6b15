// KernelJob: one run of a user kernel, which another thread can cancel: user code may contain endless loops.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <csetjmp>
#include <mutex>
#include <set>
#include <thread>

namespace naru::cpu {

class KernelJob {
 public:
  // owner: the thread that called the kernel.
  explicit KernelJob(std::thread::id owner);
  ~KernelJob();
  KernelJob(const KernelJob&) = delete;

  // Runs `call`, compiled C that owns no resources, on this thread. Returns false if it was cancelled, at any point of its work.
  template <class F>
  bool run(F&& call) {
    Part part(*this);
    if (cancelled_.load(std::memory_order_acquire)) return false;
    if (sigsetjmp(part.cancel_jump, 0) != 0) {
      part.returned();
      return false;
    }
    part.enter();
    call();
    part.leave();
    return true;
  }

  // Cancels it on all its threads; returns when they have left the kernel.
  void cancel();
  bool cancelled() const noexcept { return cancelled_.load(std::memory_order_acquire); }
  // Cancels the job of that owner, if there is one; does not wait.
  static void cancel_of(std::thread::id owner);

 private:
  // The part of the job that one thread runs.
  struct Part {
    explicit Part(KernelJob& job);
    ~Part();
    void enter() noexcept;
    void leave() noexcept;
    void returned() noexcept;
    KernelJob& job;
    pthread_t thread;
    sigjmp_buf cancel_jump;
    volatile sig_atomic_t inside = 0;
  };
  static void on_signal(int signal, siginfo_t* info, void* context);
  void send_cancel_signal();

  std::thread::id owner_;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::set<Part*> parts_;
};

}  // namespace naru::cpu
