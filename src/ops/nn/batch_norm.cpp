// batch_norm, instance_norm, group_norm, local_response_norm.
#include "naru/ops/norms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "autograd/history/constant.h"
#include "autograd/history/history.h"
#include "naru/ops.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/half.h"
#include "ops/nn/windows.h"
#include "ops/reduce/reductions.h"
#include "ops/shape/strides.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

using autograd::record;
using autograd::requires_grad;
using Tensors = std::vector<Tensor>;

// Dimensions that one pair of statistics is of: all but the channels; with `each_entry` all but entries and channels.
Dims others(const Tensor& x, bool each_entry = false) {
  Dims dims;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != 1 && !(d == 0 && each_entry)) dims.push_back(d);
  return dims;
}
// One number a channel, or one an entry and channel (N, C), seen beside x.
Tensor beside(const Tensor& t, const Tensor& x) {
  Dims shape(x.sizes().size(), 1);
  shape[1] = x.size(1);
  if (t.dim() == 2) shape[0] = t.size(0);
  return t.reshape(shape);
}

void check_channels(const Tensor& t, const Tensor& x, const char* role) {
  if (t.defined() && t.numel() != x.size(1)) throw RuntimeError("{} should contain {} elements not {}", role, x.size(1), t.numel());
}

void check_batch_norm(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& w, const Tensor& b, bool training,
                      const char* op) {
  ops::require_defined(x, op, "input");
  std::vector<const Tensor*> tensors{&x};
  std::vector<const char*> roles{"input"};
  for (const auto& [t, role] : {std::pair{&mean, "running_mean"}, {&var, "running_var"}, {&w, "weight"}, {&b, "bias"}})
    if (t->defined()) tensors.push_back(t), roles.push_back(role);
  ops::common_device(tensors, roles, op);
  if (x.dim() < 2) throw RuntimeError("{}: Expected at least 2 dimensions for input (N, C, ...), got shape {}", op, x.sizes().str());
  if (!training && !mean.defined()) throw RuntimeError("running_mean must be defined in evaluation mode");
  if (!training && !var.defined()) throw RuntimeError("running_var must be defined in evaluation mode");
  check_channels(mean, x, "running_mean"), check_channels(var, x, "running_var"), check_channels(w, x, "weight"),
      check_channels(b, x, "bias");
  if (!is_floating(x.dtype())) ops::throw_not_implemented("batch_norm", x.dtype());
  const bool half = x.dtype() == DType::F16 || x.dtype() == DType::BF16;
  for (const Tensor* t : {&mean, &var, &w, &b})
    if (t->defined() && t->dtype() != x.dtype() && (!half || t->dtype() != DType::F32)) {
      const std::string got = fmt::format("({}: input {}, a parameter {})", op, ops::torch_name(x.dtype()), ops::torch_name(t->dtype()));
      if (half) throw RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float {}", got);
      throw RuntimeError("mixed dtype (CPU): all inputs must share same datatype. {}", got);
    }
}

struct Normalisation {
  DType acc;
  bool training;
  double eps, count;   // count: how many elements one pair of statistics is of
  DType weight_type;   // the gradient's of weight and bias
  int64_t groups = 0;  // of the channels of each entry, which are normalised together; 0: each channel of all entries
};

// What x is normalised by: (x - mean - rest) rstd; `rest` may be undefined. (C), or of groups (N, C), the same for all channels of a group.
struct Statistics {
  Tensor mean, rest, rstd;
};

// x less its mean.
Tensor centred(const Tensor& x, const Statistics& s, const Normalisation& n) {
  const Tensor d = x.to(n.acc) - beside(s.mean, x);
  return s.rest.defined() ? d - beside(s.rest, x) : d;
}

Tensor scaled(const Tensor& r, const Tensor& w, const Normalisation& n) { return w.defined() ? r * w.to(n.acc) : r; }

// Sums of the gradient, and of the gradient times the normalised input, over others(x).
std::pair<Tensor, Tensor> gradient_sums(const Tensor& g, const Tensor& x, const Statistics& s, const Normalisation& n) {
  using ops::FusedProducer;
  const Tensor mean = beside(s.mean, x), rest = s.rest.defined() ? beside(s.rest, x) : s.rest, rstd = beside(s.rstd, x);
  FusedProducer p;
  const auto last = [&] { return FusedProducer::node(p.last(), n.acc); };
  const auto take_gradient = [&] {
    p.then(ir::op::copy, n.acc, {FusedProducer::of(g, n.acc)});
    return p.last();
  };
  // The first tensor's strides choose the order of the sums: an expanded gradient's would choose a slow one.
  const bool leads = ops::is_dense(g.sizes(), g.strides());
  int gradient = leads ? take_gradient() : -1;
  p.then(ir::op::sub, n.acc, {FusedProducer::of(x, n.acc), FusedProducer::of(mean, n.acc)});
  if (rest.defined()) p.then(ir::op::sub, n.acc, {last(), FusedProducer::of(rest, n.acc)});
  p.then(ir::op::mul, n.acc, {last(), FusedProducer::of(rstd, n.acc)});
  const FusedProducer::Arg hat = last();
  if (!leads) gradient = take_gradient();
  p.then(ir::op::mul, n.acc, {FusedProducer::node(gradient, n.acc), hat});
  const std::vector<Tensor> sums = ops::reduce_several(ir::ReduceOp::Sum, p, std::array{gradient, p.last()}, x.sizes(),
                                                       ops::dim_set(others(x, n.groups > 0), x.dim()), false, n.acc, "batch_norm");
  return {sums[0], sums[1]};
}

// Numbers of channels (N, C) by their groups: (N, G, C / G).
Tensor by_groups(const Tensor& t, int64_t groups) { return t.reshape({t.size(0), groups, t.size(1) / groups}); }
// A number of each group, (N, G), for each of its channels: (N, C).
Tensor for_channels(const Tensor& t, int64_t channels) {
  const int64_t entries = t.size(0), groups = t.size(1);
  return t.reshape({entries, groups, 1}).expand({entries, groups, channels / groups}).reshape({entries, channels});
}
// The sums (N, C) of each group's channels, as often as it has channels.
Tensor over_groups(const Tensor& t, int64_t groups) {
  return groups == t.size(1) ? t : for_channels(sum(by_groups(t, groups), Dims{2}), t.size(1));
}

// Gradients of x, w and b. s: statistics of x (training), or constants; with gradients enabled in operators that have gradients themselves.
// What is read again is written out each time, so that it is computed where it is used and never stored.
Tensors gradients(const Tensor& gradient, const Tensor& given, const Tensor& w, const Statistics& s, const Normalisation& n, bool for_x,
                  bool for_w, bool for_b) {
  const bool grouped = n.groups > 0;
  const Dims dims = others(given, grouped);
  const auto g = [&] { return gradient.to(n.acc); };
  const auto hat = [&] { return centred(given, s, n) * beside(s.rstd, given); };
  const bool wants_sum = for_b || (for_x && n.training), wants_product = for_w || (for_x && n.training);
  Tensor sum_g, sum_gh;
  if (wants_sum && wants_product && !grad_enabled() && given.numel() > 0) {
    std::tie(sum_g, sum_gh) = gradient_sums(gradient, given, s, n);
  } else {
    if (wants_sum) sum_g = sum(g(), dims);
    if (wants_product) sum_gh = sum(g() * hat(), dims);
  }
  Tensor gx;
  if (for_x) {
    // What a channel needs comes first: work of another shape would end the group that is deferred, and store what it has computed.
    // Channels of a group have one sum, but weights of their own.
    const auto mean = [&](const Tensor& t) {
      return beside((grouped ? over_groups(scaled(t, w, n), n.groups) : t) / Operand(n.count), given);
    };
    const Tensor scale = beside(grouped ? s.rstd : scaled(s.rstd, w, n), given);
    const auto weighed = [&] { return grouped && w.defined() ? g() * beside(w.to(n.acc), given) : g(); };
    if (n.training) {
      const Tensor mean_g = mean(sum_g), mean_gh = mean(sum_gh);
      gx = (weighed() - mean_g - hat() * mean_gh) * scale;
    } else {
      gx = g() * scale;
    }
    gx = gx.to(given.dtype());
  }
  const auto of_channels = [&](const Tensor& t) { return (grouped ? sum(t, Dims{0}) : t).to(n.weight_type); };
  return {gx, for_w ? of_channels(sum_gh) : Tensor(), for_b ? of_channels(sum_g) : Tensor()};
}

// Statistics that gradients reach x through, too, where these have gradients themselves.
Statistics statistics_of(const Tensor& x, const Normalisation& n) {
  const Tensor exact = x.to(n.acc);
  if (!n.groups) {
    const auto [v, mean] = var_mean(exact, others(exact), 0);
    return {mean, {}, rsqrt(v + Operand(n.eps))};
  }
  const auto [v, mean] = var_mean(exact.reshape({x.size(0), n.groups, -1}), Dims{2}, 0);
  return {for_channels(mean, x.size(1)), {}, for_channels(rsqrt(v + Operand(n.eps)), x.size(1))};
}

// x normalised, times weight, plus bias. `s` has no gradient.
Tensor normalised(const Tensor& x, const Tensor& weight, const Tensor& bias, const Statistics& s, const Normalisation& n,
                  const char* node) {
  Tensor y;
  {
    NoGrad guard;
    const Tensor w = weight.defined() ? weight.detach() : weight;
    y = centred(x.detach(), s, n) * beside(scaled(s.rstd, w, n), x);
    if (bias.defined()) y = y + beside(bias.detach().to(n.acc), x);
    y = y.to(x.dtype());
  }
  const auto statistics_for = [s, n](const Tensor& x) { return grad_enabled() && n.training ? statistics_of(x, n) : s; };
  return record(std::move(y), node, {&x, &weight, &bias}, {&x, &weight},
                autograd::WithJvp(
                    [=](const Tensors& g, const Tensors& saved, autograd::Needed needed) -> Tensors {
                      return gradients(g[0], saved[0], saved[1], statistics_for(saved[0]), n, needed[0], needed[1], needed[2]);
                    },
                    // What is normalised has a symmetric Jacobian.
                    [=](const Tensors& t, const Tensors& saved) {
                      const Tensor &x = saved[0], &w = saved[1];
                      const Statistics now = statistics_for(x);
                      Tensor along;
                      if (t[0].defined()) {
                        along = gradients(t[0], x, {}, now, n, true, false, false)[0];
                        if (w.defined()) along = along * beside(w, x);
                      }
                      if (t[1].defined()) along = autograd::added(along, centred(x, now, n) * beside(now.rstd, x) * beside(t[1], x));
                      return t[2].defined() ? autograd::added(along, beside(t[2], x)) : along;
                    }));
}

// Towards the statistics of the input, in place.
void move_running(const Tensor& running, const Tensor& now, double momentum, double factor) {
  if (!running.defined()) return;
  NoGrad guard;
  Tensor target = running;
  target.copy_(running.to(now.dtype()) * Operand(1 - momentum) + now * Operand(momentum * factor));
}

}  // namespace

// Formula: Ioffe and Szegedy, 2015.
Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight, const Tensor& bias,
                  bool training, double momentum, double eps) {
  if (x.defined() && x.dim() == 1 && x.numel() == 0) return x.clone();  // as PyTorch has it
  check_batch_norm(x, running_mean, running_var, weight, bias, training, "batch_norm");
  autograd::refuse_gradient(running_mean, "native_batch_norm", "running_mean");
  autograd::refuse_gradient(running_var, "native_batch_norm", "running_var");
  if (!x.is_contiguous() && ops::suggested_format(x) == MemoryFormat::Contiguous)
    return batch_norm(x.contiguous(), running_mean, running_var, weight, bias, training, momentum, eps);
  const DType weight_type = (weight.defined() ? weight : bias.defined() ? bias : x).dtype();
  const Normalisation n{ops::accumulator_of(x.dtype()), training, eps, static_cast<double>(x.size(1) ? x.numel() / x.size(1) : 0),
                        weight_type};
  Statistics s;
  {
    NoGrad guard;
    Tensor v;
    if (training && x.numel() > 0) {
      const ops::PopulationMoments m = ops::population_moments(x, ops::dim_set(others(x), x.dim()), "batch_norm");
      v = m.variance, s.mean = m.mean, s.rest = m.rest;
      move_running(running_mean, s.mean, momentum, 1);
      move_running(running_var, v, momentum, n.count > 1 ? n.count / (n.count - 1) : 1);
    } else if (training) {
      s.mean = zeros({x.size(1)}, Options(n.acc, x.device())), v = s.mean;
    } else {
      // Copies, in both senses: what is saved must not change with the running ones.
      s.mean = running_mean.detach().to(std::nullopt, n.acc, false, true), v = running_var.detach().to(n.acc);
    }
    s.rstd = rsqrt(v + Operand(eps)).to(n.acc);
  }
  return normalised(x, weight, bias, s, n, "NativeBatchNormBackward0");
}

namespace {

// The statistics of each group of channels of each entry, (N, C).
Statistics statistics_of_groups(const Tensor& given, const Normalisation& n) {
  const NoGrad guard;
  const Tensor x = given.detach();
  Tensor mean, rest, v;  // of groups
  if (x.is_contiguous()) {
    const ops::PopulationMoments m = ops::population_moments(x.reshape({x.size(0), n.groups, -1}), ops::dim_set(Dims{2}, 3), "group_norm");
    mean = m.mean, rest = m.rest, v = m.variance;
  } else {
    // Channels lie side by side: their own statistics first, which are sums of whole vectors.
    const ops::PopulationMoments m = ops::population_moments(x, ops::dim_set(others(x, true), x.dim()), "group_norm");
    const DType wide = m.variance.dtype();
    const Tensor means = by_groups(m.rest.defined() ? m.mean.to(wide) + m.rest.to(wide) : m.mean.to(wide), n.groups);
    const Tensor of_groups = naru::mean(means, Dims{2}, true), exact = of_groups.squeeze(2);
    v = naru::mean(by_groups(m.variance, n.groups) + square(means - of_groups), Dims{2});
    mean = exact.to(n.acc);
    if (m.rest.defined()) rest = (exact - mean.to(wide)).to(n.acc);
  }
  const int64_t channels = x.size(1);
  return {for_channels(mean, channels), rest.defined() ? for_channels(rest, channels) : rest,
          for_channels(rsqrt(v + Operand(n.eps)).to(n.acc), channels)};
}

Tensor normalised_groups(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias, double eps, const char* node) {
  if (x.dim() == 2) return normalised_groups(x.unsqueeze(2), groups, weight, bias, eps, node).squeeze(2);
  const DType weight_type = (weight.defined() ? weight : bias.defined() ? bias : x).dtype(), acc = ops::accumulator_of(x.dtype());
  const Normalisation n{
      acc, true, eps, static_cast<double>(x.numel()) / static_cast<double>(std::max<int64_t>(x.size(0) * groups, 1)), weight_type, groups};
  if (x.numel() > 0) return normalised(x, weight, bias, statistics_of_groups(x, n), n, node);
  const Tensor none = zeros({x.size(0), x.size(1)}, Options(acc, x.device()));
  return normalised(x, weight, bias, {none, {}, none}, n, node);
}

}  // namespace

Tensor instance_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight, const Tensor& bias,
                     bool use_input_stats, double momentum, double eps) {
  if (!use_input_stats) return batch_norm(x, running_mean, running_var, weight, bias, false, momentum, eps);
  check_batch_norm(x, running_mean, running_var, weight, bias, true, "instance_norm");
  if ((running_mean.defined() || running_var.defined()) && x.numel() > 0) {
    NoGrad guard;
    Dims positions;
    for (int64_t d = 2; d < x.dim(); ++d) positions.push_back(d);
    const auto [v, m] = var_mean(x.detach().to(ops::accumulator_of(x.dtype())), positions, 0);
    const auto count = static_cast<double>(x.numel() / (x.size(0) * x.size(1)));
    move_running(running_mean, mean(m, Dims{0}), momentum, 1);
    move_running(running_var, mean(v, Dims{0}), momentum, count > 1 ? count / (count - 1) : 1);
  }
  return normalised_groups(x.contiguous(), x.size(1), weight, bias, eps, "NativeBatchNormBackward0");
}

// Formula: Wu and He, 2018.
Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  if (auto y = ops::wrapped("group_norm", group_norm, x, groups, weight, bias, eps)) return *std::move(y);
  ops::require_defined(x, "group_norm", "input");
  if (x.dim() < 2) throw RuntimeError("Expected at least 2 dimensions for input tensor but received {}", x.dim());
  if (groups <= 0) throw RuntimeError("Expected num groups to be greater than 0, got {}", groups);
  if (x.size(1) % groups != 0)
    throw RuntimeError("Expected number of channels in input to be divisible by num_groups, but got input of shape {} and num_groups={}",
                       x.sizes().str(), groups);
  for (const auto& [t, role] : {std::pair{&weight, "weight"}, std::pair{&bias, "bias"}})
    if (t->defined() && (t->dim() != 1 || t->numel() != x.size(1)))
      throw RuntimeError(
          "Expected {0} to be a vector of size equal to the number of channels in input, but got {0} of shape {1} and input of shape {2}",
          role, t->sizes().str(), x.sizes().str());
  if (!is_floating(x.dtype())) ops::throw_not_implemented("GroupNormKernelImpl", x.dtype());
  check_batch_norm(x, {}, {}, weight, bias, true, "group_norm");
  return autograd::reading_inputs(
      normalised_groups(x.contiguous(ops::suggested_format(x)), groups, weight, bias, eps, "NativeGroupNormBackward0"));
}

// Formula: Krizhevsky, Sutskever and Hinton, 2012.
Tensor local_response_norm(const Tensor& x, int64_t size, double alpha, double beta, double k) {
  ops::require_defined(x, "local_response_norm", "input");
  if (x.dim() < 3) throw ValueError("Expected 3D or higher dimensionality                          input (got {} dimensions)", x.dim());
  if (size < 1) throw ValueError("local_response_norm: size must be at least 1, got {}", size);
  if (x.numel() == 0) return x;
  if (ops::is_half(x.dtype())) return local_response_norm(x.to(DType::F32), size, alpha, beta, k).to(x.dtype());
  const bool whole = !is_inexact(x.dtype());  // of integers PyTorch's means are, too
  const Tensor squares = square(x).reshape({x.size(0), 1, x.size(1), x.numel() / (x.size(0) * x.size(1))});
  ops::WindowTables tables{ops::strided_window_table(x.size(1), x.size(1), size, 1, size / 2, 1), ops::identity_table(squares.size(3))};
  const Tensor sums = ops::window_sum(whole ? squares.to(DType::F64) : squares, std::move(tables), "AvgPool2DBackward0");
  const Tensor means = whole ? floor_divide(sums.to(DType::I64), Operand(size)) : sums / Operand(static_cast<double>(size));
  return x / pow(means.view(x.sizes()) * Operand(alpha) + Operand(k), Operand(beta));
}

}  // namespace naru
