#include "backends/virtual/stream.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "backends/cpu/exec/execute.h"
#include "backends/cpu/exec/host_time.h"
#include "backends/cpu/exec/instructions.h"
#include "backends/cpu/libraries/matmul_libraries.h"
#include "backends/virtual/address.h"
#include "naru/error.h"
#include "runtime/os/interrupt.h"
#include "runtime/os/system.h"
#include "runtime/queue/streams.h"

namespace naru::backends {
namespace {

constexpr std::chrono::milliseconds kPatience{200};  // idle time after which a stream's thread ends

// Puts a wrong number in the first element of each elementwise result.
void spoil(const ir::Instruction& instruction) {
  const auto* map = std::get_if<ir::Map>(&instruction);
  if (!map || product(map->shape) == 0) return;
  for (const ir::View& v : map->outputs) {
    const size_t size = size_of(v.dtype);
    static_cast<unsigned char*>(v.data)[size - 1] ^= size == 1 ? 0x01 : 0x40;
  }
}

// Zeroes the host memory that a device without elements copies to.
void clear_host(const ir::Instruction& instruction) {
  const auto* const copy = std::get_if<ir::CopyBytes>(&instruction);
  if (copy && copy->target_device.is_cpu()) std::memset(copy->target, 0, copy->bytes);
}

// The thread's floating-point operations take denormals for zero within a scope, where the processor can.
class FlushDenormals {
 public:
  explicit FlushDenormals(bool on) noexcept : on_(on) {
    if (on_) before_ = exchange(kFlush);
  }
  ~FlushDenormals() {
    if (on_) exchange(before_);
  }
  FlushDenormals(const FlushDenormals&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr uint64_t kFlush = 0x1f80 | 0x8040;  // all exceptions masked, FTZ, DAZ
  static uint64_t exchange(uint64_t mode) noexcept {
    const unsigned before = _mm_getcsr();
    _mm_setcsr(static_cast<unsigned>(mode));
    return before;
  }
#elif defined(__aarch64__)
  static constexpr uint64_t kFlush = uint64_t{1} << 24;  // FZ
  static uint64_t exchange(uint64_t mode) noexcept {
    uint64_t before = 0;
    asm volatile("mrs %0, fpcr" : "=r"(before));
    asm volatile("msr fpcr, %0" : : "r"(mode));
    return before;
  }
#else
  static constexpr uint64_t kFlush = 0;
  static uint64_t exchange(uint64_t) noexcept { return 0; }
#endif
  const bool on_;
  uint64_t before_ = 0;
};

}  // namespace

bool is_wrong(Device device) {
  static const auto& wrong = *[] {
    const char* text = std::getenv("NARU_VIRTUAL_WRONG");
    return new std::string(text ? text : "");
  }();
  return !wrong.empty() && wrong == device.str();
}

VirtualStream::VirtualStream(Device device, std::shared_ptr<VirtualDevice> state)
    : device_(device), state_(std::move(state)), wrong_(is_wrong(device)), process_(runtime::system::process_id()) {}

VirtualStream::~VirtualStream() {
  if (forked()) {
    // In a forked child the thread does not exist; its handle and its locks must not be touched.
    new std::thread(std::move(thread_));
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  arrived_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<VirtualDevice> VirtualStream::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

void VirtualStream::renew(std::shared_ptr<VirtualDevice> state) {
  const std::lock_guard lock(mutex_);
  state_ = std::move(state);
}

bool VirtualStream::forked() const noexcept { return runtime::system::process_id() != process_; }

void VirtualStream::check_process() const {
  if (forked()) runtime::raise_forked(device_, process_);
}

uint64_t VirtualStream::push(Item item, bool numbered) {
  const std::lock_guard lock(mutex_);
  if (!running_) {
    if (thread_.joinable()) thread_.join();  // it has already ended, or is about to return
    thread_ = std::thread([this] { work(); });
    running_ = true;
  }
  const uint64_t seq = given_.load(std::memory_order_relaxed) + (numbered ? 1 : 0);
  item.seq = numbered ? seq : 0;
  items_.push_back(std::move(item));
  given_.store(seq, std::memory_order_release);
  if (items_.size() == 1) arrived_.notify_one();
  return seq;
}

uint64_t VirtualStream::submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) {
  check_process();
  // Open the product libraries, and call them once, on the submitting thread. The process may exit while a stream's thread does that, and
  // what a library creates at its first call can't be kept for that thread.
  if (std::holds_alternative<ir::MatMul>(instruction)) cpu::products();
  const std::shared_ptr<VirtualDevice> device = state();
  const VirtualDevice::InjectedFault fate = device->next(instruction);
  std::vector<ptx::OperandMemory> memory;
  if (const ptx::Executor* e = device->executor(); e && ptx::Executor::takes(instruction))
    memory = e->memory_of(instruction, [&](void* p) { return to_host(p, device_); });
  translate(instruction, device_);
  return push({std::move(instruction), std::move(hold), fate, 0, std::move(memory)}, true);
}

void VirtualStream::prepare(const ir::Instruction& instruction) {
  ptx::Executor* const e = state()->executor();
  e ? e->prepare(instruction) : cpu::prepare(instruction);
}

void VirtualStream::wait(runtime::DeviceStream& other, uint64_t seq) {
  check_process();
  if (&other == this || other.completed() >= seq) return;
  push({Wait{&other, seq}, {}, {}, 0}, false);
}

std::unique_ptr<runtime::TimeStamp> VirtualStream::stamp() {
  check_process();
  auto time = std::make_shared<std::chrono::steady_clock::time_point>();
  push({time, {}, {}, 0}, true);
  return std::make_unique<cpu::HostTime>(time);
}

void VirtualStream::reach(uint64_t seq) noexcept {
  if (completed() >= seq || forked()) return;
  std::unique_lock lock(mutex_);
  reached_.wait(lock, [&] { return completed() >= seq; });
}

void VirtualStream::wait_watched(uint64_t seq) {
  if (completed() >= seq) return;
  const runtime::InterruptWatch watch;
  if (!watch.active()) return;
  std::unique_lock lock(mutex_);
  const auto look = std::chrono::milliseconds(runtime::kInterruptMilliseconds);
  while (!reached_.wait_for(lock, look, [&] { return completed() >= seq; })) {
    if (!watch.interrupted()) continue;
    lock.unlock();
    cpu::cancel_kernels_of(thread_.get_id());
    interrupted_ = true;
    throw runtime::Interrupted(fmt::format("the wait for {} was interrupted (Ctrl-C)", device_.str()));
  }
}

void VirtualStream::synchronize(uint64_t seq) {
  check_process();
  wait_watched(seq);
  DeviceStream::synchronize(seq);
  state()->check();
}

void VirtualStream::run(Item& item) {
  if (const Wait* w = std::get_if<Wait>(&item.work)) return w->other->reach(w->seq);
  if (const Time* t = std::get_if<Time>(&item.work)) {
    **t = std::chrono::steady_clock::now();
    return;
  }
  const ir::Instruction& instruction = std::get<ir::Instruction>(item.work);
  const std::shared_ptr<VirtualDevice> device = state();
  device->before(item.fate, instruction);
  if (!device->has_elements()) return clear_host(instruction);
  if (ptx::Executor* const e = device->executor(); e && ptx::Executor::takes(instruction)) {
    interrupted_ = false;
    e->run(instruction, item.memory, [this] { return interrupted_.load(std::memory_order_relaxed); });
  } else {
    const FlushDenormals flush(device->flushes_denormals());
    cpu::execute(instruction);
  }
  device->after(item.fate, instruction);
  if (wrong_) spoil(instruction);
}

void VirtualStream::work() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait_for(lock, kPatience, [&] { return ends_ || !items_.empty(); });
    if (items_.empty()) {
      running_ = false;
      return;
    }
    Item item = std::move(items_.front());
    lock.unlock();
    try {
      run(item);
    } catch (...) {
      errors().keep(std::current_exception());
    }
    // Release storages whose last reference this is, before other threads see the work as done.
    item.hold.clear();
    lock.lock();
    items_.pop_front();
    if (item.seq) {
      done_.store(item.seq, std::memory_order_release);
      reached_.notify_all();
    }
  }
}

}  // namespace naru::backends
