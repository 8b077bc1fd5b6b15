// Dialect: the words of a language of devices (OpenCL C, CUDA C++). Kernels are written in one small C; a dialect
// is the text in front of it, which says what its few words mean there:
//   i8 ... i64, u8 ... u64, f32, f64          types
//   f32x4 ..., MAKE4(f32, a, b, c, d)         four of them, with .x .y .z .w
//   KERNEL(n) name(...)                       a kernel that runs in groups of n items
//   GLOBAL, LOCAL, FUNCTION                   memory of the device, memory of a group, a function
//   GROUP, ITEM, BARRIER                      number of the group, of the item in it; all items of the group meet
//   as_f32, as_u32, as_i32, as_f64, ...       the same bits as another type
//   atomic_least(u32 GLOBAL*, u32), local_count(u32 LOCAL*)   the less of both; one more
//   fma_f32, sqrt_f32, fabs_f32, floor_f32, ceil_f32, trunc_f32, rint_f32, and the same for f64
//   PARALLEL                                  before a loop whose rounds do not depend on each other
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/capabilities.h"

namespace naru::render::c {

// One table a language: opencl_c.cpp, cuda_cpp.cpp, plain_c.cpp.
struct Dialect {
  const char* name;
  const char* prelude;
  const char* doubles;       // what the prelude needs besides on devices that have float64
  const char* functions[2];  // fma_f32 ...: by Target::loops
  // How the words of users' kernels (docs/kernels.md) are spelled.
  struct User {
    const char* prelude;                    // in front of the source
    const char* entry;                      // of a kernel in groups of {} items: "kernel __attribute__((...)) void"
    const char* any_entry;                  // in groups of any size
    const char *global, *shared, *barrier;  // what these words mean there, shared for an array
    const char *shared_pointer, *private_pointer;
    const char *constant, *constant_pointer;
    const char *group, *item;  // numbers of the group and of the item in it
  } user;
};

const Dialect& opencl() noexcept;
const Dialect& cuda() noexcept;
// For the machine's compiler. The renderer's own words stand behind those of users' kernels there.
const Dialect& plain_c() noexcept;

// What follows the prelude of users' kernels: the place of an item in the grid, and the words that ask for it. Needs naru_i.
extern const char* const kPlace;

// What a kernel's text depends on besides the instruction.
struct Target {
  const Dialect* dialect = nullptr;
  // Items loop over many neighbouring elements (processors that vectorise loops); else neighbouring items take neighbouring elements.
  bool loops = false;
  int lanes = 16;            // of a vector of 32-bit numbers, where loops is set: 8 or 16
  int group = 256;           // items of a group, where a kernel leaves it open; a power of two, at least 64
  int units = 1;             // groups that run at a time
  int64_t local = 32768;     // bytes of memory that a group may have
  size_t parameters = 1024;  // bytes that a kernel's parameters may take together
  Arithmetic arithmetic;
};

// The text of a whole source: the prelude, the functions of naru's that `body` mentions, `body`.
std::string complete(const Target& target, std::string_view body);

}  // namespace naru::render::c
