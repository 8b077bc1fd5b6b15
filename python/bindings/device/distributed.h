// Bindings of stores and process groups (distributed.cpp).
#pragma once

#include "object/object.h"

namespace naru::py {

void define_distributed(nb::module_& m);

}  // namespace naru::py
