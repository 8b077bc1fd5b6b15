// Shared by the operators that fill tensors with random numbers.
#pragma once

#include "autograd/history/history.h"
#include "ops/random/host_draws.h"
#include "ops/tensor/common.h"

namespace naru::ops {

// Records that `op` overwrote t with random numbers: the gradient of t's former value is zero.
void record_random_fill(const Tensor& t, const char* op);

// Fills t with f. f gets a contiguous tensor of t's shape and dtype (t itself, or a temporary that is copied to t), so that random numbers depend on
// row-major indices. PyTorch's algorithm fills in memory order: then f gets a view of t with permuted dimensions instead (in_memory_order).
template <class F>
void write_in_order(const Tensor& t, const char* op, F f) {
  require_distinct_elements(t, op);
  const bool history = autograd::recording_write(t);
  if (history) autograd::check_in_place(t, op);
  autograd::before_write(t);
  if (t.numel() > 0 && !t.device().is_meta()) {
    NoGrad guard;
    if (t.is_contiguous()) {
      f(t);
    } else if (draws_as_pytorch()) {
      f(in_memory_order(t));
    } else {
      const Tensor dense = make_result(t.sizes(), t.dtype(), t.device(), op, true);
      f(dense);
      const OpOperand copy[] = {{&dense, {}, t.dtype()}};
      apply_into(ir::op::copy, copy, t);
    }
  }
  bump_version(t);
  t.impl()->origin.op = t.impl()->storage->origin.op = op;
  if (history) record_random_fill(t, op);
}

}  // namespace naru::ops
