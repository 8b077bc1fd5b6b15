#include "backends/gpu/stream.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "backends/cpu/exec/thread_pool.h"
#include "backends/gpu/graph.h"
#include "naru/error.h"

namespace naru::backends::gpu {
namespace {

// Copies of pageable host memory. Copies up to kSmallCopy bytes use a small ring of their own, which is quick to allocate. kLeastPiece and
// kMostPiece bound the pieces of the others.
constexpr size_t kSmallCopy = size_t{32} << 10, kSmallRing = size_t{256} << 10, kLargeRing = size_t{16} << 20;
constexpr size_t kLeastPiece = size_t{256} << 10, kMostPiece = size_t{4} << 20;

// A quarter of the copy, so that copying on the host and over the bus overlap.
size_t piece_of(size_t bytes) noexcept {
  return bytes <= kSmallCopy ? kSmallCopy : std::clamp((bytes / 4 + 4095) / 4096 * 4096, kLeastPiece, kMostPiece);
}

ir::CopyBytes rest_of(ir::CopyBytes c, size_t done) noexcept {
  c.source = static_cast<const char*>(c.source) + done;
  c.target = static_cast<char*>(c.target) + done;
  c.bytes -= done;
  return c;
}

// A single thread does not saturate the bus.
void copy_on_host(void* to, const void* from, size_t bytes) {
  constexpr size_t kShare = size_t{512} << 10;
  constexpr double kNanoseconds = 0.1;  // per byte
  if (bytes < 2 * kShare) {
    std::memcpy(to, from, bytes);
    return;
  }
  const auto share = [&](int64_t i) {
    const size_t at = static_cast<size_t>(i) * kShare;
    std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, std::min(kShare, bytes - at));
  };
  cpu::parallel_for(static_cast<int64_t>((bytes + kShare - 1) / kShare), share, static_cast<double>(bytes) * kNanoseconds);
}

bool is_pageable(const ir::CopyBytes& c) {
  return c.bytes > 0 &&
         ((c.source_device.is_cpu() && !GpuDevice::is_pinned(c.source)) || (c.target_device.is_cpu() && !GpuDevice::is_pinned(c.target)));
}

// Record an event after every kEvery instructions; in between only on request.
constexpr uint64_t kEvery = 8;

class EventTime final : public runtime::TimeStamp {
 public:
  EventTime(const GpuDevice& device, std::shared_ptr<const void> event) : device_(device), event_(std::move(event)) {}
  double milliseconds_since(const TimeStamp& earlier) const override {
    device_.check_usable();
    const GpuDevice::Current scope(device_);
    float time = 0;
    device_.call(device_.driver().event_elapsed, &time, Events::of(static_cast<const EventTime&>(earlier).event_), Events::of(event_));
    return time;
  }

 private:
  const GpuDevice& device_;
  const std::shared_ptr<const void> event_;
};

}  // namespace

GpuStream::GpuStream(GpuDevice& device, GpuDevices& devices, int priority)
    : EventStream(device.device(), kEvery), StreamLauncher(device, devices) {
  device_.check_usable();
  const GpuDevice::Current scope(device_);
  device_.call(device_.driver().stream_create, &stream_, kNonBlockingStream, priority);
}

GpuStream::~GpuStream() {
  const GpuDevice::Current scope(device_, std::nothrow);
  const Driver& driver = device_.driver();
  if (device_.forked() || device_.lost() || !scope) {
    close(false);
    return;
  }
  driver.stream_synchronize(stream_);
  small_.reset(), large_.reset();
  close(true);
  if (beside_) driver.stream_destroy(beside_);
  driver.stream_destroy(stream_);
}

GpuStream::Event GpuStream::record_event() { return device_.events().record(stream_, Events::Kind::Order); }

bool GpuStream::query_event(const Event& event) {
  const GpuDevice::Relaxed scope(device_);
  const Result code = device_.driver().event_query(Events::of(event));
  if (code == kNotReady || is_of_capture(code)) return false;
  device_.check(code, device_.driver().event_query.symbol);
  return true;
}

void GpuStream::host_wait(const Event& event) {
  const GpuDevice::Relaxed scope(device_);
  device_.call(device_.driver().event_synchronize, Events::of(event));
}

bool GpuStream::can_wait_for(const EventStream& other) const noexcept { return dynamic_cast<const GpuStream*>(&other) != nullptr; }

void GpuStream::device_wait(const Event& event) {
  const GpuDevice::Current scope(device_);
  device_.call(device_.driver().stream_wait, stream_, Events::of(event), 0);
}

void GpuStream::drain() {
  const GpuDevice::Relaxed scope(device_);
  device_.call(device_.driver().stream_synchronize, stream_);
}

StreamHandle GpuStream::beside() {
  if (!beside_) device_.call(device_.driver().stream_create, &beside_, kNonBlockingStream, 0);
  return beside_;
}

void GpuStream::read(void* host, const void* memory, size_t bytes) {
  const GpuDevice::Current scope(device_);
  const Driver& driver = device_.driver();
  device_.call(driver.copy_down, host, address(memory), bytes, beside());
  device_.call(driver.stream_synchronize, beside_);
}

void GpuStream::write(void* memory, const void* host, size_t bytes) {
  const GpuDevice::Current scope(device_);
  const Driver& driver = device_.driver();
  device_.call(driver.copy_up, address(memory), host, bytes, beside());
  device_.call(driver.stream_synchronize, beside_);
}

uint64_t GpuStream::put(const ir::Instruction& instruction, std::vector<Ref<Storage>> hold, bool asked) {
  return give(std::move(hold), asked, [&] {
    const GpuDevice::Current scope(device_);
    run(instruction);
  });
}

uint64_t GpuStream::submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) {
  const auto* const copy = std::get_if<ir::CopyBytes>(&instruction);
  if (copy && !forked() && is_pageable(*copy)) return copy_staged(*copy, std::move(hold));
  // Other work usually waits for transfers over the bus, so record an event after them.
  return put(instruction, std::move(hold), copy != nullptr);
}

uint64_t GpuStream::handle() noexcept {
  known_to_others_.store(true, std::memory_order_relaxed);
  return reinterpret_cast<uintptr_t>(stream_);
}

void GpuStream::synchronize(uint64_t seq) {
  // Work that other libraries enqueued has no sequence number.
  if (known_to_others_.load(std::memory_order_relaxed) && !forked() && seq == submitted()) seq = give({}, true, [] {});
  EventStream::synchronize(seq);
}

uint64_t GpuStream::follow(uint64_t handle) {
  return give({}, true, [&] {
    const GpuDevice::Relaxed scope(device_);
    auto* const theirs = reinterpret_cast<StreamHandle>(static_cast<uintptr_t>(handle == 1 ? device_.driver().default_stream : handle));
    const Event event = device_.events().record(theirs, Events::Kind::Order);
    device_.call(device_.driver().stream_wait, stream_, Events::of(event), 0);
  });
}

bool GpuStream::reads_at_once(const ir::CopyBytes& c) const { return c.source_device.is_cpu() && is_pageable(c); }

uint64_t GpuStream::copy_staged(const ir::CopyBytes& c, std::vector<Ref<Storage>> hold) {
  const std::lock_guard lock(staging_mutex_);
  std::optional<Staging>& staging = c.bytes <= kSmallCopy ? small_ : large_;
  bool there = false;
  try {
    if (!staging) staging.emplace(device_, c.bytes <= kSmallCopy ? kSmallRing : kLargeRing);
    there = !lost() && staging->available();
  } catch (const Error&) {
    // The copy below reports the same error.
  }
  if (!there) {
    // Within its call the driver waits for all earlier work of the stream. Wait here instead, without the stream's lock.
    await(submitted());
    const uint64_t seq = put(c, std::move(hold), true);
    await(seq);
    return seq;
  }
  std::erase_if(hold, [](const Ref<Storage>& s) { return s->device.is_cpu(); });
  return c.source_device.is_cpu() ? copy_up(c, hold, *staging) : copy_down(c, hold, *staging);
}

uint64_t GpuStream::copy_up(ir::CopyBytes c, const std::vector<Ref<Storage>>& hold, Staging& staging) {
  const size_t most = piece_of(c.bytes);
  for (;;) {
    ir::CopyBytes piece = c;
    piece.bytes = std::min(most, c.bytes);
    char* const between = staging.take(piece.bytes, [this](uint64_t seq) { await(seq); });
    copy_on_host(between, c.source, piece.bytes);
    piece.source = between;
    const bool last = piece.bytes == c.bytes;
    // Copies to the device are not waited for, except to reuse a large piece. Each piece holds the storages, because Ctrl-C may end the
    // copy here.
    const uint64_t seq = put(piece, hold, piece.bytes > kSmallCopy);
    staging.use_until(seq);
    if (last) return seq;
    c = rest_of(c, piece.bytes);
  }
}

uint64_t GpuStream::copy_down(ir::CopyBytes c, const std::vector<Ref<Storage>>& hold, Staging& staging) {
  struct Piece {
    void* target;
    const char* between;
    size_t bytes;
    uint64_t seq;
  };
  const size_t most = piece_of(c.bytes);
  const auto ahead = static_cast<size_t>(std::max<uint64_t>(1, staging.bytes() / most / 2));  // some arrive while one is copied on
  std::deque<Piece> under_way;
  uint64_t last = 0;
  while (c.bytes > 0 || !under_way.empty()) {
    if (c.bytes > 0 && under_way.size() < ahead) {
      ir::CopyBytes piece = c;
      piece.bytes = std::min(most, c.bytes);
      char* const between = staging.take(piece.bytes, [this](uint64_t seq) { await(seq); });
      piece.target = between;
      last = put(piece, hold, true);  // each piece holds the storages: Ctrl-C may end the copy here
      staging.use_until(last);
      under_way.push_back({c.target, between, piece.bytes, last});
      c = rest_of(c, piece.bytes);
      continue;
    }
    const Piece& first = under_way.front();
    await(first.seq);
    copy_on_host(first.target, first.between, first.bytes);
    under_way.pop_front();
  }
  staging.reached(last);
  return last;
}

std::unique_ptr<runtime::Recorded> GpuStream::record(std::span<const ir::Instruction> work) {
  return GpuGraph::record(device_, devices_, work, cache());
}

uint64_t GpuStream::replay(runtime::Recorded& recorded, std::vector<Ref<Storage>> hold) {
  for (const GpuGraph::Part& part : static_cast<GpuGraph&>(recorded).parts()) {
    if (part.graph)
      give(hold, true, [&] {
        const GpuDevice::Current scope(device_);
        device_.call(device_.driver().graph_launch, part.graph, stream_);
      });
    else
      for (const ir::Instruction& i : part.work) submit(i, hold);
  }
  return submitted();
}

void* GpuStream::large_arguments(const void* bytes, size_t count) {
  void* const memory = scratch(count);
  device_.call(device_.driver().copy_up, address(memory), bytes, count, stream_);
  drain();  // a GPU that reads host memory directly reads it only when the stream gets there; the source bytes may be freed by then
  return memory;
}

void GpuStream::prepare(const ir::Instruction& instruction) {
  const auto* const k = std::get_if<ir::UserKernel>(&instruction);
  if (!k) return;
  device_.check_usable();
  const GpuDevice::Current scope(device_);
  render::c::prepare(*k, *this);
}

std::unique_ptr<runtime::TimeStamp> GpuStream::stamp() {
  return std::make_unique<EventTime>(device_, give_event([&] { return device_.events().record(stream_, Events::Kind::Time); }));
}

}  // namespace naru::backends::gpu
