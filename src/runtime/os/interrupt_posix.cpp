// Records SIGINT in addition to running its handler.
#include <atomic>
#include <csignal>

#include "runtime/os/interrupt.h"
#include "runtime/os/system.h"

namespace naru::runtime {
namespace {

std::atomic<bool> watching{false};
volatile std::sig_atomic_t noted = 0;
// Written only by the main thread, while our handler is not installed.
struct sigaction before;
bool installed = false;

void note(int signal, siginfo_t* info, void* context) {
  noted = 1;
  if (before.sa_flags & SA_SIGINFO)
    before.sa_sigaction(signal, info, context);
  else
    before.sa_handler(signal);
}

}  // namespace

void watch_interrupts(bool on) noexcept { watching = on; }

InterruptWatch::InterruptWatch() noexcept {
  if (!watching.load(std::memory_order_relaxed) || !system::on_main_thread() || installed) return;
  if (sigaction(SIGINT, nullptr, &before) != 0) return;
  if (!(before.sa_flags & SA_SIGINFO) && (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)) return;
  noted = 0;
  struct sigaction ours = before;
  ours.sa_sigaction = note;
  ours.sa_flags |= SA_SIGINFO;
  active_ = installed = sigaction(SIGINT, &ours, nullptr) == 0;
}

InterruptWatch::~InterruptWatch() {
  if (!active_) return;
  sigaction(SIGINT, &before, nullptr);
  installed = false;
}

bool InterruptWatch::interrupted() const noexcept { return active_ && noted != 0; }

}  // namespace naru::runtime
