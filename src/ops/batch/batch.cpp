#include "ops/batch/batch.h"

#include <algorithm>

#include "naru/ops.h"
#include "ops/elementwise/elementwise.h"
#include "ops/sparse/sparse.h"

namespace naru::batching {

NoBatchingRule::NoBatchingRule(const char* op)
    : NotImplementedError("vmap: {} has no rule for batched tensors; call it outside of vmap, or for each entry", op) {}
WrittenWithoutBatch::WrittenWithoutBatch(const char* op)
    : RuntimeError(
          "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more "
          "elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over in a vmap. Please try "
          "to "
          "use out-of-place operators instead of inplace arithmetic ({}). If said operator is being called inside the PyTorch framework, "
          "please file a bug report instead.",
          op) {}

Batch::Batch(std::span<const Tensor* const> operands) {
  for (const Tensor* t : operands) {
    if (!is_batched(*t)) continue;
    const BatchParts& parts = batch_parts(*t);
    if (parts.level > level_) level_ = parts.level, size_ = parts.value.sizes()[0];
  }
  if (level_ > vmaps_entered) throw RuntimeError("vmap: a tensor of a vmap that is over is used; return what is needed from the function");
}

Batch::Batch(const std::vector<Tensor>& operands) {
  for (const Tensor& t : operands)
    if (is_batched(t) && batch_parts(t).level > level_) *this = Batch{&t};
}

Tensor Batch::whole(const Tensor& t) const { return has(t) ? batch_parts(t).value : t.unsqueeze(0).expand(under(t.sizes())); }

Tensor Batch::aligned(const Tensor& t, int64_t rank) const {
  if (!has(t)) return t;
  const Tensor& value = batch_parts(t).value;
  if (t.dim() >= rank) return value;
  Dims shape{size_};
  for (int64_t d = t.dim(); d < rank; ++d) shape.push_back(1);
  for (const int64_t n : t.sizes()) shape.push_back(n);
  return value.reshape(shape);
}

Tensor Batch::whole_aligned(const Tensor& t, int64_t rank) const { return aligned(has(t) ? t : entry(whole(t)), rank); }

Dims Batch::under(const Dims& shape) const {
  Dims all = shape;
  all.insert(0, size_);
  return all;
}

void require_batched(const Tensor& t, const char* op) {
  if (!is_batched(t)) ops::throw_no_sparse(op, t);
}

Dims behind_batch(const Dims& dims, int64_t rank) {
  Dims all;
  for (const int64_t d : dims) all.push_back(behind_batch(d, rank));
  return all;
}

Tensor joined(const std::vector<Tensor>& tensors, int64_t dim, bool as_rows) {
  const Batch b(tensors);
  int64_t rank = 0;
  for (const Tensor& t : tensors) rank = std::max(rank, t.dim());
  std::vector<Tensor> values;
  for (const Tensor& t : tensors) {
    if (t.dim() == 0 && !as_rows) throw RuntimeError("zero-dimensional tensor (at position {}) cannot be concatenated", values.size());
    if (as_rows || rank == 1 || t.dim() != 1 || t.numel() > 0) values.push_back(b.whole(t));  // cat skips empty vectors
  }
  const int64_t at = behind_batch(dim, rank + as_rows);
  return b.entry(as_rows ? stack(values, at) : cat(values, at));
}

}  // namespace naru::batching

namespace naru::ops {

using batching::Batch;

namespace {

Dims shape_of(std::span<const Operand> operands) {
  Dims shape;
  for (const Operand& o : operands)
    if (o.is_tensor()) shape = broadcast_shapes(shape, o.tensor().sizes());
  return shape;
}

Batch batch_among(std::span<const Operand> operands) {
  std::array<const Tensor*, 3> tensors;
  size_t n = 0;
  for (const Operand& o : operands)
    if (o.is_tensor()) tensors[n++] = &o.tensor();
  return Batch({tensors.data(), n});
}

// The operands' values, which broadcast as the entries do.
class Values {
 public:
  // compute: the type in which the operator sees its operands, none if they are promoted alike whatever their dimensions.
  Values(std::span<const Operand> operands, const Batch& b, int64_t rank, std::optional<DType> compute, size_t first = 0) {
    for (size_t i = 0; i < operands.size(); ++i) {
      const Operand& o = operands[i];
      if (o.is_tensor() && b.has(o.tensor())) {
        held_[i] = b.aligned(o.tensor(), rank);
        // An entry without dimensions counts as a number in promotion, but its value has the batch's dimension.
        if (compute && i >= first && o.tensor().dim() == 0 && o.tensor().dtype() != *compute) held_[i] = held_[i].to(*compute);
        values_[i] = Operand(held_[i]);
      } else {
        values_[i] = o;
      }
    }
    size_ = operands.size();
  }
  std::span<const Operand> all() const noexcept { return {values_.data(), size_}; }

 private:
  std::array<Tensor, 3> held_;
  std::array<Operand, 3> values_{Operand(0), Operand(0), Operand(0)};
  size_t size_ = 0;
};

std::optional<DType> compute_type(ir::OpId id, std::span<const Operand> operands) {
  const TableEntry& r = table()[id];
  if (std::count_if(operands.begin(), operands.end(), [](const Operand& o) { return o.is_tensor(); }) < 2) return {};
  return apply_rule(r.rule, operands, r.name).compute;
}

}  // namespace

Tensor run_batched(ir::OpId id, std::span<const Operand> operands) {
  const Batch b = batch_among(operands);
  const auto rank = static_cast<int64_t>(shape_of(operands).size());
  const Values values(operands, b, rank, compute_type(id, operands), table()[id].rule == Rule::Where);
  return b.entry(run_op(id, values.all()));
}

void run_batched_in_place(ir::OpId id, const Tensor& target, std::span<const Operand> others) {
  std::array<Operand, 3> all{Operand(target), Operand(0), Operand(0)};
  std::copy(others.begin(), others.end(), all.begin() + 1);
  const std::span<const Operand> operands(all.data(), others.size() + 1);
  const Batch b = batch_among(operands);
  const TableEntry& r = table()[id];
  if (!b.has(target)) throw batching::WrittenWithoutBatch(r.name);
  if (const Dims shape = shape_of(operands); !(shape == target.sizes()))
    throw RuntimeError("output with shape {} doesn't match the broadcast shape {} ({}_)", target.sizes().str(), shape.str(), r.name);
  const Values values(operands.subspan(1), b, target.dim(), target.dim() ? compute_type(id, operands) : std::nullopt);
  run_op_in_place(id, b.opened(target), values.all());
  set_batched(target, b.opened(target));
}

void batched_copy_(const Tensor& t, const Tensor& source) {
  const Batch b{&t, &source};
  if (!b.has(t)) throw batching::WrittenWithoutBatch("copy_");
  if (!(broadcast_shapes(t.sizes(), source.sizes()) == t.sizes()))
    throw RuntimeError("output with shape {} doesn't match the broadcast shape {} (copy_)", t.sizes().str(),
                       broadcast_shapes(t.sizes(), source.sizes()).str());
  b.opened(t).copy_(b.aligned(source, t.dim()));
  set_batched(t, b.opened(t));
}

void batched_fill_(const Tensor& t, const Operand& value) {
  if (!value.is_tensor()) {
    const Batch b{&t};
    b.opened(t).fill_(value);
    set_batched(t, b.opened(t));
  } else if (value.tensor().dim() == 0) {
    batched_copy_(t, value.tensor());
  } else {
    throw RuntimeError("fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.", value.tensor().dim());
  }
}

}  // namespace naru::ops
