// Instructions: all that a device is asked to do. Addresses are the device's own, strides count elements.
#pragma once

#include <array>
#include <memory>
#include <variant>
#include <vector>

#include "ir/index_name.h"
#include "ir/kernel_source.h"
#include "ir/program.h"
#include "ir/reduce.h"
#include "naru/device.h"
#include "naru/dims.h"

namespace naru::ir {

// An operand over an iteration space: the address of its first element and one stride per dimension (0 repeats).
struct View {
  void* data = nullptr;
  DType dtype = DType::F32;
  Dims strides;
};

// outputs[i][p] = program(inputs[...][p]) for every position p of `shape`. An output overlaps an input only if it is exactly that input
// (same address, same strides). Input k of the program may be marked scalar only if all its strides are 0.
struct Map {
  Program program;
  Dims shape;
  std::vector<View> inputs, outputs;
  std::vector<uint64_t> params;
};

// A plain copy, with conversion, of the elements of a shape.
Map copy_of(Dims shape, View from, View to);

// out[kept] = reduction of program(inputs) over the reduced dimensions. The iteration space is `shape` = kept dimensions, then the last `reduced`
// dimensions, in the order in which elements are reduced. The program has one output, of type vtype-equal to the accumulator.
// contiguous: neighbours in memory belong to one result; else strided: the last kept dimension is the one of neighbouring elements
// (see ir/reduce.h; whoever makes the instruction chooses, from shape and strides). out.strides has one entry per kept dimension.
// The accumulator converts to out.dtype at the end.
struct Reduce {
  Program program;
  ReduceOp op;
  Dims shape;
  int reduced = 0;
  bool contiguous = true;
  std::vector<View> inputs;
  std::vector<uint64_t> params;
  View out;
};

// Position of the greatest (or least) element along the last dimension of `shape`, the first among equals, a NaN before all.
// values (of in.dtype) and indices (I64) have one stride per kept dimension; either may have a null address.
struct ArgReduce {
  bool greatest = true;
  Dims shape;
  View in, values, indices;
};

// Running sum or product along the last dimension, in order. in and out may be the same.
struct Scan {
  ReduceOp op;  // Sum or Prod
  Dims shape;
  View in, out;  // out.dtype is the type accumulated in (F32 for F16 and BF16)
};

// One index operand: I64 positions over the iteration space; position i addresses element i * step of the indexed dimension,
// i in [-bound, bound), negative ones counted from the end (from_end), else in [0, bound).
struct IndexOperand {
  View positions;
  int64_t bound = 0, step = 0;
  int dimension = -1;  // the dimension that error messages name; -1: the operand's number
  bool from_end = true;
  int64_t least() const noexcept { return from_end ? -bound : 0; }
};

// Gather: out[p] = source[p, indices(p)]: source.strides are 0 in the dimensions that only the indices move in.
// Scatter: target[p, indices(p)] = value[p] (Add: +=, in order of p). A position out of bounds raises IndexError naming
// position, value and bound (cpu: from run; others: at the next read of anything on the device, with the line of the call).
struct Gather {
  Dims shape;
  View out, source;
  std::vector<IndexOperand> indices;
  IndexName op = "index";
  uint32_t where = 0;  // the line of the call (see core/storage.h: Origin)
};
struct Scatter {
  Dims shape;
  View target, value;
  std::vector<IndexOperand> indices;
  bool add = false;
  IndexName op = "index_put_";
  uint32_t where = 0;
};

// c = a b (+ bias), for `batch` pairs. Strides in elements; all three of one type. bias: n elements, or null.
struct MatMul {
  struct Matrix {
    void* data = nullptr;
    int64_t batch_stride = 0, row_stride = 0, col_stride = 0;
  };
  DType dtype = DType::F32;
  int64_t batch = 1, m = 0, n = 0, k = 0;
  Matrix a, b, c;
  const void* bias = nullptr;
  int64_t bias_stride = 1;
  bool deterministic = false;  // one chain of fma in the order of k for each element
  // What a device's library may do, where it is faster: round float32 factors to TF32; add parts of sums up in float16 or bfloat16.
  bool tf32 = false, reduced_precision_accumulation = true;
};

// Sorts rows of n elements along the last dimension of `shape`; NaN counts as greatest; stable. Writes the first k of the order.
// values (in.dtype) and indices (I64) may have a null address.
struct Sort {
  Dims shape;
  int64_t k = 0;  // = n for a whole sort
  bool descending = false;
  View in, values, indices;
};

// Copies `bytes` bytes between devices (or within one).
struct CopyBytes {
  void* target = nullptr;
  const void* source = nullptr;
  size_t bytes = 0;
  Device target_device, source_device;
};

// A kernel of the user's own, over a grid of items in groups. Its memory and numbers stand in the order of its parameters.
struct UserKernel {
  const KernelSource* source = nullptr;
  int entry = 0;                                            // of source->kernels()
  std::vector<void*> memory;                                // one for each pointer, null for tensors without elements
  std::vector<uint64_t> numbers;                            // bits of the others: integers in 64 bits, float and double as they are
  std::array<int64_t, 3> items{1, 1, 1}, threads{1, 1, 1};  // of the grid; of a group. The last groups may be smaller
  int64_t groups(int d) const {
    return (items[static_cast<size_t>(d)] + threads[static_cast<size_t>(d)] - 1) / threads[static_cast<size_t>(d)];
  }
};

// Parts over the same rows, with the results of doing one after another; made to be done a few rows at a time, so that a row stays in
// the first cache. The positions of each part, counted row-major, belong to `rows` rows, as many to each: those of a Map's
// shape, those of the kept dimensions of a contiguous reduction; a strided reduction reduces the rows. Only devices with row_fused get it
// (runtime/backend.h); others get the parts.
struct RowFused {
  struct Part {
    std::variant<Reduce, Map> work;
    // A contiguous reduction: where not null, the reduced values are kept for later parts, as their contiguous input at this address, of the
    // accumulators' type; a later part writes there. (They need not go to that memory: a device may have a better place.)
    void* kept = nullptr;
  };
  int64_t rows = 0;
  std::vector<Part> parts;
};

using Instruction = std::variant<Map, Reduce, ArgReduce, Scan, Gather, Scatter, MatMul, Sort, CopyBytes, RowFused, UserKernel>;

}  // namespace naru::ir
