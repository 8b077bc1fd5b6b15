// Mixed precision: while a block of torch.autocast is open on a thread, calls from Python cast their tensor arguments first. (Functions of
// the core do so themselves; here are those that only the bindings compose.)
#pragma once

#include <vector>

#include "object.h"
#include "ops/autocast.h"

namespace naru::py {

// Replaces the tensors among `slots` (lists and tuples of them, too) by cast ones as the rules say, which `owned` then holds. See
// autocast::decide.
std::optional<autocast::Decision> autocast_arguments(autocast::Rules rules, const char* function, PyObject** slots, size_t count,
                                                     bool keeps_dtype, std::vector<nb::object>& owned);

void define_autocast();

}  // namespace naru::py
