#include <string>

#include "device/distributed.h"

namespace naru::py {

DistErrors define_dist_errors(nb::module_& m) {
  const auto define = [&](const char* name, const char* doc, PyObject* base) {
    PyObject* const error = check(PyErr_NewExceptionWithDoc((std::string("naru.distributed.") + name).c_str(), doc, base, nullptr));
    m.attr((std::string("_") + name).c_str()) = nb::handle(error);
    return error;
  };
  PyObject* const dist =
      define("DistError", "What goes wrong between processes.\n\n>>> issubclass(naru.distributed.DistError, RuntimeError)\nTrue",
             PyExc_RuntimeError);
  return {.dist = dist,
          .backend = define("DistBackendError",
                            "Ranks that do not call the same, are gone, or do not come in time.\n\n"
                            ">>> issubclass(naru.distributed.DistBackendError, naru.distributed.DistError)\nTrue",
                            dist),
          .network = define(
              "DistNetworkError",
              "A connection that fails.\n\n>>> issubclass(naru.distributed.DistNetworkError, naru.distributed.DistError)\nTrue", dist),
          .store = define("DistStoreError",
                          "Keys of a store that do not come in time.\n\n"
                          ">>> issubclass(naru.distributed.DistStoreError, naru.distributed.DistError)\nTrue",
                          dist)};
}

}  // namespace naru::py
