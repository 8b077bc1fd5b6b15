// Addresses of virtual devices: host addresses with a tag in bits that are never set in real addresses, so a host access faults. The tag
// identifies the device.
#pragma once

#include <cstdint>

#include "ir/instruction.h"
#include "naru/device.h"

namespace naru::backends {

// The tag has 7 bits. Its top bit is always set, so the address is not canonical.
#if defined(__aarch64__)
constexpr int kTagShift = 48;  // aarch64 ignores the top byte
#else
constexpr int kTagShift = 56;  // uses bits up to 62: user addresses have bit 63 clear
#endif
constexpr int kVirtualDevices = 64;

// Computed from kind and index. Kinds share the numbers, so two devices may have the same tag.
constexpr uintptr_t tag_of(Device d) noexcept {
  const auto number = (static_cast<uintptr_t>(d.type) * 16 + static_cast<uintptr_t>(d.index)) % kVirtualDevices;
  return (uintptr_t{64} | number) << kTagShift;
}
inline void* to_device(void* host, Device d) noexcept { return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(host) + tag_of(d)); }
inline void* to_host(void* address, Device d) noexcept { return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) - tag_of(d)); }

constexpr uintptr_t kTagMask = uintptr_t{127} << kTagShift;
// True for an address that the host can use: memory of devices that share the host's has no tag.
inline bool is_shared(const void* address) noexcept { return (reinterpret_cast<uintptr_t>(address) & kTagMask) == 0; }

// Converts every address of an instruction for `device` to a host address. Throws RuntimeError that names the operand if an address belongs
// to another device or to the host. For copies between devices, each address is converted with its own device.
void translate(ir::Instruction& instruction, Device device);

}  // namespace naru::backends
