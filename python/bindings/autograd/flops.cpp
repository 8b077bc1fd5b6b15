// FLOP counters; python/naru/utils/flop_counter.py has the public API.
#include "naru/flops.h"

#include "object/tensor_object.h"

namespace naru::py {

void define_flops(nb::module_& m) {
  nb::class_<FlopCounter>(m, "_FlopCounter", "Counts operations of this thread from its making or start() to stop().")
      .def(nb::init<>())
      .def("start", &FlopCounter::start)
      .def("stop", &FlopCounter::stop)
      .def_prop_ro("total", &FlopCounter::total)
      .def_prop_ro("by_operator", [](const FlopCounter& c) {
        nb::dict all;
        for (const auto& [op, operations] : c.by_operator()) all[op.c_str()] = operations;
        return all;
      });
}

}  // namespace naru::py
