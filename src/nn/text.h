// Texts of modules, as Python writes them.
#pragma once

#include <string>
#include <vector>

#include "naru/dims.h"

namespace naru::nn {

// 1.0, 1e-05, True.
std::string number_text(double v);
inline const char* bool_text(bool v) { return v ? "True" : "False"; }
// (3, 3), (3,); a single number stands for itself.
std::string tuple_text(const Dims& d);
std::string one_or_tuple(const Dims& d);
// "a", "b"
std::string quoted_list(const std::vector<std::string>& keys);

}  // namespace naru::nn
