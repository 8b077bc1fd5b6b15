// Arrays in all tested layouts, with guards around them, and programs of one operator.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "ir/instruction.h"

namespace naru::testing {

enum class Layout { Contiguous, Transposed, Offset, Stepped, Repeated };
inline constexpr Layout kLayouts[] = {Layout::Contiguous, Layout::Transposed, Layout::Offset, Layout::Stepped, Layout::Repeated};
std::string name_of(Layout layout);

// An operand at a dummy address, for launchers that only look at texts.
inline ir::View unread(DType t, Dims strides) { return {reinterpret_cast<void*>(uintptr_t{1} << 20), t, std::move(strides)}; }

// An array of `shape` in its own memory, in the given layout, filled with small random values (bool: 0 or 1).
class Array {
 public:
  Array(Dims shape, DType dtype, Layout layout = Layout::Contiguous, uint64_t seed = 1, bool specials = false);
  const Dims& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  ir::View view() { return {at(0), dtype_, strides_}; }
  const Dims& strides() const { return strides_; }
  // The address of the element at row-major position p.
  void* at(int64_t p);
  double value(int64_t p);
  void set(int64_t p, double v);
  int64_t numel() const { return product(shape_); }
  // The bytes of the elements in row-major order.
  std::vector<char> contents();
  // The whole memory, including guards, so that writes outside the elements are detected.
  const std::vector<char>& memory() const { return memory_; }
  void fill(double v);

 private:
  Dims shape_, strides_;
  DType dtype_;
  int64_t offset_ = 0;  // elements
  std::vector<char> memory_;
};

double read(DType dtype, const void* p);
void write(DType dtype, void* p, double v);

// A program out = row(inputs...).
ir::Program program_of(ir::OpId row, std::vector<DType> inputs, DType out, DType computed);
// Calls f(position) for each multi-index of a shape, in row-major order.
void each_position(const Dims& shape, const std::function<void(const Dims& index, int64_t flat)>& f);

}  // namespace naru::testing
