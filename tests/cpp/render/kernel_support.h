// For the tests of machine code: memory with guards, values worth trying, and the comparison with the interpreter.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ir/expr.h"
#include "ir/interpret.h"
#include "ir/reduce.h"
#include "render/native.h"

namespace naru::test {

// `bytes` bytes that end (or begin) where a page without access begins (or ends). The other side is filled with a
// pattern.
class GuardedBuffer {
 public:
  enum class Side : uint8_t { Before, Behind };
  GuardedBuffer(size_t bytes, Side side);
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer();

  uint8_t* data() const noexcept { return data_; }
  // Whether all bytes around data() still have the pattern.
  bool surroundings_intact() const noexcept;

 private:
  uint8_t* mapping_ = nullptr;
  size_t mapped_ = 0;
  uint8_t* data_ = nullptr;
  size_t bytes_;
};

// The instruction sets that this processor has. Says once on stdout which it lacks.
const std::vector<render::Isa>& isas();

// A small deterministic source of bits (SplitMix64).
class Bits {
 public:
  explicit Bits(uint64_t seed) : state_(seed) {}
  uint64_t next() noexcept;
  uint64_t below(uint64_t n) noexcept { return next() % n; }

 private:
  uint64_t state_;
};

// Bit patterns of a type where errors live: limits, zeros, infinities, NaN, denormals, ties ...
const std::vector<uint64_t>& special_bits(DType t);
// n elements: specials, small numbers and arbitrary bits, mixed. Bool: 0 or 1.
std::vector<uint8_t> mixed_elements(DType t, int64_t n, Bits& bits);
// The same bits, or both NaN where t is a floating-point type.
bool same(DType t, const uint8_t* a, const uint8_t* b);
std::string text_of(DType t, const uint8_t* element);
DType dtype_of(ir::VType t);
// A parameter with a value worth trying.
uint64_t mixed_param(ir::VType t, Bits& bits);

// Runs the kernel over n elements, compiled for every instruction set and interpreted, and compares all outputs.
// inputs[i] holds at least n elements (scalar inputs: one). Every operand ends or begins at a guard page.
testing::AssertionResult agrees(const ir::MapKernel& kernel, const std::vector<std::vector<uint8_t>>& inputs,
                                const std::vector<uint64_t>& params, int64_t n, int64_t index0 = 0);
// The same for compiled functions already there, one per instruction set in isas().
testing::AssertionResult agrees(const ir::MapKernel& kernel, const std::vector<ir::MapFunction>& functions,
                                const std::vector<std::vector<uint8_t>>& inputs, const std::vector<uint64_t>& params, int64_t n,
                                int64_t index0 = 0);
std::vector<ir::MapFunction> compile_all(const ir::MapKernel& kernel, bool streaming = false);

}  // namespace naru::test
