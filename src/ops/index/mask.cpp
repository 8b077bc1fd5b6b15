// Masks: nonzero, masked_select, masked_fill.
#include "naru/ops.h"

#include <fmt/format.h>

#include "ops/batch/batch.h"
#include "ops/call/wrapped.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/elementwise.h"
#include "ops/index/addressing.h"
#include "ops/tensor/numbers.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

using Grads = std::vector<Tensor>&;

void require_mask(const Tensor& t, const Tensor& mask, const char* op) {
  ops::require_defined(t, op, "input");
  ops::require_defined(mask, op, "mask");
  if (mask.dtype() != DType::Bool)
    throw RuntimeError("{} only supports boolean masks, but got mask with dtype {} ({}: expected BoolTensor for mask)",
                       std::string_view(op) == "masked_fill" ? "masked_fill_" : op, ops::c_name(mask.dtype()), op);
  const Tensor* both[] = {&t, &mask};
  const char* const roles[] = {"input", "mask"};
  ops::common_device(both, roles, op);
}

void require_number(const Operand& value, const char* op) {
  if (value.is_tensor() && value.tensor().dim() != 0)
    throw RuntimeError("{} only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).", op, value.tensor().dim());
}

// out = mask ? value : t
void choose(const Tensor& out, const Tensor& t, const Tensor& mask, const Operand& value) {
  Tensor number;
  ops::OpOperand chosen{nullptr, value.is_tensor() ? Scalar() : ops::converted(value.scalar(), out.dtype()), out.dtype()};
  if (value.is_tensor()) {
    number = value.tensor().detach();
    chosen.tensor = &number;
    // An integer dtype that cannot hold the value is an error here too, if the host can read the value.
    if (!is_inexact(out.dtype()) && number.dtype() != out.dtype() && number.device().is_cpu() && !ops::recording_host())
      ops::converted(ops::read_scalar(number), out.dtype());
  }
  const ops::OpOperand operands[] = {{&mask, {}, DType::Bool}, chosen, {&t, {}, out.dtype()}};
  ops::apply_into(ir::op::where, operands, out);
}

// The gradients of t and value, and the tangent of the result.
auto fill_gradients(const Tensor& t, const Tensor& value) {
  return autograd::WithJvp(
      [shape = t.sizes(), type = value.defined() ? value.dtype() : t.dtype(), device = value.defined() ? value.device() : t.device()](
          Grads g, Grads saved, autograd::Needed needed) {
        std::vector<Tensor> r(2);
        if (!g[0].defined()) return r;
        if (needed[0]) r[0] = ops::sum_to(masked_fill(g[0], saved[0], 0), shape);
        if (needed[1]) r[1] = ops::gradient_as(sum(where(saved[0], g[0], 0)), type).to(device);
        return r;
      },
      [](Grads t, Grads saved) {
        return where(saved[0], t[1].defined() ? Operand(t[1]) : Operand(0), t[0].defined() ? Operand(t[0]) : Operand(0));
      });
}

Tensor filled_entries(const Tensor& t, const Tensor& mask, const Operand& value) {
  if (value.is_tensor() && is_batched(value.tensor())) return where(mask, value.tensor().to(t.dtype()), t);
  const batching::Batch b{&t, &mask};
  const int64_t rank = std::max(t.dim(), mask.dim());
  return b.entry(masked_fill(b.aligned(t, rank), b.aligned(mask, rank), value));
}

// Drops the repeated elements of an expanded tensor: PyTorch still allows writing to one, with a warning. Returns the tensor to write to.
Tensor unexpanded(const Tensor& t, const char* op) {
  Tensor target = t;
  for (int64_t d = 0; d < t.dim() && t.numel() > 0; ++d)
    if (t.sizes()[d] > 1 && t.strides()[d] == 0) target = target.narrow(d, 0, 1);
  if (!target.is(t))
    warn(
        fmt::format("Use of {} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
                    "This also applies to advanced indexing e.g. tensor[indices] = tensor",
                    op));
  return target;
}

// Reduces the mask to `target`, the unexpanded t: an element is written if the mask is set at any of its positions in t.
Tensor mask_over(const Tensor& target, const Tensor& t, const Tensor& mask) {
  if (target.is(t)) return mask;
  Tensor at = mask.expand(t.sizes());
  for (int64_t d = 0; d < t.dim(); ++d)
    if (target.sizes()[d] != t.sizes()[d]) at = any(at, Dims{d}, true);
  return at;
}

}  // namespace

Tensor nonzero(const Tensor& t) {
  ops::require_defined(t, "nonzero", "input");
  const auto refused = []() -> Tensor {
    throw RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::nonzero. Please file an "
        "issue at https://github.com/pytorch/pytorch/issues if you need this feature.");
  };
  if (auto y = ops::by_rules(t, ops::BatchRule{refused})) return *std::move(y);
  return ops::nonzero_rows(t);
}

Tensor where(const Tensor& condition) { return nonzero(condition); }

Tensor masked_select(const Tensor& t, const Tensor& mask) {
  require_mask(t, mask, "masked_select");
  const Dims shape = broadcast_shapes(t.sizes(), mask.sizes());
  const Tensor flat = t.expand(shape).reshape({-1});
  const Tensor positions = ops::flat_nonzero(mask.expand(shape)).to(t.device());
  ops::Addressing at;
  at.sizes = flat.sizes();
  at.shape = positions.sizes();
  at.from = {-1};
  at.dims = {0};
  at.op = "masked_select";
  return ops::gather_at(flat, at, {positions}, "MaskedSelectBackward0");
}

Tensor masked_fill(const Tensor& t, const Tensor& mask, const Operand& value) {
  require_mask(t, mask, "masked_fill");
  require_number(value, "masked_fill");
  const Tensor number = value.is_tensor() ? value.tensor() : Tensor();
  const auto entries = [&] { return filled_entries(t, mask, value); };
  if (auto y = ops::by_rules(t, mask, number, ops::BatchRule{entries})) return *std::move(y);
  Tensor out = ops::make_result(broadcast_shapes(t.sizes(), mask.sizes()), t.dtype(), t.device(), "masked_fill", true);
  choose(out, t, mask, value);
  return ops::record_saving(out, number.defined() ? "MaskedFillBackward1" : "MaskedFillBackward0", {&t, &number}, {mask},
                            fill_gradients(t, number));
}

void ops::fill_masked(const Tensor& t, const Tensor& mask, const Operand& value, const char* op) {
  require_mask(t, mask, op);
  require_number(value, op);
  if (const Dims shape = broadcast_shapes(t.sizes(), mask.sizes()); !(shape == t.sizes()))
    throw RuntimeError("output with shape {} doesn't match the broadcast shape {} ({})", t.sizes().str(), shape.str(), op);
  if (ops::are_batched(t, mask, value.is_tensor() ? value.tensor() : Tensor())) [[unlikely]]
    return void(t.copy_(filled_entries(t, mask, value)));
  const Tensor target = unexpanded(t, op), at = mask_over(target, t, mask);
  require_distinct_elements(target, op);
  const Tensor number = value.is_tensor() ? value.tensor() : Tensor();
  write_in_place(
      target, op, number.defined() ? "MaskedFillBackward1" : "MaskedFillBackward0", {&number}, {at},
      [&] { choose(target, target, at, value); }, fill_gradients(target, number));
}

void masked_fill_(const Tensor& t, const Tensor& mask, const Operand& value) { ops::fill_masked(t, mask, value, "masked_fill_"); }

Tensor nonzero_static(const Tensor& t, int64_t size, int64_t fill_value) {
  if (size < 0) throw RuntimeError("nonzero_static: 'size' must be an non-negative integer");
  if (t.device().is_meta()) return empty({size, t.dim()}, Options(DType::I64, t.device()));
  const Tensor found = nonzero(t);
  const int64_t count = found.size(0);
  if (count >= size) return found.narrow(0, 0, size);
  return cat({found, full({size - count, found.size(1)}, fill_value, Options(DType::I64, t.device()))}, 0);
}

}  // namespace naru
