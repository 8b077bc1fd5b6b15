// Ctrl-C in a console: our handler is called first, on a system thread, and passes the event on to the earlier handlers.
#include "runtime/os/interrupt.h"

#include <windows.h>

#include <atomic>

#include "runtime/os/system.h"

namespace naru::runtime {
namespace {

std::atomic<bool> watching{false}, noted{false};
bool installed = false;

BOOL WINAPI note(DWORD event) {
  if (event == CTRL_C_EVENT) noted = true;
  return FALSE;
}

}  // namespace

void watch_interrupts(bool on) noexcept { watching = on; }

InterruptWatch::InterruptWatch() noexcept {
  if (!watching.load(std::memory_order_relaxed) || !system::on_main_thread() || installed) return;
  noted = false;
  active_ = installed = SetConsoleCtrlHandler(note, TRUE) != 0;
}

InterruptWatch::~InterruptWatch() {
  if (!active_) return;
  SetConsoleCtrlHandler(note, FALSE);
  installed = false;
}

bool InterruptWatch::interrupted() const noexcept { return active_ && noted; }

}  // namespace naru::runtime
