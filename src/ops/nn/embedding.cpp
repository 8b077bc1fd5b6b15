// embedding.
#include "autograd/history/history.h"
#include "naru/ops/complex.h"
#include "ops/elementwise/unsigned.h"
#include "ops/reduce/reductions.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {

using autograd::record;
using Tensors = std::vector<Tensor>;

namespace {

// Rows of a table (n, width) chosen by `index`.
Tensor rows_of(const Tensor& table, const Tensor& index) {
  if (has_storage_type(table.dtype())) return ops::as_elements(rows_of(ops::as_stored(table), index), table.dtype());
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
                autograd::WithJvp(
                    [padding](const Tensors& gg, const Tensors& saved) -> Tensors {
                      const Tensor& index = saved[0];
                      Tensor r = embedding_of(gg[0], index, -1, false);
                      if (padding >= 0) r = where((index != padding).unsqueeze(-1), r, 0.0);
                      return {r};
                    },
                    [rows, padding](const Tensors& t, const Tensors& saved) { return embedding_gradient(t[0], saved[0], rows, padding); }));
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
