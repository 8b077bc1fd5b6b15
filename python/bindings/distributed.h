// Groups of processes; distributed.cpp.
#pragma once

#include "object.h"

namespace naru::py {

void define_distributed(nb::module_& m);

}  // namespace naru::py
