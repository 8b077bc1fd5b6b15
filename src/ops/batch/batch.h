// Operators on tensors of a vmap. Each operator has its rule where its arguments are known, beside what it does with sparse tensors: it calls itself
// with the values, whose first dimension is the batch, and wraps the result. Operators made of others need none. Autograd sees values only. Every
// other access to elements (views, instructions, memory) refuses batched tensors, as it refuses sparse ones.
#pragma once

#include <span>
#include <tuple>
#include <vector>

#include "autograd/graph/batch.h"
#include "ir/program.h"
#include "naru/error.h"
#include "naru/tensor.h"

namespace naru::batching {

// An operator that has no rule for batched tensors.
class NoBatchingRule : public NotImplementedError {
 public:
  explicit NoBatchingRule(const char* op);
};
// A tensor without the batch would be written from one with it.
class WrittenWithoutBatch : public RuntimeError {
 public:
  explicit WrittenWithoutBatch(const char* op);
};

}  // namespace naru::batching

namespace naru::ops {

// Whether one of them has no elements of its own: it is sparse or batched.
template <class... T>
bool have_parts(const T&... t) noexcept {
  return ((t.defined() ? t.impl()->special : 0) | ...) & kHasParts;
}
template <class... T>
bool are_batched(const T&... t) noexcept {
  return ((t.defined() ? t.impl()->special : 0) | ...) & kBatched;
}

inline uint8_t parts_of_any(const std::vector<Tensor>& tensors) noexcept {
  uint8_t special = 0;
  for (const Tensor& t : tensors) special |= t.defined() ? t.impl()->special : 0;
  return special & kHasParts;
}

// Operators of the elementwise table with a batched operand.
Tensor run_batched(ir::OpId id, std::span<const Operand> operands);
void run_batched_in_place(ir::OpId id, const Tensor& target, std::span<const Operand> others);
void batched_copy_(const Tensor& t, const Tensor& source);
void batched_fill_(const Tensor& t, const Operand& value);

}  // namespace naru::ops

namespace naru::batching {

// The innermost batch among the operands of a call; at least one of them is batched.
class Batch {
 public:
  Batch(std::initializer_list<const Tensor*> operands) : Batch(std::span<const Tensor* const>(operands.begin(), operands.size())) {}
  explicit Batch(std::span<const Tensor* const> operands);
  explicit Batch(const std::vector<Tensor>& operands);

  int64_t size() const noexcept { return size_; }
  bool has(const Tensor& t) const noexcept { return is_batched(t) && batch_parts(t).level == level_; }
  // With the batch as the first dimension: of those that have it, or of all, expanded.
  const Tensor& opened(const Tensor& t) const noexcept { return has(t) ? batch_parts(t).value : t; }
  Tensor whole(const Tensor& t) const;
  // As opened, with dimensions of size 1 behind the batch, so that it broadcasts with entries of `rank` dimensions.
  Tensor aligned(const Tensor& t, int64_t rank) const;
  Tensor whole_aligned(const Tensor& t, int64_t rank) const;
  // A shape with the batch in front.
  Dims under(const Dims& shape) const;

  // What the function sees of a result.
  Tensor entry(const Tensor& value) const { return value.defined() ? make_batched(value, level_) : value; }
  template <class... T>
  std::tuple<T...> entry(const std::tuple<T...>& values) const {
    return std::apply([&](const T&... v) { return std::tuple<T...>(entry(v)...); }, values);
  }
  std::pair<Tensor, Tensor> entry(const std::pair<Tensor, Tensor>& p) const { return {entry(p.first), entry(p.second)}; }
  std::vector<Tensor> entry(std::vector<Tensor> values) const {
    for (Tensor& v : values) v = entry(v);
    return values;
  }

 private:
  int64_t level_ = 0, size_ = 0;
};

// A dimension's place behind the batch. Throws IndexError for one out of range.
inline int64_t behind_batch(int64_t dim, int64_t rank) { return wrap_dim(dim, rank) + 1; }
Dims behind_batch(const Dims& dims, int64_t rank);

// f(value), or f(value, batch), of a batched tensor. With `op`, for functions that refuse sparse tensors.
template <class F>
auto each_entry(const Tensor& t, F f) {
  const Batch b{&t};
  if constexpr (std::is_invocable_v<F, const Tensor&>)
    return b.entry(f(b.opened(t)));
  else
    return b.entry(f(b.opened(t), b));
}
void require_batched(const Tensor& t, const char* op);
template <class F>
auto each_entry(const Tensor& t, const char* op, F f) {
  require_batched(t, op);
  return each_entry(t, f);
}

// f(value, a, b) of a batched tensor and two of its dimensions.
template <class F>
Tensor between(const Tensor& t, int64_t a, int64_t b, F f) {
  const int64_t x = behind_batch(a, t.dim()), y = behind_batch(b, t.dim());
  return each_entry(t, [&](const Tensor& v) { return t.dim() ? f(v, x, y) : f(v.unsqueeze(1), x, y).squeeze(1); });
}

// f(value, dim) of a batched tensor. An entry without dimensions is a vector of one element, and so is what f makes of it.
template <class F>
auto along(const Tensor& t, int64_t dim, F f) {
  const Batch b{&t};
  const int64_t at = behind_batch(dim, t.dim());
  if (t.dim() > 0) return b.entry(f(b.opened(t), at));
  const auto flat = [](const Tensor& r) { return r.dim() > 1 ? r.squeeze(1) : r; };
  auto made = f(b.opened(t).unsqueeze(1), at);
  if constexpr (std::is_same_v<decltype(made), Tensor>)
    return b.entry(flat(made));
  else if constexpr (std::is_same_v<decltype(made), std::vector<Tensor>>) {
    for (Tensor& r : made) r = flat(r);
    return b.entry(std::move(made));
  } else {
    return b.entry(std::apply([&](const auto&... r) { return decltype(made)(flat(r)...); }, made));
  }
}

// f(value, dims) of a batched tensor, for reductions over all dimensions unless some are named. empty_is_none: as dim_set.
template <class F>
auto reduced(const Tensor& t, const OptionalDims& dims, F f, bool empty_is_none = false) {
  if (t.dim() == 0 && !(dims && dims->empty() && empty_is_none))
    return along(t, dims && !dims->empty() ? (*dims)[0] : 0, [&](const Tensor& v, int64_t d) { return f(v, Dims{d}); });
  Dims all;
  if (!dims || (dims->empty() && !empty_is_none))
    for (int64_t d = 0; d < t.dim(); ++d) all.push_back(d + 1);
  else
    all = behind_batch(*dims, t.dim());
  return each_entry(t, [&](const Tensor& v) { return f(v, all); });
}

// f(value, dim) of a batched tensor, for reductions of the flattened entry unless a dimension is named.
template <class F>
Tensor reduced(const Tensor& t, std::optional<int64_t> dim, bool keepdim, F f) {
  if (dim) return along(t, *dim, f);
  const Tensor one = along(t.dim() > 1 ? t.reshape({-1}) : t, 0, f);
  return keepdim ? one.reshape(Dims(static_cast<size_t>(t.dim()), 1)) : one;
}

// cat (as_rows: stack) of tensors of which some are batched.
Tensor joined(const std::vector<Tensor>& tensors, int64_t dim, bool as_rows);

}  // namespace naru::batching
