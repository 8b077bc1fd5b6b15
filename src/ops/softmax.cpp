// softmax, log_softmax.
#include "ops/softmax.h"
#include "ops/autocast.h"

#include "autograd/node.h"
#include "ops/common.h"
#include "ops/reductions.h"
#include "ops/row_wise.h"
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
  p.sum = fold(ReduceOp::Sum, Prologue(ir::row::sub_exp, acc, {Prologue::of(x, acc), Prologue::of(p.greatest, acc)}), x.sizes(), set,
               keepdim, acc, op);
  return p;
}

Tensor softmax_of(const Tensor& x, const SoftmaxParts& p, DType acc, DType out, const char* op) {
  FuseScope fuse;
  const Tensor e = step(ir::row::sub_exp, {{&x, {}, acc}, {&p.greatest, {}, acc}}, acc, op);
  return step(ir::row::div, {{&e, {}, acc}, {&p.sum, {}, acc}}, out, op);
}

void require_softmax_type(DType t, const char* op) {
  if (!is_floating(t))
    throw NotImplementedError(
        "\"{}_kernel_impl\" not implemented for '{}' (wanted a floating point type: convert first, or name one with "
        "dtype=float32)",
        op, torch_name(t));
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

Tensor softmax_gradient(const Tensor& g, const Tensor& y, const Plan& p) {
  if (p.empty) return g;
  if (grad_enabled()) return (g - (p.set.any() ? sum(g * y, Dims{p.dim}, true) : g * y)) * y;
  const DType acc = p.acc;
  ops::RowWise rows(y, p.set, "softmax");
  const Tensor dense = g.contiguous();
  const Tensor s = rows.fold(ReduceOp::Sum, Prologue(ir::row::mul, acc, {Prologue::of(dense, acc), Prologue::of(y, acc)}), acc);
  Prologue p_of(ir::row::sub, acc, {Prologue::of(dense, acc), Prologue::of(s, acc)});
  p_of.then(ir::row::mul, acc, {Prologue::step(0, acc), Prologue::of(y, acc)});
  const Tensor result = rows.map(p_of, g.dtype());
  rows.run();
  return result;
}

Tensor log_softmax_gradient(const Tensor& g, const Tensor& y, const Plan& p) {
  if (p.empty) return g;
  if (grad_enabled()) return g - exp(y) * (p.set.any() ? sum(g, Dims{p.dim}, true) : g);
  const DType acc = p.acc;
  ops::RowWise rows(y, p.set, "log_softmax");
  const Tensor dense = g.contiguous();
  const Tensor s = rows.fold(ReduceOp::Sum, Prologue::copy(dense, acc, acc), acc);
  Prologue p_of(ir::row::exp, acc, {Prologue::of(y, acc)});
  p_of.then(ir::row::mul, acc, {Prologue::step(0, acc), Prologue::of(s, acc)});
  p_of.then(ir::row::sub, acc, {Prologue::of(dense, acc), Prologue::step(1, acc)});
  const Tensor result = rows.map(p_of, g.dtype());
  rows.run();
  return result;
}

// The greatest elements of rows, and the sums of exp(x - greatest); kept: see RowWise::fold.
ops::SoftmaxParts parts_of(ops::RowWise& rows, const Tensor& x, const Plan& p, const Tensor* kept = nullptr) {
  ops::SoftmaxParts parts;
  parts.greatest = rows.fold(ReduceOp::Max, Prologue::copy(x, x.dtype(), ops::accumulator_of(x.dtype())), x.dtype());
  parts.sum = rows.fold(ReduceOp::Sum, Prologue(ir::row::sub_exp, p.acc, {Prologue::of(x, p.acc), Prologue::of(parts.greatest, p.acc)}),
                        p.acc, kept);
  return parts;
}

Tensor softmax_of_rows(const Tensor& x, const Plan& p) {
  ops::RowWise rows(x, p.set, "softmax");
  if (!rows.together() || !is_floating(x.dtype()))
    return ops::softmax_of(x, ops::softmax_parts(x, p.set, p.acc, true, "softmax"), p.acc, p.out, "softmax");
  const DType acc = p.acc;
  Tensor y = ops::make_result(x.sizes(), p.out, x.device(), "softmax");
  // The exponentials are kept, where the result could hold them, to be divided.
  const bool holds = p.out == acc;
  const ops::SoftmaxParts parts = parts_of(rows, x, p, holds ? &y : nullptr);
  if (holds) {
    rows.map_into(Prologue(ir::row::div, acc, {Prologue::of(y, acc), Prologue::of(parts.sum, acc)}), y);
  } else {
    Prologue divided(ir::row::sub_exp, acc, {Prologue::of(x, acc), Prologue::of(parts.greatest, acc)});
    divided.then(ir::row::div, acc, {Prologue::step(0, acc), Prologue::of(parts.sum, acc)});
    rows.map_into(divided, y);
  }
  rows.run();
  return y;
}

Tensor log_softmax_of_rows(const Tensor& x, const Plan& p) {
  ops::RowWise rows(x, p.set, "log_softmax");
  const DType acc = p.acc;
  const ops::SoftmaxParts parts =
      rows.together() && is_floating(x.dtype()) ? parts_of(rows, x, p) : ops::softmax_parts(x, p.set, acc, true, "log_softmax");
  const Tensor l = rows.map_folded(Prologue(ir::row::log, acc, {Prologue::of(parts.sum, acc)}), acc);
  Prologue less(ir::row::sub, acc, {Prologue::of(x, acc), Prologue::of(parts.greatest, acc)});
  less.then(ir::row::sub, acc, {Prologue::step(0, acc), Prologue::of(l, acc)});
  const Tensor y = rows.map(less, p.out);
  rows.run();
  return y;
}

}  // namespace

// Formula: exp(x - m) / sum(exp(x - m)) along `dim`, m the greatest x. Of t's type, or of `dtype`, to which t is converted first.
Tensor softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype) {
  if (const autocast::Casts c("softmax", {&t}, dtype.has_value()); c) return softmax(c[0], dim, dtype);
  const Plan p = plan(t, dim, dtype, "softmax");
  Tensor y = p.empty ? ops::make_result(t.sizes(), p.out, t.device(), "softmax") : softmax_of_rows(t, p);
  return record(
      std::move(y), "SoftmaxBackward0", {&t}, {},
      [p, type = t.dtype()](const Tensors& g, const Tensors& saved) -> Tensors { return {softmax_gradient(g[0], saved[0], p).to(type)}; },
      true);
}

// Formula: (x - m) - log(sum(exp(x - m))) along `dim`, m the greatest x.
Tensor log_softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype) {
  if (const autocast::Casts c("log_softmax", {&t}, dtype.has_value()); c) return log_softmax(c[0], dim, dtype);
  const Plan p = plan(t, dim, dtype, "log_softmax");
  Tensor y = p.empty ? ops::make_result(t.sizes(), p.out, t.device(), "log_softmax") : log_softmax_of_rows(t, p);
  return record(
      std::move(y), "LogSoftmaxBackward0", {&t}, {},
      [p, type = t.dtype()](const Tensors& g, const Tensors& saved) -> Tensors {
        return {log_softmax_gradient(g[0], saved[0], p).to(type)};
      },
      true);
}

}  // namespace naru
