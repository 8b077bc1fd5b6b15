// softmax, log_softmax.
#include "ops/softmax.h"

#include "autograd/node.h"
#include "ops/common.h"
#include "ops/reductions.h"
#include "ops/type_names.h"

namespace naru {

using autograd::record;
using ir::ReduceOp;
using ops::DimSet;
using ops::Prologue;
using Tensors = std::vector<Tensor>;

namespace ops {

SoftmaxParts softmax_parts(const Tensor& x, const DimSet& set, DType acc, bool keepdim, const char* op) {
  SoftmaxParts p;
  p.greatest = fold_extreme(x, true, set, true, op);
  p.sum = fold(ReduceOp::Sum, Prologue(ir::row::sub_exp, acc, {Prologue::of(x, acc), Prologue::of(p.greatest, acc)}), x.sizes(), set, keepdim,
               acc, op);
  return p;
}

Tensor softmax_of(const Tensor& x, const SoftmaxParts& p, DType acc, DType out, const char* op) {
  FuseScope fuse;
  const Tensor e = step(ir::row::sub_exp, {{&x, {}, acc}, {&p.greatest, {}, acc}}, acc, op);
  return step(ir::row::div, {{&e, {}, acc}, {&p.sum, {}, acc}}, out, op);
}

void require_softmax_type(DType t, const char* op) {
  if (!is_floating(t))
    throw NotImplementedError("\"{}_kernel_impl\" not implemented for '{}' (wanted a floating point type: convert first, or name one with "
                              "dtype=float32)", op, torch_name(t));
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
  ops::require_softmax_type(p.out, op);
  if (t.dim() > 0) p.set.set(static_cast<size_t>(p.dim));
  p.acc = ops::accumulator_of(p.out);
  p.empty = t.numel() == 0;
  return p;
}

// Sum over the dimensions of `set` of a * b (or of a), kept.
Tensor weighted_sum(const Tensor& a, const Tensor* b, const DimSet& set, DType acc, const char* op) {
  if (!b) return ops::fold_sum(a, set, true, acc, acc, op);
  return ops::fold(ReduceOp::Sum, Prologue(ir::row::mul, acc, {Prologue::of(a, acc), Prologue::of(*b, acc)}), a.sizes(), set, true, acc, op);
}

Tensor softmax_gradient(const Tensor& g, const Tensor& y, const Plan& p) {
  if (p.empty) return g;
  if (grad_enabled()) return (g - (p.set.any() ? sum(g * y, Dims{p.dim}, true) : g * y)) * y;
  const Tensor s = weighted_sum(g, &y, p.set, p.acc, "softmax");
  ops::FuseScope fuse;
  const Tensor d = ops::step(ir::row::sub, {{&g, {}, p.acc}, {&s, {}, p.acc}}, p.acc, "softmax");
  return ops::step(ir::row::mul, {{&d, {}, p.acc}, {&y, {}, p.acc}}, g.dtype(), "softmax");
}

Tensor log_softmax_gradient(const Tensor& g, const Tensor& y, const Plan& p) {
  if (p.empty) return g;
  if (grad_enabled()) return g - exp(y) * (p.set.any() ? sum(g, Dims{p.dim}, true) : g);
  const Tensor s = weighted_sum(g, nullptr, p.set, p.acc, "log_softmax");
  ops::FuseScope fuse;
  const Tensor e = ops::step(ir::row::exp, {{&y, {}, p.acc}}, p.acc, "log_softmax");
  const Tensor m = ops::step(ir::row::mul, {{&e, {}, p.acc}, {&s, {}, p.acc}}, p.acc, "log_softmax");
  return ops::step(ir::row::sub, {{&g, {}, p.acc}, {&m, {}, p.acc}}, g.dtype(), "log_softmax");
}

}  // namespace

// Formula: exp(x - m) / sum(exp(x - m)) along `dim`, m the greatest x. Of t's type, or of `dtype`, to which t is converted first.
Tensor softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype) {
  const Plan p = plan(t, dim, dtype, "softmax");
  Tensor y = p.empty ? ops::make_result(t.sizes(), p.out, t.device(), "softmax")
                     : ops::softmax_of(t, ops::softmax_parts(t, p.set, p.acc, true, "softmax"), p.acc, p.out, "softmax");
  return record(
      std::move(y), "SoftmaxBackward0", {&t}, {},
      [p, type = t.dtype()](const Tensors& g, const Tensors& saved) -> Tensors { return {softmax_gradient(g[0], saved[0], p).to(type)}; },
      true);
}

// Formula: (x - m) - log(sum(exp(x - m))) along `dim`, m the greatest x.
Tensor log_softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype) {
  const Plan p = plan(t, dim, dtype, "log_softmax");
  Tensor y;
  if (p.empty) {
    y = ops::make_result(t.sizes(), p.out, t.device(), "log_softmax");
  } else {
    const ops::SoftmaxParts parts = ops::softmax_parts(t, p.set, p.acc, true, "log_softmax");
    const Tensor l = ops::step(ir::row::log, {{&parts.sum, {}, p.acc}}, p.acc, "log_softmax");
    ops::FuseScope fuse;
    const Tensor d = ops::step(ir::row::sub, {{&t, {}, p.acc}, {&parts.greatest, {}, p.acc}}, p.acc, "log_softmax");
    y = ops::step(ir::row::sub, {{&d, {}, p.acc}, {&l, {}, p.acc}}, p.out, "log_softmax");
  }
  return record(
      std::move(y), "LogSoftmaxBackward0", {&t}, {},
      [p, type = t.dtype()](const Tensors& g, const Tensors& saved) -> Tensors { return {log_softmax_gradient(g[0], saved[0], p).to(type)}; },
      true);
}

}  // namespace naru
