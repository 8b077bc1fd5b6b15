// Dialect: what distinguishes the languages of kernels (OpenCL C, CUDA C++, HIP C++, Metal's language, plain C). Kernels are written in one small C; a
// dialect is a prelude that defines its words:
//   i8 ... i64, u8 ... u64, f32, f64          types
//   f32x4 ..., MAKE4(f32, a, b, c, d)         vectors of four, with .x .y .z .w
//   KERNEL(n) name(...)                       a kernel that runs in groups of n items
//   GLOBAL, LOCAL, FUNCTION                   device memory, memory of a group, a function
//   GROUP, ITEM, BARRIER                      index of the group, of the item in the group; barrier of a group's items
//   as_f32, as_u32, as_i32, as_f64, ...       bit casts
//   atomic_least(u32 GLOBAL*, u32), local_count(u32 LOCAL*)   atomic minimum; atomic increment
//   fma_f32, sqrt_f32, fabs_f32, floor_f32, ceil_f32, trunc_f32, rint_f32, and the same for f64
//   PARALLEL                                  before a loop whose iterations are independent
//   UNROLL                                    before a loop with a constant number of iterations
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/capabilities.h"

namespace naru::render::c {

// One table per language: opencl_c.cpp, cuda_cpp.cpp, msl.cpp, plain_c.cpp.
struct Dialect {
  const char* name;
  const char* prelude;       // helper functions that it defines itself replace those of dialect.cpp
  const char* doubles;       // additional prelude for devices with float64; others get soft_float64.h's, where a kernel needs it
  const char* functions[2];  // fma_f32 ...: indexed by Target::loops
  // The pointer to device memory whose address is the number {}. Null: kernels get memory as parameters only.
  const char* address = nullptr;
  bool cuda_words = false;  // CUDA C++, and what takes its words
  // What follows a kernel's parameter number {}, and the parameters behind those: the struct of type {0}, called {1}, the parameter number {2}. Null: the
  // struct is a value, or in memory if it is too large for one.
  const char* number = "";
  const char* arguments = nullptr;
  // How the words of user kernels (docs/kernels.md) are spelled.
  struct User {
    const char* prelude;                    // before the source
    const char* entry;                      // start of a kernel in groups of {} items: "kernel __attribute__((...)) void"
    const char* any_entry;                  // start of a kernel in groups of any size
    const char *global, *shared, *barrier;  // the spellings of these words; shared: for an array
    const char *shared_pointer, *private_pointer;
    const char *constant, *constant_pointer;
    const char *group, *item;  // indices of the group and of the item in it
    const char* atomics;       // atomic_add and the like, for sources that use them
  } user;
};

const Dialect& opencl() noexcept;
const Dialect& cuda() noexcept;
const Dialect& hip() noexcept;
const Dialect& msl() noexcept;
// For the host's compiler. Its user prelude comes before the renderer's own words.
const Dialect& plain_c() noexcept;

// Follows the prelude of user kernels: the position of an item in the grid, and the functions that return it. Needs naru_i.
extern const char* const kPlace;

// What a kernel's text depends on, apart from the instruction.
struct Target {
  const Dialect* dialect = nullptr;
  // True: each item loops over many neighbouring elements (processors that vectorise loops). False: neighbouring items process neighbouring
  // elements.
  bool loops = false;
  int lanes = 16;            // of a vector of 32-bit numbers, if `loops`: 8 or 16
  int group = 256;           // items of a group, where the kernel has no fixed number; a power of two, at least 64
  int largest_group = 256;   // the most items of a group that a kernel may ask for; a power of two
  int units = 1;             // groups that run at the same time
  int64_t local = 32768;     // bytes of local memory per group
  size_t parameters = 1024;  // bytes available for a kernel's parameters
  Arithmetic arithmetic;
};

// True if the text has values of float64 or calls its functions (as a part of a word, f64 may be digits of a number).
bool mentions_float64(std::string_view text) noexcept;

// A complete source: the prelude, those of our helper functions that `body` mentions, and `body`.
std::string complete(const Target& target, std::string_view body);

}  // namespace naru::render::c
