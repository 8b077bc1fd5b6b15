#include "backends/opencl/stream.h"

#include <cstring>

#include "backends/opencl/addresses.h"
#include "host/execute.h"
#include "naru/error.h"

namespace naru::backends::opencl {
namespace {

class EventTime final : public runtime::TimeStamp {
 public:
  explicit EventTime(cl_event event) : event_(event) {}
  ~EventTime() override { api().clReleaseEvent(event_); }
  double milliseconds_since(const TimeStamp& earlier) const override {
    return (nanoseconds() - static_cast<const EventTime&>(earlier).nanoseconds()) * 1e-6;
  }

 private:
  double nanoseconds() const {
    cl_ulong time = 0;
    check(api().clGetEventProfilingInfo(event_, CL_PROFILING_COMMAND_END, sizeof time, &time, nullptr), "clGetEventProfilingInfo");
    return static_cast<double>(time);
  }
  cl_event event_;
};

cl_int status_of(cl_event event) noexcept {
  cl_int status = CL_COMPLETE;
  api().clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return status;
}

}  // namespace

OpenClStream::OpenClStream(OpenClDevice& device) : device_(device), queue_(device.make_queue()) {}

OpenClStream::~OpenClStream() {
  if (device_.forked()) return;
  api().clFinish(queue_);
  for (Step& s : steps_) api().clReleaseEvent(s.event);
  for (const Scratch& s : scratch_) device_.release(s.memory);
  api().clReleaseCommandQueue(queue_);
}

cl_event* OpenClStream::next_event() {
  if (last_) api().clReleaseEvent(last_);
  last_ = nullptr;
  return &last_;
}

uint64_t OpenClStream::end_step(std::vector<Ref<Storage>> hold) {
  const uint64_t seq = given_.load(std::memory_order_relaxed) + 1;
  // An instruction that had nothing to do is reached with the one before.
  if (last_) steps_.push_back({seq, last_, std::move(hold), std::move(staged_)});
  else if (steps_.empty()) done_.store(seq, std::memory_order_release);
  last_ = nullptr;
  given_.store(seq, std::memory_order_release);
  return seq;
}

uint64_t OpenClStream::submit(ir::Instruction instruction, std::vector<Ref<Storage>> hold) {
  device_.check_process();
  Steps over;
  const std::lock_guard lock(mutex_);
  try {
    scratch_used_ = 0;
    run(instruction);
  } catch (...) {
    errors().keep(std::current_exception());
  }
  if (last_) api().clFlush(queue_);
  const uint64_t seq = end_step(std::move(hold));
  if (steps_.size() > 16) over = take_done();
  return seq;
}

void OpenClStream::run(const ir::Instruction& instruction) {
  if (const auto* c = std::get_if<ir::CopyBytes>(&instruction)) return copy(*c);
  if (const auto* m = std::get_if<ir::Map>(&instruction)) return render::c::run(*m, *this);
  on_host(instruction);
}

void OpenClStream::start(const render::c::Launch& launch) {
  constexpr size_t kMost = 32;
  if (launch.memory.size() > kMost) throw RuntimeError("OpenCL: a kernel with {} pieces of memory; at most {} are allowed", launch.memory.size(), kMost);
  const Api& cl = api();
  cl_mem memory[kMost];
  for (size_t i = 0; i < launch.memory.size(); ++i) {
    int64_t offset = 0;
    memory[i] = nullptr;
    if (launch.memory[i]) {
      const Piece& piece = device_.piece_of(launch.memory[i], "operand of a kernel");
      memory[i] = piece.memory;
      offset = static_cast<char*>(launch.memory[i]) - piece.address;
    }
    std::memcpy(launch.arguments.data() + i * 8, &offset, 8);
  }
  const size_t group = static_cast<size_t>(launch.group), items = static_cast<size_t>(launch.groups) * group;
  const std::lock_guard lock(device_.launching);
  Kernel& kernel = device_.kernel_of(launch);
  cl_uint argument = 0;
  for (; argument < launch.memory.size(); ++argument)
    check(cl.clSetKernelArg(kernel.kernel, argument, sizeof(cl_mem), &memory[argument]), "clSetKernelArg");
  check(cl.clSetKernelArg(kernel.kernel, argument, launch.arguments.size(), launch.arguments.data()), "clSetKernelArg");
  check(cl.clEnqueueNDRangeKernel(queue_, kernel.kernel, 1, nullptr, &items, &group, 0, nullptr, next_event()), "clEnqueueNDRangeKernel");
  if (!kernel.program) return;
  // Once it has run: PoCL 3.1 ends the process when a kernel under way is asked for.
  cl.clFinish(queue_);
  device_.ran(kernel);
}

void* OpenClStream::scratch(size_t bytes) {
  if (scratch_used_ == scratch_.size()) scratch_.push_back({nullptr, 0});
  Scratch& s = scratch_[scratch_used_++];
  if (s.bytes < bytes) {
    // What runs still uses the old piece; the driver keeps it until that is over.
    if (s.memory) device_.release(s.memory);
    s = {nullptr, 0};
    const size_t wanted = (bytes + bytes / 2 + 4095) / 4096 * 4096;
    void* const memory = device_.allocate(wanted);
    if (!memory)
      throw OutOfMemoryError("{}: no memory for {} bytes of intermediate values. Use smaller tensors, or free some", device_.device().str(), wanted);
    s = {memory, wanted};
  }
  return s.memory;
}

void OpenClStream::copy(const ir::CopyBytes& c) {
  if (c.bytes == 0) return;
  const Api& cl = api();
  const bool from_here = c.source_device == device_.device(), to_here = c.target_device == device_.device();
  if (from_here && to_here) return copy_within(c);
  if (to_here) {
    const Piece& piece = device_.piece_of(c.target, "target of a copy");
    const size_t offset = static_cast<size_t>(static_cast<char*>(c.target) - piece.address);
    const void* source = c.source;
    if (!c.source_device.is_cpu()) {
      staged_.reset(new char[c.bytes]);
      read_elsewhere(c.source_device, c.source, staged_.get(), c.bytes);
      source = staged_.get();
    }
    return check(cl.clEnqueueWriteBuffer(queue_, piece.memory, 0, offset, c.bytes, source, 0, nullptr, next_event()), "clEnqueueWriteBuffer");
  }
  if (!from_here || !c.target_device.is_cpu())
    throw RuntimeError("device {}: asked to copy from {} to {}", device_.device().str(), c.source_device.str(), c.target_device.str());
  const Piece& piece = device_.piece_of(c.source, "source of a copy");
  const size_t offset = static_cast<size_t>(static_cast<const char*>(c.source) - piece.address);
  check(cl.clEnqueueReadBuffer(queue_, piece.memory, 0, offset, c.bytes, c.target, 0, nullptr, next_event()), "clEnqueueReadBuffer");
}

void OpenClStream::copy_within(const ir::CopyBytes& c) {
  if (c.target == c.source) return;
  const auto copy = [&](const void* from, const void* to) {
    const Piece &source = device_.piece_of(from, "source of a copy"), &target = device_.piece_of(to, "target of a copy");
    check(api().clEnqueueCopyBuffer(queue_, source.memory, target.memory, static_cast<size_t>(static_cast<const char*>(from) - source.address),
                                    static_cast<size_t>(static_cast<const char*>(to) - target.address), c.bytes, 0, nullptr, next_event()),
          "clEnqueueCopyBuffer");
  };
  const auto *from = static_cast<const char*>(c.source), *to = static_cast<const char*>(c.target);
  const bool overlap = from < to + c.bytes && to < from + c.bytes;
  if (!overlap) return copy(from, to);
  void* const between = scratch(c.bytes);
  copy(from, between);
  copy(between, to);
}

// An instruction without a kernel runs on the host, on memory mapped there: no copy where device and host share it.
void OpenClStream::on_host(ir::Instruction instruction) {
  const Api& cl = api();
  struct Mapped {
    const Piece* piece;
    char* host;
  };
  std::vector<Mapped> mapped;
  const auto unmap = [&] {
    for (const Mapped& m : mapped) cl.clEnqueueUnmapMemObject(queue_, m.piece->memory, m.host, 0, nullptr, next_event());
  };
  try {
    each_address(instruction, [&](void*& address) {
      const Piece& piece = device_.piece_of(address, "operand");
      const Mapped* found = nullptr;
      for (const Mapped& m : mapped)
        if (m.piece == &piece) found = &m;
      if (!found) {
        cl_int status = CL_SUCCESS;
        void* const host = cl.clEnqueueMapBuffer(queue_, piece.memory, 1, CL_MAP_READ | CL_MAP_WRITE, 0, piece.bytes, 0, nullptr, nullptr, &status);
        check(status, "clEnqueueMapBuffer");
        mapped.push_back({&piece, static_cast<char*>(host)});
        found = &mapped.back();
      }
      address = found->host + (static_cast<char*>(address) - piece.address);
    });
    host::execute(instruction);
  } catch (...) {
    unmap();
    throw;
  }
  unmap();
}

OpenClStream::Steps OpenClStream::take_done() const noexcept {
  Steps over;
  while (!steps_.empty()) {
    const cl_int status = status_of(steps_.front().event);
    if (status > CL_COMPLETE) break;
    if (status < 0)
      errors().keep(std::make_exception_ptr(RuntimeError("device {}: an operation ended with {}", device_.device().str(), error_text(status))));
    api().clReleaseEvent(steps_.front().event);
    done_.store(steps_.front().seq, std::memory_order_release);
    over.push_back(std::move(steps_.front()));
    steps_.pop_front();
  }
  if (steps_.empty()) done_.store(given_.load(std::memory_order_relaxed), std::memory_order_release);
  return over;
}

uint64_t OpenClStream::completed() const noexcept {
  if (done_.load(std::memory_order_acquire) == given_.load(std::memory_order_acquire) || device_.forked()) return done_.load(std::memory_order_acquire);
  Steps over;
  const std::lock_guard lock(mutex_);
  over = take_done();
  return done_.load(std::memory_order_relaxed);
}

cl_event OpenClStream::event_of(uint64_t seq) const noexcept {
  cl_event found = nullptr;
  for (const Step& s : steps_) {
    if (s.seq > seq) break;
    found = s.event;
  }
  if (found) api().clRetainEvent(found);
  return found;
}

void OpenClStream::reach(uint64_t seq) noexcept {
  if (done_.load(std::memory_order_acquire) >= seq || device_.forked()) return;
  cl_event event;
  {
    const std::lock_guard lock(mutex_);
    event = event_of(seq);
  }
  if (event) {
    api().clWaitForEvents(1, &event);
    api().clReleaseEvent(event);
  }
  Steps over;
  const std::lock_guard lock(mutex_);
  over = take_done();
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
  cl_event event;
  {
    const std::lock_guard lock(there->mutex_);
    event = there->event_of(seq);
  }
  if (!event) return;
  const std::lock_guard lock(mutex_);
  const cl_int status = api().clEnqueueBarrierWithWaitList(queue_, 1, &event, nullptr);
  api().clReleaseEvent(event);
  check(status, "clEnqueueBarrierWithWaitList");
}

std::unique_ptr<runtime::TimeStamp> OpenClStream::stamp() {
  device_.check_process();
  const std::lock_guard lock(mutex_);
  check(api().clEnqueueMarkerWithWaitList(queue_, 0, nullptr, next_event()), "clEnqueueMarkerWithWaitList");
  api().clFlush(queue_);
  const cl_event event = last_;
  api().clRetainEvent(event);
  end_step({});
  return std::make_unique<EventTime>(event);
}

}  // namespace naru::backends::opencl
