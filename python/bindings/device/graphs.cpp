// Graphs; python/naru/graphs.py has PyTorch's API.
#include "naru/device/graph.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "object/tensor_object.h"
#include "runtime/queue/capture.h"

namespace naru::py {

void define_graphs(nb::module_& m) {
  nb::class_<Graph>(m, "_Graph", nb::is_weak_referenceable())
      .def(nb::init<>())
      .def("_begin",
           [](Graph& g, const std::string& device) {
             GilRelease scope;
             g.begin(Device::parse(device));
           })
      .def("_end",
           [](Graph& g) {
             GilRelease scope;
             g.end();
           })
      .def("_abandon",
           [](Graph& g) {
             GilRelease scope;
             g.abandon();
           })
      .def(
          "replay",
          [](Graph& g) {
            GilRelease scope;
            g.replay();
          },
          "Does the recorded work, behind all that the device's current stream has been given.")
      .def(
          "reset",
          [](Graph& g) {
            GilRelease scope;
            g.reset();
          },
          "Forgets the recorded work and gives its memory back; the graph can capture again.")
      .def("_operators", &Graph::operators)
      .def_prop_ro("_captured", &Graph::captured)
      .def_prop_ro("_device", [](const Graph& g) { return g.device() ? std::optional(g.device()->str()) : std::nullopt; });
  m.def("_is_capturing", [](const std::string& device) { return is_capturing(Device::parse(device)); });
  m.def("_capturing", [] { return runtime::Capture::current() != nullptr; });
}

}  // namespace naru::py
