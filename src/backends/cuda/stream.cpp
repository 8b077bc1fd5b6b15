#include "backends/cuda/stream.h"

#include "backends/cuda/graph.h"
#include "naru/error.h"

namespace naru::backends::cuda {
namespace {

// An event behind every so many instructions; between them one is recorded only when somebody asks.
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

void CudaStream::wait_before(const ir::CopyBytes& c) {
  // Longer copies to the device are read by the driver where they lie, too.
  constexpr size_t kStaged = size_t{64} << 10;
  const bool down = c.target_device.is_cpu(), up = c.source_device.is_cpu() && c.bytes > kStaged;
  if ((down && !device_.is_pinned(c.target)) || (up && !device_.is_pinned(c.source))) {
    wait_watched(submitted());
    reach(submitted());
  }
}

uint64_t CudaStream::submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) {
  const auto* const copy = std::get_if<ir::CopyBytes>(&instruction);
  if (copy) wait_before(*copy);
  // What moves over the bus is what others wait for.
  return give(std::move(hold), copy != nullptr, [&] {
    const CudaDevice::Current scope(device_);
    run(instruction);
  });
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
  drain();  // a GPU that reads the host's memory itself does so when the stream gets there, and the bytes are gone then
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
