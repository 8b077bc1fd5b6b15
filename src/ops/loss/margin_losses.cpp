// multi_margin_loss, multilabel_margin_loss, multilabel_soft_margin_loss.
#include <algorithm>
#include <bit>
#include <span>

#include "autograd/history/constant.h"
#include "naru/autograd.h"
#include "naru/ops/functions.h"
#include "naru/ops/losses.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/host_loop.h"
#include "ops/loss/parts.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

using ops::hinge;
using ops::only;
using ops::reduced;

// The number of rows and classes of an input (N, C), (C) or ().
struct Shape {
  int64_t rows, classes;
};
Shape shape_of(const Tensor& input) {
  const int64_t rank = input.dim();
  if (rank > 2 || (rank > 0 && input.size(-1) == 0))
    throw RuntimeError("Expected non-empty vector or matrix with optional 0-dim batch size, but got: {}", input.sizes().str());
  return {rank == 2 ? input.size(0) : 1, rank == 0 ? 1 : input.size(-1)};
}

void check_operands(const Tensor& input, const Tensor& target, const Tensor& weight, const char* op, const char* kernel) {
  ops::require_defined(input, op, "input");
  ops::require_defined(target, op, "target");
  const Tensor* tensors[] = {&input, &target, &weight};
  const char* roles[] = {"input", "target", "weight"};
  ops::common_device(tensors, roles, op);
  if (!is_floating(input.dtype())) ops::throw_not_implemented(kernel, input.dtype());
  if (target.dtype() != DType::I64)
    throw RuntimeError("expected scalar type Long but found {} ({}: the target holds class numbers; convert it with .to(int64))",
                       ops::torch_name(target.dtype()), op);
}

// True if all elements are in [low, high). Checked on the cpu only: elsewhere the host would have to wait, and index kernels check indices too.
bool within(const Tensor& t, int64_t low, int64_t high) {
  if (!t.device().is_cpu() || ops::recording_host() || t.numel() == 0) return true;
  const Tensor numbers = t.contiguous();
  const std::span<const int64_t> all(numbers.data<int64_t>(), static_cast<size_t>(numbers.numel()));
  return std::all_of(all.begin(), all.end(), [=](int64_t v) { return v >= low && v < high; });
}

// True if the cpu sums the losses of each row in one loop: a row has no more terms than a chunk of a reduction (ir/reduce.h).
bool sums_at_once(const Tensor& input, const Tensor& target, int64_t each) {
  return each <= ir::kContiguousChunk && size_of(input.dtype()) >= 4 && ops::can_use_host_loop({&input, &target});
}
Tensor summed(ir::HostLoop::Kind kind, const Tensor& input, const Tensor& target, std::array<int64_t, 4> numbers = {}) {
  const Tensor x = input.contiguous(), t = target.contiguous(), sums = ops::make_result({x.size(0)}, x.dtype(), x.device(), "margin_loss");
  ops::run_host_loop(kind, {&x, &t}, {&sums}, numbers);
  return sums;
}

}  // namespace

Tensor multi_margin_loss(const Tensor& input, const Tensor& target, int64_t p, double margin, const Tensor& weight, Reduction reduction) {
  if (auto y = ops::wrapped("multi_margin_loss", multi_margin_loss, input, target, p, margin, weight, reduction)) return *std::move(y);
  const char* op = "multi_margin_loss";
  if (p != 1 && p != 2) throw ValueError("only p == 1 and p == 2 supported");
  if (weight.defined() && weight.dim() != 1) throw ValueError("weight must be one-dimensional");
  check_operands(input, target, weight, op, "multi_margin_loss_cpu_kernel");
  const auto [rows, classes] = shape_of(input);
  if (target.dim() > 1 || target.numel() != rows)
    throw RuntimeError(
        "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). Expected target size "
        "[{}], but got {}. Input has shape {}.",
        rows, target.sizes().str(), input.sizes().str());
  if (weight.defined() && weight.numel() != classes)
    throw RuntimeError("inconsistent weight size, expected {} but got {}", classes, weight.sizes().str());
  if (weight.defined() && weight.dtype() != input.dtype())
    throw RuntimeError("expected scalar type {} but found {} (the weight of multi_margin_loss)", ops::torch_name(input.dtype()),
                       ops::torch_name(weight.dtype()));
  autograd::refuse_gradient(weight, "multi_margin_loss", "weight");
  if (!within(target, 0, classes)) throw RuntimeError("target out of range (multi_margin_loss: wanted classes in [0, {}))", classes);
  if (!weight.defined() && sums_at_once(input, target, classes)) {
    const Tensor sums = summed(ir::HostLoop::Kind::Margins, input.reshape({rows, classes}), target, {p, std::bit_cast<int64_t>(margin)});
    return reduced((sums / classes).reshape(target.sizes()), reduction);
  }
  const Tensor x = input.reshape({rows, classes}), t = target.reshape({rows, 1});
  Tensor each = hinge(Scalar(margin) - gather(x, 1, t) + x);
  if (p == 2) each = each * each;
  if (weight.defined()) each = each * index_select(weight, 0, target.reshape({rows})).unsqueeze(1);
  const Tensor others = arange(0, classes, 1, Options(DType::I64, x.device())) != t;
  const Tensor losses = reduced((sum(only(others, each), Dims{1}) / classes).reshape(target.sizes()), reduction);
  return autograd::refusing_second(losses, "multi_margin_loss_backward");
}

Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  if (auto y = ops::wrapped("multilabel_margin_loss", multilabel_margin_loss, input, target, reduction)) return *std::move(y);
  check_operands(input, target, {}, "multilabel_margin_loss", "multilabel_margin_loss_forward_out_frame");
  const auto [rows, classes] = shape_of(input);
  if (input.dim() == 2 ? !(target.sizes() == input.sizes()) : target.dim() > 1 || target.numel() != classes)
    throw RuntimeError("inconsistent target size: {} for input of size: {}", target.sizes().str(), input.sizes().str());
  if (!within(target, -1, classes))
    throw RuntimeError("argument #2 'target' is out of range (multilabel_margin_loss: wanted classes in [0, {}), and -1 behind them)",
                       classes);
  const Tensor x = input.reshape({rows, classes}), t = target.reshape({rows, classes});
  if (sums_at_once(input, target, classes * classes)) {
    const Tensor losses = summed(ir::HostLoop::Kind::LabelMargins, x, t) / classes;
    return reduced(input.dim() == 2 ? losses : losses.squeeze(0), reduction);
  }
  // A row's labels end at the first negative one. Use as many columns as the longest row has labels.
  const Tensor valid = cumsum((t < 0).to(DType::I64), 1) == 0;
  const auto longest = static_cast<double>(classes);
  const int64_t most = rows ? std::max<int64_t>(static_cast<int64_t>(ops::number_or(max(sum(valid, Dims{1})), longest)), 1) : 1;
  Tensor is_target = zeros({rows, classes + 1}, Options(DType::Bool, x.device()));
  scatter_(is_target, 1, where(valid, t, full_like(t, classes)), true);
  const Tensor labels = where(valid, t, zeros_like(t)).narrow(1, 0, most);
  const Tensor each = hinge(Scalar(1) - gather(x, 1, labels).unsqueeze(2) + x.unsqueeze(1));
  const Tensor counts = logical_and(valid.narrow(1, 0, most).unsqueeze(2), logical_not(is_target.narrow(1, 0, classes)).unsqueeze(1));
  const Tensor losses = sum(only(counts, each), Dims{1, 2}) / classes;
  return autograd::refusing_second(reduced(input.dim() == 2 ? losses : losses.squeeze(0), reduction), "multilabel_margin_loss_backward");
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const Tensor& weight, Reduction reduction) {
  Tensor losses = -(target * logsigmoid(input) + (Scalar(1) - target) * logsigmoid(-input));
  if (weight.defined()) losses = losses * weight;
  if (input.dim() == 0) throw IndexError("Dimension specified as -1 but tensor has no dimensions");
  const int64_t last = input.dim() - 1;
  return reduced(sum(losses, Dims{last}) / input.size(last), reduction);
}

}  // namespace naru
