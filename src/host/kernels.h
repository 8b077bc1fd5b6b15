// The cache of kernels: a program with its variants (which operands repeat one element, how it is stored) compiled once
// per process.
#pragma once

#include <atomic>
#include <cstdint>

#include "host/execute.h"
#include "ir/interpret.h"
#include "ir/program.h"
#include "ir/reduce.h"
#include "render/native.h"

namespace naru::host {

// A program compiled for one set of scalar inputs. Lives as long as the process.
struct Kernel {
  ir::MapKernel kernel;
  bool uses_index = false;
  bool copies = false;  // the one result is the one input, unchanged
  int cost = 1;         // roughly: vector instructions per vector of elements

  // Runs over n consecutive elements. streaming: past the caches; every output must be 64-byte aligned, and
  // the caller calls stream_fence() in the end.
  void run(void* const* operands, const uint64_t* params, int64_t n, int64_t index0, bool streaming = false) const;

  mutable std::atomic<ir::MapFunction> code[render::kMostIsas][2] = {};  // [instruction set][streaming]
};
// The kernel of `program` with exactly the inputs in `scalars` (bit i: input i) as one element for the whole run.
const Kernel& kernel_of(const ir::Program& program, uint32_t scalars);
// Marked scalar by the program itself.
uint32_t scalars_of(const ir::Program& program) noexcept;

// A reduction of a program's one output, likewise.
struct ReductionKernel {
  ir::ReduceKernel kernel;
  bool uses_index = false;
  int cost = 1;

  void contiguous(void* const* inputs, const uint64_t* params, int64_t n, int64_t index0, void* out) const;
  void strided(void* const* inputs, const int64_t* row_strides, const uint64_t* params, int64_t rows, int64_t cols, int64_t index0,
               int64_t index_stride, void* out) const;

  mutable std::atomic<ir::ContiguousFunction> contiguous_code[render::kMostIsas] = {};
  mutable std::atomic<ir::StridedFunction> strided_code[render::kMostIsas] = {};
};
// keeps: contiguous() stores the reduced values as well. per_row: of the scalars, those that each row of strided() has another one of.
const ReductionKernel& reduction_kernel_of(const ir::Program& program, ir::ReduceOp op, uint32_t scalars, bool keeps = false,
                                           uint32_t per_row = 0);

// n consecutive values of `from` as values of `to`, by the definition of Prim::Convert. target and source may not
// overlap unless equal.
void convert(DType from, const void* source, DType to, void* target, int64_t n);

// The element type whose values a VType's are.
constexpr DType dtype_of(ir::VType t) noexcept {
  constexpr DType kOf[] = {DType::Bool, DType::I32, DType::I64, DType::F32, DType::F64};
  return kOf[static_cast<int>(t)];
}

}  // namespace naru::host
