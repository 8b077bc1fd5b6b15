#include "naru/device.h"

#include <charconv>

#include "naru/error.h"

namespace naru {
namespace {
constexpr std::string_view kNames[kDeviceTypes] = {"cpu", "cuda", "rocm", "mps", "xpu"};
}

std::string_view name_of(DeviceType type) noexcept { return kNames[static_cast<int>(type)]; }

DeviceType parse_device_type(std::string_view name) {
  for (int i = 0; i < kDeviceTypes; ++i)
    if (kNames[i] == name) return static_cast<DeviceType>(i);
  throw RuntimeError("Expected one of cpu, cuda, rocm, mps, xpu device type at start of device string: {}", name);
}

Device Device::parse(std::string_view text) {
  const size_t colon = text.find(':');
  if (text.empty()) throw RuntimeError("Device string must not be empty; write 'cpu', 'cuda', 'cuda:1', 'mps' or 'xpu'");
  const DeviceType type = parse_device_type(text.substr(0, colon));
  if (colon == std::string_view::npos) return Device(type);
  const std::string_view digits = text.substr(colon + 1);
  int index = -1;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  const bool leading_zero = digits.size() > 1 && digits[0] == '0';
  if (code != std::errc() || end != digits.data() + digits.size() || index < 0 || index > 127 || leading_zero)
    throw RuntimeError("Invalid device string: '{}'; wanted a kind and an index, such as 'cuda:1'", text);
  return Device(type, index);
}

std::string Device::str() const {
  return has_index() ? fmt::format("{}:{}", name_of(type), static_cast<int>(index)) : std::string(name_of(type));
}

std::string Device::repr() const {
  return has_index() ? fmt::format("device(type='{}', index={})", name_of(type), static_cast<int>(index))
                     : fmt::format("device(type='{}')", name_of(type));
}

}  // namespace naru
