// The kernel cache: each variant of a program (which operands are scalar, how they are stored) is compiled once per process.
#pragma once

#include <atomic>
#include <cstdint>

#include "backends/cpu/exec/execute.h"
#include "ir/interpreter/interpret.h"
#include "ir/program.h"
#include "ir/reduce.h"
#include "render/native.h"

namespace naru::cpu {

// A program compiled for one set of scalar inputs. Lives as long as the process.
struct Kernel {
  ir::MapKernel kernel;
  bool uses_index = false;
  bool copies = false;  // the program copies its one input to its one result
  int cost = 1;         // rough number of vector instructions per vector of elements

  // Runs over n consecutive elements. streaming: uses non-temporal stores; every output must be 64-byte aligned, and the caller must call
  // stream_fence() after the last run.
  void run(void* const* operands, const uint64_t* params, int64_t n, int64_t index0, bool streaming = false) const;

  mutable std::atomic<ir::MapFunction> code[render::kMostIsas][2] = {};  // [instruction set][streaming]
};
// The kernel of `program` in which exactly the inputs in `scalars` (bit i: input i) are one element for the whole run.
const Kernel& kernel_of(const ir::Program& program, uint32_t scalars);
// Inputs that the program itself marks as scalar.
uint32_t scalars_of(const ir::Program& program) noexcept;

// A compiled reduction over the outputs of a program, each by itself.
struct ReductionKernel {
  ir::ReduceKernel kernel;
  bool uses_index = false;
  int cost = 1;

  void contiguous(void* const* inputs, const uint64_t* params, int64_t n, int64_t index0, void* out) const;
  void strided(void* const* inputs, const int64_t* row_strides, const uint64_t* params, int64_t rows, int64_t cols, int64_t index0,
               int64_t index_stride, void* out, int64_t plane) const;

  mutable std::atomic<ir::ContiguousFunction> contiguous_code[render::kMostIsas] = {};
  mutable std::atomic<ir::StridedFunction> strided_code[render::kMostIsas] = {};
};
// keeps: contiguous() stores the reduced values as well. per_row: the scalars that differ from row to row in strided().
const ReductionKernel& reduction_kernel_of(const ir::Program& program, ir::ReduceOp op, uint32_t scalars, bool keeps = false,
                                           uint32_t per_row = 0);

// Converts n consecutive values from `from` to `to`, as Prim::Convert defines it. target and source must be equal or must not overlap.
void convert(DType from, const void* source, DType to, void* target, int64_t n);

// The dtype that holds the values of a VType.
constexpr DType dtype_of(ir::VType t) noexcept {
  constexpr DType kOf[] = {DType::Bool, DType::I32, DType::I64, DType::F32, DType::F64};
  return kOf[static_cast<int>(t)];
}

}  // namespace naru::cpu
