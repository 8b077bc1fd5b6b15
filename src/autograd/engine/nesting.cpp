#include "autograd/engine/nesting.h"

#include <exception>
#include <thread>

#include "naru/autograd.h"
#include "runtime/queue/streams.h"

namespace naru::autograd {
namespace {

// As in PyTorch. Between two levels there is a user callback, with all of the interpreter's stack frames.
constexpr int kDeepest = 60;
thread_local int depth = 0;

struct Level {
  Level() { ++depth; }
  ~Level() { --depth; }
};

}  // namespace

void run_nested(const std::function<void()>& f) {
  const Level level;
  if (depth <= kDeepest) return f();
  const bool mode = grad_enabled();
  const runtime::ThreadDevices devices = runtime::thread_devices();
  std::exception_ptr error;
  std::thread([&] {
    try {
      set_grad_enabled(mode);
      runtime::set_thread_devices(devices);
      f();
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
}

}  // namespace naru::autograd
