// Functions of user kernels other than single-type math: those that a source uses are defined before it.
#pragma once

#include <string>
#include <string_view>

#include "kernels/source/kernel_source.h"
#include "render/c/dialect.h"

namespace naru::render::c {

// Atomic operations, and CUDA functions for kernels that were written in CUDA C++.
std::string user_words(const ir::KernelSource& source, const Target& target);

// What nvcc takes from the host's headers and NVRTC lacks: limits, NAN, std:: names, and math with operands of two types.
std::string_view native_words();

// Defines naru_any_NAME(x, ...): calls the float function for float arguments, else the double one, as C++ does.
std::string generic_function(const std::string& name, int arguments, const std::string& of_float, const std::string& of_double,
                             bool doubles);

}  // namespace naru::render::c
