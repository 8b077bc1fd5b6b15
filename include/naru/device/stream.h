// Streams and events. A stream is an in-order queue of a device's work; the work of different streams may overlap. Each storage tracks the
// streams that use it, so a stream waits automatically for data that another stream produces. The explicit waits here serve additional
// ordering and timing.
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

// A handle; copies refer to the same stream. Number 0 is the device's default stream. cpu has one stream, which executes immediately.
class Stream {
 public:
  // Returns one of the device's up to 32 non-default streams, in round-robin order (default device: the best device). priority: 0, or
  // negative for higher priority if the device supports it. Throws DeviceUnavailableError.
  explicit Stream(std::optional<Device> device = {}, int priority = 0);
  static Stream default_stream(Device device);
  // The calling thread's current stream of the device.
  static Stream current(Device device);

  Device device() const noexcept { return device_; }
  int number() const noexcept { return number_; }
  int priority() const;
  // Work submitted later waits for the event, or for all work submitted to `other` so far.
  void wait(const Event& event) const;
  void wait(const Stream& other) const;
  Event record_event() const;
  // True if all work is done. Submits deferred work first.
  bool query() const;
  // Waits for all work, and throws its errors.
  void synchronize() const;
  friend bool operator==(const Stream&, const Stream&) = default;

 private:
  friend class Event;
  enum class Number : int {};
  Stream(Device device, Number number) : device_(device), number_(static_cast<int>(number)) {}
  Device device_;
  int number_;
};

// Makes a stream the calling thread's current stream of its device.
void set_current_stream(const Stream& stream);
// Sets the current stream within a scope, and makes its device the current one of its kind.
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

// A position in a stream's work.
class Event {
 public:
  explicit Event(bool timing = false);
  // Records the position after all work submitted so far to the stream (default: the current stream of the best device). Recording again
  // moves the event.
  void record(const Stream& stream);
  void record();
  // Work submitted to the stream later waits for this event. Does nothing if the event was not recorded.
  void wait(const Stream& stream) const { stream.wait(*this); }
  bool recorded() const noexcept { return state_->queue != nullptr; }
  // The stream's device; empty if not recorded.
  std::optional<Device> device() const;
  // True if the event has been reached or was never recorded.
  bool query() const;
  void synchronize() const;
  // Milliseconds from this event to `end`. Throws ValueError if one was created without timing or never recorded, RuntimeError if one has
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
