#include "host/library_call.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "core/ref.h"
#include "runtime/fork.h"

namespace naru::host {
namespace {

std::atomic<int> under_way{0};
std::atomic<bool> ending{false};
std::atomic<std::thread::id> ender;
std::atomic<int> generation{0};
thread_local int of_this_thread = 0;  // a library may end the process itself: OpenBLAS does, where no memory is left

void await_calls() {
  ender = std::this_thread::get_id();
  ending = true;
  if (runtime::fork_generation() != generation) return;  // a child: the calls are its parent's
  while (under_way.load() > of_this_thread) std::this_thread::yield();
}

void count(int by) noexcept {
  of_this_thread += by;
  if (single_threaded())
    under_way.store(under_way.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  else
    under_way.fetch_add(by);
}

}  // namespace

LibraryCall::LibraryCall(std::atomic<bool>& known) noexcept : known_(known) {
  count(1);
  if (ending && ender.load() != std::this_thread::get_id()) [[unlikely]] {
    count(-1);
    for (;;) pause();
  }
}

LibraryCall::~LibraryCall() {
  count(-1);
  if (!known_.load(std::memory_order_relaxed)) [[unlikely]]
    if (!known_.exchange(true)) {
      generation = runtime::fork_generation();
      std::atexit(await_calls);
    }
}

}  // namespace naru::host
