// Addresses of virtual devices: host addresses with a tag in bits that no real address has set, so that the host faults
// at once if it accesses one. The tag names the device.
#pragma once

#include <cstdint>

#include "ir/instruction.h"
#include "naru/device.h"

namespace naru::backends {

// The tag has 7 bits: the top one is always set, so that the address is not canonical.
#if defined(__aarch64__)
constexpr int kTagShift = 48;  // the top byte is ignored there
#else
constexpr int kTagShift = 56;  // up to bit 62: user addresses have bit 63 clear
#endif
constexpr int kVirtualDevices = 64;

// Of kind and index; kinds share the numbers, so this tells devices apart well, not perfectly.
constexpr uintptr_t tag_of(Device d) noexcept {
  const auto number = (static_cast<uintptr_t>(d.type) * 16 + static_cast<uintptr_t>(d.index)) % kVirtualDevices;
  return (uintptr_t{64} | number) << kTagShift;
}
inline void* to_device(void* host, Device d) noexcept { return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(host) + tag_of(d)); }
inline void* to_host(void* address, Device d) noexcept { return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) - tag_of(d)); }

// Makes every address of an instruction for `device` a host address. Throws RuntimeError that names the operand for an
// address of another device or of the host. Copies between devices are translated by their own devices.
void translate(ir::Instruction& instruction, Device device);

}  // namespace naru::backends
