// Arrays in all the layouts that tests try, with guards around them; and programs of one step.
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

// Of an operand at an address where nothing is, for launchers that look at texts alone.
inline ir::View unread(DType t, Dims strides) { return {reinterpret_cast<void*>(uintptr_t{1} << 20), t, std::move(strides)}; }

// An array of `shape` in memory of its own, laid out as asked, filled with small random values (bool: 0 or 1).
class Array {
 public:
  Array(Dims shape, DType dtype, Layout layout = Layout::Contiguous, uint64_t seed = 1, bool specials = false);
  const Dims& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  ir::View view() { return {at(0), dtype_, strides_}; }
  const Dims& strides() const { return strides_; }
  // Address of the element at row-major position p.
  void* at(int64_t p);
  double value(int64_t p);
  void set(int64_t p, double v);
  int64_t numel() const { return product(shape_); }
  // The elements in row-major order, byte after byte.
  std::vector<char> contents();
  // All the memory, guards included: writes outside the elements show.
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

// row(inputs...) -> out.
ir::Program program_of(ir::OpId row, std::vector<DType> inputs, DType out, DType computed);
// Calls f(position) for each multi-index of a shape, in row-major order.
void each_position(const Dims& shape, const std::function<void(const Dims& index, int64_t flat)>& f);

}  // namespace naru::testing
