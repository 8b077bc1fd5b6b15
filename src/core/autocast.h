// Autocast state: whether a block of autocast is open on this thread, and the dtype that it casts to (see naru/optim/amp.h).
#pragma once

#include <array>
#include <atomic>

#include "naru/device.h"
#include "naru/dtype.h"

namespace naru::autocast {

struct State {
  std::array<bool, kDeviceTypes> on{};  // by kind of device
  std::array<DType, kDeviceTypes> dtype;
  bool cache = true;  // whether the outermost block caches the casts of weights
  int nesting = 0;
  State() {
    dtype.fill(DType::F16);
    dtype[0] = DType::BF16;
  }
};
State& state() noexcept;  // of this thread

// Number of open blocks on all threads. It is 0 almost always, which skips all further checks.
extern std::atomic<int> blocks;
inline bool anywhere() noexcept { return blocks.load(std::memory_order_relaxed) != 0; }
void set_on(DeviceType kind, bool on) noexcept;

// Disables casts on this thread while in scope.
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
