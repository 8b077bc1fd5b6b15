// Windows over the spatial dimensions (1 to 3, behind images and channels) of a tensor: what pooling, padding and resampling are made of. What a
// position sees is told by a table a dimension; the gradient sees by the same tables the other way round.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "naru/tensor.h"

namespace naru::ops {

// Place t of position p is element index[t * out + p] (-1: none) of a dimension of size `in`, weighing weight[t * out + p] (all 1 where there are none).
struct WindowTable {
  int64_t in = 1, out = 1, places = 1;
  std::vector<int64_t> index;
  std::vector<double> weight;
  bool identity = false;  // each position is its own element: no index is kept
};
WindowTable identity_table(int64_t size);
// From a list of elements and weights for each position.
struct WindowEntry {
  int64_t element;
  double weight = 1;
};
WindowTable table_of(int64_t in, const std::vector<std::vector<WindowEntry>>& positions, bool weighs);
// The element f(position) for each, which is one place or (-1) none.
template <class F>
WindowTable single_table(int64_t in, int64_t out, F f) {
  WindowTable t{in, out, 1, std::vector<int64_t>(static_cast<size_t>(out)), {}};
  for (int64_t p = 0; p < out; ++p) t.index[static_cast<size_t>(p)] = f(p);
  return t;
}
// Windows of `kernel` elements `dilation` apart, `stride` from one to the next; padding in front of the first.
WindowTable regular_table(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation);
// Elements [floor(p in / out), ceil((p + 1) in / out)).
WindowTable adaptive_table(int64_t in, int64_t out);
// Throws where the result (N, C, out...) cannot be: before tables of such sizes are made. Whether it has any element: if not, its tables are `no_tables`.
bool check_room(const Tensor& x, const Dims& out, const char* op);
// Which positions see an element, and with what weight.
WindowTable transposed(const WindowTable& t);
// How many elements each position sees; nothing for one of no_tables.
std::vector<int64_t> counts_of(const WindowTable& t);

// A copy of the host's tensor: page-locked on its way, so that the host need not wait, and a graph may hold the copy.
Tensor on_device(const Tensor& host, Device device);

// One for each spatial dimension.
using WindowTables = std::vector<WindowTable>;

// Of positions that nobody asks for, however many there are.
WindowTables no_tables(const Tensor& x, const Dims& out);

// x (N, C, in...) -> (N, C, out...), of x's type. Both record themselves for autograd, to any order.
Tensor window_sum(const Tensor& x, WindowTables tables, const char* node);
// (values, their row-major numbers among the in... of a channel (int64)). A NaN counts as greatest.
std::pair<Tensor, Tensor> window_max(const Tensor& x, WindowTables tables, const char* node);
// The elements of a channel by their numbers: x (N, C, in...), indices (N, C, out...) -> (N, C, out...).
Tensor pick_elements(const Tensor& x, const Tensor& indices);

}  // namespace naru::ops
