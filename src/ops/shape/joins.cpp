// Joining and cutting: stacks of all kinds, pieces, repetitions.
#include <algorithm>

#include "core/sizes.h"
#include "naru/ops.h"
#include "naru/ops/functions.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

using List = std::vector<Tensor>;

// Each tensor as f makes it.
template <class F>
List each(const List& tensors, F f) {
  List parts;
  parts.reserve(tensors.size());
  for (const Tensor& t : tensors) parts.push_back(f(t));
  return parts;
}

// Counts of repetitions, read by the host.
std::vector<int64_t> counts_of(const Tensor& repeats) {
  if (repeats.dim() > 1) throw RuntimeError("repeat_interleave only accept 1D vector as repeat, got {} dimensions", repeats.dim());
  if (!is_integral(repeats.dtype()) || is_wide_unsigned(repeats.dtype()))
    ops::throw_not_implemented("repeat_interleave_cpu", repeats.dtype());
  if (repeats.device().is_meta()) throw RuntimeError("cannot repeat_interleave a meta tensor without output_size");
  auto counts = repeats.to_ints();
  for (const int64_t count : counts)
    if (count < 0) throw RuntimeError("repeats can not be negative (repeat_interleave: got {})", count);
  return counts;
}

// The number of each place, as often as its count says: int64, on cpu.
Tensor repeated(const std::vector<int64_t>& counts, std::optional<int64_t> wanted) {
  int64_t total = 0;
  for (const int64_t count : counts) total = plus(total, count);
  if (wanted && *wanted != total)
    throw RuntimeError("allocated size does not match required size (repeat_interleave: output_size is {}, the repeats add up to {})",
                       *wanted, total);
  Tensor places = empty({total}, Options(DType::I64, Device("cpu")));
  int64_t* to = total ? places.data<int64_t>() : nullptr;
  for (size_t i = 0; i < counts.size(); ++i) to = std::fill_n(to, counts[i], static_cast<int64_t>(i));
  return places;
}

// What repeat_interleave works on: the tensor and a dimension of it, or the flattened tensor.
std::pair<Tensor, int64_t> repeated_along(const Tensor& t, std::optional<int64_t> dim) {
  const Tensor x = dim && t.dim() > 0 ? t : t.reshape({-1});
  return {x, wrap_dim(dim.value_or(0), x.dim())};
}

}  // namespace

Tensor hstack(const List& tensors) {
  const List parts = each(tensors, [](const Tensor& t) { return t.dim() == 0 ? t.reshape({1}) : t; });
  return cat(parts, !parts.empty() && parts[0].dim() > 1 ? 1 : 0);
}
Tensor vstack(const List& tensors) {
  return cat(each(tensors, [](const Tensor& t) { return t.dim() < 2 ? t.reshape({1, -1}) : t; }), 0);
}
Tensor dstack(const List& tensors) {
  return cat(each(tensors, [](const Tensor& t) { return t.dim() < 2 ? t.reshape({1, -1, 1}) : t.dim() == 2 ? t.unsqueeze(2) : t; }), 2);
}
Tensor column_stack(const List& tensors) {
  return cat(each(tensors, [](const Tensor& t) { return t.dim() < 2 ? t.reshape({-1, 1}) : t; }), 1);
}

namespace {
void require_dims_to_split(const Tensor& t) {
  if (t.dim() == 0) throw RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
}
}  // namespace

List tensor_split(const Tensor& t, int64_t sections, int64_t dim) {
  require_dims_to_split(t);
  if (sections <= 0) throw RuntimeError("number of sections must be larger than 0, got {}", sections);
  const int64_t n = t.size(dim);
  constexpr int64_t kMost = int64_t{1} << 28;
  if (sections > kMost) throw RuntimeError("tensor_split: {} pieces are more than fit into memory (at most {})", sections, kMost);
  Dims sizes;
  for (int64_t i = 0; i < sections; ++i) sizes.push_back(n / sections + (i < n % sections));
  return split(t, sizes, dim);
}

List tensor_split(const Tensor& t, const Dims& ends, int64_t dim) {
  require_dims_to_split(t);
  List pieces;
  int64_t start = 0;
  const auto clamped = [n = t.size(dim)](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  for (int64_t end : ends) {
    pieces.push_back(t.slice(dim, start, std::max(start, clamped(end))));
    start = clamped(end);
  }
  pieces.push_back(t.slice(dim, start, t.size(dim)));
  return pieces;
}

List tensor_split(const Tensor& t, const Tensor& ends, int64_t dim) {
  if (!ends.device().is_cpu())
    throw RuntimeError("tensor_split expected tensor_indices_or_sections to be on cpu, but it's on {}", ends.device().str());
  if (ends.dtype() != DType::I64)
    throw RuntimeError("tensor_split expected tensor_indices_or_sections to have dtype of long, but got {}", ops::torch_name(ends.dtype()));
  if (ends.dim() > 1)
    throw RuntimeError(
        "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got a tensor with {} "
        "dims",
        ends.dim());
  return ends.dim() == 0 ? tensor_split(t, ends.item<int64_t>(), dim) : tensor_split(t, Dims(ends.to_ints()), dim);
}

Tensor tile(const Tensor& t, const Dims& given) {
  Dims times = given;
  while (static_cast<int64_t>(times.size()) < t.dim()) times.insert(0, 1);
  return repeat(t, times);
}

Tensor repeat_interleave(const Tensor& t, int64_t repeats, std::optional<int64_t> dim, std::optional<int64_t> output_size) {
  if (repeats < 0) throw RuntimeError("repeats has to be non-negative, got {}", repeats);
  const auto [x, d] = repeated_along(t, dim);
  const int64_t size = times(x.size(d), repeats);
  if (output_size && *output_size != size)
    throw RuntimeError("repeat_interleave: Invalid output_size, expected {} but got {}", size, *output_size);
  const Tensor places = arange(0, size, 1, Options(x.device()));
  return index_select(x, d, floor_divide(places, Operand(std::max<int64_t>(repeats, 1))));
}

Tensor repeat_interleave(const Tensor& t, const Tensor& repeats, std::optional<int64_t> dim, std::optional<int64_t> output_size) {
  if (repeats.device().is_meta() && output_size) {
    const auto [x, d] = repeated_along(t, dim);
    return index_select(x, d, empty({*output_size}, Options(DType::I64, x.device())));
  }
  const auto counts = counts_of(repeats);
  if (counts.size() == 1) return repeat_interleave(t, counts[0], dim, output_size);
  const auto [x, d] = repeated_along(t, dim);
  if (static_cast<int64_t>(counts.size()) != x.size(d))
    throw RuntimeError("repeat_interleave: repeats must have the same size as input along dim, got {} and {}", counts.size(), x.size(d));
  return index_select(x, d, repeated(counts, output_size).to(x.device()));
}

Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> output_size) {
  if (repeats.dim() != 1) throw RuntimeError("repeat_interleave only accept 1D vector as repeat, got {} dimensions", repeats.dim());
  if (repeats.device().is_meta() && output_size) return empty({*output_size}, Options(repeats.dtype(), repeats.device()));
  return repeated(counts_of(repeats), output_size).to(repeats.device()).to(repeats.dtype());
}

namespace {

// The dimension that is split, checked.
int64_t dim_to_split(const Tensor& t, const char* op, int64_t dim) {
  ops::require_defined(t, op, "input");
  const int64_t least = dim == 1 ? 1 : dim == 0 ? 2 : 3;  // hsplit takes vectors
  if (t.dim() < least)
    throw RuntimeError("torch.{} requires a tensor with at least {} dimension, but got a tensor with {} dimensions!", op, least, t.dim());
  return t.dim() == 1 ? 0 : dim;
}

std::vector<Tensor> split_evenly(const Tensor& t, const char* op, int64_t dim, int64_t sections) {
  const int64_t d = dim_to_split(t, op, dim);
  if (sections == 0 || t.size(d) % sections != 0)
    throw RuntimeError(
        "torch.{} attempted to split along dimension {}, but the size of the dimension {} is not divisible by the split_size {}!", op, d,
        t.size(d), sections);
  return tensor_split(t, sections, d);
}

}  // namespace

std::vector<Tensor> hsplit(const Tensor& t, int64_t sections) { return split_evenly(t, "hsplit", 1, sections); }
std::vector<Tensor> vsplit(const Tensor& t, int64_t sections) { return split_evenly(t, "vsplit", 0, sections); }
std::vector<Tensor> dsplit(const Tensor& t, int64_t sections) { return split_evenly(t, "dsplit", 2, sections); }
std::vector<Tensor> hsplit(const Tensor& t, const Dims& ends) { return tensor_split(t, ends, dim_to_split(t, "hsplit", 1)); }
std::vector<Tensor> vsplit(const Tensor& t, const Dims& ends) { return tensor_split(t, ends, dim_to_split(t, "vsplit", 0)); }
std::vector<Tensor> dsplit(const Tensor& t, const Dims& ends) { return tensor_split(t, ends, dim_to_split(t, "dsplit", 2)); }

}  // namespace naru
