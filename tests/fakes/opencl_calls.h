// Shared by the files of the wrapper of OpenCL: the machine's own functions, and the call that is to fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#define EXPORT extern "C" __attribute__((visibility("default")))

void* real_function(const char* name);
// Counts a call; returns the error code to fail with, or 0.
int32_t failure_of(const char* name);
// The options to build a program with, which are those given or some more (opencl_headers.cpp).
std::string options_of(void* program, const char* options);
