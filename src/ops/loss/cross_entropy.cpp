// nll_loss and cross_entropy.
#include <limits>

#include "autograd/history/constant.h"
#include "autograd/history/history.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/half.h"
#include "ops/nn/softmax.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {

using autograd::record;
using ir::ReduceOp;
using ops::apply;
using ops::DimSet;
using ops::FusedProducer;
using Tensors = std::vector<Tensor>;

namespace {

// The checked class indices of a loss, and tensors derived from them.
struct Classes {
  Tensor target;            // int64, the input's shape without the class dimension
  Tensor valid, positions;  // if some targets are ignored: a mask of those that count, and the targets with class 0 for the others
  Tensor weight;            // the weight of each target, if classes have weights
  int64_t dim = 0, count = 0;
  bool masked = false;
};

// x[..., target, ...]: the target's element of each row.
Tensor choose(const Tensor& x, int64_t dim, const Tensor& target, ir::IndexName op) {
  Tensor out = ops::make_result(target.sizes(), x.dtype(), x.device(), op);
  if (out.numel() == 0) return out;
  ir::Gather g;
  g.op = op;
  g.shape = target.sizes();
  g.out = ops::view_of(out, g.shape);
  g.source = ops::view_of(x, x.sizes());
  const auto d = static_cast<size_t>(dim);
  g.indices.push_back({ops::view_of(target, g.shape), x.size(dim), x.strides()[d], static_cast<int>(dim), false});
  g.source.strides.erase(d);
  // A 1-d x is one row for all targets.
  if (x.dim() == 1) g.source.strides = Dims(g.shape.size(), 0);
  ops::submit(std::move(g), {&x, &target}, {&out});
  return out;
}

// On the cpu, throws for bad class indices here; elsewhere the gather notes them, and the next read reports them. Returns whether some targets are
// ignored (elsewhere: may be).
bool check_target(const Tensor& target, int64_t count, int64_t ignore_index) {
  ops::refuse_parts(target, "nll_loss");
  if (!target.device().is_cpu() || ops::recording_host()) return true;
  const Tensor dense = target.contiguous();
  runtime::wait_for_host(*dense.impl()->storage);
  const auto* p = static_cast<const int64_t*>(dense.impl()->address());
  bool ignored = false;
  for (int64_t i = 0; i < dense.numel(); ++i) {
    if (p[i] == ignore_index)
      ignored = true;
    else if (p[i] < 0 || p[i] >= count)
      throw IndexError("Target {} is out of bounds. (wanted 0 <= target < {}, or {} to be ignored; got {} at position {})", p[i], count,
                       ignore_index, p[i], i);
  }
  return ignored;
}

void check_shapes(const Tensor& x, const Tensor& target) {
  const Dims &sx = x.sizes(), &st = target.sizes();
  if (sx.size() <= 2 && st.size() > 1)
    throw RuntimeError("0D or 1D target tensor expected, multi-target not supported (got shape {})", st.str());
  if (sx.size() == 1) {
    if (target.numel() != 1) throw RuntimeError("For 1D input, 1D target must have size 1, but got target size: {}", target.numel());
    return;
  }
  const int64_t n = st.empty() ? 1 : st[0];
  if (sx[0] != n || st.empty()) throw ValueError("Expected input batch_size ({}) to match target batch_size ({}).", sx[0], n);
  Dims wanted = sx;
  wanted.erase(1);
  if (!(wanted == st)) throw RuntimeError("Expected target size {}, got {}", wanted.str(), st.str());
}

Classes classes_of(const Tensor& x, const Tensor& target, const Tensor& weight, int64_t ignore_index, ir::IndexName op) {
  autograd::refuse_gradient(weight, x.defined() && x.dim() > 2 ? "nll_loss2d_forward" : "nll_loss_forward", "weight");
  NoGrad guard;
  ops::require_defined(x, op, "input");
  ops::require_defined(target, op, "target");
  const Tensor* tensors[] = {&x, &target, &weight};
  const char* roles[] = {"input", "target", "weight"};
  ops::common_device(std::span(tensors, weight.defined() ? 3 : 2), roles, op);
  if (x.dim() == 0 && std::string_view(op) == "nll_loss") throw ValueError("Expected 1 or more dimensions (got 0) (nll_loss)");
  if (x.dim() == 0) throw RuntimeError("{}: input tensor should be at least 1D (N, C) or (C), got a tensor without dimensions", op);
  if (target.dtype() != DType::I64 && target.dtype() != DType::U8)
    throw RuntimeError("expected target dtype to be Long or Byte, but got {} ({}: convert it, target.long())",
                       ops::torch_name(target.dtype()), op);
  check_shapes(x, target);
  Classes c;
  c.dim = x.dim() == 1 ? 0 : 1;
  c.count = x.size(c.dim);
  if (weight.defined()) {
    if (weight.dim() != 1 || weight.numel() != c.count)
      throw RuntimeError("weight tensor should be defined either for all {} classes or no classes but got weight tensor of shape: {}",
                         c.count, weight.sizes().str());
    if (weight.dtype() != x.dtype())
      throw RuntimeError("expected scalar type {} but found {} ({}: the weight of the classes)", ops::torch_name(x.dtype()),
                         ops::torch_name(weight.dtype()), op);
  }
  c.target = target.detach().to(DType::I64);
  if (x.device() != c.target.device()) c.target = c.target.to(x.device());
  if (x.dim() == 1 && c.target.dim() == 1) c.target = c.target.reshape({});
  c.positions = c.target;
  c.masked = check_target(c.target, c.count, ignore_index);
  if (c.masked) {
    c.valid = apply(ir::op::ne, {{&c.target, {}, DType::I64}, {nullptr, ignore_index, DType::I64}}, DType::Bool, op);
    c.positions =
        apply(ir::op::where, {{&c.valid, {}, DType::Bool}, {&c.target, {}, DType::I64}, {nullptr, 0, DType::I64}}, DType::I64, op);
  }
  if (weight.defined()) c.weight = choose(weight, 0, c.positions, op);
  return c;
}

// Appends weight and mask to a producer that ends in the loss of each element.
void finish(FusedProducer& p, const Classes& c, DType acc) {
  if (c.weight.defined()) p.then(ir::op::mul, acc, {FusedProducer::node(p.last(), acc), FusedProducer::of(c.weight, acc)});
  if (c.masked)
    p.then(ir::op::where, acc, {FusedProducer::of(c.valid, DType::Bool), FusedProducer::node(p.last(), acc), FusedProducer::of(0.0, acc)});
}

DimSet everything(const Dims& sizes) { return ops::dim_set(std::nullopt, static_cast<int64_t>(sizes.size())); }

// The mean's divisor: the sum of the weights of the targets that count. Undefined: their number, which the host knows.
Tensor divisor_of(const Classes& c, DType acc, const char* op) {
  if (!c.masked && !c.weight.defined()) return {};
  FusedProducer p = c.weight.defined() ? FusedProducer::copy(c.weight, acc, acc) : FusedProducer::copy(c.valid, acc, acc);
  if (c.weight.defined() && c.masked)
    p.then(ir::op::where, acc, {FusedProducer::of(c.valid, DType::Bool), FusedProducer::node(p.last(), acc), FusedProducer::of(0.0, acc)});
  return ops::reduce(ReduceOp::Sum, p, c.target.sizes(), everything(c.target.sizes()), false, acc, op);
}

// Reduces the losses of the elements by `reduction`; Reduction::None reduces nothing.
Tensor reduced(const FusedProducer& p, const Classes& c, Reduction reduction, const Tensor& divisor, DType acc, DType out, const char* op) {
  const Dims& sizes = c.target.sizes();
  if (reduction != Reduction::Mean)
    return ops::reduce(ReduceOp::Sum, p, sizes, reduction == Reduction::None ? DimSet() : everything(sizes), false, out, op);
  const Tensor total = ops::reduce(ReduceOp::Sum, p, sizes, everything(sizes), false, acc, op);
  const Tensor* by = divisor.defined() ? &divisor : nullptr;
  return apply(ir::op::div, {{&total, {}, acc}, {by, static_cast<double>(product(sizes)), acc}}, out, op);
}

// The factor of each row in the gradient, with a class dimension of 1, or 0-d; float32 for 16-bit types. Differentiable in g.
Tensor row_scale(const Tensor& g, const Classes& c, Reduction reduction, const Tensor& divisor) {
  Tensor s = g.to(ops::accumulator_of(g.dtype()));
  if (reduction == Reduction::Mean) s = divisor.defined() ? s / divisor.to(s.dtype()) : s / static_cast<double>(c.target.numel());
  if (c.weight.defined()) s = s * c.weight;
  if (c.masked) s = where(c.valid, s, 0.0);
  return s.dim() > 0 ? s.unsqueeze(c.dim) : s;
}

// Whether class k is the target: a deferred bool tensor of the input's shape.
Tensor one_hot_of(const Classes& c, int64_t rank, const char* op) {
  NoGrad guard;
  Dims shape(static_cast<size_t>(rank - c.dim), 1);
  shape[0] = c.count;
  // Compare in 32 bits, which is faster on GPUs. A truncated target may look like a valid class, but then it is either ignored (its row is scaled by
  // 0) or an error that has been reported.
  const DType type = c.count <= std::numeric_limits<int32_t>::max() ? DType::I32 : DType::I64;
  const Tensor numbers = arange(0, c.count, 1, Options(type, c.target.device())).view(shape), target = c.target.unsqueeze(c.dim).to(type);
  return apply(ir::op::eq, {{&numbers, {}, type}, {&target, {}, type}}, DType::Bool, op);
}

}  // namespace

// -log_probabilities[target] * weight[target]; the mean divides by the sum of the weights.
Tensor nll_loss(const Tensor& x, const Tensor& target, const Tensor& weight, Reduction reduction, int64_t ignore_index) {
  if (auto y = ops::wrapped("nll_loss", nll_loss, x, target, weight, reduction, ignore_index)) return *std::move(y);
  constexpr ir::IndexName op = "nll_loss";
  const Classes c = classes_of(x, target, weight, ignore_index, op);
  ops::require_softmax_type(x.dtype(), op, "_out_frame");
  const DType acc = ops::accumulator_of(x.dtype());
  const Tensor chosen = choose(x, c.dim, c.positions, op);
  FusedProducer p(ir::op::neg, acc, {FusedProducer::of(chosen, acc)});
  finish(p, c, acc);
  const Tensor divisor = reduction == Reduction::Mean ? divisor_of(c, acc, op) : Tensor();
  const auto backward = [c, reduction, divisor, sizes = x.sizes(), op](const Tensors& g, const Tensors&) -> Tensors {
    const Tensor scale = row_scale(-g[0], c, reduction, divisor);
    return {where(one_hot_of(c, static_cast<int64_t>(sizes.size()), op), scale, 0.0).to(g[0].dtype())};
  };
  return autograd::reading_inputs(
      record(reduced(p, c, reduction, divisor, acc, x.dtype(), op), "NllLossBackward0", {&x}, {&c.target}, backward));
}

namespace {

// Loss of a row: log(sum(exp(x - m))) + (m - x[target]), where m is the greatest x. Gradient: softmax(x) - one_hot(target). out: the loss's dtype.
Tensor cross_entropy_of_classes(const Tensor& x, const Tensor& target, const Tensor& weight, Reduction reduction, int64_t ignore_index,
                                DType out) {
  constexpr ir::IndexName op = "cross_entropy";
  const Classes c = classes_of(x, target, weight, ignore_index, op);
  const DType acc = ops::accumulator_of(x.dtype());
  const DimSet set = ops::dim_set(c.dim, x.dim());
  const ops::SoftmaxParts parts = ops::softmax_parts(x, set, acc, true, op);
  const Tensor chosen = choose(x, c.dim, c.positions, op);
  const auto rows = [&](const Tensor& t) { return ops::make_view(t, c.target.sizes(), contiguous_strides(c.target.sizes()), 0, op); };
  const Tensor m = rows(parts.greatest), s = rows(parts.sum);
  FusedProducer p(ir::op::log, acc, {FusedProducer::of(s, acc)});
  p.then(ir::op::sub, acc, {FusedProducer::of(m, acc), FusedProducer::of(chosen, acc)});
  p.then(ir::op::add, acc, {FusedProducer::node(1, acc), FusedProducer::node(0, acc)});
  finish(p, c, acc);
  const Tensor divisor = reduction == Reduction::Mean ? divisor_of(c, acc, op) : Tensor();
  // PyTorch saves the log-probabilities, which a write to x does not reach, and the target itself.
  const uint32_t version = c.target.version();
  const auto backward = [=](const Tensors& g, const Tensors& saved) -> Tensors {
    const Tensor& input = saved[0];
    if (c.target.version() != version)
      throw RuntimeError(
          "one of the variables needed for gradient computation has been modified by an inplace operation: the target of {}, at version "
          "{}, "
          "is at version {} now. Clone it before the write.",
          op, version, c.target.version());
    if (grad_enabled()) {
      const Tensor scale = row_scale(g[0], c, reduction, divisor);
      const Tensor hot = one_hot_of(c, input.dim(), op).to(scale.dtype());
      return {((softmax(input, c.dim, scale.dtype()) - hot) * scale).to(input.dtype())};
    }
    const Tensor scale = row_scale(g[0], c, reduction, divisor);
    ops::ForceFusion fuse;
    const Tensor hot = one_hot_of(c, input.dim(), op);
    const Tensor y = ops::softmax_of(input, parts, acc, acc, op);
    const Tensor d = apply(ir::op::sub, {{&y, {}, acc}, {&hot, {}, acc}}, acc, op);
    return {apply(ir::op::mul, {{&d, {}, acc}, {&scale, {}, acc}}, input.dtype(), op)};
  };
  return autograd::keeping_saved(record(reduced(p, c, reduction, divisor, acc, out, op), "NllLossBackward0", {&x}, {&x}, backward));
}

Tensor cross_entropy_of_probabilities(const Tensor& x, Tensor target, const Tensor& weight, Reduction reduction, int64_t ignore_index,
                                      double smoothing) {
  if (!is_floating(target.dtype()))
    throw RuntimeError("Expected floating point type for target with class probabilities, got {}", ops::torch_name(target.dtype()));
  if (ignore_index >= 0) throw RuntimeError("ignore_index is not supported for floating point target");
  const int64_t dim = x.dim() == 1 ? 0 : 1, classes = x.size(dim);
  if (weight.defined() && (weight.dim() != 1 || weight.numel() != classes))
    throw RuntimeError(
        "cross_entropy: weight tensor should be defined either for all {} classes or no classes but got weight tensor of shape: {}",
        classes, weight.sizes().str());
  if (smoothing > 0) target = target * (1 - smoothing) + smoothing / static_cast<double>(classes);
  Tensor loss = log_softmax(x, dim) * target;
  if (weight.defined()) {
    Dims shape(static_cast<size_t>(x.dim() - dim), 1);
    shape[0] = classes;
    loss = loss * weight.view(shape);
  }
  if (reduction == Reduction::None) return -sum(loss, Dims{dim});
  const Tensor total = -sum(loss);
  return reduction == Reduction::Sum ? total : total / (static_cast<double>(x.numel()) / static_cast<double>(classes));
}

Tensor smoothed_cross_entropy(const Tensor& x, const Tensor& target, const Tensor& weight, Reduction reduction, int64_t ignore_index,
                              double smoothing) {
  const Classes c = classes_of(x, target, weight, ignore_index, "cross_entropy");
  const Tensor log_p = log_softmax(x, c.dim);
  const Tensor hard = nll_loss(log_p, target, weight, reduction, ignore_index);
  Tensor each = log_p;
  if (weight.defined()) {
    Dims shape(static_cast<size_t>(x.dim() - c.dim), 1);
    shape[0] = c.count;
    each = each * weight.detach().view(shape);
  }
  each = -sum(each, Dims{c.dim});
  if (c.masked) each = where(c.valid, each, 0.0);
  Tensor soft = each;
  if (reduction != Reduction::None) soft = sum(each);
  if (reduction == Reduction::Mean) {
    const Tensor divisor = divisor_of(c, ops::accumulator_of(x.dtype()), "cross_entropy");
    soft = divisor.defined() ? soft / divisor.to(x.dtype()) : soft / static_cast<double>(c.target.numel());
  }
  return hard * (1 - smoothing) + soft * (smoothing / static_cast<double>(c.count));
}

}  // namespace

namespace {

// True if autocast would cast a 16-bit input to float32 although the kernels read it as float32 anyway: the copy is not needed.
bool reads_as_float32(const Tensor& x, const Tensor& target, const Tensor& weight, double smoothing) {
  if (!autocast::anywhere() || !x.defined() || !target.defined() || weight.defined() || smoothing != 0) return false;
  if (!ops::is_half(x.dtype()) || is_floating(target.dtype()) || x.sizes() == target.sizes()) return false;
  const Tensor* tensors[] = {&x, &target};
  const auto decision = autocast::decide(operators::record_of("cross_entropy").autocast, "cross_entropy", tensors, false);
  return decision && decision->to == DType::F32;
}

}  // namespace

// Throws IndexError for a class index out of range, ValueError or RuntimeError for shapes that do not match.
Tensor cross_entropy(const Tensor& x, const Tensor& target, const Tensor& weight, Reduction reduction, int64_t ignore_index,
                     double smoothing) {
  if (reads_as_float32(x, target, weight, smoothing)) {
    const autocast::Off off;
    return cross_entropy_of_classes(x, target, weight, reduction, ignore_index, DType::F32);
  }
  if (auto y = ops::wrapped("cross_entropy", cross_entropy, x, target, weight, reduction, ignore_index, smoothing)) return *std::move(y);
  ops::require_defined(x, "cross_entropy", "input");
  ops::require_defined(target, "cross_entropy", "target");
  if (!(smoothing >= 0 && smoothing <= 1)) throw RuntimeError("label_smoothing must be between 0.0 and 1.0. Got: {}", smoothing);
  ops::require_softmax_type(x.dtype(), "log_softmax_lastdim");
  if (ops::is_half(x.dtype()) && (x.sizes() == target.sizes() || smoothing > 0)) {  // computed in float32 and rounded once
    const auto wide = [](const Tensor& t) { return t.defined() && ops::is_half(t.dtype()) ? t.to(DType::F32) : t; };
    return cross_entropy(wide(x), wide(target), wide(weight), reduction, ignore_index, smoothing).to(x.dtype());
  }
  if (x.sizes() == target.sizes()) return cross_entropy_of_probabilities(x, target, weight, reduction, ignore_index, smoothing);
  if (smoothing > 0) return smoothed_cross_entropy(x, target, weight, reduction, ignore_index, smoothing);
  return cross_entropy_of_classes(x, target, weight, reduction, ignore_index, x.dtype());
}

}  // namespace naru
