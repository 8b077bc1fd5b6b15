#include "backends/virtual/address.h"

#include "ir/inspect.h"
#include "naru/error.h"
#include "runtime/device/registry.h"

namespace naru::backends {
namespace {

void* host_address(void* p, const char* what, Device d) {
  if (is_shared(p) && runtime::virtual_options(d.type).unified) return p;
  if ((reinterpret_cast<uintptr_t>(p) & kTagMask) != tag_of(d))
    throw RuntimeError("virtual device {}: the {} is not in its memory (address {})", d.str(), what, p);
  return to_host(p, d);
}

}  // namespace

void translate(ir::Instruction& instruction, Device device) {
  ir::each_operand(instruction, [&](void*& p, const ir::OperandUse& use) {
    const Device where = use.device ? *use.device : device;
    if (!where.is_cpu()) p = host_address(p, use.what, where);
  });
}

}  // namespace naru::backends
