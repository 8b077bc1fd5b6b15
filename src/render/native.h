// Machine code for kernels, generated at run time with asmjit. This folder has the common code; each architecture's folder (x86: AVX2 with FMA,
// F16C, BMI2; AVX-512 with F, BW, DQ, VL. a64: NEON) has its assembler, its lane machines and their rows in the table of instruction sets
// (isa.h). On other architectures best_isa() is None and the interpreter runs, with the same bits.
//
// A kernel is planned once (plan.h: order, liveness), walked once per loop body (walker.h), and emitted by the lane machine of an instruction set
// (lane_machine.h). NaN results are NaN everywhere; their sign and payload are unspecified.
#pragma once

#include <string_view>
#include <vector>

#include "ir/expr.h"
#include "ir/reduce.h"

namespace naru::render {

// An instruction set of this architecture, by its index in the table; a greater one includes all lesser ones.
enum class Isa : uint8_t { None };
// The size of arrays indexed by Isa, including None.
constexpr size_t kMostIsas = 4;

// "avx512", "none".
const char* name_of(Isa isa) noexcept;
// None if no instruction set of this architecture has that name.
Isa isa_named(std::string_view name) noexcept;
// All instruction sets with a code generator, whether this processor supports them or not; without None.
std::vector<Isa> known_isas();
// True if this processor supports it; false for None.
bool can_run(Isa isa) noexcept;
// What this processor runs (NARU_ISA=avx2|avx512|none lowers it; NARU_JIT=0 means none).
Isa best_isa() noexcept;

// Compiles a kernel to code that is kept until the process ends. Returns nullptr if the instruction set is None or memory cannot be made
// executable; the interpreter then runs the kernel, with the same bits. streaming: outputs are written with non-temporal stores (they must be
// 64-byte aligned), and the caller must issue a store fence after the last call. Before other
// threads may call the code, the caller must call runtime::system::code_written(). The functions accept any n >= 0 and access nothing outside the n
// elements. Thread-safe.
ir::MapFunction compile(const ir::MapKernel& kernel, Isa isa, bool streaming = false);
ir::ContiguousFunction compile_contiguous(const ir::ReduceKernel& kernel, Isa isa);
ir::StridedFunction compile_strided(const ir::ReduceKernel& kernel, Isa isa);

}  // namespace naru::render
