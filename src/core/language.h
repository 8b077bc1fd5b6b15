// Spelling of API names in messages: C++, or Python if the Python module is loaded.
#pragma once

#include <string>
#include <string_view>

#include "naru/device.h"

namespace naru {

// The Python module sets it before anything is computed.
extern bool program_in_python;

inline const char* spelled(const char* cpp, const char* python) { return program_in_python ? python : cpp; }
// other.to(Device("cuda:0")), other.to('cuda:0')
std::string spelled_move(std::string_view tensor, Device to);

}  // namespace naru
