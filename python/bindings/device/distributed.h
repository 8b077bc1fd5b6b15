// Bindings of stores and process groups (distributed.cpp).
#pragma once

#include "object/object.h"

namespace naru::py {

// Classes of errors between processes, each a RuntimeError of Python.
struct DistErrors {
  PyObject *dist, *backend, *network, *store;
};
DistErrors define_dist_errors(nb::module_& m);

void define_distributed(nb::module_& m);

}  // namespace naru::py
