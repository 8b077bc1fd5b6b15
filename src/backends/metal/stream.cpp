#include "backends/metal/stream.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>

#include "ir/matrix_product.h"
#include "ir/op_ids.h"
#include "ir/program_builder.h"
#include "naru/error.h"

namespace naru::backends::metal {
namespace {

// An event after every kEvery instructions; in between only on request.
constexpr uint64_t kEvery = 16;
// Metal's limits: buffers of a kernel, bytes of an argument that is not one.
constexpr size_t kMostBuffers = 31, kMostBytes = 4096;

// The command buffers since the signal before, the last of which gives `event` that value.
struct Signal {
  std::vector<Owned> buffers;
  Owned event;
  uint64_t value = 0;
  mutable std::atomic<bool> told{false};  // an error of theirs
};
const Signal& of(const std::shared_ptr<const void>& event) { return *static_cast<const Signal*>(event.get()); }

bool over(id commands) { return api().status(commands) >= MTLCommandBufferStatusCompleted; }

class SignalTime final : public runtime::TimeStamp {
 public:
  explicit SignalTime(std::shared_ptr<const void> event) : event_(std::move(event)) {}
  double milliseconds_since(const TimeStamp& earlier) const override {
    return (seconds() - static_cast<const SignalTime&>(earlier).seconds()) * 1e3;
  }

 private:
  double seconds() const { return api().end_time(of(event_).buffers.back().get()); }
  std::shared_ptr<const void> event_;
};

}  // namespace

MetalStream::MetalStream(MetalDevice& device)
    : EventStream(device.device(), kEvery),
      device_(device),
      target_(device.target()),
      queue_(device.make_queue()),
      event_(device.make_event()) {}

MetalStream::~MetalStream() {
  if (device_.forked()) {
    close(false);
    for (Owned* o : {&queue_, &event_, &commands_, &encoder_}) o->abandon();  // they belong to the parent
    for (Owned& o : committed_) o.abandon();
    products_.abandon();
    return;
  }
  settle();
  close(true);
}

id MetalStream::commands() {
  if (commands_) return commands_.get();
  commands_ = Owned::shared(api().command_buffer(queue_.get()));
  if (!commands_) throw RuntimeError("device {}: Metal gave no command buffer", device_.device().str());
  return commands_.get();
}

id MetalStream::encoder() {
  if (encoder_) return encoder_.get();
  encoder_ = Owned::shared(api().encoder(commands()));
  if (!encoder_) throw RuntimeError("device {}: Metal gave no encoder", device_.device().str());
  return encoder_.get();
}

void MetalStream::end_encoder() {
  if (!encoder_) return;
  api().end_encoding(encoder_.get());
  encoder_ = {};
}

void MetalStream::commit() {
  if (!commands_) return;
  end_encoder();
  committed_.reserve(committed_.size() + 1);
  api().commit(commands_.get());
  committed_.push_back(std::move(commands_));
}

MetalStream::Event MetalStream::record_event() {
  if (signal_ && !commands_ && committed_.empty()) return signal_;
  const Pool pool;
  auto signal = std::make_shared<Signal>();
  const id last = commands();
  end_encoder();
  api().signal(last, event_.get(), ++value_);
  commit();
  signal->event = Owned::shared(event_.get());
  signal->value = value_;
  signal->buffers = std::exchange(committed_, {});
  return signal_ = std::move(signal);
}

bool MetalStream::query_event(const Event& event) {
  const Signal& s = of(event);
  const Pool pool;
  if (!over(s.buffers.back().get())) return false;
  for (const Owned& buffer : s.buffers) {
    if (api().status(buffer.get()) != MTLCommandBufferStatusError || s.told.exchange(true)) continue;
    const id error = api().error(buffer.get());
    const std::string text = fmt::format("device {}: work ended with an error of Metal's: {}", device_.device().str(), words_of(error));
    errors().keep(error && api().code(error) == MTLCommandBufferErrorOutOfMemory
                      ? std::make_exception_ptr(OutOfMemoryError(text + ". Use smaller tensors, or end other programs that use it"))
                      : std::make_exception_ptr(RuntimeError(text)));
    // What ended early signals nothing, and other streams may wait for it.
    api().set_signaled(s.event.get(), s.value);
  }
  return true;
}

void MetalStream::host_wait(const Event& event) {
  const Pool pool;
  api().wait(of(event).buffers.back().get());
}

bool MetalStream::can_wait_for(const EventStream& other) const noexcept { return dynamic_cast<const MetalStream*>(&other) != nullptr; }

void MetalStream::device_wait(const Event& event) {
  const Pool pool;
  const id here = commands();
  end_encoder();
  api().wait_for(here, of(event).event.get(), of(event).value);
}

// Work is handed over at each event; earlier if the device has nothing to do.
void MetalStream::flush() {
  if (!commands_) return;
  const Pool pool;
  const id last = !committed_.empty() ? committed_.back().get() : signal_ ? of(signal_).buffers.back().get() : nullptr;
  if (!last || over(last)) commit();
}

void MetalStream::drain() {
  const Event event = record_event();
  host_wait(event);
  query_event(event);
}

void MetalStream::settle() noexcept {
  try {
    if (signal_ || commands_ || !committed_.empty()) drain();
  } catch (const std::exception&) {
    // There is nothing left to wait for.
  }
}

void MetalStream::read(void* host, const void* memory, size_t bytes) { std::memcpy(host, memory, bytes); }
void MetalStream::write(void* memory, const void* host, size_t bytes) { std::memcpy(memory, host, bytes); }

uint64_t MetalStream::submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) {
  return give(std::move(hold), std::holds_alternative<ir::CopyBytes>(instruction), [&] {
    const Pool pool;
    run(instruction);
  });
}

void MetalStream::run(const ir::Instruction& instruction) {
  if (const auto* c = std::get_if<ir::CopyBytes>(&instruction)) return copy(*c);
  if (const auto* m = std::get_if<ir::MatMul>(&instruction); m && multiply(*m)) return;
  render::c::run_any(instruction, *this);
}

bool MetalStream::multiply(const ir::MatMul& product) {
  if (!device_.info().shaders || !products_.ready(device_, product)) return false;
  const id here = commands();
  end_encoder();  // the library has one of its own
  products_.encode(here);
  if (product.bias) render::c::run(ir::bias_added(product), *this);
  return true;
}

void MetalStream::start(const render::c::Launch& launch) {
  if (launch.groups == 0) return;
  const size_t count = launch.memory.size();
  if (count + 1 > kMostBuffers)
    throw RuntimeError("Metal: a kernel with {} pieces of memory; at most {} are allowed", count, kMostBuffers - 1);
  if (launch.groups * launch.group >= int64_t{1} << 32)
    throw RuntimeError("Metal: a kernel with {} groups of {} items; all together must be fewer than 2^32. Use smaller tensors",
                       launch.groups, launch.group);
  const Api& m = api();
  const Kernel& kernel = device_.kernel_of(launch);
  const id e = encoder();
  m.set_pipeline(e, kernel.pipeline.get());
  for (size_t i = 0; i < count; ++i) {
    MetalDevice::Place place{nullptr, 0};
    if (launch.memory[i]) {
      const auto at = device_.find(launch.memory[i]);
      if (!at) throw RuntimeError("device {}: the operand of a kernel is not in its memory ({})", device_.device().str(), launch.memory[i]);
      place = *at;
    }
    m.set_buffer(e, place.buffer, 0, i);
    std::memcpy(launch.arguments.data() + i * 8, &place.offset, 8);
  }
  if (launch.arguments.size() <= kMostBytes)
    m.set_bytes(e, launch.arguments.data(), launch.arguments.size(), count);
  else  // the command buffer keeps it
    m.set_buffer(e, device_.make_buffer(launch.arguments.data(), launch.arguments.size()).get(), 0, count);
  m.dispatch(e, {static_cast<UInteger>(launch.groups), 1, 1}, {static_cast<UInteger>(launch.group), 1, 1});
}

void MetalStream::prepare(const render::c::Launch& launch) { device_.kernel_of(launch); }

void MetalStream::prepare(const ir::Instruction& instruction) {
  device_.check_process();
  if (const auto* k = std::get_if<ir::UserKernel>(&instruction)) render::c::prepare(*k, *this);
}

void MetalStream::copy(const ir::CopyBytes& c) {
  if (c.bytes == 0 || c.target == c.source) return;
  // The addresses say whose memory it is; page-locked memory is the device's, too.
  const bool from_here = device_.find(c.source).has_value(), to_here = device_.find(c.target).has_value();
  if (!to_here) {
    if (!c.target_device.is_cpu())
      throw RuntimeError("device {}: asked to copy from {} to {}", device_.device().str(), c.source_device.str(), c.target_device.str());
    drain();
    std::memcpy(c.target, c.source, c.bytes);
    return;
  }
  const auto *from = static_cast<const char*>(c.source), *to = static_cast<const char*>(c.target);
  if (from_here && !(from < to + c.bytes && to < from + c.bytes)) return move(c.target, c.source, c.bytes);
  if (from_here) {
    void* const between = scratch(c.bytes);
    move(between, c.source, c.bytes);
    return move(c.target, between, c.bytes);
  }
  void* const between = device_.allocate(c.bytes);
  if (!between) throw OutOfMemoryError("{}: no memory for a copy of {} bytes. Free some tensors", device_.device().str(), c.bytes);
  std::memcpy(between, c.source, c.bytes);
  try {
    move(c.target, between, c.bytes);
  } catch (...) {
    device_.release(between);
    throw;
  }
  device_.release(between);  // the command buffer keeps it until the copy is done
}

void MetalStream::move(void* to, const void* from, size_t bytes) {
  const bool words = (reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from) | bytes) % 4 == 0;
  const DType type = words ? DType::I32 : DType::U8;
  ir::Program p;
  ir::ProgramBuilder b(p);
  b.output(b.node(ir::op::copy, type, {b.input(type, type)}));
  const Dims one{1};
  render::c::run(ir::Map{p, {static_cast<int64_t>(bytes / (words ? 4 : 1))}, {{const_cast<void*>(from), type, one}}, {{to, type, one}}, {}},
                 *this);
}

std::unique_ptr<runtime::TimeStamp> MetalStream::stamp() {
  return std::make_unique<SignalTime>(give_event([&] {
    const Pool pool;
    // In a command buffer of its own, whose end is the time.
    commit();
    const id e = encoder();
    api().set_pipeline(e, device_.empty_kernel().pipeline.get());
    api().dispatch(e, {1, 1, 1}, {1, 1, 1});
    return record_event();
  }));
}

}  // namespace naru::backends::metal
