// Machine code for kernels, made at run time through asmjit. What is common stands in this folder; a folder for each architecture
// (x86: AVX2 with FMA, F16C, BMI2; AVX-512 with F, BW, DQ, VL. a64: NEON) has its assembler, its lane machines and their rows in the table
// of instruction sets (isa.h). On other architectures best_isa() is None and the interpreter runs, with the same bits.
//
// A kernel is planned once (plan.h: order, liveness), walked once per loop body (walker.h), and emitted by the lane
// machine of an instruction set (lane_machine.h). NaN results are NaN everywhere, but their sign and payload are
// nobody's promise.
#pragma once

#include <string_view>
#include <vector>

#include "ir/expr.h"
#include "ir/reduce.h"

namespace naru::render {

// An instruction set of this architecture, by its place in the table; a greater one has all that a lesser one has.
enum class Isa : uint8_t { None };
// None counted: what is kept for each instruction set has so many places.
constexpr size_t kMostIsas = 4;

// "avx512", "none".
const char* name_of(Isa isa) noexcept;
// None for a name that no instruction set of this architecture has.
Isa isa_named(std::string_view name) noexcept;
// All that there is code for, whether this processor has them or not; None is not among them.
std::vector<Isa> known_isas();
// Whether this processor has it (none has None).
bool can_run(Isa isa) noexcept;
// What this processor runs (NARU_ISA=avx2|avx512|none lowers it; NARU_JIT=0 means none).
Isa best_isa() noexcept;

// Called when a function's bytes stand in memory, before anybody knows its address: for systems where more need be done than asmjit does.
// nullptr until somebody above knows the system.
extern void (*code_written)() noexcept;

// Code for a kernel, kept until the process ends. nullptr where the instruction set is None or memory may not be made
// executable; the interpreter then runs the kernel, with the same bits. streaming: outputs are written past the caches
// (they must be 64-byte aligned), and the caller puts a store fence behind the last call. Any n >= 0; reads and writes nothing outside the n elements. Thread-safe.
ir::MapFunction compile(const ir::MapKernel& kernel, Isa isa, bool streaming = false);
ir::ContiguousFunction compile_contiguous(const ir::ReduceKernel& kernel, Isa isa);
ir::StridedFunction compile_strided(const ir::ReduceKernel& kernel, Isa isa);

}  // namespace naru::render
