#include "backends/cuda/stream.h"

#include "backends/cuda/graph.h"
#include "naru/error.h"

namespace naru::backends::cuda {
namespace {

// An event behind every so many instructions; between them one is recorded only when somebody asks.
constexpr uint64_t kUnmarked = 8;

CUdeviceptr address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

std::shared_ptr<const CUevent> make_event(const CudaDevice& device, unsigned flags) {
  const CudaDevice::Current scope(device);
  CUevent event = nullptr;
  device.check(device.api().cuEventCreate(&event, flags), "cuEventCreate");
  return {new CUevent(event), [&device](const CUevent* e) {
            if (!device.forked() && !device.lost()) {
              const CudaDevice::Current inner(device);
              device.api().cuEventDestroy_v2(*e);
            }
            delete e;
          }};
}

class EventTime final : public runtime::TimeStamp {
 public:
  EventTime(const CudaDevice& device, std::shared_ptr<const CUevent> event) : device_(device), event_(std::move(event)) {}
  double milliseconds_since(const TimeStamp& earlier) const override {
    device_.check_usable();
    const CudaDevice::Current scope(device_);
    float time = 0;
    device_.check(device_.api().cuEventElapsedTime(&time, *static_cast<const EventTime&>(earlier).event_, *event_), "cuEventElapsedTime");
    return time;
  }

 private:
  const CudaDevice& device_;
  const std::shared_ptr<const CUevent> event_;
};

}  // namespace

CudaStream::CudaStream(CudaDevice& device, CudaDevices& devices, int priority)
    : StreamLauncher(device, devices), scratch_(device.device(), *this) {
  device_.check_usable();
  const CudaDevice::Current scope(device_);
  device_.check(device_.api().cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, priority), "cuStreamCreateWithPriority");
}

CudaStream::~CudaStream() {
  if (device_.forked() || device_.lost()) {
    scratch_.abandon();
    return;
  }
  const CudaDevice::Current scope(device_);
  const Api& cu = device_.api();
  cu.cuStreamSynchronize(stream_);
  if (faults_) {
    device_.release(faults_);
    cu.cuStreamDestroy_v2(looking_);
  }
  cu.cuStreamDestroy_v2(stream_);
}

uint64_t CudaStream::count(std::vector<Ref<Storage>> hold) {
  const uint64_t seq = given_.load(std::memory_order_relaxed) + 1;
  given_.store(seq, std::memory_order_release);
  for (Ref<Storage>& s : hold) held_.push_back(std::move(s));
  return seq;
}

void CudaStream::mark() const {
  const auto event = make_event(device_, CU_EVENT_DISABLE_TIMING);
  const CudaDevice::Current scope(device_);
  device_.check(device_.api().cuEventRecord(*event, stream_), "cuEventRecord");
  marked_ = given_.load(std::memory_order_relaxed);
  marks_.push_back({marked_, event, std::move(held_)});
  held_.clear();
}

CudaStream::Marks CudaStream::give_up(std::exception_ptr error) const noexcept {
  if (error) errors().keep(std::move(error));
  Marks over(std::make_move_iterator(marks_.begin()), std::make_move_iterator(marks_.end()));
  over.push_back({0, nullptr, std::move(held_)});
  marks_.clear();
  held_.clear();
  marked_ = given_.load(std::memory_order_relaxed);
  done_.store(marked_, std::memory_order_release);
  return over;
}

template <class Work>
uint64_t CudaStream::give(std::vector<Ref<Storage>> hold, bool marked, const Work& work) {
  if (device_.forked()) device_.check_usable();
  Marks over;
  const std::lock_guard lock(mutex_);
  try {
    device_.check_usable();
    const CudaDevice::Current scope(device_);
    work();
  } catch (...) {
    errors().keep(std::current_exception());
  }
  const uint64_t seq = count(std::move(hold));
  if (device_.lost()) {
    over = give_up(nullptr);
    return seq;
  }
  try {
    if (seq - marked_ >= kUnmarked || !held_.empty() || marked) mark();
  } catch (...) {
    over = give_up(std::current_exception());
  }
  if (marks_.size() > 16) over = take_reached();
  return seq;
}

uint64_t CudaStream::submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) {
  // What moves over the bus is what others wait for.
  return give(std::move(hold), std::holds_alternative<ir::CopyBytes>(instruction), [&] {
    scratch_.begin();
    run(instruction);
  });
}

std::unique_ptr<runtime::Recorded> CudaStream::record(std::span<const ir::Instruction> work) {
  return CudaGraph::record(device_, devices_, work);
}

uint64_t CudaStream::replay(runtime::Recorded& recorded, std::vector<Ref<Storage>> hold) {
  for (const CudaGraph::Part& part : static_cast<CudaGraph&>(recorded).parts()) {
    if (part.graph)
      give(hold, true, [&] { device_.check(device_.api().cuGraphLaunch(part.graph, stream_), "cuGraphLaunch"); });
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

void CudaStream::drain() {
  const CudaDevice::Current scope(device_);
  device_.check(device_.api().cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

void* CudaStream::faults(int count, std::function<std::string(int, uint32_t, int64_t)> text) {
  using render::c::Fault;
  constexpr size_t kBytes = runtime::FaultRecords::kCount * sizeof(Fault);
  if (count == 0) return nullptr;
  const Api& cu = device_.api();
  if (!faults_) {
    device_.check(cu.cuStreamCreateWithPriority(&looking_, CU_STREAM_NON_BLOCKING, 0), "cuStreamCreateWithPriority");
    void* const memory = device_.allocate(kBytes);
    if (!memory) throw OutOfMemoryError("{}: no memory for {} bytes", device_.device().str(), kBytes);
    const std::vector<Fault> none(runtime::FaultRecords::kCount);
    faults_ = memory;
    device_.check(cu.cuMemcpyHtoDAsync_v2(address(faults_), none.data(), kBytes, stream_), "cuMemcpyHtoDAsync");
    drain();
  }
  int first = records_.take(count, submitted() + 1, text);
  if (first < 0) {
    // Once round: all of them are looked at before they are used again.
    drain();
    read_faults(submitted());
    records_.start_over();
    first = records_.take(count, submitted() + 1, std::move(text));
  }
  return static_cast<Fault*>(faults_) + first;
}

void CudaStream::read_faults(uint64_t seq) {
  using render::c::Fault;
  const Api& cu = device_.api();
  const CudaDevice::Current scope(device_);
  const auto finish = [&] { device_.check(cu.cuStreamSynchronize(looking_), "cuStreamSynchronize"); };
  records_.look(
      seq, errors(),
      [&](Fault* all) {
        device_.check(cu.cuMemcpyDtoHAsync_v2(all, address(faults_), runtime::FaultRecords::kCount * sizeof(Fault), looking_),
                      "cuMemcpyDtoHAsync");
        finish();
      },
      [&](int number) {
        const Fault none;
        device_.check(cu.cuMemcpyHtoDAsync_v2(address(static_cast<Fault*>(faults_) + number), &none, sizeof none, looking_),
                      "cuMemcpyHtoDAsync");
        finish();
      });
}

CudaStream::Marks CudaStream::take_reached() const noexcept {
  Marks over;
  if (device_.lost()) return give_up(nullptr);
  const CudaDevice::Current scope(device_);
  while (!marks_.empty()) {
    const CUresult code = device_.api().cuEventQuery(*marks_.front().event);
    if (code == CUDA_ERROR_NOT_READY || is_of_capture(code)) break;
    if (code != CUDA_SUCCESS) return give_up(device_.error(code, "cuEventQuery"));
    done_.store(marks_.front().seq, std::memory_order_release);
    over.push_back(std::move(marks_.front()));
    marks_.pop_front();
  }
  return over;
}

uint64_t CudaStream::completed() const noexcept {
  if (done_.load(std::memory_order_acquire) == given_.load(std::memory_order_acquire) || device_.forked())
    return done_.load(std::memory_order_acquire);
  Marks over;
  const std::lock_guard lock(mutex_);
  try {
    // Whoever asks again and again must see the end.
    if (marks_.empty() && !device_.lost() && marked_ < given_.load(std::memory_order_relaxed)) mark();
    over = take_reached();
  } catch (...) {
    over = give_up(std::current_exception());
  }
  return done_.load(std::memory_order_relaxed);
}

std::shared_ptr<const CUevent> CudaStream::event_of(uint64_t seq) const {
  if (done_.load(std::memory_order_relaxed) >= seq) return nullptr;
  for (const Mark& m : marks_)
    if (m.seq >= seq) return m.event;
  mark();
  return marks_.back().event;
}

void CudaStream::reach(uint64_t seq) noexcept {
  if (device_.forked() || (done_.load(std::memory_order_acquire) >= seq && !records_.suspicious())) return;
  std::shared_ptr<const CUevent> event;
  Marks over, more;
  try {
    {
      const std::lock_guard lock(mutex_);
      if (!device_.lost()) event = event_of(seq);
    }
    if (event) {
      const CudaDevice::Current scope(device_);
      device_.check(device_.api().cuEventSynchronize(*event), "cuEventSynchronize");
    }
    const std::lock_guard lock(mutex_);
    over = take_reached();
    if (records_.suspicious() && !device_.lost()) read_faults(seq);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    more = give_up(std::current_exception());
  }
}

void CudaStream::synchronize(uint64_t seq) {
  if (device_.forked()) device_.check_usable();
  DeviceStream::synchronize(seq);
  device_.check_usable();
}

void CudaStream::wait(runtime::DeviceStream& other, uint64_t seq) {
  device_.check_usable();
  if (&other == this || other.completed() >= seq) return;
  auto* const there = dynamic_cast<CudaStream*>(&other);
  if (!there) return other.reach(seq);
  std::shared_ptr<const CUevent> event;
  {
    const std::lock_guard lock(there->mutex_);
    if (!there->device_.lost()) event = there->event_of(seq);
  }
  if (!event) return;
  const std::lock_guard lock(mutex_);
  const CudaDevice::Current scope(device_);
  device_.check(device_.api().cuStreamWaitEvent(stream_, *event, 0), "cuStreamWaitEvent");
}

std::unique_ptr<runtime::TimeStamp> CudaStream::stamp() {
  device_.check_usable();
  const auto event = make_event(device_, CU_EVENT_DEFAULT);
  const std::lock_guard lock(mutex_);
  const CudaDevice::Current scope(device_);
  device_.check(device_.api().cuEventRecord(*event, stream_), "cuEventRecord");
  marked_ = count({});
  marks_.push_back({marked_, event, std::move(held_)});
  held_.clear();
  return std::make_unique<EventTime>(device_, event);
}

}  // namespace naru::backends::cuda
