// The inner loops of the interpreter: one primitive over a block of elements. They are compiled twice, for the baseline architecture and for
// x86-64 with AVX2 and FMA (where fma is an instruction, not a call); the bits are the same.
#pragma once

#include "ir/expr.h"
#include "ir/reduce.h"

namespace naru::ir {

struct Loops {
  // out[i] = node(a[i], b[i], c[i]), i < n; the first operand has type a_type. The arrays do not overlap. Not for Input, Param, Const and Index.
  void (*node)(const Node& node, VType a_type, void* out, const void* a, const void* b, const void* c, int64_t n);
  // Converts elements in memory to values and back.
  void (*load)(DType dtype, void* out, const void* in, int64_t n);
  void (*store)(DType dtype, void* out, const void* in, int64_t n);
  // a[i] = combine(op, a[i], b[i])
  void (*combine)(ReduceOp op, VType type, void* a, const void* b, int64_t n);
};

extern const Loops kPlainLoops;
#if defined(__x86_64__)
extern const Loops kAvx2Loops;
#endif

// The fastest loops that this processor can run.
const Loops& loops() noexcept;

}  // namespace naru::ir
