// Device: identifies where a tensor's memory is, by kind and index. A small value that owns nothing.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "naru/standard.h"

namespace naru {

// The rows of device_kinds.inc, in their order.
enum class DeviceType : uint8_t {
#define NARU_DEVICE_KIND(type, ...) type,
#include "naru/device_kinds.inc"
};
constexpr int kDeviceTypes = 0
#define NARU_DEVICE_KIND(...) +1
#include "naru/device_kinds.inc"
    ;

// "cpu", "cuda" ...
std::string_view name_of(DeviceType type) noexcept;
// Parses a kind's name. Throws RuntimeError, listing the kinds, for any other word.
DeviceType parse_device_type(std::string_view name);

// A device's kind as a member, which libtorch's programs call: d.type and d.type() are the same.
class DeviceTypeMember {
 public:
  constexpr DeviceTypeMember(DeviceType t) noexcept : type_(t) {}
  constexpr operator DeviceType() const noexcept { return type_; }
  constexpr DeviceType operator()() const noexcept { return type_; }
  template <std::integral T>
  constexpr explicit operator T() const noexcept {
    return static_cast<T>(type_);
  }
  friend constexpr bool operator==(DeviceTypeMember, DeviceTypeMember) = default;
  friend constexpr bool operator==(DeviceTypeMember a, DeviceType b) noexcept { return a.type_ == b; }

 private:
  DeviceType type_;
};

// A kind of device and an index. Index -1 means "the current device of that kind", as in torch.device("cuda"). A tensor's device always has
// an index, except cpu, which prints without one. There is one meta device; its index 0 is not printed.
struct Device {
  DeviceTypeMember type = DeviceType::Cpu;
  int8_t index = -1;

  constexpr Device() = default;
  constexpr explicit Device(DeviceType t, int i = -1) : type(t), index(static_cast<int8_t>(t == DeviceType::Meta ? 0 : i)) {}
  Device(const char* text) : Device(parse(text)) {}
  Device(const std::string& text) : Device(parse(text)) {}

  // Parses "cpu", "cuda", "cuda:1" ... Throws RuntimeError with the expected syntax for anything else.
  static Device parse(std::string_view text);

  bool is_cpu() const noexcept { return type == DeviceType::Cpu; }
  bool is_cuda() const noexcept { return type == DeviceType::Cuda; }
  // Its tensors have shapes, dtypes and strides, but no elements (naru/device_kinds.inc).
  bool is_meta() const noexcept { return type == DeviceType::Meta; }
  bool has_index() const noexcept { return index >= 0 && !is_meta(); }
  std::string str() const;   // "cuda:0"
  std::string repr() const;  // device(type='cuda', index=0)

  friend constexpr bool operator==(Device, Device) = default;
};

}  // namespace naru

template <>
struct std::hash<naru::Device> {
  size_t operator()(naru::Device d) const noexcept { return (static_cast<size_t>(d.type) << 8) ^ static_cast<uint8_t>(d.index); }
};
