// Text for module descriptions, in Python's format.
#pragma once

#include <string>
#include <vector>

#include "naru/dims.h"

namespace naru::nn {

// 1.0, 1e-05, True.
std::string number_text(double v);
inline const char* bool_text(bool v) { return v ? "True" : "False"; }
// (3, 3), (3,); one_or_tuple gives a single number without parentheses.
std::string tuple_text(const Dims& d);
std::string one_or_tuple(const Dims& d);
// "a", "b"
std::string quoted_list(const std::vector<std::string>& keys);

}  // namespace naru::nn
