#include "backends/virtual/stream.h"

#include <unistd.h>

#include <chrono>
#include <new>

#include "backends/virtual/address.h"
#include "host/execute.h"
#include "naru/error.h"

namespace naru::backends {
namespace {

void wait_for(runtime::DeviceStream& other, uint64_t seq) {
  if (auto* v = dynamic_cast<VirtualStream*>(&other)) return v->reach(seq);
  // A stream of another backend: its errors are for whoever synchronizes with it, so it is only watched.
  while (other.completed() < seq) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

}  // namespace

VirtualStream::VirtualStream(Device device) : device_(device), process_(getpid()), thread_([this] { work(); }) {}

VirtualStream::~VirtualStream() {
  if (forked()) {
    // The thread exists only in the parent; its handle and its locks are left alone.
    new std::thread(std::move(thread_));
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  arrived_.notify_all();
  thread_.join();
}

bool VirtualStream::forked() const noexcept {
  return getpid() != process_;
}

void VirtualStream::check_process() const {
  if (forked())
    throw RuntimeError(
        "Cannot re-initialize {} in forked subprocess: virtual device '{}' was first used by process {}, before it "
        "forked this one "
        "({}). Start processes with the 'spawn' method, or use the device first in the child",
        device_.type == DeviceType::Cuda ? "CUDA" : name_of(device_.type), device_.str(), process_, getpid());
}

uint64_t VirtualStream::submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) {
  check_process();
  translate(instruction, device_);
  const std::lock_guard lock(mutex_);
  const uint64_t seq = given_.load(std::memory_order_relaxed) + 1;
  items_.push_back({std::move(instruction), std::move(hold), seq});
  given_.store(seq, std::memory_order_release);
  if (items_.size() == 1) arrived_.notify_one();
  return seq;
}

void VirtualStream::wait(runtime::DeviceStream& other, uint64_t seq) {
  check_process();
  if (&other == this || other.completed() >= seq) return;
  const std::lock_guard lock(mutex_);
  items_.push_back({Wait{&other, seq}, {}, 0});
  if (items_.size() == 1) arrived_.notify_one();
}

void VirtualStream::reach(uint64_t seq) noexcept {
  if (completed() >= seq || forked()) return;
  std::unique_lock lock(mutex_);
  reached_.wait(lock, [&] { return completed() >= seq; });
}

void VirtualStream::synchronize(uint64_t seq) {
  check_process();
  reach(seq);
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    error = std::exchange(error_, nullptr);
  }
  if (error) std::rethrow_exception(error);
}

void VirtualStream::run(Item& item) {
  if (const Wait* w = std::get_if<Wait>(&item.work)) return wait_for(*w->other, w->seq);
  host::execute(std::get<ir::Instruction>(item.work));
}

void VirtualStream::work() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [&] { return ends_ || !items_.empty(); });
    if (items_.empty()) return;
    Item item = std::move(items_.front());
    lock.unlock();
    std::exception_ptr error;
    try {
      run(item);
    } catch (...) {
      error = std::current_exception();
    }
    // Storages whose last handle this is go back to the allocator now, before anyone hears that the work is done.
    item.hold.clear();
    lock.lock();
    items_.pop_front();
    if (error && !error_) error_ = error;
    if (item.seq) {
      done_.store(item.seq, std::memory_order_release);
      reached_.notify_all();
    }
  }
}

}  // namespace naru::backends
