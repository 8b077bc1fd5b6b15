// Graphs: record work once and replay it many times without the cost of scheduling it again. Supported for every device: cpu, virtual
// devices, and GPUs (with the driver's own graphs if it has them).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "naru/device.h"
#include "naru/device/stream.h"
#include "naru/standard.h"

namespace naru {

// Graph g;
// g.capture([&] { loss = mse_loss(model(x), y); ... });   // recorded, not run: values are undefined until the first replay
// x.copy_(batch);                                         // a replay reads the tensors' current contents
// g.replay();
//
// A capture records all work that the calling thread submits to the device, on any stream; other devices work as usual. Replays use the
// same memory, including that of temporaries; the graph owns it until reset() or destruction. Shapes, scalars and control flow are those of
// the capture. Each replay draws new random numbers, the same that the program itself would have drawn. If the host would wait for the
// device or read values during a capture, it throws RuntimeError and the capture is invalid.
class Graph {
 public:
  Graph() noexcept;
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  // Ends a capture in progress and discards it.
  ~Graph();

  // Records what the calling thread submits to the device (default: the best device) until end(). Throws RuntimeError if the graph already
  // contains work or the thread is already recording.
  void begin(std::optional<Device> device = {});
  // Must be called on the thread of begin(). Throws RuntimeError if an operation was rejected since begin(); the graph is then empty.
  void end();
  // Ends a capture and discards it; does nothing if there is none.
  void abandon() noexcept;
  // begin(), body(), end(). An exception in the body ends the capture.
  template <class F>
  void capture(F&& body, std::optional<Device> device = {}) {
    begin(device);
    try {
      body();
    } catch (...) {
      abandon();
      throw;
    }
    end();
  }

  // Enqueues the work on the device's current stream; inside a capture, adds it to that. Throws RuntimeError if the graph is empty. Errors
  // of the work are thrown here on cpu; on other devices, by the next call that waits.
  void replay();
  // Frees the memory after the last replay has finished.
  void reset();

  bool captured() const noexcept;
  // The number of recorded instructions; 0 if there is no recording.
  size_t size() const noexcept;
  // The recorded instructions, by their operators: "add, tanh", "matmul" ...
  std::vector<std::string> operators() const;
  // The device it runs on; empty before begin().
  std::optional<Device> device() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// True if the calling thread is recording the device's work.
bool is_capturing(Device device) noexcept;
// True if the calling thread is recording the stream's work.
inline bool is_capturing(const Stream& stream) noexcept { return is_capturing(stream.device()); }

}  // namespace naru
