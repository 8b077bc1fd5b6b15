// What kernels are called where profilers and memory checkers tell them by their names.
#pragma once

#include <string>
#include <string_view>

#include "render/c/launch.h"

namespace naru::render::c {

// "naru_map_add_mul_f32": the kind, the first operators and the type of the result, as far as they are known. An identifier of at most 63 letters.
std::string kernel_name(const Key& key);
// The name of the kernel in a whole text of CUDA C++; "" where there is none.
std::string_view kernel_of_text(std::string_view text);
// The text with its kernel called `name`, where renderers have called it k.
std::string with_name(std::string text, std::string_view name);

}  // namespace naru::render::c
