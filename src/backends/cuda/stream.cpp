#include "backends/cuda/stream.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "backends/cpu/exec/thread_pool.h"
#include "backends/cuda/graph.h"
#include "naru/error.h"

namespace naru::backends::cuda {
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
         ((c.source_device.is_cpu() && !CudaDevice::is_pinned(c.source)) || (c.target_device.is_cpu() && !CudaDevice::is_pinned(c.target)));
}

// Record an event after every kEvery instructions; in between only on request.
constexpr uint64_t kEvery = 8;

class EventTime final : public runtime::TimeStamp {
 public:
  EventTime(const CudaDevice& device, std::shared_ptr<const void> event) : device_(device), event_(std::move(event)) {}
  double milliseconds_since(const TimeStamp& earlier) const override {
    device_.check_usable();
    const CudaDevice::Current scope(device_);
    float time = 0;
    device_.check(device_.api().cuEventElapsedTime(&time, Events::of(static_cast<const EventTime&>(earlier).event_), Events::of(event_)),
                  "cuEventElapsedTime");
    return time;
  }

 private:
  const CudaDevice& device_;
  const std::shared_ptr<const void> event_;
};

}  // namespace

CudaStream::CudaStream(CudaDevice& device, CudaDevices& devices, int priority)
    : EventStream(device.device(), kEvery), StreamLauncher(device, devices) {
  device_.check_usable();
  const CudaDevice::Current scope(device_);
  device_.check(device_.api().cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, priority), "cuStreamCreateWithPriority");
}

CudaStream::~CudaStream() {
  const CudaDevice::Current scope(device_, std::nothrow);
  const Api& cu = device_.api();
  if (device_.forked() || device_.lost() || !scope) {
    close(false);
    return;
  }
  cu.cuStreamSynchronize(stream_);
  small_.reset(), large_.reset();
  close(true);
  if (beside_) cu.cuStreamDestroy_v2(beside_);
  cu.cuStreamDestroy_v2(stream_);
}

CudaStream::Event CudaStream::record_event() { return device_.events().record(stream_, Events::Kind::Order); }

bool CudaStream::query_event(const Event& event) {
  const CudaDevice::Relaxed scope(device_);
  const CUresult code = device_.api().cuEventQuery(Events::of(event));
  if (code == CUDA_ERROR_NOT_READY || is_of_capture(code)) return false;
  device_.check(code, "cuEventQuery");
  return true;
}

void CudaStream::host_wait(const Event& event) {
  const CudaDevice::Relaxed scope(device_);
  device_.check(device_.api().cuEventSynchronize(Events::of(event)), "cuEventSynchronize");
}

bool CudaStream::can_wait_for(const EventStream& other) const noexcept { return dynamic_cast<const CudaStream*>(&other) != nullptr; }

void CudaStream::device_wait(const Event& event) {
  const CudaDevice::Current scope(device_);
  device_.check(device_.api().cuStreamWaitEvent(stream_, Events::of(event), 0), "cuStreamWaitEvent");
}

void CudaStream::drain() {
  const CudaDevice::Relaxed scope(device_);
  device_.check(device_.api().cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

CUstream CudaStream::beside() {
  if (!beside_) device_.check(device_.api().cuStreamCreateWithPriority(&beside_, CU_STREAM_NON_BLOCKING, 0), "cuStreamCreateWithPriority");
  return beside_;
}

void CudaStream::read(void* host, const void* memory, size_t bytes) {
  const CudaDevice::Current scope(device_);
  const Api& cu = device_.api();
  device_.check(cu.cuMemcpyDtoHAsync_v2(host, address(memory), bytes, beside()), "cuMemcpyDtoHAsync");
  device_.check(cu.cuStreamSynchronize(beside_), "cuStreamSynchronize");
}

void CudaStream::write(void* memory, const void* host, size_t bytes) {
  const CudaDevice::Current scope(device_);
  const Api& cu = device_.api();
  device_.check(cu.cuMemcpyHtoDAsync_v2(address(memory), host, bytes, beside()), "cuMemcpyHtoDAsync");
  device_.check(cu.cuStreamSynchronize(beside_), "cuStreamSynchronize");
}

uint64_t CudaStream::put(const ir::Instruction& instruction, std::vector<Ref<Storage>> hold, bool asked) {
  return give(std::move(hold), asked, [&] {
    const CudaDevice::Current scope(device_);
    run(instruction);
  });
}

uint64_t CudaStream::submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) {
  const auto* const copy = std::get_if<ir::CopyBytes>(&instruction);
  if (copy && !forked() && is_pageable(*copy)) return copy_staged(*copy, std::move(hold));
  // Other work usually waits for transfers over the bus, so record an event after them.
  return put(instruction, std::move(hold), copy != nullptr);
}

uint64_t CudaStream::handle() noexcept {
  known_to_others_.store(true, std::memory_order_relaxed);
  return reinterpret_cast<uintptr_t>(stream_);
}

void CudaStream::synchronize(uint64_t seq) {
  // Work that other libraries enqueued has no sequence number.
  if (known_to_others_.load(std::memory_order_relaxed) && !forked() && seq == submitted()) seq = give({}, true, [] {});
  EventStream::synchronize(seq);
}

uint64_t CudaStream::follow(uint64_t handle) {
  return give({}, true, [&] {
    const CudaDevice::Relaxed scope(device_);
    const Event event = device_.events().record(reinterpret_cast<CUstream>(static_cast<uintptr_t>(handle)), Events::Kind::Order);
    device_.check(device_.api().cuStreamWaitEvent(stream_, Events::of(event), 0), "cuStreamWaitEvent");
  });
}

bool CudaStream::reads_at_once(const ir::CopyBytes& c) const { return c.source_device.is_cpu() && is_pageable(c); }

uint64_t CudaStream::copy_staged(const ir::CopyBytes& c, std::vector<Ref<Storage>> hold) {
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

uint64_t CudaStream::copy_up(ir::CopyBytes c, const std::vector<Ref<Storage>>& hold, Staging& staging) {
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

uint64_t CudaStream::copy_down(ir::CopyBytes c, const std::vector<Ref<Storage>>& hold, Staging& staging) {
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

std::unique_ptr<runtime::Recorded> CudaStream::record(std::span<const ir::Instruction> work) {
  return CudaGraph::record(device_, devices_, work, cache());
}

uint64_t CudaStream::replay(runtime::Recorded& recorded, std::vector<Ref<Storage>> hold) {
  for (const CudaGraph::Part& part : static_cast<CudaGraph&>(recorded).parts()) {
    if (part.graph)
      give(hold, true, [&] {
        const CudaDevice::Current scope(device_);
        device_.check(device_.api().cuGraphLaunch(part.graph, stream_), "cuGraphLaunch");
      });
    else
      for (const ir::Instruction& i : part.work) submit(i, hold);
  }
  return submitted();
}

void* CudaStream::large_arguments(const void* bytes, size_t count) {
  void* const memory = scratch(count);
  device_.check(device_.api().cuMemcpyHtoDAsync_v2(address(memory), bytes, count, stream_), "cuMemcpyHtoDAsync");
  drain();  // a GPU that reads host memory directly reads it only when the stream gets there; the source bytes may be freed by then
  return memory;
}

void CudaStream::prepare(const ir::Instruction& instruction) {
  const auto* const k = std::get_if<ir::UserKernel>(&instruction);
  if (!k) return;
  device_.check_usable();
  const CudaDevice::Current scope(device_);
  render::c::prepare(*k, *this);
}

std::unique_ptr<runtime::TimeStamp> CudaStream::stamp() {
  return std::make_unique<EventTime>(device_, give_event([&] { return device_.events().record(stream_, Events::Kind::Time); }));
}

}  // namespace naru::backends::cuda
