#include "backends/cpu/libraries/library_call.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "runtime/os/fork.h"
#include "runtime/os/system.h"

namespace naru::cpu {
namespace {

std::atomic<std::thread::id> ender;
std::atomic<int> generation{0};

}  // namespace

struct EndOfMainThread {
  const int forks = runtime::fork_generation();
  ~EndOfMainThread() {
    LibraryCall::closing_ = true;
    while (forks == runtime::fork_generation() && LibraryCall::under_way_.load() > LibraryCall::of_this_thread_) std::this_thread::yield();
  }
  bool here() const noexcept { return true; }
};

namespace {

[[maybe_unused]] const bool watched = [] {
  if (!runtime::system::on_main_thread()) return false;
  static thread_local const EndOfMainThread end;
  return end.here();
}();

}  // namespace

void LibraryCall::await_calls() {
  ender = std::this_thread::get_id();
  closing_ = ending_ = true;
  if (runtime::fork_generation() != generation) return;  // a forked child: the calls belong to its parent
  while (under_way_.load() > of_this_thread_) std::this_thread::yield();
}

void LibraryCall::rest_unless_this_thread_ends_it() noexcept {
  if (ender.load() == std::this_thread::get_id()) return;
  count(-1);
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

void LibraryCall::wait_at_exit(std::atomic<bool>& known) noexcept {
  if (known.exchange(true)) return;
  generation = runtime::fork_generation();
  std::atexit(await_calls);
}

}  // namespace naru::cpu
