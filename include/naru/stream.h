// Streams and events. A stream is an in-order queue of a device's work; work of different streams may overlap. Storages remember who
// writes and reads them, so that nothing has to be waited for by hand: a stream that uses what another makes waits for it by itself.
// The waits here are for those who want an order beyond that, and for timing.
#pragma once

#include <cstdint>
#include <optional>

#include "naru/device.h"
#include "naru/standard.h"

namespace naru {

namespace runtime {
class Queue;
class TimeStamp;
}  // namespace runtime

class Event;

// A handle; copies are the same stream. Number 0 is the device's default stream. cpu has one stream, where all is done at once.
class Stream {
 public:
  // A stream of the device (default: the best device) beside the default one; there are up to 32 a device, which are handed out in turn.
  // priority: 0, or negative for work that goes first where the device can do that. Throws DeviceUnavailableError.
  explicit Stream(std::optional<Device> device = {}, int priority = 0);
  static Stream default_stream(Device device);
  // Where the calling thread's work for the device goes.
  static Stream current(Device device);

  Device device() const noexcept { return device_; }
  int number() const noexcept { return number_; }
  int priority() const;
  // Work submitted later waits until the event, or what the other stream has been given so far, is done.
  void wait(const Event& event) const;
  void wait(const Stream& other) const;
  Event record_event() const;
  // Whether everything is done. Hands over what is deferred for fusion.
  bool query() const;
  // Waits for everything, and throws the errors there were.
  void synchronize() const;
  friend bool operator==(const Stream&, const Stream&) = default;

 private:
  friend class Event;
  enum class Number : int {};
  Stream(Device device, Number number) : device_(device), number_(static_cast<int>(number)) {}
  Device device_;
  int number_;
};

// Makes a stream the calling thread's current one of its device.
void set_current_stream(const Stream& stream);
// The same for the length of a scope, and its device the current one of its kind.
class StreamGuard {
 public:
  explicit StreamGuard(const Stream& stream);
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;
  ~StreamGuard();

 private:
  Stream before_;
  int device_before_;
};

// A point in a stream's work.
class Event {
 public:
  explicit Event(bool timing = false);
  // The point behind everything that the stream (default: the current one of the best device) has been given; again moves it.
  void record(const Stream& stream);
  void record();
  // Work that the stream is given later waits for it. Not recorded: nothing to wait for.
  void wait(const Stream& stream) const { stream.wait(*this); }
  bool recorded() const noexcept { return state_->queue != nullptr; }
  // The stream's device; none before it is recorded.
  std::optional<Device> device() const;
  // Whether it has been reached; true if it was never recorded.
  bool query() const;
  void synchronize() const;
  // Milliseconds from this event to `end`. Throws ValueError if one was made without timing or never recorded, RuntimeError if one has
  // not been reached.
  double elapsed_time(const Event& end) const;

 private:
  friend class Stream;
  struct State {
    bool timing = false;
    runtime::Queue* queue = nullptr;
    uint64_t seq = 0;
    std::shared_ptr<const runtime::TimeStamp> stamp;
  };
  std::shared_ptr<State> state_;
};

}  // namespace naru
