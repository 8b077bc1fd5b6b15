// What the library learns of a Python program (core/language.h). The current line is that of the first frame outside this package.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>

namespace naru::py {

uint32_t program_line() noexcept;
uint32_t line_of(PyFrameObject* frame);         // source location of a frame; 0 for frames of this package
std::string program_line_text(uint32_t place);  // "train.py:12"
// The number of the current call stack, 0 unless a memory history is recorded: twice its index, plus one within backward.
uint32_t program_calls() noexcept;
// The call stack as traceback.format_stack() has it; empty if that fails.
std::string program_stack();
// Files in this folder do not count as the user's program.
void set_package_folder(std::string folder);

}  // namespace naru::py
