// mse_loss, l1_loss, smooth_l1_loss, binary_cross_entropy with and without logits.
#include "autograd/history/constant.h"
#include "autograd/history/history.h"
#include "ops/batch/batch.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduction.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {

using autograd::record;
using autograd::requires_grad;
using ir::ReduceOp;
using ops::FusedProducer;
using Tensors = std::vector<Tensor>;

namespace {

// Where, in which shape and in which types an elementwise loss of two operands is computed.
struct Pair {
  Dims shape;
  DType type, acc;
  double count;
};

Pair pair_of(const Tensor& a, const Tensor& b, const char* op, const char* kernel) {
  ops::require_defined(a, op, "input");
  ops::require_defined(b, op, "target");
  const Tensor* tensors[] = {&a, &b};
  const char* roles[] = {"input", "target"};
  ops::common_device(tensors, roles, op);
  const Operand operands[] = {a, b};
  Pair p;
  p.shape = broadcast_shapes(a.sizes(), b.sizes());
  p.type = ops::result_type(operands);
  if (!is_floating(p.type))
    throw NotImplementedError("\"{}\" not implemented for '{}' ({}: wanted a floating point type; convert first)", kernel,
                              ops::torch_name(p.type), op);
  p.acc = ops::accumulator_of(p.type);
  p.count = static_cast<double>(product(p.shape));
  return p;
}

// The sum (or mean) over all elements of the producer.
Tensor reduced(const FusedProducer& producer, const Pair& p, Reduction reduction, const char* op) {
  const auto all = ops::dim_set(std::nullopt, static_cast<int64_t>(p.shape.size()));
  if (reduction == Reduction::Sum) return ops::reduce(ReduceOp::Sum, producer, p.shape, all, false, p.type, op);
  const Tensor total = ops::reduce(ReduceOp::Sum, producer, p.shape, all, false, p.acc, op);
  return ops::apply(ir::op::div, {{&total, {}, p.acc}, {nullptr, p.count, p.acc}}, p.type, op);
}

Tensor reduce_loss(const Tensor& loss, Reduction reduction) {
  return reduction == Reduction::Mean ? mean(loss) : reduction == Reduction::Sum ? sum(loss) : loss;
}

// A rule for entries: f of two tensors gives a loss for each element, and there is one result for each entry. Weights are those of all entries.
template <class F, class... W>
auto losses_of_entries(const Tensor& a, const Tensor& b, Reduction reduction, F f, const W&... weights) {
  return [=, &a, &b, &weights...]() -> std::optional<Tensor> {
    if (ops::are_batched(Tensor(), weights...)) return {};
    const batching::Batch batch{&a, &b};
    const int64_t rank = std::max(a.dim(), b.dim());
    return reduce_loss(batch.entry(f(batch.whole_aligned(a, rank), batch.whole_aligned(b, rank))), reduction);
  };
}
// The gradient of each element's loss, without the element's own factor.

Tensor spread(const Tensor& g, Reduction reduction, double count) { return reduction == Reduction::Mean ? g / count : g; }

Tensor fit(const Tensor& g, const Dims& shape, DType type) {
  const Tensor s = ops::sum_to(g, shape);
  return s.dtype() == type ? s : s.to(type);
}

// Records gradients of (a, b) from the one of a - b: they differ only in sign. Each element has a part in one result.
template <class F>
Tensor record_difference(Tensor out, const char* node, const Tensor& a, const Tensor& b, Reduction reduction, F gradient) {
  const auto backward = [=](const Tensors& g, const Tensors& saved, autograd::Needed needed) -> Tensors {
    const Tensor d = gradient(g[0], saved[0] - saved[1]);
    return {needed[0] ? fit(d, saved[0].sizes(), saved[0].dtype()) : Tensor(),
            needed[1] ? fit(-d, saved[1].sizes(), saved[1].dtype()) : Tensor()};
  };
  const auto jvp = [=](const Tensors& t, const Tensors& saved) {
    const Tensor d = saved[0] - saved[1], weights = gradient(ones({}, Options(d.dtype(), d.device())), d);
    const Tensor along = autograd::added(t[0], t[1].defined() ? -t[1] : t[1]) * weights;
    return reduction == Reduction::None ? along : sum(along);
  };
  return record(std::move(out), node, {&a, &b}, {&a, &b}, autograd::WithJvp(backward, jvp));
}

}  // namespace

// (a - b)^2, its mean, or its sum. Operands broadcast.
Tensor mse_loss(const Tensor& a, const Tensor& b, Reduction reduction) {
  const auto entries =
      losses_of_entries(a, b, reduction, [&](const Tensor& x, const Tensor& y) { return mse_loss(x, y, Reduction::None); });
  if (auto y = ops::wrapped("mse_loss", mse_loss, a, b, reduction, ops::BatchRule{entries})) return *std::move(y);
  const char* op = "mse_loss";
  const Pair p = pair_of(a, b, op, "mse_cpu");
  Tensor out = reduction == Reduction::None
                   ? ops::apply(ir::op::square_diff, {{&a, {}, p.type}, {&b, {}, p.type}}, p.type, op)
                   : reduced(FusedProducer(ir::op::square_diff, p.acc, {FusedProducer::of(a, p.type), FusedProducer::of(b, p.type)}), p,
                             reduction, op);
  const double factor = reduction == Reduction::Mean ? 2.0 / p.count : 2.0;
  return record_difference(std::move(out), "MseLossBackward0", a, b, reduction,
                           [factor](const Tensor& g, const Tensor& d) { return d * (g * factor); });
}

// |a - b|, its mean, or its sum.
Tensor l1_loss(const Tensor& a, const Tensor& b, Reduction reduction) {
  if (auto y = ops::wrapped("l1_loss", l1_loss, a, b, reduction)) return *std::move(y);
  return reduce_loss(abs(a - b), reduction);
}

// With d = |a - b|: d^2 / (2 beta) if d < beta, else d - beta / 2 (Girshick, Fast R-CNN, 2015).
Tensor smooth_l1_loss(const Tensor& a, const Tensor& b, Reduction reduction, double beta) {
  const auto entries =
      losses_of_entries(a, b, reduction, [&](const Tensor& x, const Tensor& y) { return smooth_l1_loss(x, y, Reduction::None, beta); });
  if (auto y = ops::wrapped("smooth_l1_loss", smooth_l1_loss, a, b, reduction, beta, ops::BatchRule{entries})) return *std::move(y);
  if (beta < 0) throw RuntimeError("smooth_l1_loss does not support negative values for beta. (got {})", beta);
  if (beta == 0) return l1_loss(a, b, reduction);
  const char* op = "smooth_l1_loss";
  const Pair p = pair_of(a, b, op, "smooth_l1_cpu");
  Tensor out = reduction == Reduction::None
                   ? ops::apply(ir::op::smooth_l1, {{&a, {}, p.type}, {&b, {}, p.type}, {nullptr, beta, p.type}}, p.type, op)
                   : reduced(FusedProducer(ir::op::smooth_l1, p.acc,
                                           {FusedProducer::of(a, p.type), FusedProducer::of(b, p.type), FusedProducer::of(beta, p.type)}),
                             p, reduction, op);
  return record_difference(
      std::move(out), "SmoothL1LossBackward0", a, b, reduction,
      [=, count = p.count](const Tensor& g, const Tensor& d) { return clamp(d / beta, -1.0, 1.0) * spread(g, reduction, count); });
}

namespace {

void check_same_type(const Tensor& a, const Tensor& b, const char* what) {
  if (a.dtype() != b.dtype())
    throw RuntimeError("Found dtype {} but expected {} ({}; convert it with .to())", ops::torch_name(b.dtype()), ops::torch_name(a.dtype()),
                       what);
}

Device loss_device(const Tensor& x, const Tensor& target, const Tensor& weight, const Tensor& pos_weight, const char* op) {
  ops::require_defined(x, op, "input");
  ops::require_defined(target, op, "target");
  const Tensor* tensors[] = {&x, &target, &weight, &pos_weight};
  const char* roles[] = {"input", "target", "weight", "pos_weight"};
  return ops::common_device(tensors, roles, op);
}

// Throws for probabilities outside [0, 1]. Checked on the cpu only: elsewhere the host would have to wait.
void check_probabilities(const Tensor& p) {
  if (!p.device().is_cpu() || p.numel() == 0) return;
  const DType type = p.dtype();
  FusedProducer inside(ir::op::ge, DType::Bool, {FusedProducer::of(p, type), FusedProducer::of(0.0, type)});
  inside.then(ir::op::le, DType::Bool, {FusedProducer::of(p, type), FusedProducer::of(1.0, type)});
  inside.then(ir::op::logical_and, DType::Bool, {FusedProducer::node(0, DType::Bool), FusedProducer::node(1, DType::Bool)});
  if (!ops::reduce(ReduceOp::All, inside, p.sizes(), ops::dim_set(std::nullopt, p.dim()), false, DType::Bool, "binary_cross_entropy")
           .item()
           .to_bool())
    throw RuntimeError(
        "all elements of input should be between 0 and 1 (binary_cross_entropy; for logits use "
        "binary_cross_entropy_with_logits)");
}

}  // namespace

// -(t log p + (1 - t) log(1 - p)), with logarithms clamped to at least -100, times weight.
Tensor binary_cross_entropy(const Tensor& p, const Tensor& target, const Tensor& weight, Reduction reduction) {
  const auto entries = losses_of_entries(
      p, target, reduction, [&](const Tensor& x, const Tensor& y) { return binary_cross_entropy(x, y, weight, Reduction::None); }, weight);
  if (auto y = ops::wrapped("binary_cross_entropy", binary_cross_entropy, p, target, weight, reduction, ops::BatchRule{entries}))
    return *std::move(y);
  const char* op = "binary_cross_entropy";
  loss_device(p, target, weight, {}, op);
  autograd::refuse_gradient(weight, op, "weight");
  if (!(p.sizes() == target.sizes()))
    throw ValueError(
        "Using a target size (torch.Size({})) that is different to the input size (torch.Size({})) is deprecated. Please ensure they "
        "have the same size.",
        target.sizes().str(), p.sizes().str());
  check_same_type(p, target, "the target of binary_cross_entropy");
  if (!is_floating(p.dtype())) ops::throw_not_implemented("binary_cross_entropy", p.dtype());
  check_probabilities(p);
  Tensor out;
  {
    NoGrad guard;
    ops::ForceFusion fuse;
    out = (target - 1.0) * clamp_min(log1p(-p), -100.0) - target * clamp_min(log(p), -100.0);
    if (weight.defined()) out = out * weight;
    out = reduce_loss(out, reduction);
  }
  const auto n = static_cast<double>(p.numel());
  return record(std::move(out), "BinaryCrossEntropyBackward0", {&p, &target}, {&p, &target, &weight},
                [=](const Tensors& g, const Tensors& saved, autograd::Needed needed) -> Tensors {
                  const Tensor &x = saved[0], &t = saved[1], &w = saved[2];
                  Tensor each = spread(g[0], reduction, n);
                  if (w.defined()) each = each * w;
                  return {needed[0] ? each * (x - t) / clamp_min((1.0 - x) * x, 1e-12) : Tensor(),
                          needed[1] ? each * (log1p(-x) - log(x)) : Tensor()};
                });
}

// (1 - t) x + l log(1 + exp(-x)), where l = 1 + (pos_weight - 1) t, times weight.
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, const Tensor& weight, Reduction reduction,
                                        const Tensor& pos_weight) {
  const auto each = [&](const Tensor& u, const Tensor& t) {
    return binary_cross_entropy_with_logits(u, t, weight, Reduction::None, pos_weight);
  };
  const auto entries = losses_of_entries(x, target, reduction, each, weight, pos_weight);
  if (auto y = ops::wrapped("binary_cross_entropy_with_logits", binary_cross_entropy_with_logits, x, target, weight, reduction, pos_weight,
                            ops::BatchRule{entries}))
    return *std::move(y);
  const char* op = "binary_cross_entropy_with_logits";
  loss_device(x, target, weight, pos_weight, op);
  autograd::refuse_gradient(weight, op, "weight");
  autograd::refuse_gradient(pos_weight, op, "pos_weight");
  if (!(x.sizes() == target.sizes()))
    throw ValueError("Target size (torch.Size({})) must be the same as input size (torch.Size({}))", target.sizes().str(), x.sizes().str());
  ops::require_floating(x.dtype(), "log_sigmoid_cpu");
  if (target.dtype() == DType::Bool)
    throw NotImplementedError(
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead. ({}: "
        "convert "
        "the target to floating point)",
        op);
  if (!is_floating(target.dtype()))
    throw RuntimeError("result type Float can't be cast to the desired output type {} ({}: wanted floating point input and target)",
                       ops::torch_name(target.dtype()), op);
  Tensor out;
  {
    NoGrad guard;
    ops::ForceFusion fuse;
    if (pos_weight.defined())
      out = (1.0 - target) * x - ((pos_weight - 1.0) * target + 1.0) * logsigmoid(x);
    else
      out = (1.0 - target) * x - logsigmoid(x);
    if (weight.defined()) out = out * weight;
    if (out.dtype() != target.dtype()) out = out.to(target.dtype());
    out = reduce_loss(out, reduction);
  }
  const auto n = static_cast<double>(x.numel());
  return record(
      std::move(out), "BinaryCrossEntropyWithLogitsBackward0", {&x, &target}, {&x, &target, &weight, &pos_weight},
      [=](const Tensors& g, const Tensors& saved, autograd::Needed needed) -> Tensors {
        const bool for_x = needed[0], for_target = needed[1];
        const Tensor &v = saved[0], &t = saved[1], &w = saved[2], &pw = saved[3];
        Tensor each = spread(g[0], reduction, n);
        if (w.defined()) each = each * w;
        Tensor gx, gt;
        if (for_x && pw.defined())
          gx = (1.0 - t) - ((pw - 1.0) * t + 1.0) * sigmoid(-v);
        else if (for_x)
          gx = sigmoid(v) - t;
        if (for_target) gt = pw.defined() ? -v - (pw - 1.0) * logsigmoid(v) : -v;
        return {for_x ? fit(gx * each, v.sizes(), v.dtype()) : Tensor(), for_target ? fit(gt * each, t.sizes(), t.dtype()) : Tensor()};
      });
}

}  // namespace naru
