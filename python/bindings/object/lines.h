// The current line of the user's program: the first Python frame outside this package.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>

namespace naru::py {

uint32_t program_line() noexcept;               // for naru::current_line
uint32_t line_of(PyFrameObject* frame);         // source location of a frame; 0 for frames of this package
std::string program_line_text(uint32_t place);  // for naru::line_text: "train.py:12"
// Files in this folder do not count as the user's program.
void set_package_folder(std::string folder);

}  // namespace naru::py
