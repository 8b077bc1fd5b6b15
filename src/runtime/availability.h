// Availability: whether devices of a kind can be used; if not, which of a fixed set of states they are in. Each state
// has its one reason and its one remedy, whose texts are written in one table (availability.cpp).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace naru::runtime {

enum class DriverState : uint8_t {
  Works,
  NoLibrary,        // the driver's library can't be opened, or is not one
  DriverTooOld,     // it supports less than is needed
  NoDeviceNode,     // no /dev/nvidia0, /dev/kfd ...
  Hidden,           // a variable of the environment hides all devices
  UnsupportedArch,  // no device is new enough
  InitError,        // the driver answered with an error
  WrongNumbers,     // a kernel ran, and its result was wrong
  NoKernels,        // all is well, but this build can't compute there
  OtherSystem,      // not on this operating system
  NoBackend,        // nothing in this build knows the kind
};
constexpr int kDriverStates = 11;

// "works", "no library", "driver too old" ...
std::string_view name_of(DriverState state) noexcept;

struct Availability {
  bool available = false;
  std::string reason, remedy;
  DriverState state = DriverState::Works;
};

// What stands for {driver}, {library} ... in the table's texts.
using Facts = std::initializer_list<std::pair<const char*, std::string_view>>;
// The reason and the remedy of a state, filled with facts. Throws RuntimeError that names a fact that was left out.
Availability unavailable(DriverState state, Facts facts);

// The facts that a state's texts ask for: "driver install library detail".
std::string facts_of(DriverState state);

}  // namespace naru::runtime
