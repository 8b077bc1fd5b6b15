// Streams and events, as declared in the public header.
#include "naru/device/stream.h"

#include "naru/device/devices.h"
#include "naru/error.h"
#include "runtime/device/registry.h"
#include "runtime/queue/streams.h"
#include "runtime/queue/sync.h"

namespace naru {
namespace {

Device with_index(Device d) { return d.is_cpu() ? Device(DeviceType::Cpu, 0) : runtime::resolve(d); }

}  // namespace

Stream::Stream(std::optional<Device> device, int priority) : device_(with_index(device.value_or(best_device()))), number_(0) {
  if (!device_.is_cpu()) number_ = runtime::next_stream(device_, priority);
}
Stream Stream::default_stream(Device device) { return {with_index(device), Number{0}}; }
Stream Stream::current(Device device) {
  const Device d = with_index(device);
  return {d, Number{runtime::current_stream(d)}};
}

int Stream::priority() const { return runtime::queue_of(device_, number_).priority(); }

void Stream::wait(const Event& event) const {
  if (!event.recorded()) return;
  runtime::Queue& q = runtime::queue_of(device_, number_);
  if (q.synchronous())
    event.synchronize();
  else if (!event.state_->queue->synchronous())
    q.wait(StreamPoint{&event.state_->queue->stream(), event.state_->seq});
}
void Stream::wait(const Stream& other) const { wait(other.record_event()); }

Event Stream::record_event() const {
  Event e;
  e.record(*this);
  return e;
}

bool Stream::query() const {
  runtime::Queue& q = runtime::queue_of(device_, number_);
  const uint64_t seq = q.point();
  return q.stream().completed() >= seq;
}

void Stream::synchronize() const {
  if (!device_.is_cpu()) runtime::note_synchronization("Stream.synchronize", device_);
  runtime::queue_of(device_, number_).synchronize();
}

void set_current_stream(const Stream& s) { runtime::set_current_stream(s.device(), s.number()); }

StreamGuard::StreamGuard(const Stream& s) : before_(Stream::current(s.device())), device_before_(runtime::current_device(s.device().type)) {
  if (!s.device().is_cpu()) runtime::set_current_device(s.device().type, s.device().index);
  set_current_stream(s);
}
StreamGuard::~StreamGuard() {
  set_current_stream(before_);
  try {
    if (!before_.device().is_cpu()) runtime::set_current_device(before_.device().type, device_before_);
  } catch (const Error&) {
    // The devices were replaced in the meantime.
  }
}

Event::Event(bool timing) : state_(std::make_shared<State>()) { state_->timing = timing; }

void Event::record(const Stream& s) {
  runtime::Queue& q = runtime::queue_of(s.device_, s.number_);
  std::unique_ptr<runtime::TimeStamp> stamp;
  state_->seq = q.point(state_->timing ? &stamp : nullptr);
  state_->queue = &q;
  state_->stamp = std::move(stamp);
}
void Event::record() { record(Stream::current(best_device())); }

std::optional<Device> Event::device() const {
  if (!recorded()) return {};
  return state_->queue->device();
}

bool Event::query() const { return !recorded() || state_->queue->stream().completed() >= state_->seq; }

void Event::synchronize() const {
  if (!recorded()) return;
  if (!state_->queue->synchronous()) runtime::note_synchronization("Event.synchronize", state_->queue->device());
  state_->queue->stream().synchronize(state_->seq);
}

double Event::elapsed_time(const Event& end) const {
  if (!state_->timing || !end.state_->timing)
    throw ValueError("Both events must be created with argument 'enable_timing=True'. (elapsed_time)");
  if (!recorded() || !end.recorded()) throw ValueError("Both events must be recorded before calculating elapsed time. (elapsed_time)");
  if (!query() || !end.query())
    throw RuntimeError(
        "Both events must be completed before calculating elapsed time: call synchronize() of the later one first. (elapsed_time)");
  const Device from = state_->queue->device(), to = end.state_->queue->device();
  if (from.type != to.type)
    throw ValueError("elapsed_time: wanted two events of one kind of device, got '{}' and '{}'", from.str(), to.str());
  return end.state_->stamp->milliseconds_since(*state_->stamp);
}

}  // namespace naru
