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

// cat (as_rows: stack) of tensors of which some are batched.
Tensor joined(const std::vector<Tensor>& tensors, int64_t dim, bool as_rows);

}  // namespace naru::batching
