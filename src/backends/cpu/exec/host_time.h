// HostTime: a time stamp of the host's clock, for streams that run on the host.
#pragma once

#include <chrono>

#include "runtime/device/backend.h"

namespace naru::cpu {

class HostTime final : public runtime::TimeStamp {
 public:
  using Clock = std::chrono::steady_clock;
  HostTime() : reached_(std::make_shared<Clock::time_point>(Clock::now())) {}
  explicit HostTime(std::shared_ptr<Clock::time_point> reached) : reached_(std::move(reached)) {}
  double milliseconds_since(const TimeStamp& earlier) const override {
    return std::chrono::duration<double, std::milli>(*reached_ - *static_cast<const HostTime&>(earlier).reached_).count();
  }

 private:
  std::shared_ptr<Clock::time_point> reached_;
};

}  // namespace naru::cpu
