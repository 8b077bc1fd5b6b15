// Graphs: a piece of work is recorded once and replayed as often as one likes, without the cost of working out again what to do. Of every
// device: cpu, virtual ones, GPUs (where the driver's own graphs are used, if it has them).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "naru/device.h"
#include "naru/standard.h"
#include "naru/stream.h"

namespace naru {

// Graph g;
// g.capture([&] { loss = mse_loss(model(x), y); ... });   // recorded, not done: values are undefined until the first replay
// x.copy_(batch);                                         // replays read what the tensors hold by then
// g.replay();
//
// All that the calling thread gives the device is recorded, whatever the stream; other devices work as always. The same memory is used in
// each replay: it is the graph's until reset() or its end, that of temporaries included. Shapes, numbers and the path through the program
// are those of the capture. Random numbers are new ones in each replay, those that the program itself would have drawn. Where the host would wait or read
// values in a capture it throws RuntimeError, and the capture is void.
class Graph {
 public:
  Graph() noexcept;
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  // Ends a capture under way; its work is forgotten.
  ~Graph();

  // From here to end() what the calling thread gives the device (default: the best device) is recorded. Throws RuntimeError where the
  // graph holds work already, or the thread records.
  void begin(std::optional<Device> device = {});
  // Throws RuntimeError if anything was refused since begin(); the graph is empty then. On the thread of begin().
  void end();
  // Ends a capture without keeping anything; nothing to do where there is none.
  void abandon() noexcept;
  // begin(), body(), end(); an exception of the body ends the capture.
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

  // Does the work behind everything the device's current stream has been given; within a capture, adds it to that. Throws RuntimeError
  // where there is none; on cpu the errors of the work as well, elsewhere whoever waits hears of them.
  void replay();
  // Gives the memory back, behind the last replay.
  void reset();

  bool captured() const noexcept;
  // How many instructions were recorded; 0 where none are.
  size_t size() const noexcept;
  // What was recorded, an instruction each: "add, tanh", "matmul" ...
  std::vector<std::string> operators() const;
  // Where it runs; none before begin().
  std::optional<Device> device() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Whether the calling thread records the device's work.
bool is_capturing(Device device) noexcept;
// Whether the calling thread records what the stream is given.
inline bool is_capturing(const Stream& stream) noexcept { return is_capturing(stream.device()); }

}  // namespace naru
