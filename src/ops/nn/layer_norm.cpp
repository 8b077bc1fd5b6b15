// layer_norm, rms_norm.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "autograd/history/history.h"
#include "naru/ops/complex.h"
#include "naru/ops/norms.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/host_loop.h"
#include "ops/reduce/reductions.h"
#include "ops/reduce/row_fused.h"
#include "ops/tensor/common.h"
#include "ops/tensor/limits.h"
#include "ops/tensor/type_names.h"

namespace naru {

using autograd::record;
using autograd::requires_grad;
using ir::ReduceOp;
using ops::DimSet;
using ops::FusedProducer;
using Tensors = std::vector<Tensor>;

namespace {

// A row is hard if float32 is too narrow for its statistics: its mean is great beside its deviation, or squares overflow or underflow.
// Variances below this are not trusted to squares of float32, unless eps hides them.
constexpr double kLeastVariance = 1e-25;

// A normalization of rows, which are what lies along the last dimensions.
struct RowNorm {
  const char* op;
  bool centred;  // the mean is subtracted (layer_norm)
  double eps;
  DimSet inner, outer;  // the dimensions normalised over, and the others
  Dims inner_dims;
  double count;
  DType acc;   // elements are computed in it
  DType wide;  // float64 where the device has it

  RowNorm(const char* name, const Tensor& x, const Dims& shape, double e, bool subtracts_mean)
      : op(name), centred(subtracts_mean), eps(e), count(static_cast<double>(product(shape))), acc(ops::accumulator_of(x.dtype())) {
    for (int64_t d = 0; d < x.dim(); ++d) {
      const bool is_inner = d >= x.dim() - static_cast<int64_t>(shape.size());
      (is_inner ? inner : outer).set(static_cast<size_t>(d));
      if (is_inner) inner_dims.push_back(d - x.dim());
    }
    wide = runtime::queue_of(x.device()).capabilities().arithmetic.fp64 ? DType::F64 : acc;
  }
};

// What a row is normalised by: h = (x - mean - rest) rstd. `rest` is what float32 left of the mean of hard rows, 0 for others; undefined where there
// are none.
struct RowStatistics {
  Tensor mean, rest, rstd;
};

// Appends op(value, t) and returns it; returns `value` if t is undefined.
FusedProducer::Arg combined(FusedProducer& p, ir::OpId op, const FusedProducer::Arg& value, const Tensor& t, DType acc) {
  if (!t.defined()) return value;
  p.then(op, acc, {value, FusedProducer::of(t, acc)});
  return FusedProducer::node(p.last(), acc);
}

// Appends h.
FusedProducer::Arg normalise(FusedProducer& p, const Tensor& x, const RowStatistics& s, const RowNorm& n) {
  FusedProducer::Arg h = combined(p, ir::op::sub, FusedProducer::of(x, n.acc), s.mean, n.acc);
  h = combined(p, ir::op::sub, h, s.rest, n.acc);
  return combined(p, ir::op::mul, h, s.rstd, n.acc);
}

// h weight + bias.
FusedProducer result_of(const Tensor& x, const Tensor& weight, const Tensor& bias, const RowStatistics& s, const RowNorm& n) {
  FusedProducer p;
  combined(p, ir::op::add, combined(p, ir::op::mul, normalise(p, x, s, n), weight, n.acc), bias, n.acc);
  return p;
}

// Two passes: the mean, then the mean square of what is left. hard: receives which rows are hard.
RowStatistics statistics_of(ops::RowFused& rows, const Tensor& x, const RowNorm& n, Tensor& hard) {
  const DType acc = n.acc;
  const auto result = [&](int node, DType as) { return FusedProducer::node(node, as); };
  const auto number = [&](double v) { return FusedProducer::of(v, acc); };
  const auto sum_of = [&](const FusedProducer& p) { return rows.reduce(ReduceOp::Sum, p, acc); };
  RowStatistics s;
  FusedProducer square;
  if (n.centred) {
    const Tensor sum = sum_of(FusedProducer::copy(x, acc, acc));
    s.mean = rows.map_reduced(FusedProducer(ir::op::div, acc, {FusedProducer::of(sum, acc), number(n.count)}), acc);
    square.then(ir::op::square_diff, acc, {FusedProducer::of(x, acc), FusedProducer::of(s.mean, acc)});
  } else {
    square.then(ir::op::square, acc, {FusedProducer::of(x, acc)});
  }
  const Tensor squares = sum_of(square);
  FusedProducer p(ir::op::div, acc, {FusedProducer::of(squares, acc), number(n.count)});
  p.then(ir::op::add, acc, {result(0, acc), number(n.eps)});
  p.then(ir::op::rsqrt, acc, {result(1, acc)});
  if (n.wide == acc || (n.centred && n.count < 2)) {
    s.rstd = rows.map_reduced(p, acc);
    return s;
  }
  // Not hard: least <= variance <= the greatest float, which NaN is not.
  const double least = n.eps > kLeastVariance ? 0 : kLeastVariance;
  p.then(ir::op::le, DType::Bool, {result(0, acc), number(traits_of(acc).greatest)});
  p.then(ir::op::ge, DType::Bool, {result(0, acc), number(least)});
  p.then(ir::op::logical_and, DType::Bool, {result(3, DType::Bool), result(4, DType::Bool)});
  if (n.centred) {
    p.then(ir::op::mul, acc, {FusedProducer::of(s.mean, acc), number(1 / ops::kGreatMean)});
    p.then(ir::op::square, acc, {result(6, acc)});
    p.then(ir::op::ge, DType::Bool, {result(0, acc), result(7, acc)});
    p.then(ir::op::logical_and, DType::Bool, {result(5, DType::Bool), result(8, DType::Bool)});
  }
  p.then(ir::op::logical_not, DType::Bool, {result(p.last(), DType::Bool)});
  const std::vector<Tensor> both = rows.map_reduced(p, std::array{2, p.last()});
  s.rstd = both[0], hard = both[1];
  return s;
}

// Computes the statistics of hard rows again, in float64, and their part of y.
void settle_hard_rows(const Tensor& hard, const Tensor& x, const Tensor& weight, const Tensor& bias, const RowNorm& n, RowStatistics& s,
                      Tensor& y) {
  // Ordinary data have no such rows: where the host can see that at once, nothing is submitted for them.
  if (ops::is_host_ready(*hard.impl()) && !ops::recording_host()) {
    const auto* const row = static_cast<const bool*>(hard.data_ptr());
    if (std::find(row, row + hard.numel(), true) == row + hard.numel()) return;
  }
  constexpr DType kWide = DType::F64;
  RowNorm wide = n;
  wide.acc = kWide;
  const auto result = [](int node) { return FusedProducer::node(node, kWide); };
  const auto number = [](double v) { return FusedProducer::of(v, kWide); };
  ops::RowFused rows(x, n.inner, n.op, hard);
  const auto dense = [](const Tensor& t) { return t.defined() ? t.contiguous() : t; };  // work on chosen rows takes nothing else
  const Tensor w = dense(weight), b = dense(bias);
  if (n.centred) s.rest = zeros(s.rstd.sizes(), Options(n.acc, x.device()));
  FusedProducer square = FusedProducer::copy(x, kWide, kWide), p;
  Tensor sum;
  if (n.centred) {
    sum = rows.reduce(ReduceOp::Sum, square, kWide);
    square.then(ir::op::div, kWide, {FusedProducer::of(sum, kWide), number(n.count)});
    square.then(ir::op::sub, kWide, {result(0), result(1)});
    p.then(ir::op::div, kWide, {FusedProducer::of(sum, kWide), number(n.count)});
    p.then(ir::op::copy, n.acc, {result(0)});
    p.then(ir::op::sub, n.acc, {result(0), result(1)});
  }
  square.then(ir::op::square, kWide, {result(square.last())});
  const Tensor squares = rows.reduce(ReduceOp::Sum, square, kWide);
  p.then(ir::op::div, kWide, {FusedProducer::of(squares, kWide), number(n.count)});
  p.then(ir::op::add, kWide, {result(p.last()), number(n.eps)});
  p.then(ir::op::rsqrt, n.acc, {result(p.last())});
  std::vector<int> nodes{p.last()};
  std::vector<Tensor*> into{&s.rstd};
  if (n.centred) nodes.insert(nodes.begin(), {1, 2}), into.insert(into.begin(), {&s.mean, &s.rest});
  if (rows.chosen()) {
    std::vector<Tensor> targets;
    for (const Tensor* t : into) targets.push_back(*t);
    rows.map_reduced_into(p, nodes, targets);
    rows.map_into(result_of(x, w, b, s, wide), y);
  } else {
    const std::vector<Tensor> exact = rows.map_reduced(p, nodes);
    rows.run();
    for (size_t i = 0; i < into.size(); ++i) *into[i] = where(hard, exact[i], *into[i]);
    const Tensor exact_y = rows.map(result_of(x, w, b, s, wide), x.dtype());
    rows.run();
    y = where(hard, exact_y, y);
  }
  rows.run();
}

// Gradients by the definition, in operators that have gradients themselves.
Tensors gradients_of_gradients(const Tensor& gradient, const Tensor& given, const Tensor& weight, const RowNorm& n, bool for_x, bool for_w,
                               bool for_b, const Dims& w_shape) {
  const Tensor x = given.to(n.wide), g = gradient.to(n.wide);
  const Tensor gw = weight.defined() ? g * weight.to(n.wide) : g;
  const auto mean_of = [&](const Tensor& t) { return mean(t, n.inner_dims, true); };
  const Tensor centred = n.centred ? x - mean_of(x) : x;
  const Tensor r = rsqrt(mean_of(square(centred)) + n.eps), hat = centred * r;
  Tensors out(3);
  if (for_x) {
    const Tensor along = gw - hat * mean_of(gw * hat);
    out[0] = (r * (n.centred ? along - mean_of(gw) : along)).to(given.dtype());
  }
  if (for_w) out[1] = ops::sum_to(g * hat, w_shape).to(weight.dtype());
  if (for_b) out[2] = ops::sum_to(g, w_shape).to(gradient.dtype());
  return out;
}

// As above, in few instructions: gx = r (gw - mean(gw) - h mean(gw h)).
Tensors gradients(const Tensor& gradient, const Tensor& x, const Tensor& w, const RowStatistics& s, const RowNorm& n, bool for_x,
                  bool for_w, bool for_b) {
  const Tensor g = gradient.contiguous();
  const DType acc = n.acc;
  const auto result = [&](int node) { return FusedProducer::node(node, acc); };
  const auto weighted = [&] {
    return w.defined() ? FusedProducer(ir::op::mul, acc, {FusedProducer::of(g, acc), FusedProducer::of(w, acc)})
                       : FusedProducer::copy(g, acc, acc);
  };
  Tensors out(3);
  ops::RowFused rows(x, n.inner, n.op);
  if (for_x) {
    const auto mean_of = [&](const FusedProducer& p) {
      const Tensor sum = rows.reduce(ReduceOp::Sum, p, acc);
      return rows.map_reduced(FusedProducer(ir::op::div, acc, {FusedProducer::of(sum, acc), FusedProducer::of(n.count, acc)}), acc);
    };
    Tensor mean_gw;
    if (n.centred) mean_gw = mean_of(weighted());
    FusedProducer product = weighted();
    product.then(ir::op::mul, acc, {result(0), normalise(product, x, s, n)});
    const Tensor mean_gwh = mean_of(product);
    FusedProducer p = weighted();
    const FusedProducer::Arg h = normalise(p, x, s, n);
    p.then(ir::op::mul, acc, {h, FusedProducer::of(mean_gwh, acc)});
    const int along = p.last();
    if (n.centred) p.then(ir::op::sub, acc, {result(0), FusedProducer::of(mean_gw, acc)});
    p.then(ir::op::sub, acc, {result(n.centred ? p.last() : 0), result(along)});
    p.then(ir::op::mul, acc, {result(p.last()), FusedProducer::of(s.rstd, acc)});
    out[0] = rows.map(p, x.dtype());
  }
  FusedProducer p = FusedProducer::copy(g, acc, acc);
  p.then(ir::op::mul, acc, {result(0), normalise(p, x, s, n)});
  if (for_w && for_b && w.dtype() == g.dtype() && runtime::queue_of(x.device()).capabilities().reduces_together) {
    rows.run();
    const std::vector<Tensor> sums =
        ops::reduce_several(ReduceOp::Sum, p, std::array{p.last(), 0}, x.sizes(), n.outer, false, w.dtype(), n.op);
    out[1] = sums[0], out[2] = sums[1];
    return out;
  }
  if (for_w) out[1] = rows.reduce_rows(ReduceOp::Sum, p, w.dtype());
  if (for_b) out[2] = rows.reduce_rows(ReduceOp::Sum, FusedProducer::copy(g, acc, acc), g.dtype());
  rows.run();
  return out;
}

void check_shapes(const char* op, const Tensor& x, const Dims& shape, const Tensor& w, const Tensor& b) {
  ops::require_defined(x, op, "input");
  const Tensor* tensors[] = {&x, &w, &b};
  const char* roles[] = {"input", "weight", "bias"};
  ops::common_device(tensors, roles, op);
  if (shape.empty())
    throw RuntimeError(
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = []");
  const Dims& sizes = x.sizes();
  bool fits = sizes.size() >= shape.size();
  std::string wanted = "[*";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (fits) fits = sizes[sizes.size() - shape.size() + i] == shape[i];
    wanted += fmt::format(", {}", shape[i]);
  }
  if (!fits)
    throw RuntimeError("Given normalized_shape={}, expected input with shape {}], but got input of size{}", shape.str(), wanted,
                       sizes.str());
  for (const Tensor* t : {&w, &b}) {
    if (!t->defined() || t->sizes() == shape) continue;
    const char* role = t == &w ? "weight" : "bias";
    throw RuntimeError("Expected {} to be of same shape as normalized_shape, but got {} of shape {} and normalized_shape = {}", role, role,
                       t->sizes().str(), shape.str());
  }
}

// A few small rows, none of them hard: run immediately, because an instruction would cost more than the work. Undefined for others.
Tensor of_small_rows(const Tensor& x, const Tensor& weight, const Tensor& bias, const RowNorm& n, RowStatistics& s) {
  const auto per_row = static_cast<int64_t>(n.count);
  const auto fits = [&](const Tensor& t) {
    return !t.defined() || (!t.impl()->special && t.is_contiguous() && (t.dtype() == x.dtype() || t.dtype() == DType::F32));
  };
  if (x.numel() > 4 * ops::kSmall || per_row < 2 || !x.is_contiguous() || !fits(weight) || !fits(bias)) return {};
  if (!x.device().is_cpu() || n.wide != DType::F64 || ops::recording_host()) return {};
  const NoGrad values;
  if (!ops::can_use_host_loop({&x})) return {};
  const Dims shape = ops::reduced_shape(x.sizes(), n.inner, true);
  const auto made = [&](const Dims& sizes, DType type) { return ops::make_result(sizes, type, x.device(), n.op); };
  const Tensor y = made(x.sizes(), x.dtype()), mean = n.centred ? made(shape, n.acc) : Tensor(), rstd = made(shape, n.acc);
  const bool narrow = n.acc != n.wide;
  const auto bits = [](double v) { return std::bit_cast<int64_t>(v); };
  bool hard = false;
  ops::run_host_loop(ir::HostLoop::Kind::NormRows, {&x, &weight, &bias}, {&y, &mean, &rstd},
                     {per_row, bits(n.eps), bits(n.eps > kLeastVariance ? 0 : kLeastVariance), bits(narrow ? 1 / ops::kGreatMean : 0)},
                     &hard);
  if (hard) return {};
  s.mean = mean, s.rstd = rstd;
  return y;
}

Tensor normalise_rows(const Tensor& x, const Tensor& weight, const Tensor& bias, const RowNorm& n, const char* node) {
  RowStatistics s;
  Tensor value = of_small_rows(x, weight, bias, n, s);
  if (!value.defined()) {
    ops::RowFused rows(x, n.inner, n.op);
    Tensor hard;
    s = statistics_of(rows, x, n, hard);
    value = rows.map(result_of(x, weight, bias, s, n), x.dtype());
    rows.run();
    if (hard.defined() && hard.numel() > 0) settle_hard_rows(hard, x, weight, bias, n, s, value);
  }
  return record(std::move(value), node, {&x, &weight, &bias}, {&x, &weight},
                autograd::WithJvp(
                    [=](const Tensors& g, const Tensors& saved, autograd::Needed needed) -> Tensors {
                      const bool for_x = needed[0], for_w = needed[1], for_b = needed[2];
                      if (grad_enabled())
                        return gradients_of_gradients(g[0], saved[0], saved[1], n, for_x, for_w, for_b,
                                                      weight.defined() ? weight.sizes() : Dims());
                      return gradients(g[0], saved[0], saved[1], s, n, for_x, for_w, for_b);
                    },
                    // What a row is normalised to has a symmetric Jacobian.
                    [=](const Tensors& t, const Tensors& saved) {
                      const Tensor &x = saved[0], &w = saved[1];
                      Tensor along;
                      if (t[0].defined()) {
                        along = grad_enabled() ? gradients_of_gradients(t[0], x, {}, n, true, false, false, {})[0]
                                               : gradients(t[0], x, {}, s, n, true, false, false)[0];
                        if (w.defined()) along = along * w;
                      }
                      if (t[1].defined()) along = autograd::added(along, normalise_rows(x, {}, {}, n, node) * t[1]);
                      return autograd::added(along, t[2]);
                    }));
}

}  // namespace

// Formula: (x - mean) / sqrt(variance + eps) * weight + bias over the last dimensions (Ba, Kiros and Hinton, 2016); the variance without
// correction.
Tensor layer_norm(const Tensor& x, const Dims& shape, const Tensor& weight, const Tensor& bias, double eps) {
  if (auto y = ops::wrapped("layer_norm", layer_norm, x, shape, weight, bias, eps)) return *std::move(y);
  check_shapes("layer_norm", x, shape, weight, bias);
  for (const auto& [t, role] : {std::pair{&weight, "weight"}, std::pair{&bias, "bias"}})
    if (t->defined() && t->dtype() != x.dtype() && t->dtype() != DType::F32)
      throw RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float (layer_norm: {} is {}, the input {})", role,
                         ops::torch_name(t->dtype()), ops::torch_name(x.dtype()));
  if (!is_floating(x.dtype())) ops::throw_not_implemented("LayerNormKernelImpl", x.dtype());
  return normalise_rows(x, weight, bias, RowNorm("layer_norm", x, shape, eps, true), "NativeLayerNormBackward0");
}

// Formula: x / sqrt(mean(x²) + eps) * weight over the last dimensions (Zhang and Sennrich, 2019).
Tensor rms_norm(const Tensor& x, const Dims& shape, const Tensor& weight, std::optional<double> eps) {
  check_shapes("rms_norm", x, shape, weight, {});
  if (!is_inexact(x.dtype())) ops::require_floating(x.dtype(), "rms_norm");
  const double e = eps.value_or(ops::epsilon_of(ops::accumulator_of(x.dtype())));  // the type that is computed in
  if (is_complex(x.dtype())) {
    const RowNorm n("rms_norm", real(x), shape, e, false);
    const Tensor y = x * rsqrt(mean(x * x, n.inner_dims, true) + e);
    return weight.defined() ? (y * weight).to(x.dtype()) : y;
  }
  return normalise_rows(x, weight, {}, RowNorm("rms_norm", x, shape, e, false), "FusedRmsNormBackward0");
}

}  // namespace naru
