// Integer division in user kernels on host memory and on processors. C leaves division by zero and MIN / -1 undefined, and processors trap.
// Here they are defined as in naru's operators (ir/expr.h): x / 0 = 0, x % 0 = 0, MIN / -1 = MIN, MIN % -1 = 0.
#pragma once

#include <string>

namespace naru::render::c {

// True if a source has a division that must be rewritten.
bool has_division(const std::string& text);
// Replaces divisions in plain C by calls. Macros of the user that contain divisions must already be expanded. Only rewrites between the
// line mark of the user's source ("kernel") and the mark of what follows ("naru"). Line numbers stay.
std::string with_defined_division(const std::string& text);
// The same for OpenCL C, to the end of the source.
std::string with_defined_division_in_opencl(const std::string& text);

}  // namespace naru::render::c
