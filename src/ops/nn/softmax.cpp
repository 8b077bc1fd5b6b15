// softmax, log_softmax.
#include "ops/nn/softmax.h"

#include "autograd/history/history.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/host_loop.h"
#include "ops/reduce/reductions.h"
#include "ops/reduce/row_fused.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {

using autograd::record;
using ir::ReduceOp;
using ops::DimSet;
using ops::FusedProducer;
using Tensors = std::vector<Tensor>;

namespace ops {

// Row maxima, and row sums of exp(x - maximum). kept: see RowFused::reduce.
static SoftmaxParts softmax_parts(RowFused& rows, const Tensor& x, DType acc, const Tensor* kept = nullptr) {
  SoftmaxParts p;
  p.greatest = rows.reduce(ReduceOp::Max, FusedProducer::copy(x, x.dtype(), accumulator_of(x.dtype())), x.dtype());
  p.sum = rows.reduce(ReduceOp::Sum, FusedProducer(ir::op::sub_exp, acc, {FusedProducer::of(x, acc), FusedProducer::of(p.greatest, acc)}),
                      acc, kept);
  return p;
}

SoftmaxParts softmax_parts(const Tensor& x, const DimSet& set, DType acc, bool keepdim, const char* op) {
  // Many elements that are in memory: one instruction reads each row from the caches the second time. Deferred ones are better computed within the
  // reductions.
  if (keepdim && is_floating(x.dtype()) && x.numel() > kSmall && !x.impl()->storage->pending.load(std::memory_order_acquire)) {
    RowFused rows(x, set, op);
    if (rows.together()) {
      const SoftmaxParts p = softmax_parts(rows, x, acc);
      rows.run();
      return p;
    }
  }
  SoftmaxParts p;
  p.greatest = reduce_extreme(x, true, set, true, op);
  p.sum = reduce(ReduceOp::Sum, FusedProducer(ir::op::sub_exp, acc, {FusedProducer::of(x, acc), FusedProducer::of(p.greatest, acc)}),
                 x.sizes(), set, keepdim, acc, op);
  return p;
}

Tensor softmax_of(const Tensor& x, const SoftmaxParts& p, DType acc, DType out, const char* op) {
  ForceFusion fuse;
  const Tensor e = apply(ir::op::sub_exp, {{&x, {}, acc}, {&p.greatest, {}, acc}}, acc, op);
  const Tensor y = make_result(x.sizes(), out, x.device(), op, true);  // row-major even if x is not: programs view it
  const OpOperand quotient[] = {{&e, {}, acc}, {&p.sum, {}, acc}};
  apply_into(ir::op::div, quotient, y);
  return y;
}

void require_softmax_type(DType t, const char* op, const char* rest) {
  if (!is_floating(t))
    throw NotImplementedError(
        "\"{}{}\" not implemented for '{}' (wanted a floating point type: convert first, or name one with "
        "dtype=float32)",
        op, rest, torch_name(t));
}

}  // namespace ops

namespace {

struct Plan {
  DimSet set;
  int64_t dim;
  DType out, acc;
  bool empty;
};

Plan plan(const Tensor& t, int64_t dim, std::optional<DType> dtype, const char* op) {
  ops::require_defined(t, op, "input");
  Plan p;
  p.out = dtype.value_or(t.dtype());
  p.dim = wrap_dim(dim, t.dim());
  ops::require_softmax_type(p.out, op, p.dim + 1 >= t.dim() ? "_lastdim_kernel_impl" : "_kernel_impl");
  if (t.dim() > 0) p.set.set(static_cast<size_t>(p.dim));
  p.acc = ops::accumulator_of(p.out);
  p.empty = t.numel() == 0;
  return p;
}

Tensor softmax_gradient(const Tensor& g, const Tensor& y, const Plan& p) {
  if (p.empty && !grad_enabled()) return g;
  if (grad_enabled()) return (g - (p.set.any() ? sum(g * y, Dims{p.dim}, true) : g * y)) * y;
  const DType acc = p.acc;
  ops::RowFused rows(y, p.set, "softmax");
  const Tensor dense = g.contiguous();
  const Tensor s =
      rows.reduce(ReduceOp::Sum, FusedProducer(ir::op::mul, acc, {FusedProducer::of(dense, acc), FusedProducer::of(y, acc)}), acc);
  FusedProducer p_of(ir::op::sub, acc, {FusedProducer::of(dense, acc), FusedProducer::of(s, acc)});
  p_of.then(ir::op::mul, acc, {FusedProducer::node(0, acc), FusedProducer::of(y, acc)});
  const Tensor result = rows.map(p_of, g.dtype());
  rows.run();
  return result;
}

Tensor log_softmax_gradient(const Tensor& g, const Tensor& y, const Plan& p) {
  if (p.empty && !grad_enabled()) return g;
  if (grad_enabled()) return g - exp(y) * (p.set.any() ? sum(g, Dims{p.dim}, true) : g);
  const DType acc = p.acc;
  ops::RowFused rows(y, p.set, "log_softmax");
  const Tensor dense = g.contiguous();
  const Tensor s = rows.reduce(ReduceOp::Sum, FusedProducer::copy(dense, acc, acc), acc);
  FusedProducer p_of(ir::op::exp, acc, {FusedProducer::of(y, acc)});
  p_of.then(ir::op::mul, acc, {FusedProducer::node(0, acc), FusedProducer::of(s, acc)});
  p_of.then(ir::op::sub, acc, {FusedProducer::of(dense, acc), FusedProducer::node(1, acc)});
  const Tensor result = rows.map(p_of, g.dtype());
  rows.run();
  return result;
}

// A few small rows: run immediately, because an instruction would cost more than the work.
Tensor of_small_rows(const Tensor& x, const Plan& p, bool log) {
  const int64_t n = ops::reduced_count(x.sizes(), p.set);
  if (x.numel() > 4 * ops::kSmall || n < 2 || p.dim + 1 != x.dim() || p.out != x.dtype() || p.acc != p.out || !x.is_contiguous()) return {};
  const Tensor from = x.detach();
  if (!ops::can_use_host_loop({&from})) return {};
  const Tensor y = ops::make_result(x.sizes(), p.out, x.device(), log ? "log_softmax" : "softmax");
  ops::run_host_loop(ir::HostLoop::Kind::Softmax, {&from}, {&y}, {n, log});
  return y;
}

Tensor softmax_of_rows(const Tensor& x, const Plan& p) {
  if (Tensor y = of_small_rows(x, p, false); y.defined()) return y;
  ops::RowFused rows(x, p.set, "softmax");
  if (!rows.together() || !is_floating(x.dtype()))
    return ops::softmax_of(x, ops::softmax_parts(x, p.set, p.acc, true, "softmax"), p.acc, p.out, "softmax");
  const DType acc = p.acc;
  Tensor y = ops::make_result(x.sizes(), p.out, x.device(), "softmax");
  // If the result's dtype can hold the exponentials, store them there and divide in place.
  const bool holds = p.out == acc;
  const ops::SoftmaxParts parts = ops::softmax_parts(rows, x, acc, holds ? &y : nullptr);
  if (holds) {
    rows.map_into(FusedProducer(ir::op::div, acc, {FusedProducer::of(y, acc), FusedProducer::of(parts.sum, acc)}), y);
  } else {
    FusedProducer divided(ir::op::sub_exp, acc, {FusedProducer::of(x, acc), FusedProducer::of(parts.greatest, acc)});
    divided.then(ir::op::div, acc, {FusedProducer::node(0, acc), FusedProducer::of(parts.sum, acc)});
    rows.map_into(divided, y);
  }
  rows.run();
  return y;
}

Tensor log_softmax_of_rows(const Tensor& x, const Plan& p) {
  if (Tensor y = of_small_rows(x, p, true); y.defined()) return y;
  ops::RowFused rows(x, p.set, "log_softmax");
  const DType acc = p.acc;
  const ops::SoftmaxParts parts =
      rows.together() && is_floating(x.dtype()) ? ops::softmax_parts(rows, x, acc) : ops::softmax_parts(x, p.set, acc, true, "log_softmax");
  const Tensor l = rows.map_reduced(FusedProducer(ir::op::log, acc, {FusedProducer::of(parts.sum, acc)}), acc);
  FusedProducer less(ir::op::sub, acc, {FusedProducer::of(x, acc), FusedProducer::of(parts.greatest, acc)});
  less.then(ir::op::sub, acc, {FusedProducer::node(0, acc), FusedProducer::of(l, acc)});
  const Tensor y = rows.map(less, p.out);
  rows.run();
  return y;
}

}  // namespace

// exp(x - m) / sum(exp(x - m)) along `dim`, where m is the greatest x. In t's dtype, or in `dtype`, to which t is converted first.
Tensor softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype) {
  if (auto y = ops::wrapped("softmax", softmax, t, ops::Dim{dim}, dtype)) return *std::move(y);
  if (dtype && t.defined() && is_complex(t.dtype())) return softmax(t.to(*dtype), dim);
  const Plan p = plan(t, dim, dtype, "softmax");
  Tensor y = p.empty ? ops::make_result(t.sizes(), p.out, t.device(), "softmax") : softmax_of_rows(t, p);
  return record(std::move(y), "SoftmaxBackward0", {&t}, {},
                autograd::Symmetric([p, type = t.dtype()](const Tensors& g, const Tensors& saved) -> Tensors {
                  return {softmax_gradient(g[0].to(p.out), saved[0], p).to(type)};
                }),
                true);
}

// (x - m) - log(sum(exp(x - m))) along `dim`, where m is the greatest x.
Tensor log_softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype) {
  if (auto y = ops::wrapped("log_softmax", log_softmax, t, ops::Dim{dim}, dtype)) return *std::move(y);
  if (dtype && t.defined() && is_complex(t.dtype())) return log_softmax(t.to(*dtype), dim);
  const Plan p = plan(t, dim, dtype, "log_softmax");
  Tensor y = p.empty ? ops::make_result(t.sizes(), p.out, t.device(), "log_softmax") : log_softmax_of_rows(t, p);
  return record(std::move(y), "LogSoftmaxBackward0", {&t}, {},
                autograd::WithJvp([p, type = t.dtype()](const Tensors& g, const Tensors& saved)
                                      -> Tensors { return {log_softmax_gradient(g[0], saved[0], p).to(type)}; },
                                  [dim](const Tensors& tangents, const Tensors& saved) {
                                    const Tensor along = tangents[0].to(saved[0].dtype());
                                    return along.dim() == 0 ? zeros_like(along) : along - sum(exp(saved[0]) * along, Dims{dim}, true);
                                  }),
                true);
}

}  // namespace naru
