// What functions that fill tensors with random numbers share.
#pragma once

#include "ops/common.h"
#include "ops/history.h"
#include "ops/host_draws.h"

namespace naru::ops {

// What t was before has a gradient of zeros from here on: `op` has drawn its elements.
void remember_draw(const Tensor& t, const char* op);

// Calls f with a contiguous tensor of t's shape and type, whose elements are t's afterwards: positions are counted in row-major order. PyTorch's numbers
// go through memory: f gets a view of t, which it fills in that view's order.
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
  if (history) remember_draw(t, op);
}

}  // namespace naru::ops
