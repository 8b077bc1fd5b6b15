// Fallback of unsupported operators to cpu; python/naru/fallback.py has the public API.
#include <nanobind/stl/string.h>

#include "ir/inspect.h"
#include "naru/device/fallback.h"
#include "object/tensor_object.h"
#include "runtime/device/registry.h"

namespace naru::py {

void define_fallback(nb::module_& m) {
  m.def("_fallback_policy", [](const std::string& kind) { return static_cast<int>(fallback_policy(parse_device_type(kind))); });
  // -1: use the environment.
  m.def("_set_fallback_policy", [](int policy) {
    const auto before = set_fallback_policy(policy < 0 ? std::nullopt : std::optional(static_cast<FallbackPolicy>(policy)));
    return before ? static_cast<int>(*before) : -1;
  });
  m.def("_fallback_report", [] {
    nb::list list;
    for (const FallbackUse& u : fallback_report())
      list.append(nb::make_tuple(u.op, std::string(name_of(u.kind)), u.calls, u.bytes, u.milliseconds));
    return list;
  });
  // (name, family, whether the device supports it) for every operator that instructions have, and for the dtypes.
  m.def("_coverage", [](const std::string& text) {
    const Device device = runtime::resolve(Device(text));
    const Capabilities can = runtime::backend_of(device.type).capabilities(device);
    nb::list list;
    for (const ir::OperatorName& o : ir::operator_names()) list.append(nb::make_tuple(o.name, o.family, can.supports(o.name)));
    for (const DType t : {DType::F64, DType::F16, DType::BF16})
      list.append(nb::make_tuple(std::string(name_of(t)), "type", can.supports(t)));
    return list;
  });
  m.def("_reset_fallback_report", [] { reset_fallback_report(); });
}

}  // namespace naru::py
