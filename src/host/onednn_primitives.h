// oneDNN's convolutions and reorders as primitives: descriptions of memory and work, made once and then executed by any thread. Both interfaces of
// the library (2: descriptions of memory are structs; 3: handles) are behind the same functions.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "ir/instruction.h"
#include "naru/dims.h"
#include "naru/dtype.h"

namespace naru::host::dnnl {

// Whether the library is there with all functions that are needed. What computes wrongly with them is for the caller to find out.
bool available();

// How an array lies in memory. Null where the library refused.
using Layout = std::shared_ptr<const void>;
// With these strides; without any: as the library likes it best.
Layout layout(DType type, const Dims& sizes, const Dims* strides);
// Of the first `sizes` elements in each dimension of an array that lies as `whole`.
Layout part_of(const Layout& whole, const Dims& sizes);
bool equal(const Layout& a, const Layout& b);
size_t bytes_of(const Layout& a);

struct ConvolutionLayouts {
  ir::Convolution::Use use;
  Layout x, w, y, bias;                   // bias: null where there is none
  Dims stride, dilation, before, behind;  // of each spatial dimension; dilation 1: none; before, behind: padding
};

// Something to be done, over memory given to each run.
class Primitive {
 public:
  // From one layout to another.
  static std::optional<Primitive> reorder(const Layout& from, const Layout& to);
  // None where the library has no better code for it than a plain loop, or columns for a product.
  static std::optional<Primitive> convolution(const ConvolutionLayouts& c);

  // Where an array of a convolution is expected: 0 x, 1 w, 2 y.
  const Layout& layout_of(size_t array) const noexcept { return arguments_[array].layout; }
  // Memory to work in, 64-byte aligned.
  size_t scratch_bytes() const noexcept { return scratch_bytes_; }
  // On the calling thread alone. reorder: from, to; convolution: x, w, y, bias (where it has one). Throws RuntimeError.
  void run(std::span<void* const> memory, void* scratch) const;

 private:
  struct Argument {
    int what = 0;  // the library's number of it
    Layout layout;
  };
  bool make(std::shared_ptr<void> description);
  Layout query(int what) const;

  std::shared_ptr<void> description_, made_;
  std::array<Argument, 4> arguments_;
  Layout scratch_;
  size_t scratch_bytes_ = 0;
};

}  // namespace naru::host::dnnl
