// What the files of the OpenCL library for tests share: the machine's own functions, and the call that is to fail.
#pragma once

#include <cstddef>
#include <cstdint>

#define EXPORT extern "C" __attribute__((visibility("default")))

void* real_function(const char* name);
// Counts a call; what it is to fail with, 0: it is not.
int32_t failure_of(const char* name);
