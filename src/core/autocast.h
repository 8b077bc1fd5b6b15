// Whether a block of autocast is open on this thread, and what it casts to (see naru/amp.h).
#pragma once

#include <array>
#include <atomic>

#include "naru/device.h"
#include "naru/dtype.h"

namespace naru::autocast {

struct State {
  std::array<bool, kDeviceTypes> on{};  // by kind of device
  std::array<DType, kDeviceTypes> dtype;
  bool cache = true;  // whether a weight is cast once in the outermost block
  int nesting = 0;
  State() {
    dtype.fill(DType::F16);
    dtype[0] = DType::BF16;
  }
};
State& state() noexcept;  // of this thread

// How many blocks are open on all threads; 0 almost always, and then nobody looks further.
extern std::atomic<int> blocks;
inline bool anywhere() noexcept { return blocks.load(std::memory_order_relaxed) != 0; }
void set_on(DeviceType kind, bool on) noexcept;

// Inside, nothing is cast on this thread.
class Off {
 public:
  Off() noexcept : saved_(state().on) { state().on = {}; }
  Off(const Off&) = delete;
  Off& operator=(const Off&) = delete;
  ~Off() { state().on = saved_; }

 private:
  std::array<bool, kDeviceTypes> saved_;
};

}  // namespace naru::autocast
