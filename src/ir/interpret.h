// The plain interpreter: evaluates kernels node by node, in blocks of elements. Slower than machine code, with the same
// bits; it runs where code may not be generated and is the oracle in tests.
#pragma once

#include "ir/expr.h"
#include "ir/reduce.h"

namespace naru::ir {

// As MapFunction, for the kernel given.
void interpret(const MapKernel& kernel, void* const* operands, const uint64_t* params, int64_t n, int64_t index0);
// As ContiguousFunction and StridedFunction.
void interpret_contiguous(const ReduceKernel& kernel, void* const* operands, const uint64_t* params, int64_t n, int64_t index0, void* out);
void interpret_strided(const ReduceKernel& kernel, void* const* inputs, const int64_t* row_strides, const uint64_t* params, int64_t rows,
                       int64_t cols, int64_t index0, int64_t index_stride, void* out);
// n copies of the value that changes nothing.
void fill_identity(ReduceOp op, VType type, void* out, int64_t n);
// combine(a, b) for one pair of values of `type`, in place of a. Used for the trees.
void combine_values(ReduceOp op, VType type, void* a, const void* b, int64_t n);

}  // namespace naru::ir
