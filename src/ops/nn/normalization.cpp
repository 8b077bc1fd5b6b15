// layer_norm, dropout, embedding.
#include "naru/ops/complex.h"
#include "ops/random/host_draws.h"
#include "ops/tensor/autocast.h"

#include <fmt/format.h>

#include <array>

#include "autograd/history/history.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reductions.h"
#include "ops/reduce/row_fused.h"
#include "ops/shape/strides.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {

using autograd::record;
using autograd::requires_grad;
using ir::ReduceOp;
using ops::apply;
using ops::DimSet;
using ops::FusedProducer;
using Tensors = std::vector<Tensor>;

namespace {

struct Norm {
  DimSet inner, outer;  // the dimensions normalised over, and the others
  DType acc;
  double eps;
  Dims inner_dims;
};

// Gradients of layer_norm by its definition, in operators that have gradients themselves.
Tensors layer_norm_gradients_of_gradients(const Tensor& g, const Tensor& x, const Tensor& w, const Norm& n, bool for_x, bool for_w,
                                          bool for_b, const Dims& w_shape) {
  const Tensor centred = x - mean(x, n.inner_dims, true);
  const Tensor r = rsqrt(mean(square(centred), n.inner_dims, true) + n.eps);
  const Tensor hat = centred * r;
  const Tensor gw = w.defined() ? g * w : g;
  Tensor gx;
  if (for_x) gx = r * (gw - mean(gw, n.inner_dims, true) - hat * mean(gw * hat, n.inner_dims, true));
  return {gx, for_w ? ops::sum_to(g * hat, w_shape) : Tensor(), for_b ? ops::sum_to(g, w_shape) : Tensor()};
}

// As above, in few instructions: with h = (x - mean) r, gx = r (gw - mean(gw) - h mean(gw h)).
Tensors layer_norm_gradients(const Tensor& gradient, const Tensor& x, const Tensor& w, const Tensor& m, const Tensor& r, const Norm& n,
                             bool for_x, bool for_w, bool for_b) {
  const char* op = "layer_norm";
  const Tensor g = gradient.contiguous();
  const DType acc = n.acc;
  const auto hat = [&](FusedProducer& p) {
    const int first = p.last();
    p.then(ir::op::sub, acc, {FusedProducer::of(x, acc), FusedProducer::of(m, acc)});
    p.then(ir::op::mul, acc, {FusedProducer::node(first + 1, acc), FusedProducer::of(r, acc)});
    p.then(ir::op::mul, acc, {FusedProducer::node(first, acc), FusedProducer::node(first + 2, acc)});
  };
  const auto weighted = [&] {
    return w.defined() ? FusedProducer(ir::op::mul, acc, {FusedProducer::of(g, acc), FusedProducer::of(w, acc)})
                       : FusedProducer::copy(g, acc, acc);
  };
  Tensors out(3);
  ops::RowFused rows(x, n.inner, op);
  if (for_x) {
    FusedProducer with_hat = weighted();
    hat(with_hat);
    const auto count = static_cast<double>(ops::reduced_count(x.sizes(), n.inner));
    const auto mean_of = [&](const FusedProducer& p) {
      const Tensor s = rows.reduce(ReduceOp::Sum, p, acc);
      return rows.map_reduced(FusedProducer(ir::op::div, acc, {FusedProducer::of(s, acc), FusedProducer::of(count, acc)}), acc);
    };
    const Tensor a = mean_of(weighted()), b = mean_of(with_hat);
    // Steps: gw, x - m, h, h b, gw - a, and so on.
    FusedProducer p = weighted();
    p.then(ir::op::sub, acc, {FusedProducer::of(x, acc), FusedProducer::of(m, acc)});
    p.then(ir::op::mul, acc, {FusedProducer::node(1, acc), FusedProducer::of(r, acc)});
    p.then(ir::op::mul, acc, {FusedProducer::node(2, acc), FusedProducer::of(b, acc)});
    p.then(ir::op::sub, acc, {FusedProducer::node(0, acc), FusedProducer::of(a, acc)});
    p.then(ir::op::sub, acc, {FusedProducer::node(4, acc), FusedProducer::node(3, acc)});
    p.then(ir::op::mul, acc, {FusedProducer::node(5, acc), FusedProducer::of(r, acc)});
    out[0] = rows.map(p, x.dtype());
  }
  FusedProducer p = FusedProducer::copy(g, acc, acc);
  hat(p);
  if (for_w && for_b && w.dtype() == g.dtype() && runtime::queue_of(x.device()).capabilities().reduces_together) {
    rows.run();
    const std::vector<Tensor> sums =
        ops::reduce_several(ReduceOp::Sum, p, std::array{p.last(), 0}, x.sizes(), n.outer, false, w.dtype(), op);
    out[1] = sums[0], out[2] = sums[1];
    return out;
  }
  if (for_w) out[1] = rows.reduce_rows(ReduceOp::Sum, p, w.dtype());
  if (for_b) out[2] = rows.reduce_rows(ReduceOp::Sum, FusedProducer::copy(g, acc, acc), g.dtype());
  rows.run();
  return out;
}

void check_layer_norm(const Tensor& x, const Dims& shape, const Tensor& w, const Tensor& b) {
  ops::require_defined(x, "layer_norm", "input");
  const Tensor* tensors[] = {&x, &w, &b};
  const char* roles[] = {"input", "weight", "bias"};
  ops::common_device(tensors, roles, "layer_norm");
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
    if (!t->defined()) continue;
    const char* role = t == &w ? "weight" : "bias";
    if (!(t->sizes() == shape))
      throw RuntimeError("Expected {} to be of same shape as normalized_shape, but got {} of shape {} and normalized_shape = {}", role,
                         role, t->sizes().str(), shape.str());
    if (t->dtype() != x.dtype() && t->dtype() != DType::F32)
      throw RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float (layer_norm: {} is {}, the input {})", role,
                         ops::torch_name(t->dtype()), ops::torch_name(x.dtype()));
  }
  if (!is_floating(x.dtype())) ops::throw_not_implemented("LayerNormKernelImpl", x.dtype());
}

}  // namespace

// Formula: (x - mean) / sqrt(variance + eps) * weight + bias over the last dimensions (Ba, Kiros and Hinton, 2016); the variance without
// correction.
Tensor layer_norm(const Tensor& x, const Dims& shape, const Tensor& weight, const Tensor& bias, double eps) {
  if (const autocast::Casts c("layer_norm", {&x, &weight, &bias}); c) return layer_norm(c[0], shape, c[1], c[2], eps);
  check_layer_norm(x, shape, weight, bias);
  const char* op = "layer_norm";
  Norm n;
  n.acc = ops::accumulator_of(x.dtype());
  n.eps = eps;
  for (int64_t d = 0; d < x.dim(); ++d) {
    const bool inner = d >= x.dim() - static_cast<int64_t>(shape.size());
    (inner ? n.inner : n.outer).set(static_cast<size_t>(d));
    if (inner) n.inner_dims.push_back(d - x.dim());
  }
  const DType acc = n.acc;
  const auto count = static_cast<double>(product(shape));
  ops::RowFused rows(x, n.inner, op);
  const Tensor s = rows.reduce(ReduceOp::Sum, FusedProducer::copy(x, acc, acc), acc);
  const Tensor m = rows.map_reduced(FusedProducer(ir::op::div, acc, {FusedProducer::of(s, acc), FusedProducer::of(count, acc)}), acc);
  const Tensor v =
      rows.reduce(ReduceOp::Sum, FusedProducer(ir::op::square_diff, acc, {FusedProducer::of(x, acc), FusedProducer::of(m, acc)}), acc);
  FusedProducer of_r(ir::op::div, acc, {FusedProducer::of(v, acc), FusedProducer::of(count, acc)});
  of_r.then(ir::op::add, acc, {FusedProducer::node(0, acc), FusedProducer::of(eps, acc)});
  of_r.then(ir::op::rsqrt, acc, {FusedProducer::node(1, acc)});
  const Tensor r = rows.map_reduced(of_r, acc);
  FusedProducer of_y(ir::op::sub, acc, {FusedProducer::of(x, acc), FusedProducer::of(m, acc)});
  of_y.then(ir::op::mul, acc, {FusedProducer::node(0, acc), FusedProducer::of(r, acc)});
  if (weight.defined()) of_y.then(ir::op::mul, acc, {FusedProducer::node(of_y.last(), acc), FusedProducer::of(weight, acc)});
  if (bias.defined()) of_y.then(ir::op::add, acc, {FusedProducer::node(of_y.last(), acc), FusedProducer::of(bias, acc)});
  Tensor y = rows.map(of_y, x.dtype());
  rows.run();
  const bool for_x = requires_grad(x), for_w = weight.defined() && requires_grad(weight), for_b = bias.defined() && requires_grad(bias);
  return record(std::move(y), "NativeLayerNormBackward0", {&x, &weight, &bias}, {&x, &weight},
                [=](const Tensors& g, const Tensors& saved) -> Tensors {
                  if (grad_enabled()) return layer_norm_gradients_of_gradients(g[0], saved[0], saved[1], n, for_x, for_w, for_b, shape);
                  return layer_norm_gradients(g[0], saved[0], saved[1], m, r, n, for_x, for_w, for_b);
                });
}

namespace {

Tensor scale_masked(const Tensor& x, const Tensor& mask, double scale) {
  const Dims strides = ops::strides_like(x.sizes(), x.strides(), MemoryFormat::Preserve);
  const Tensor out = ops::make_result(x.sizes(), strides, x.dtype(), x.device(), "dropout", true);
  const ops::OpOperand operands[] = {{&x, {}, x.dtype()}, {&mask, {}, DType::Bool}, {nullptr, scale, x.dtype()}};
  ops::apply_into(ir::op::masked_scale, operands, out);
  return record(out, "DropoutBackward0", {&x}, {&mask},
                [scale](const Tensors& g, const Tensors& saved) -> Tensors { return {scale_masked(g[0], saved[0], scale)}; });
}

}  // namespace

// Throws ValueError unless 0 <= p <= 1. Without training it is x itself.
Tensor dropout(const Tensor& x, double p, bool training, Generator* generator) {
  ops::require_defined(x, "dropout", "input");
  if (!(p >= 0 && p <= 1)) throw ValueError("dropout probability has to be between 0 and 1, but got {}", p);
  if (!training || p == 0 || x.numel() == 0) return x;
  if (!is_inexact(x.dtype()))
    throw RuntimeError("result type Float can't be cast to the desired output type {} (dropout wants floating point; convert first)",
                       ops::torch_name(x.dtype()));
  const Dims strides =
      ops::draws_as_pytorch() ? ops::strides_like(x.sizes(), x.strides(), MemoryFormat::Preserve) : contiguous_strides(x.sizes());
  Tensor mask = ops::make_result(x.sizes(), strides, DType::Bool, x.device(), "dropout", true);
  const double scale = p == 1 ? 0.0 : 1 / (1 - p);
  if (is_complex(x.dtype())) return x * dropout(ones(x.sizes(), Options(real_of(x.dtype()), x.device())), p, true, generator);
  if (ops::draws_as_pytorch()) {
    ops::host_bernoulli(ops::in_memory_order(mask), 1 - p, generator);
    return scale_masked(x, mask, scale);
  }
  const auto [key, offset] = ops::draw(generator);
  const ops::OpOperand draw[] = {
      {nullptr, 1 - p, DType::F32}, {nullptr, static_cast<int64_t>(key), DType::I64}, {nullptr, static_cast<int64_t>(offset), DType::I64}};
  ops::ForceFusion fuse;
  ops::apply_into(ir::op::bernoulli, draw, mask);
  return scale_masked(x, mask, scale);
}

namespace {

// Rows of a table (n, width) chosen by `index`.
Tensor rows_of(const Tensor& table, const Tensor& index) {
  Dims shape = index.sizes();
  shape.push_back(table.size(1));
  Tensor out = ops::make_result(shape, table.dtype(), table.device(), "embedding");
  if (out.numel() == 0) return out;
  ir::Gather g;
  g.op = "embedding";
  g.shape = shape;
  g.out = ops::view_of(out, shape);
  g.source = ops::view_of(table, table.sizes());
  const int64_t stride = table.strides()[0], inner = table.size(1) == 1 ? 0 : table.strides()[1];
  g.source.strides = Dims(shape.size(), 0);
  g.source.strides.back() = inner;
  ir::IndexOperand i{ops::view_of(index, index.sizes()), table.size(0), stride, 0, false};
  i.positions.strides.push_back(0);
  g.indices.push_back(std::move(i));
  ops::submit(std::move(g), {&table, &index}, {&out});
  return out;
}

Tensor embedding_of(const Tensor& weight, const Tensor& index, int64_t padding, bool by_frequency);

// The gradient of the table: each row of g added to the row of the table it came from, in order; the padding row gets none.
Tensor embedding_gradient(const Tensor& g, const Tensor& index, int64_t rows, int64_t padding) {
  const int64_t width = g.size(-1);
  Tensor out;
  {
    NoGrad guard;
    const DType sums = ops::accumulator_of(g.dtype());  // of 16-bit types rounded once
    out = zeros({rows, width}, Options(sums, g.device()));
    const Tensor kept = (padding < 0 ? g : where((index != padding).unsqueeze(-1), g, 0.0)).to(sums);
    if (kept.numel() > 0) {
      ir::Scatter s;
      s.op = "embedding";
      s.add = true;
      s.shape = g.sizes();
      s.value = ops::view_of(kept, s.shape);
      s.target = ops::view_of(out, out.sizes());
      s.target.strides = Dims(s.shape.size(), 0);
      s.target.strides.back() = width == 1 ? 0 : 1;
      ir::IndexOperand i{ops::view_of(index, index.sizes()), rows, width, 0, false};
      i.positions.strides.push_back(0);
      s.indices.push_back(std::move(i));
      ops::submit(std::move(s), {&kept, &index, &out}, {&out});
    }
    out = out.to(g.dtype());
  }
  return record(std::move(out), "EmbeddingDenseBackwardBackward0", {&g}, {&index},
                [padding](const Tensors& gg, const Tensors& saved) -> Tensors {
                  const Tensor& index = saved[0];
                  Tensor r = embedding_of(gg[0], index, -1, false);
                  if (padding >= 0) r = where((index != padding).unsqueeze(-1), r, 0.0);
                  return {r};
                });
}

// How often each index occurs, at each place: (index's shape, 1), of type `type`.
Tensor frequencies(const Tensor& index, int64_t rows, DType type) {
  const NoGrad guard;
  const Tensor flat = index.reshape({-1});
  const Tensor counts = zeros({rows}, Options(DType::I64, index.device()));
  index_add_(counts, 0, flat, ones_like(flat));
  return index_select(counts, 0, flat).to(type).reshape(index.sizes()).unsqueeze(-1);
}

// The gradient's rows as they are, each with the number of its row.
Tensor sparse_embedding(const Tensor& weight, const Tensor& index, int64_t padding) {
  return record(rows_of(weight, index), "EmbeddingBackward0", {&weight}, {&index},
                [padding, sizes = weight.sizes()](const Tensors& g, const Tensors& saved) -> Tensors {
                  Tensor at = saved[0].reshape({-1});
                  Tensor rows = g[0].reshape({at.numel(), sizes[1]});
                  if (padding >= 0) {
                    const Tensor kept = nonzero(at != padding).view({-1});
                    at = index_select(at, 0, kept), rows = index_select(rows, 0, kept);
                  }
                  return {ops::with_values(at.unsqueeze(0).clone(), rows, sizes, false)};
                });
}

Tensor embedding_of(const Tensor& weight, const Tensor& index, int64_t padding, bool by_frequency) {
  return record(rows_of(weight, index), "EmbeddingBackward0", {&weight}, {&index},
                [padding, by_frequency, rows = weight.size(0)](const Tensors& g, const Tensors& saved) -> Tensors {
                  const DType type = ops::accumulator_of(g[0].dtype());  // float16 does not count to 70,000
                  const Tensor scaled = by_frequency && g[0].numel() ? g[0].to(type) / frequencies(saved[0], rows, type) : g[0];
                  return {embedding_gradient(scaled, saved[0], rows, padding).to(g[0].dtype())};
                });
}

}  // namespace

// weight (n, width), index of integers of any shape -> (index's shape, width). Throws IndexError for an index outside [0, n) (on devices, at
// the next read). The row `padding_idx` gets no gradient. sparse: the gradient is a sparse tensor of the rows that were read. scale_grad_by_freq: gradients are divided by how often their row is read here.
Tensor embedding(const Tensor& weight, const Tensor& index, int64_t padding_idx, bool scale_grad_by_freq, bool sparse) {
  ops::require_defined(weight, "embedding", "weight");
  ops::require_defined(index, "embedding", "input");
  if (weight.impl()->storage->device != index.impl()->storage->device) {
    const Tensor* tensors[] = {&weight, &index};
    const char* roles[] = {"weight", "input"};
    ops::common_device(tensors, roles, "embedding");
  }
  if (is_complex(weight.dtype()) && weight.dim() == 2) {
    if (sparse) throw NotImplementedError("embedding: sparse gradients of complex tables are not supported");
    const Tensor rows = embedding(view_as_real(weight).flatten(1), index, padding_idx, scale_grad_by_freq);
    return view_as_complex(rows.unflatten(-1, {weight.size(1), 2}));
  }
  if (weight.dim() != 2) throw RuntimeError("'weight' must be 2-D (embedding: got shape {})", weight.sizes().str());
  if (index.dtype() != DType::I64 && index.dtype() != DType::I32)
    throw RuntimeError(
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.{}Tensor "
        "instead (while checking arguments for embedding)",
        ops::torch_name(index.dtype()));
  const int64_t rows = weight.size(0);
  if (padding_idx >= rows) throw RuntimeError("Padding_idx must be within num_embeddings (got {} of {})", padding_idx, rows);
  const Tensor positions = index.detach().to(DType::I64);
  if (positions.device().is_cpu() && !ops::recording_host()) {
    runtime::wait_for_host(*positions.impl()->storage);
    const Tensor dense = positions.contiguous();
    const auto* p = static_cast<const int64_t*>(dense.data_ptr());
    for (int64_t i = 0; i < dense.numel(); ++i)
      if (p[i] < 0 || p[i] >= rows)
        throw IndexError("index out of range in self (embedding: wanted 0 <= index < {}, got {} at position {})", rows, p[i], i);
  }
  if (!sparse) return embedding_of(weight, positions, padding_idx, scale_grad_by_freq);
  if (scale_grad_by_freq) throw RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients");
  return sparse_embedding(weight, positions, padding_idx);
}

}  // namespace naru
