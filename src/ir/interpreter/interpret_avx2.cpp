#if defined(__x86_64__)
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ir/interpreter/interpret_loops.h"

// Only the code below may use these instructions: an inline function from a standard header, compiled with them, could be the copy that the
// linker keeps for the whole program.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define NARU_LOOPS avx2
#include "ir/interpreter/interpret_loops.inc"
#undef NARU_LOOPS
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace naru::ir {
const Loops kAvx2Loops = {avx2::node, avx2::load, avx2::store, avx2::combine};
}  // namespace naru::ir
#endif
