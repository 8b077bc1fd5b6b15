// Division in users' kernels on host memory and on processors: C leaves integer division by zero, and of the least number by -1, undefined, and processors
// trap. Here they are what they are in naru's operators (ir/expr.h): x / 0 = 0, x % 0 = 0, MIN / -1 = MIN, MIN % -1 = 0.
#pragma once

#include <string>

namespace naru::render::c {

// Whether a source has a division that would have to be spelled anew.
bool has_division(const std::string& text);
// The text, plain C without macros of the user's that hold a division, with the divisions between the lines that start the user's source
// ("kernel") and what follows it ("naru") spelled as calls. Lines stay where they are.
std::string with_defined_division(const std::string& text);
// Likewise of a source in OpenCL C, to its end.
std::string with_defined_division_in_opencl(const std::string& text);

}  // namespace naru::render::c
