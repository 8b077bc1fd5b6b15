#include "naru/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "core/device_kinds.h"
#include "naru/error.h"

namespace naru {

std::string_view name_of(DeviceType type) noexcept { return kind_of(type).name; }

std::string names_of(std::span<const DeviceKind> kinds) {
  std::string text;
  for (const DeviceKind& k : kinds) text.append(text.empty() ? "" : ", ").append(k.name);
  return text;
}

DeviceType parse_device_type(std::string_view name) {
  for (const DeviceKind& k : device_kinds())
    if (k.name == name) return k.type;
  const auto in_name = [](char c) { return c == '_' || std::isalpha(static_cast<unsigned char>(c)); };
  if (!std::all_of(name.begin(), name.end(), in_name)) throw RuntimeError("Invalid device string: '{}'", name);
  throw RuntimeError("Expected one of {} device type at start of device string: {}", names_of(device_kinds()), name);
}

Device Device::parse(std::string_view text) {
  const size_t colon = text.find(':');
  if (text.empty())
    throw RuntimeError("Device string must not be empty; write a kind ({}), or a kind and an index, as in 'cuda:1'",
                       names_of(device_kinds()));
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
