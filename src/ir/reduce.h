// Reductions: the operators, and the canonical order in which every device reduces.
//
// Shape and strides alone determine the order, never the device or the number of threads.
// Contiguous (the reduced elements are consecutive in memory): chunks of kContiguousChunk elements. In a chunk there are 64 lanes; lane l starts
// from the identity and takes x[l], x[l+64], x[l+128] ... in order. Then lane l takes lane l+32 (l < 32), l+16, l+8, ... l+1.
// Strided (neighbouring elements belong to different results): chunks of kStridedChunk rows. In a chunk every result starts from the identity and
// takes its rows in order.
// The chunks of one result combine as a tree: for s = 1, 2, 4 ..., chunk i takes chunk i+s, for i a multiple of 2s and i+s < count. "a takes b"
// is combine(a, b), a first. Finally the epilogue converts to the result's element type.
//
// Running values (Scan): blocks of kScanBlock elements. In a block each element is combined into one chain that starts from the identity. The
// last values of all blocks but the last form a row, whose running values are computed the same way. Each final value is combine(the running
// value of the blocks before, the chain's value). So a row of at most one block is one chain, and longer rows give work for one item per block.
#pragma once

#include "ir/expr.h"

namespace naru::ir {

enum class ReduceOp : uint8_t { Sum, Prod, Max, Min, Any, All };

constexpr int64_t kLanes = 64;
constexpr int64_t kContiguousChunk = 16384;
constexpr int64_t kStridedChunk = 256;
constexpr int64_t kScanBlock = 256;

// combine(a, b) of two values of the same type. Max and Min give NaN when either is NaN. Any, All: Bool.
V combine(ReduceOp op, V a, V b);
// The bits of the identity: 0 (Sum), 1 (Prod), -inf or the least integer (Max), inf or the greatest (Min), false (Any), true (All).
uint64_t identity_bits(ReduceOp op, VType type);

// A reduction kernel: reduces the results of `map`, each by itself, which all have type `type`.
struct ReduceKernel {
  MapKernel map;  // map.outputs is empty, or (contiguous, one result) one element of `type`, which is stored as well
  ReduceOp op;
  VType type;  // of the accumulators = type of map.results
};

// Reduces n elements (one chunk: n <= kContiguousChunk) into out[0..results) (values of kernel.type; a Bool is one byte, 0 or 1). operands: the
// inputs, then the output if the map has one.
using ContiguousFunction = void (*)(void* const* operands, const uint64_t* params, int64_t n, int64_t index0, void* out);
// out[0..cols) takes `rows` rows of `cols` values. A chunk may be split over several calls; out holds the identity before the first. row_strides:
// bytes from row to row, one per input (0 for inputs that are scalar for the whole run). index0: Index of the first element of the first row;
// index_stride: its step from row to row. plane: bytes from a value of one result to that of the next.
using StridedFunction = void (*)(void* const* inputs, const int64_t* row_strides, const uint64_t* params, int64_t rows, int64_t cols,
                                 int64_t index0, int64_t index_stride, void* out, int64_t plane);

}  // namespace naru::ir
