// The line of the user's program that is running: the first frame outside this package.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>

namespace naru::py {

uint32_t program_line() noexcept;               // for naru::current_line
uint32_t line_of(PyFrameObject* frame);         // the place where a frame stands; 0 for those of this package
std::string program_line_text(uint32_t place);  // for naru::line_text: "train.py:12"
// Files in this folder are not the user's.
void set_package_folder(std::string folder);

}  // namespace naru::py
