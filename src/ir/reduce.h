// Reductions: the operators, and the one order in which every device reduces them.
//
// The order is chosen from shape and strides alone, never from the device or the number of threads.
// Contiguous (the reduced elements lie behind one another): chunks of kContiguousChunk elements; in a chunk 64 lanes, lane l
// starting from the identity and
//   taking x[l], x[l+64], x[l+128] ... in order; then lane l takes lane l+32 (l < 32), l+16, l+8, ... l+1.
// Strided (neighbouring elements belong to different results): chunks of kStridedChunk rows; in a chunk every result
// starts from the
//   identity and takes its rows in order.
// The chunks of one result combine as a tree: for s = 1, 2, 4 ...: chunk i takes chunk i+s, for i a multiple of 2s and
// i+s < count. "a takes b" is combine(a, b), a first. Finally the epilogue converts to the result's element type.
//
// Running values (Scan): blocks of kScanBlock elements; in a block each element takes its place in a chain that starts from
// the identity. The last values of the blocks but the last are a row of their own, whose running values are made in the same
// way; each block's values are combine(the running value of the blocks before it, the chain's). So a row of at most one block
// is a chain, and longer ones are work for as many items as they have blocks.
#pragma once

#include "ir/expr.h"

namespace naru::ir {

enum class ReduceOp : uint8_t { Sum, Prod, Max, Min, Any, All };

constexpr int64_t kLanes = 64;
constexpr int64_t kContiguousChunk = 16384;
constexpr int64_t kStridedChunk = 256;
constexpr int64_t kScanBlock = 256;

// combine(a, b) of two values of one type. Max and Min give NaN when either is NaN. Any, All: Bool.
V combine(ReduceOp op, V a, V b);
// The bits of the value that changes nothing: 0, 1, -inf or the least integer, inf or the greatest, false, true.
uint64_t identity_bits(ReduceOp op, VType type);

// A reduction kernel: the value reduced is the one result of `map`, of type `type`.
struct ReduceKernel {
  MapKernel map;  // map.results[0] is reduced; map.outputs is empty, or (contiguous) one element of `type`: it is stored, too
  ReduceOp op;
  VType type;  // of the accumulators = type of map.results[0]
};

// Reduces n elements (one chunk: n <= kContiguousChunk) into *out (one value of kernel.type; Bool as one byte 0/1).
// operands: the inputs, then the output where the map has one.
using ContiguousFunction = void (*)(void* const* operands, const uint64_t* params, int64_t n, int64_t index0, void* out);
// out[0..cols) takes `rows` rows of `cols` values: a chunk may come in several calls, and out holds the identity before
// the first. row_strides: bytes from row to row, one per input
// (0 for inputs that are scalar for the whole run); index0: Index of the first element of the first row; index_stride: from row to row.
using StridedFunction = void (*)(void* const* inputs, const int64_t* row_strides, const uint64_t* params, int64_t rows, int64_t cols,
                                 int64_t index0, int64_t index_stride, void* out);

}  // namespace naru::ir
