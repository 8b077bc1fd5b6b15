// Windows over the spatial dimensions (1 to 3, after N and C) of a tensor, for pooling, padding and resampling. A table per dimension lists the
// elements that each output position reads; the gradient uses the transposed tables.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "naru/tensor.h"

namespace naru::ops {

// Entry t of output position p reads element index[t * out + p] (-1: none) of a dimension of size `in`, with weight[t * out + p] (1 if `weight` is
// empty).
struct WindowTable {
  int64_t in = 1, out = 1, places = 1;
  std::vector<int64_t> index;
  std::vector<double> weight;
  bool identity = false;  // position p reads element p; `index` is empty
  // If step > 0: index[t * out + p] is first + p * step + t where that is in [0, in), else -1, and every position reads an element.
  int64_t step = 0, first = 0;
};
WindowTable identity_table(int64_t size);
// Makes a table from a list of elements and weights for each position.
struct WindowEntry {
  int64_t element;
  double weight = 1;
};
WindowTable table_of(int64_t in, const std::vector<std::vector<WindowEntry>>& positions, bool weighs);
// Makes a table in which position p reads the one element f(p), or none if f(p) is -1.
template <class F>
WindowTable single_table(int64_t in, int64_t out, F f) {
  WindowTable t{in, out, 1, std::vector<int64_t>(static_cast<size_t>(out)), {}};
  for (int64_t p = 0; p < out; ++p) t.index[static_cast<size_t>(p)] = f(p);
  return t;
}
// Windows of `kernel` elements, `dilation` apart; the next window starts `stride` elements later. padding: before the first element.
WindowTable strided_window_table(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation);
// Adaptive pooling: position p reads elements [floor(p in / out), ceil((p + 1) in / out)).
WindowTable adaptive_table(int64_t in, int64_t out);
// Throws if a result of shape (N, C, out...) is too large; call it before making tables of such sizes. Returns false if the result is empty: use
// no_tables then.
bool check_output_size(const Tensor& x, const Dims& out, const char* op);
// The inverse table: the positions that read each element, with their weights.
WindowTable transposed(const WindowTable& t);
// How many elements each position reads; empty for a table of no_tables.
std::vector<int64_t> counts_of(const WindowTable& t);

// Copies a host tensor to the device through page-locked memory, so that the host need not wait and a graph can capture the copy.
Tensor on_device(const Tensor& host, Device device);

// One table for each spatial dimension.
using WindowTables = std::vector<WindowTable>;

// Tables without entries, for an empty result: memory does not grow with `out`.
WindowTables no_tables(const Tensor& x, const Dims& out);

// x (N, C, in...) -> (N, C, out...), in x's dtype. window_sum and window_max are recorded for autograd, to any order.
Tensor window_sum(const Tensor& x, WindowTables tables, const char* node);
// Returns (values, row-major indices within the in... of a channel). A NaN counts as greatest. The indices are int64. for_gradient: nothing but
// the gradient needs them; on devices they are int32 then, if that is enough, and undefined if no gradient is recorded.
std::pair<Tensor, Tensor> window_max(const Tensor& x, WindowTables tables, const char* node, bool for_gradient = false);
// Elements of each channel by their flat indices: x (N, C, in...), indices (N, C, out...) -> (N, C, out...).
Tensor pick_elements(const Tensor& x, const Tensor& indices);

}  // namespace naru::ops
