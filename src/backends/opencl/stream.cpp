#include "backends/opencl/stream.h"

#include <fmt/format.h>

#include <cstring>

#include "naru/error.h"
#include "runtime/os/interrupt.h"

namespace naru::backends::opencl {
namespace {

// Make an event after every kEvery instructions; in between only on request.
constexpr uint64_t kEvery = 16;

const Event& of(const std::shared_ptr<const void>& event) { return *static_cast<const Event*>(event.get()); }

class EventTime final : public runtime::TimeStamp {
 public:
  explicit EventTime(std::shared_ptr<const void> event) : event_(std::move(event)) {}
  double milliseconds_since(const TimeStamp& earlier) const override {
    return (nanoseconds() - static_cast<const EventTime&>(earlier).nanoseconds()) * 1e-6;
  }

 private:
  double nanoseconds() const {
    cl_ulong time = 0;
    check(api().clGetEventProfilingInfo(of(event_).get(), CL_PROFILING_COMMAND_END, sizeof time, &time, nullptr),
          "clGetEventProfilingInfo");
    return static_cast<double>(time);
  }
  std::shared_ptr<const void> event_;
};

cl_int status_of(const Event& event) noexcept {
  cl_int status = CL_COMPLETE;
  const cl_int asked = api().clGetEventInfo(event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return asked == CL_SUCCESS ? status : asked;
}

}  // namespace

OpenClStream::OpenClStream(OpenClDevice& device)
    : EventStream(device.device(), kEvery), device_(device), target_(device.target()), queue_(device.make_queue(false)) {}

OpenClStream::~OpenClStream() {
  if (device_.forked()) {
    close(false);
    for (OwnedQueue* q : {&queue_, &beside_}) static_cast<void>(q->release());  // they belong to the parent
    return;
  }
  api().clFinish(queue_.get());
  close(true);
}

cl_event* OpenClStream::wanted_event() noexcept { return event_follows() ? last_.put() : nullptr; }

OpenClStream::Event OpenClStream::record_event() {
  opencl::Event event = std::move(last_);
  if (!event) check(api().clEnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, event.put()), "clEnqueueMarkerWithWaitList");
  auto shared = std::make_shared<const opencl::Event>(std::move(event));
  flush();  // other streams' waits for an event require a flush after it
  return shared;
}

bool OpenClStream::query_event(const Event& event) {
  const cl_int status = status_of(of(event));
  if (status > CL_COMPLETE) return false;
  if (status < 0) {
    settle();
    try {
      raise_error(status, fmt::format("device {}: an operation ended with {}", device_.device().str(), error_text(status)));
    } catch (...) {
      errors().keep(std::current_exception());
    }
  }
  return true;
}

void OpenClStream::host_wait(const Event& event) {
  // An event that failed counts as reached; query_event() reports the error.
  const cl_int waited = api().clWaitForEvents(1, &of(event).get());
  if (waited != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) check(waited, "clWaitForEvents");
}

// Events are valid within their own context only.
bool OpenClStream::can_wait_for(const EventStream& other) const noexcept {
  const auto* const there = dynamic_cast<const OpenClStream*>(&other);
  return there && &there->device_ == &device_;
}

void OpenClStream::device_wait(const Event& event) {
  check(api().clEnqueueBarrierWithWaitList(queue_.get(), 1, &of(event).get(), nullptr), "clEnqueueBarrierWithWaitList");
}

// Some drivers start work only at a flush.
void OpenClStream::flush() { check(api().clFlush(queue_.get()), "clFlush"); }

void OpenClStream::drain() { check(api().clFinish(queue_.get()), "clFinish"); }

void OpenClStream::settle() noexcept { api().clFinish(queue_.get()); }

cl_command_queue OpenClStream::beside() {
  if (!beside_) beside_ = device_.make_queue();
  return beside_.get();
}

void OpenClStream::read(void* host, const void* memory, size_t bytes) {
  device_.copy(beside(), OpenClDevice::Way::Out, host, memory, bytes, true, nullptr);
}

void OpenClStream::write(void* memory, const void* host, size_t bytes) {
  device_.copy(beside(), OpenClDevice::Way::In, memory, host, bytes, true, nullptr);
}

uint64_t OpenClStream::submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) {
  // Other work usually waits for transfers to and from the host, so make an event after them.
  return give(std::move(hold), std::holds_alternative<ir::CopyBytes>(instruction), [&] {
    last_ = {};
    run(instruction);
  });
}

void OpenClStream::run(const ir::Instruction& instruction) {
  if (const auto* c = std::get_if<ir::CopyBytes>(&instruction)) return copy(*c);
  render::c::run_any(instruction, *this);
}

// Only sets arguments that have changed: a driver call costs more than the comparison.
void OpenClStream::set_arguments(Kernel& kernel, std::span<const void* const> memory, const void* apart,
                                 std::span<const std::byte> numbers) const {
  const uint64_t releases = device_.releases();
  const auto last = static_cast<cl_uint>(memory.size());
  if (kernel.memory.size() != memory.size() + 1 || kernel.releases != releases) {
    kernel.memory.clear(), kernel.arguments.clear();
    for (cl_uint i = 0; i < last; ++i) device_.set_argument(kernel.kernel.get(), i, memory[i]);
    kernel.memory.assign(memory.begin(), memory.end());
    kernel.memory.push_back(nullptr);
    kernel.releases = releases;
  }
  const auto set = [&](cl_uint i, const void* value) {
    if (kernel.memory[i] == value) return;
    kernel.memory[i] = nullptr;
    device_.set_argument(kernel.kernel.get(), i, value);
    kernel.memory[i] = value;
  };
  for (cl_uint i = 0; i < last; ++i) set(i, memory[i]);
  if (apart) {
    set(last, apart);
  } else if (!std::equal(kernel.arguments.begin(), kernel.arguments.end(), numbers.begin(), numbers.end())) {
    kernel.arguments.clear();
    check(api().clSetKernelArg(kernel.kernel.get(), last, numbers.size(), numbers.data()), "clSetKernelArg");
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
    OpenClDevice::BufferOffset place{nullptr, 0};
    if (launch.memory[i]) place = device_.place_of(launch.memory[i], "operand of a kernel");
    memory[i] = place.memory;
    std::memcpy(launch.arguments.data() + i * 8, &place.offset, 8);
  }
  const void* apart = nullptr;
  if (render::c::in_memory(launch.memory.size(), launch.arguments.size(), target_)) {
    void* const place = scratch(launch.arguments.size());
    device_.copy(queue_.get(), OpenClDevice::Way::In, place, launch.arguments.data(), launch.arguments.size(), true, nullptr);
    apart = device_.place_of(place, "arguments").memory;
  }
  const size_t group = static_cast<size_t>(launch.group), items = static_cast<size_t>(launch.groups) * group;
  const std::lock_guard lock(device_.launching);
  Kernel& kernel = device_.kernel_of(launch, target_);
  set_arguments(kernel, {memory, launch.memory.size()}, apart, launch.arguments);
  check(cl.clEnqueueNDRangeKernel(queue_.get(), kernel.kernel.get(), 1, nullptr, &items, &group, 0, nullptr, wanted_event()),
        "clEnqueueNDRangeKernel");
  if (!kernel.program) return;
  // Only after the kernel has run: PoCL 3.1 ends the process if the binary of a running kernel is queried.
  if (finish_or_interrupt()) device_.ran(kernel);
}

bool OpenClStream::finish_or_interrupt() {
  const runtime::InterruptWatch watch;
  if (!watch.active()) {
    api().clFinish(queue_.get());
    return true;
  }
  auto marker = std::make_shared<opencl::Event>();
  check(api().clEnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, marker->put()), "clEnqueueMarkerWithWaitList");
  flush();
  return runtime::wait_or_interrupt(watch, [marker] { api().clWaitForEvents(1, &marker->get()); });
}

void OpenClStream::prepare(const render::c::Launch& launch) {
  const std::lock_guard lock(device_.launching);
  device_.kernel_of(launch, target_);
}

void OpenClStream::prepare(const ir::Instruction& instruction) {
  device_.check_process();
  if (const auto* k = std::get_if<ir::UserKernel>(&instruction)) render::c::prepare(*k, *this);
}

void OpenClStream::copy(const ir::CopyBytes& c) {
  if (c.bytes == 0) return;
  const bool from_here = c.source_device == device_.device(), to_here = c.target_device == device_.device();
  if (from_here && to_here) return copy_within(c);
  if (!(to_here && c.source_device.is_cpu()) && !(from_here && c.target_device.is_cpu()))
    throw RuntimeError("device {}: asked to copy from {} to {}", device_.device().str(), c.source_device.str(), c.target_device.str());
  device_.copy(queue_.get(), to_here ? OpenClDevice::Way::In : OpenClDevice::Way::Out, c.target, c.source, c.bytes, false, wanted_event());
}

void OpenClStream::copy_within(const ir::CopyBytes& c) {
  if (c.target == c.source) return;
  const auto copy = [&](const void* from, void* to) {
    device_.copy(queue_.get(), OpenClDevice::Way::Within, to, from, c.bytes, false, wanted_event());
  };
  const auto *from = static_cast<const char*>(c.source), *to = static_cast<const char*>(c.target);
  const bool overlap = from < to + c.bytes && to < from + c.bytes;
  if (!overlap) return copy(c.source, c.target);
  void* const between = scratch(c.bytes);
  copy(c.source, between);
  copy(between, c.target);
}

// Queues record no times by default. At the first request the stream continues on a new queue that does, after the old one.
void OpenClStream::take_times() {
  if (timed_) return;
  OwnedQueue timed = device_.make_queue(true);
  const Event event = record_point();
  check(api().clEnqueueBarrierWithWaitList(timed.get(), 1, &of(event).get(), nullptr), "clEnqueueBarrierWithWaitList");
  queue_ = std::move(timed);
  timed_ = true;
}

std::unique_ptr<runtime::TimeStamp> OpenClStream::stamp() {
  return std::make_unique<EventTime>(give_event([&] {
    take_times();
    return record_event();
  }));
}

}  // namespace naru::backends::opencl
