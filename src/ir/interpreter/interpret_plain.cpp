#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ir/interpreter/interpret_loops.h"

#define NARU_LOOPS plain
#include "ir/interpreter/interpret_loops.inc"
#undef NARU_LOOPS

namespace naru::ir {

const Loops kPlainLoops = {plain::node, plain::load, plain::store, plain::combine};

const Loops& loops() noexcept {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2) return kAvx2Loops;
#endif
  return kPlainLoops;
}

}  // namespace naru::ir
