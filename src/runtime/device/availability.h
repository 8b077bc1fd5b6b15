// Availability: whether devices of a kind can be used, and if not, why. Each state has one reason and one remedy; their texts are in the
// table in availability.cpp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace naru::runtime {

enum class DriverState : uint8_t {
  Works,
  NoLibrary,        // the driver's library can't be opened, or is not that library
  DriverTooOld,     // its version is below the minimum
  NoDeviceNode,     // no /dev/nvidia0, /dev/kfd ...
  Hidden,           // an environment variable hides all devices
  UnsupportedArch,  // no device is new enough
  InitError,        // the driver returned an error
  WrongNumbers,     // a kernel ran and its result was wrong
  OtherSystem,      // not available on this operating system
  NoBackend,        // no backend of this build serves this kind
};
constexpr int kDriverStates = 10;

// "works", "no library", "driver too old" ...
std::string_view name_of(DriverState state) noexcept;

struct Availability {
  bool available = false;
  std::string reason, remedy;
  DriverState state = DriverState::Works;
};

// Values for the placeholders {driver}, {library} ... in the table's texts.
using Facts = std::initializer_list<std::pair<const char*, std::string_view>>;
// The reason and the remedy of a state, with `facts` filled in. Throws a RuntimeError that names a missing fact.
Availability unavailable(DriverState state, Facts facts);

// Names of the placeholders in a state's texts: "driver install library detail".
std::string facts_of(DriverState state);

}  // namespace naru::runtime
