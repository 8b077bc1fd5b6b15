// Functions of users' kernels besides mathematics of one type: what a source uses of them is defined in front of it.
#pragma once

#include <string>
#include <string_view>

#include "ir/kernel_source.h"
#include "render/c/dialect.h"

namespace naru::render::c {

// Atomic operations, and what kernels that were written in CUDA C++ use of its own.
std::string user_words(const ir::KernelSource& source, const Target& target);

// What nvcc finds in the host's headers and NVRTC, which has none, does not: limits, NAN, std:: and mathematics of operands of two types.
std::string_view native_words();

// naru_any_NAME(x, ...): the float function where the arguments are float, else that of double; as C++ chooses.
std::string generic_function(const std::string& name, int arguments, const std::string& of_float, const std::string& of_double,
                             bool doubles);

}  // namespace naru::render::c
