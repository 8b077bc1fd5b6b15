// oneDNN's convolutions and reorders as primitives: created once, then executed by any thread. The same functions cover both interfaces of
// the library (version 2: memory descriptors are structs; version 3: handles).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "backends/cpu/libraries/block_copy.h"
#include "ir/instruction.h"
#include "naru/dims.h"
#include "naru/dtype.h"

namespace naru::cpu::dnnl {

// True if the library has all functions that are needed. Does not check that they compute correctly; the caller must.
bool available();

// Memory layout of an array. Null if the library rejected it.
using Layout = std::shared_ptr<const void>;
// With the given strides; without strides, in the layout that the library prefers.
Layout layout(DType type, const Dims& sizes, const Dims* strides);
// The layout of the first `sizes` elements of each dimension, within an array of layout `whole`.
Layout part_of(const Layout& whole, const Dims& sizes);
bool equal(const Layout& a, const Layout& b);
size_t bytes_of(const Layout& a);
// The blocks of a layout; nullopt if it is another kind of layout, or an older library does not tell.
std::optional<BlockLayout> blocks_of(const Layout& a);

struct ConvolutionLayouts {
  ir::Convolution::Use use;
  Layout x, w, y, bias;                   // bias: null if there is none
  Dims stride, dilation, before, behind;  // per spatial dimension; dilation 1: none; before, behind: padding
};

// A compiled operation; each run is given its memory.
class Primitive {
 public:
  // Copies from one layout to the other.
  static std::optional<Primitive> reorder(const Layout& from, const Layout& to);
  // nullopt if the library has only a plain loop or im2col with a product for it.
  static std::optional<Primitive> convolution(const ConvolutionLayouts& c);

  // The layout that the primitive expects of array 0 (x), 1 (w) or 2 (y).
  const Layout& layout_of(size_t array) const noexcept { return arguments_[array].layout; }
  // Scratch memory in bytes; it must be 64-byte aligned.
  size_t scratch_bytes() const noexcept { return scratch_bytes_; }
  // Runs on the calling thread only. Memory: from, to for reorder; x, w, y, bias (if it has one) for convolution. Throws RuntimeError.
  void run(std::span<void* const> memory, void* scratch) const;

 private:
  struct Argument {
    int what = 0;  // the library's argument number
    Layout layout;
  };
  bool make(std::shared_ptr<void> description);
  Layout query(int what) const;

  std::shared_ptr<void> description_, made_;
  std::array<Argument, 4> arguments_;
  Layout scratch_;
  size_t scratch_bytes_ = 0;
};

}  // namespace naru::cpu::dnnl
