// LibraryCall: held while another library's code runs. When the process ends, such libraries free their tables and the machine code that they
// have made, while streams' and daemon threads may still compute with them.
#pragma once

#include <atomic>

namespace naru::host {

// In a process that is ending, no call begins (its thread rests until the process is gone), and exit waits for those under way before the library's
// own destructors run. The thread that ends the process may still call, and may be in a call.
class LibraryCall {
 public:
  // `known`: of the function that is called, false at first. What it makes at its first call is destroyed before what was registered earlier, so
  // exit's handler is registered behind that call.
  explicit LibraryCall(std::atomic<bool>& known) noexcept;
  LibraryCall(const LibraryCall&) = delete;
  ~LibraryCall();

 private:
  std::atomic<bool>& known_;
};

}  // namespace naru::host
