#include "backends/opencl/stream.h"

#include <cstring>

#include "naru/error.h"

namespace naru::backends::opencl {
namespace {

// An event behind every so many instructions; between them one is made only when somebody asks.
constexpr uint64_t kUnmarked = 16;

class EventTime final : public runtime::TimeStamp {
 public:
  explicit EventTime(Event event) : event_(std::move(event)) {}
  double milliseconds_since(const TimeStamp& earlier) const override {
    return (nanoseconds() - static_cast<const EventTime&>(earlier).nanoseconds()) * 1e-6;
  }

 private:
  double nanoseconds() const {
    cl_ulong time = 0;
    check(api().clGetEventProfilingInfo(event_.get(), CL_PROFILING_COMMAND_END, sizeof time, &time, nullptr), "clGetEventProfilingInfo");
    return static_cast<double>(time);
  }
  Event event_;
};

cl_int status_of(const Event& event) noexcept {
  cl_int status = CL_COMPLETE;
  const cl_int asked = api().clGetEventInfo(event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return asked == CL_SUCCESS ? status : asked;
}

}  // namespace

OpenClStream::OpenClStream(OpenClDevice& device)
    : device_(device), target_(device.target()), queue_(device.make_queue(false)), scratch_(device.device(), *this) {}

OpenClStream::~OpenClStream() {
  if (device_.forked()) {
    scratch_.abandon();
    return;
  }
  api().clFinish(queue_);
  if (faults_) {
    device_.release(faults_);
    api().clReleaseCommandQueue(looking_);
  }
  api().clReleaseCommandQueue(queue_);
}

cl_event* OpenClStream::wanted_event() const noexcept { return due_ ? last_.put() : nullptr; }

uint64_t OpenClStream::count(std::vector<Ref<Storage>> hold) {
  const uint64_t seq = given_.load(std::memory_order_relaxed) + 1;
  given_.store(seq, std::memory_order_release);
  for (Ref<Storage>& s : hold) held_.push_back(std::move(s));
  return seq;
}

void OpenClStream::mark() const {
  if (!last_) check(api().clEnqueueMarkerWithWaitList(queue_, 0, nullptr, last_.put()), "clEnqueueMarkerWithWaitList");
  marked_ = given_.load(std::memory_order_relaxed);
  marks_.push_back({marked_, std::move(last_), std::move(held_)});
  held_.clear();
  // Others wait for events only behind a flush.
  check(api().clFlush(queue_), "clFlush");
}

OpenClStream::Marks OpenClStream::give_up(std::exception_ptr error) const noexcept {
  errors().keep(std::move(error));
  // As far as the driver still can: memory is given back to it next.
  api().clFinish(queue_);
  Marks over(std::make_move_iterator(marks_.begin()), std::make_move_iterator(marks_.end()));
  over.push_back({0, std::move(last_), std::move(held_)});
  marks_.clear();
  held_.clear();
  marked_ = given_.load(std::memory_order_relaxed);
  done_.store(marked_, std::memory_order_release);
  return over;
}

uint64_t OpenClStream::submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) {
  device_.check_process();
  Marks over;
  const std::lock_guard lock(mutex_);
  // What moves to and from the host is what others wait for.
  due_ = given_.load(std::memory_order_relaxed) + 1 - marked_ >= kUnmarked || !hold.empty() ||
         std::holds_alternative<ir::CopyBytes>(instruction);
  try {
    scratch_.begin();
    run(instruction);
  } catch (...) {
    errors().keep(std::current_exception());
  }
  const uint64_t seq = count(std::move(hold));
  try {
    if (!due_) {
      // Some drivers begin only then.
      check(api().clFlush(queue_), "clFlush");
      return seq;
    }
    mark();
    over = take_reached();
  } catch (...) {
    over = give_up(std::current_exception());
  }
  return seq;
}

void OpenClStream::run(const ir::Instruction& instruction) {
  if (const auto* c = std::get_if<ir::CopyBytes>(&instruction)) return copy(*c);
  std::visit(
      [this](const auto& i) {
        using Kind = std::decay_t<decltype(i)>;
        if constexpr (!std::is_same_v<Kind, ir::CopyBytes>) render::c::run(i, *this);
      },
      instruction);
}

// Those that differ from what they are: a call of the driver's costs more than the comparison.
void OpenClStream::set_arguments(Kernel& kernel, std::span<const void* const> memory, const void* apart,
                                 std::span<const std::byte> numbers) const {
  const uint64_t releases = device_.releases();
  const auto last = static_cast<cl_uint>(memory.size());
  if (kernel.memory.size() != memory.size() + 1 || kernel.releases != releases) {
    kernel.memory.clear(), kernel.arguments.clear();
    for (cl_uint i = 0; i < last; ++i) device_.set_argument(kernel.kernel, i, memory[i]);
    kernel.memory.assign(memory.begin(), memory.end());
    kernel.memory.push_back(nullptr);
    kernel.releases = releases;
  }
  const auto set = [&](cl_uint i, const void* value) {
    if (kernel.memory[i] == value) return;
    kernel.memory[i] = nullptr;
    device_.set_argument(kernel.kernel, i, value);
    kernel.memory[i] = value;
  };
  for (cl_uint i = 0; i < last; ++i) set(i, memory[i]);
  if (apart) {
    set(last, apart);
  } else if (!std::equal(kernel.arguments.begin(), kernel.arguments.end(), numbers.begin(), numbers.end())) {
    kernel.arguments.clear();
    check(api().clSetKernelArg(kernel.kernel, last, numbers.size(), numbers.data()), "clSetKernelArg");
    kernel.arguments.assign(numbers.begin(), numbers.end());
  }
}

void OpenClStream::start(const render::c::Launch& launch) {
  constexpr size_t kMost = 32;
  if (launch.memory.size() > kMost)
    throw RuntimeError("OpenCL: a kernel with {} pieces of memory; at most {} are allowed", launch.memory.size(), kMost);
  if (launch.groups == 0) return;
  const Api& cl = api();
  const void* memory[kMost];
  for (size_t i = 0; i < launch.memory.size(); ++i) {
    OpenClDevice::Place place{nullptr, 0};
    if (launch.memory[i]) place = device_.place_of(launch.memory[i], "operand of a kernel");
    memory[i] = place.memory;
    std::memcpy(launch.arguments.data() + i * 8, &place.offset, 8);
  }
  const void* apart = nullptr;
  if (render::c::in_memory(launch.memory.size(), launch.arguments.size(), target_)) {
    void* const place = scratch(launch.arguments.size());
    device_.copy(queue_, OpenClDevice::Way::In, place, launch.arguments.data(), launch.arguments.size(), true, nullptr);
    apart = device_.place_of(place, "arguments").memory;
  }
  const size_t group = static_cast<size_t>(launch.group), items = static_cast<size_t>(launch.groups) * group;
  const std::lock_guard lock(device_.launching);
  Kernel& kernel = device_.kernel_of(launch, target_);
  set_arguments(kernel, {memory, launch.memory.size()}, apart, launch.arguments);
  check(cl.clEnqueueNDRangeKernel(queue_, kernel.kernel, 1, nullptr, &items, &group, 0, nullptr, wanted_event()), "clEnqueueNDRangeKernel");
  if (!kernel.program) return;
  // Once it has run: PoCL 3.1 ends the process when a kernel under way is asked for.
  cl.clFinish(queue_);
  device_.ran(kernel);
}

void OpenClStream::prepare(const render::c::Launch& launch) {
  const std::lock_guard lock(device_.launching);
  device_.kernel_of(launch, target_);
}

void OpenClStream::prepare(const ir::Instruction& instruction) {
  device_.check_process();
  if (const auto* k = std::get_if<ir::UserKernel>(&instruction)) render::c::prepare(*k, *this);
}

void OpenClStream::drain() { check(api().clFinish(queue_), "clFinish"); }

void OpenClStream::copy(const ir::CopyBytes& c) {
  if (c.bytes == 0) return;
  const bool from_here = c.source_device == device_.device(), to_here = c.target_device == device_.device();
  if (from_here && to_here) return copy_within(c);
  if (!(to_here && c.source_device.is_cpu()) && !(from_here && c.target_device.is_cpu()))
    throw RuntimeError("device {}: asked to copy from {} to {}", device_.device().str(), c.source_device.str(), c.target_device.str());
  device_.copy(queue_, to_here ? OpenClDevice::Way::In : OpenClDevice::Way::Out, c.target, c.source, c.bytes, false, wanted_event());
}

void OpenClStream::copy_within(const ir::CopyBytes& c) {
  if (c.target == c.source) return;
  const auto copy = [&](const void* from, void* to) {
    device_.copy(queue_, OpenClDevice::Way::Within, to, from, c.bytes, false, wanted_event());
  };
  const auto *from = static_cast<const char*>(c.source), *to = static_cast<const char*>(c.target);
  const bool overlap = from < to + c.bytes && to < from + c.bytes;
  if (!overlap) return copy(c.source, c.target);
  void* const between = scratch(c.bytes);
  copy(c.source, between);
  copy(between, c.target);
}

void* OpenClStream::faults(int count, std::function<std::string(int, uint32_t, int64_t)> text) {
  using render::c::Fault;
  constexpr size_t kBytes = runtime::FaultRecords::kCount * sizeof(Fault);
  if (count == 0) return nullptr;
  if (!faults_) {
    faults_ = device_.allocate(kBytes);
    if (!faults_) throw OutOfMemoryError("{}: no memory for {} bytes", device_.device().str(), kBytes);
    looking_ = device_.make_queue();
    const std::vector<Fault> none(runtime::FaultRecords::kCount);
    device_.copy(looking_, OpenClDevice::Way::In, faults_, none.data(), kBytes, true, nullptr);
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

void OpenClStream::read_faults(uint64_t seq) {
  using render::c::Fault;
  using Way = OpenClDevice::Way;
  records_.look(
      seq, errors(),
      [&](Fault* all) { device_.copy(looking_, Way::Out, all, faults_, runtime::FaultRecords::kCount * sizeof(Fault), true, nullptr); },
      [&](int number) {
        const Fault none;
        device_.copy(looking_, Way::In, static_cast<Fault*>(faults_) + number, &none, sizeof none, true, nullptr);
      });
}

OpenClStream::Marks OpenClStream::take_reached() const noexcept {
  Marks over;
  while (!marks_.empty()) {
    const cl_int status = status_of(marks_.front().event);
    if (status > CL_COMPLETE) break;
    if (status < 0) {
      api().clFinish(queue_);  // as above
      errors().keep(std::make_exception_ptr(
          RuntimeError("device {}: an operation ended with {}. If it happens again, restart the program; see `naru doctor`",
                       device_.device().str(), error_text(status))));
    }
    done_.store(marks_.front().seq, std::memory_order_release);
    over.push_back(std::move(marks_.front()));
    marks_.pop_front();
  }
  return over;
}

uint64_t OpenClStream::completed() const noexcept {
  if (done_.load(std::memory_order_acquire) == given_.load(std::memory_order_acquire) || device_.forked())
    return done_.load(std::memory_order_acquire);
  Marks over;
  const std::lock_guard lock(mutex_);
  try {
    // Whoever asks again and again must see the end.
    if (marks_.empty() && marked_ < given_.load(std::memory_order_relaxed)) mark();
    over = take_reached();
  } catch (...) {
    over = give_up(std::current_exception());
  }
  return done_.load(std::memory_order_relaxed);
}

Event OpenClStream::event_of(uint64_t seq) const {
  if (done_.load(std::memory_order_relaxed) >= seq) return {};
  for (const Mark& m : marks_)
    if (m.seq >= seq) return m.event;
  mark();
  return marks_.back().event;
}

void OpenClStream::reach(uint64_t seq) noexcept {
  if (device_.forked() || (done_.load(std::memory_order_acquire) >= seq && !records_.suspicious())) return;
  Event event;
  Marks over, more;
  try {
    {
      const std::lock_guard lock(mutex_);
      event = event_of(seq);
    }
    // An event that ended with an error is one that is reached, too: take_reached() tells.
    const cl_int waited = event ? api().clWaitForEvents(1, &event.get()) : CL_SUCCESS;
    if (waited != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) check(waited, "clWaitForEvents");
    const std::lock_guard lock(mutex_);
    over = take_reached();
    if (records_.suspicious()) read_faults(seq);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    more = give_up(std::current_exception());
  }
}

void OpenClStream::synchronize(uint64_t seq) {
  device_.check_process();
  DeviceStream::synchronize(seq);
}

void OpenClStream::wait(runtime::DeviceStream& other, uint64_t seq) {
  device_.check_process();
  if (&other == this || other.completed() >= seq) return;
  auto* const there = dynamic_cast<OpenClStream*>(&other);
  // Events are known in their own context only: for others the host waits.
  if (!there || &there->device_ != &device_) return other.reach(seq);
  Event event;
  {
    const std::lock_guard lock(there->mutex_);
    event = there->event_of(seq);
  }
  if (!event) return;
  const std::lock_guard lock(mutex_);
  check(api().clEnqueueBarrierWithWaitList(queue_, 1, &event.get(), nullptr), "clEnqueueBarrierWithWaitList");
}

// Queues take no times until somebody asks for one: from then on this stream's is another, which goes on where the first one ends.
void OpenClStream::take_times() {
  if (timed_) return;
  const cl_command_queue timed = device_.make_queue(true);
  mark();
  const cl_int status = api().clEnqueueBarrierWithWaitList(timed, 1, &marks_.back().event.get(), nullptr);
  if (status == CL_SUCCESS) {
    api().clReleaseCommandQueue(std::exchange(queue_, timed));
    timed_ = true;
  } else {
    api().clReleaseCommandQueue(timed);
  }
  check(status, "clEnqueueBarrierWithWaitList");
}

std::unique_ptr<runtime::TimeStamp> OpenClStream::stamp() {
  device_.check_process();
  const std::lock_guard lock(mutex_);
  take_times();
  count({});
  mark();
  return std::make_unique<EventTime>(marks_.back().event);
}

}  // namespace naru::backends::opencl
