// Ctrl-C in a console: a handler of ours hears of it first, on a thread of the system's, and leaves it to those before.
#include "runtime/interrupt.h"

#include <windows.h>

#include <atomic>

#include "runtime/system.h"

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
