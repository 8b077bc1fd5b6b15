// The names of kernels, as profilers and memory checkers show them.
#pragma once

#include <string>
#include <string_view>

#include "render/c/launch.h"

namespace naru::render::c {

// "naru_map_add_mul_f32": the kind, the first operators and the result's type, if known. An identifier of at most 63 letters.
std::string kernel_name(const Key& key);
// The name of the kernel in a complete CUDA C++ source; "" if there is none.
std::string_view kernel_of_text(std::string_view text);
// The source with its kernel renamed to `name`; renderers call it k.
std::string with_name(std::string text, std::string_view name);

}  // namespace naru::render::c
