#include "backends/cuda/stream.h"

#include <cstring>

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

CudaStream::CudaStream(CudaDevice& device, CudaDevices& devices, int priority) : device_(device), devices_(devices), scratch_(device.device(), *this) {
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

uint64_t CudaStream::submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) {
  if (device_.forked()) device_.check_usable();
  Marks over;
  const std::lock_guard lock(mutex_);
  try {
    device_.check_usable();
    const CudaDevice::Current scope(device_);
    scratch_.begin();
    run(instruction);
  } catch (...) {
    errors().keep(std::current_exception());
  }
  const uint64_t seq = count(std::move(hold));
  if (device_.lost()) {
    over = give_up(nullptr);
    return seq;
  }
  try {
    // What moves over the bus is what others wait for.
    if (seq - marked_ >= kUnmarked || !held_.empty() || std::holds_alternative<ir::CopyBytes>(instruction)) mark();
  } catch (...) {
    over = give_up(std::current_exception());
  }
  if (marks_.size() > 16) over = take_reached();
  return seq;
}

void CudaStream::run(const ir::Instruction& instruction) {
  if (const auto* c = std::get_if<ir::CopyBytes>(&instruction)) return copy(*c);
  if (const auto* m = std::get_if<ir::MatMul>(&instruction); m && product_by_library(*m)) return;
  std::visit(
      [this](const auto& i) {
        using Kind = std::decay_t<decltype(i)>;
        if constexpr (!std::is_same_v<Kind, ir::CopyBytes>) render::c::run(i, *this);
      },
      instruction);
}

bool CudaStream::product_by_library(ir::MatMul q) {
  Products& products = device_.products();
  const auto memory = [this](size_t bytes) -> void* {
    try {
      return scratch(bytes);
    } catch (const OutOfMemoryError&) {
      return nullptr;
    }
  };
  // Factors that do not lie in lines (repeated elements, every other column) are copied first.
  struct Copy {
    ir::MatMul::Matrix* factor;
    Dims shape;
    ir::View from;
  };
  std::vector<Copy> copies;
  const auto line_up = [&](ir::MatMul::Matrix& x, int64_t rows, int64_t cols) {
    if (in_lines(x, rows, cols)) return;
    const int64_t batch = x.batch_stride == 0 ? 1 : q.batch;
    copies.push_back({&x, {batch, rows, cols}, {x.data, q.dtype, {x.batch_stride, x.row_stride, x.col_stride}}});
    x = {x.data, batch == 1 ? 0 : rows * cols, cols, 1};
  };
  line_up(q.a, q.m, q.k), line_up(q.b, q.k, q.n);
  if (!copies.empty()) {
    if (!for_library(q, true) || !products.available()) return false;
    for (const Copy& c : copies) {
      c.factor->data = memory(static_cast<size_t>(product(c.shape)) * size_of(q.dtype));
      if (!c.factor->data) return false;
      render::c::run(ir::copy_of(c.shape, c.from, {c.factor->data, q.dtype, contiguous_strides(c.shape)}), *this);
    }
  }
  return products.start(q, stream_, memory);
}

void CudaStream::prepare(const ir::Instruction& instruction) {
  const auto* const k = std::get_if<ir::UserKernel>(&instruction);
  if (!k) return;
  device_.check_usable();
  const CudaDevice::Current scope(device_);
  render::c::prepare(*k, *this);
}

void CudaStream::start(const render::c::Launch& launch) {
  constexpr size_t kMost = 32;
  constexpr int64_t kMostGroups = (int64_t{1} << 31) - 1;
  if (launch.memory.size() > kMost) throw RuntimeError("CUDA: a kernel with {} pieces of memory; at most {} are allowed", launch.memory.size(), kMost);
  if (launch.groups > kMostGroups) throw RuntimeError("CUDA: a kernel of {} groups; at most {} are allowed", launch.groups, kMostGroups);
  if (launch.groups == 0) return;
  const Api& cu = device_.api();
  CUdeviceptr memory[kMost + 1];
  void* parameters[kMost + 1];
  size_t n = 0;
  for (; n < launch.memory.size(); ++n) {
    memory[n] = address(launch.memory[n]);
    parameters[n] = &memory[n];
  }
  // Addresses are whole here: no offsets from the start of a piece.
  std::memset(launch.arguments.data(), 0, n * 8);
  parameters[n] = launch.arguments.data();
  if (render::c::in_memory(n, launch.arguments.size(), device_.target())) {
    memory[n] = address(scratch(launch.arguments.size()));
    device_.check(cu.cuMemcpyHtoDAsync_v2(memory[n], launch.arguments.data(), launch.arguments.size(), stream_), "cuMemcpyHtoDAsync");
    parameters[n] = &memory[n];
  }
  const bool three = launch.group3[0] > 0;
  const auto groups = three ? launch.groups3 : std::array<int64_t, 3>{launch.groups, 1, 1};
  const auto group = three ? launch.group3 : std::array{launch.group, 1, 1};
  const auto u = [](int64_t n) { return static_cast<unsigned>(n); };
  device_.check(cu.cuLaunchKernel(device_.kernel_of(launch), u(groups[0]), u(groups[1]), u(groups[2]), u(group[0]), u(group[1]), u(group[2]), 0, stream_, parameters, nullptr),
                "cuLaunchKernel");
}

void CudaStream::drain() {
  const CudaDevice::Current scope(device_);
  device_.check(device_.api().cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

void CudaStream::copy(const ir::CopyBytes& c) {
  if (c.bytes == 0) return;
  const Api& cu = device_.api();
  const bool from_here = c.source_device == device_.device(), to_here = c.target_device == device_.device();
  if (from_here && to_here) return copy_within(c);
  if (to_here && c.source_device.is_cpu()) return device_.check(cu.cuMemcpyHtoDAsync_v2(address(c.target), c.source, c.bytes, stream_), "cuMemcpyHtoDAsync");
  if (from_here && c.target_device.is_cpu()) return device_.check(cu.cuMemcpyDtoHAsync_v2(c.target, address(c.source), c.bytes, stream_), "cuMemcpyDtoHAsync");
  if (!to_here || c.source_device.type != device_.device().type)
    throw RuntimeError("device {}: asked to copy from {} to {}", device_.device().str(), c.source_device.str(), c.target_device.str());
  const CudaDevice& there = devices_.at(c.source_device);
  device_.check(cu.cuMemcpyPeerAsync(address(c.target), device_.context(), address(c.source), there.context(), c.bytes, stream_), "cuMemcpyPeerAsync");
}

void CudaStream::copy_within(const ir::CopyBytes& c) {
  if (c.target == c.source) return;
  const auto copy = [&](const void* from, const void* to) {
    device_.check(device_.api().cuMemcpyDtoDAsync_v2(address(to), address(from), c.bytes, stream_), "cuMemcpyDtoDAsync");
  };
  const auto *from = static_cast<const char*>(c.source), *to = static_cast<const char*>(c.target);
  const bool overlap = from < to + c.bytes && to < from + c.bytes;
  if (!overlap) return copy(from, to);
  void* const between = scratch(c.bytes);
  copy(from, between);
  copy(between, to);
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
    look_at_faults(submitted());
    records_.start_over();
    first = records_.take(count, submitted() + 1, std::move(text));
  }
  return static_cast<Fault*>(faults_) + first;
}

void CudaStream::look_at_faults(uint64_t seq) {
  using render::c::Fault;
  const Api& cu = device_.api();
  const CudaDevice::Current scope(device_);
  const auto finish = [&] { device_.check(cu.cuStreamSynchronize(looking_), "cuStreamSynchronize"); };
  records_.look(
      seq, errors(),
      [&](Fault* all) {
        device_.check(cu.cuMemcpyDtoHAsync_v2(all, address(faults_), runtime::FaultRecords::kCount * sizeof(Fault), looking_), "cuMemcpyDtoHAsync");
        finish();
      },
      [&](int number) {
        const Fault none;
        device_.check(cu.cuMemcpyHtoDAsync_v2(address(static_cast<Fault*>(faults_) + number), &none, sizeof none, looking_), "cuMemcpyHtoDAsync");
        finish();
      });
}

CudaStream::Marks CudaStream::take_reached() const noexcept {
  Marks over;
  if (device_.lost()) return give_up(nullptr);
  const CudaDevice::Current scope(device_);
  while (!marks_.empty()) {
    const CUresult code = device_.api().cuEventQuery(*marks_.front().event);
    if (code == CUDA_ERROR_NOT_READY) break;
    if (code != CUDA_SUCCESS) return give_up(device_.error(code, "cuEventQuery"));
    done_.store(marks_.front().seq, std::memory_order_release);
    over.push_back(std::move(marks_.front()));
    marks_.pop_front();
  }
  return over;
}

uint64_t CudaStream::completed() const noexcept {
  if (done_.load(std::memory_order_acquire) == given_.load(std::memory_order_acquire) || device_.forked()) return done_.load(std::memory_order_acquire);
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
    if (records_.suspicious() && !device_.lost()) look_at_faults(seq);
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
