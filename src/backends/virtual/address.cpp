#include "backends/virtual/address.h"

#include "ir/addresses.h"
#include "naru/error.h"

namespace naru::backends {
namespace {

constexpr uintptr_t kTagMask = uintptr_t{127} << kTagShift;

void* host_address(void* p, const char* what, Device d) {
  if (!p) return nullptr;
  if ((reinterpret_cast<uintptr_t>(p) & kTagMask) != tag_of(d))
    throw RuntimeError("virtual device {}: the {} is not in its memory (address {})", d.str(), what, p);
  return to_host(p, d);
}

}  // namespace

void translate(ir::Instruction& instruction, Device device) {
  if (auto* c = std::get_if<ir::CopyBytes>(&instruction)) {
    if (!c->target_device.is_cpu()) c->target = host_address(c->target, "target of a copy", c->target_device);
    if (!c->source_device.is_cpu()) c->source = host_address(const_cast<void*>(c->source), "source of a copy", c->source_device);
    return;
  }
  ir::each_address(instruction, [&](void*& p, const char* what) { p = host_address(p, what, device); });
}

}  // namespace naru::backends
