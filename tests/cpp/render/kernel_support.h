// Helpers for tests of machine code: guarded memory, interesting values, and the comparison with the interpreter.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ir/expr.h"
#include "ir/interpreter/interpret.h"
#include "ir/reduce.h"
#include "render/native.h"

namespace naru::test {

// `bytes` bytes that end (or begin) at an inaccessible page. The other side is filled with a pattern.
class GuardedBuffer {
 public:
  enum class Side : uint8_t { Before, Behind };
  GuardedBuffer(size_t bytes, Side side);
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer();

  uint8_t* data() const noexcept { return data_; }
  // True if all bytes around data() still have the pattern.
  bool surroundings_intact() const noexcept;

 private:
  uint8_t* mapping_ = nullptr;
  size_t mapped_ = 0;
  uint8_t* data_ = nullptr;
  size_t bytes_;
};

// The instruction sets of this processor. Reports once, on stdout, which are missing.
const std::vector<render::Isa>& isas();

// A small deterministic random generator (SplitMix64).
class Bits {
 public:
  explicit Bits(uint64_t seed) : state_(seed) {}
  uint64_t next() noexcept;
  uint64_t below(uint64_t n) noexcept { return next() % n; }

 private:
  uint64_t state_;
};

// Bit patterns of a type that often cause errors: limits, zeros, infinities, NaN, denormals, ties ...
const std::vector<uint64_t>& special_bits(DType t);
// n elements: a mix of special values, small numbers and arbitrary bits. Bool: 0 or 1.
std::vector<uint8_t> mixed_elements(DType t, int64_t n, Bits& bits);
// True if the bits are equal, or if both are NaN.
bool same(DType t, const uint8_t* a, const uint8_t* b);
std::string text_of(DType t, const uint8_t* element);
DType dtype_of(ir::VType t);
// A parameter with an interesting value.
uint64_t mixed_param(ir::VType t, Bits& bits);

// Runs the kernel over n elements, compiled for every instruction set and interpreted, and compares all outputs. inputs[i] has at least n
// elements (scalar inputs: one). Every operand ends or begins at a guard page.
testing::AssertionResult agrees(const ir::MapKernel& kernel, const std::vector<std::vector<uint8_t>>& inputs,
                                const std::vector<uint64_t>& params, int64_t n, int64_t index0 = 0);
// The same for functions that are already compiled, one per instruction set in isas().
testing::AssertionResult agrees(const ir::MapKernel& kernel, const std::vector<ir::MapFunction>& functions,
                                const std::vector<std::vector<uint8_t>>& inputs, const std::vector<uint64_t>& params, int64_t n,
                                int64_t index0 = 0);
std::vector<ir::MapFunction> compile_all(const ir::MapKernel& kernel, bool streaming = false);

}  // namespace naru::test
