// The table of device kinds (naru/device_kinds.inc), as data.
#pragma once

#include <span>
#include <string>

#include "naru/device.h"

namespace naru {

struct DeviceKind {
  DeviceType type;
  const char *name, *label, *python, *visible, *fallback, *out_of_memory, *no_dtype;
};

inline constexpr DeviceKind kDeviceKinds[kDeviceTypes] = {
#define NARU_DEVICE_KIND(type, ...) {DeviceType::type, __VA_ARGS__},
#include "naru/device_kinds.inc"
};

// device_kinds: all. computing_kinds: all except meta. accelerator_kinds: those without the cpu, in order of preference.
constexpr std::span<const DeviceKind> device_kinds() noexcept { return kDeviceKinds; }
constexpr std::span<const DeviceKind> computing_kinds() noexcept { return device_kinds().first(kDeviceTypes - 1); }
constexpr std::span<const DeviceKind> accelerator_kinds() noexcept { return computing_kinds().subspan(1); }
static_assert(kDeviceKinds[kDeviceTypes - 1].type == DeviceType::Meta);

constexpr const DeviceKind& kind_of(DeviceType type) noexcept { return kDeviceKinds[static_cast<size_t>(type)]; }

// "cuda, rocm, xpu".
std::string names_of(std::span<const DeviceKind> kinds);

}  // namespace naru
