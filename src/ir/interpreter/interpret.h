// The plain interpreter: evaluates kernels node by node, in blocks of elements. It is slower than machine code and gives the same bits. It runs
// where code generation is not allowed, and is the oracle in tests.
#pragma once

#include "ir/expr.h"
#include "ir/reduce.h"

namespace naru::ir {

// A MapFunction, for the given kernel.
void interpret(const MapKernel& kernel, void* const* operands, const uint64_t* params, int64_t n, int64_t index0);
// A ContiguousFunction and a StridedFunction, for the given kernel.
void interpret_contiguous(const ReduceKernel& kernel, void* const* operands, const uint64_t* params, int64_t n, int64_t index0, void* out);
void interpret_strided(const ReduceKernel& kernel, void* const* inputs, const int64_t* row_strides, const uint64_t* params, int64_t rows,
                       int64_t cols, int64_t index0, int64_t index_stride, void* out, int64_t plane);
// Writes n copies of the identity of `op`.
void fill_identity(ReduceOp op, VType type, void* out, int64_t n);
// a[i] = combine(a[i], b[i]) for n pairs of values of `type`. Used for the trees.
void combine_values(ReduceOp op, VType type, void* a, const void* b, int64_t n);

}  // namespace naru::ir
