// Machine code for kernels, made at run time through asmjit: x86-64 with AVX2 (+FMA, F16C, BMI2) or AVX-512 (F, BW, DQ,
// VL). On other architectures, aarch64 among them, best_isa() is None and the interpreter runs, with the same bits.
// (asmjit can emit aarch64 too; what is missing is a lane machine for it.)
//
// A kernel is planned once (plan.h: order, liveness), walked once per loop body (walker.h), and emitted by the lane
// machine of an instruction set (lane_machine.h). NaN results are NaN everywhere, but their sign and payload are
// nobody's promise.
#pragma once

#include "ir/expr.h"
#include "ir/reduce.h"

namespace naru::render {

enum class Isa : uint8_t { None, Avx2, Avx512 };

// What this processor runs (NARU_ISA=avx2|avx512|none lowers it; NARU_JIT=0 means none).
Isa best_isa() noexcept;

// Code for a kernel, kept until the process ends. nullptr where the instruction set is None or memory may not be made
// executable; the interpreter then runs the kernel, with the same bits. streaming: outputs are written past the caches
// (they must be 64-byte aligned), and the caller puts a store fence behind the last call. Any n >= 0; reads and writes nothing outside the n elements. Thread-safe.
ir::MapFunction compile(const ir::MapKernel& kernel, Isa isa, bool streaming = false);
ir::ContiguousFunction compile_contiguous(const ir::ReduceKernel& kernel, Isa isa);
ir::StridedFunction compile_strided(const ir::ReduceKernel& kernel, Isa isa);

}  // namespace naru::render
