// linear: the layer y = x wT + bias.
#include "autograd/history/history.h"
#include "naru/ops.h"
#include "ops/call/wrapped.h"
#include "ops/complex/complex.h"
#include "ops/linalg/matmul.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {

using autograd::Needed;
using autograd::record;
using autograd::requires_grad;
using Tensors = std::vector<Tensor>;

namespace {

Tensor of_x(const Tensors& g, const Tensors& saved) { return mm(g[0], ops::conjugate(saved[1])); }
Tensor of_w(const Tensors& g, const Tensors& saved) { return mm(g[0].t(), ops::conjugate(saved[0])); }

// The tangent of x w', of tangents of x and w (or undefined).
Tensor along(const Tensor& x, const Tensor& w, const Tensors& saved) {
  const Tensor left = x.defined() ? mm(x, saved[1].t()) : Tensor();
  return w.defined() ? autograd::added(left, mm(saved[0], w.t())) : left;
}

// x (n, in), w (out, in), bias (out) or undefined.
Tensor linear_of_matrix(const Tensor& x, const Tensor& w, const Tensor& bias) {
  Tensor y = ops::product_of(x, w, bias, true, "linear");
  const auto [kept_x, kept_w] = ops::factors_to_save(x, w);
  if (!bias.defined())
    return record(std::move(y), "MmBackward0", {&x, &w}, {kept_x, kept_w},
                  autograd::WithJvp(
                      [](const Tensors& g, const Tensors& saved, Needed needed) -> Tensors {
                        return {needed[0] ? of_x(g, saved) : Tensor(), needed[1] ? of_w(g, saved) : Tensor()};
                      },
                      [](const Tensors& t, const Tensors& saved) { return along(t[0], t[1], saved); }));
  // The bias comes first in the node's edges, as programs that walk the graph expect.
  return record(std::move(y), "AddmmBackward0", {&bias, &x, &w}, {kept_x, kept_w},
                autograd::WithJvp(
                    [](const Tensors& g, const Tensors& saved, Needed needed) -> Tensors {
                      return {needed[0] ? sum(g[0], Dims{0}) : Tensor(), needed[1] ? of_x(g, saved) : Tensor(),
                              needed[2] ? of_w(g, saved) : Tensor()};
                    },
                    [](const Tensors& t, const Tensors& saved) { return autograd::added(along(t[1], t[2], saved), t[0]); }));
}

void check_bias(const Tensor& x, const Tensor& w, const Tensor& bias) {
  if (bias.dtype() != w.dtype())
    throw RuntimeError("self and mat2 must have the same dtype, but got {} and {} (linear: the bias and the weight)",
                       ops::torch_name(bias.dtype()), ops::torch_name(w.dtype()));
  const int64_t out = w.size(0);
  if (bias.dim() != 1 || bias.numel() != out)
    throw RuntimeError(
        "The expanded size of the tensor ({}) must match the existing size ({}) at non-singleton dimension 1.  Target sizes: "
        "[{}, {}].  Tensor sizes: {} (linear: the bias)",
        out, bias.dim() ? bias.size(-1) : 1, x.dim() > 1 ? x.numel() / std::max<int64_t>(1, x.size(-1)) : 1, out, bias.sizes().str());
}

Tensor of_sparse(const Tensor& x, const Tensor& w, const Tensor& bias) {
  Dims out = x.sizes();
  out.back() = w.size(0);
  const Tensor y = x.dim() == 2 ? mm(x, w.t()) : mm(x.reshape({-1, x.size(-1)}), w.t()).view(out);
  return !bias.defined() ? y : ops::has_sparse_form(y) ? bias + y : y + bias;
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias) {
  const auto entries = [&] {
    const batching::Batch b{&x, &w, &bias};
    if (!b.has(w) && !b.has(bias) && x.dim() > 0) return b.entry(linear(b.opened(x), w, bias));
    const Tensor y = matmul(x, w.dim() == 2 ? w.t() : w);
    return bias.defined() ? y + bias : y;
  };
  if (auto y = ops::wrapped("linear", linear, x, w, bias, ops::BatchRule{entries})) return *std::move(y);
  ops::require_defined(x, "linear", "input");
  ops::require_defined(w, "linear", "weight");
  const Device device = x.impl()->storage->device;
  if (w.impl()->storage->device != device || (bias.defined() && bias.impl()->storage->device != device)) {
    const Tensor* tensors[] = {&x, &w, &bias};
    const char* roles[] = {"input", "weight", "bias"};
    ops::common_device(std::span(tensors, bias.defined() ? 3 : 2), roles, "linear");
  }
  if (w.dim() == 1) return bias.defined() ? matmul(x, w) + bias : matmul(x, w);
  if (w.dim() != 2 || x.dim() == 0)
    throw RuntimeError(
        "both arguments to linear need to be at least 1D, but they are {}D and {}D (wanted: input (..., in), weight (out, in))", x.dim(),
        w.dim());
  if (ops::has_sparse_form(x) || ops::has_sparse_form(w)) [[unlikely]]
    return of_sparse(x, w, bias);
  ops::check_factors(x, w, "linear");
  const Dims &sx = x.sizes(), &sw = w.sizes();
  const int64_t in = sx[sx.size() - 1];
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < sx.size(); ++d) rows *= sx[d];
  if (in != sw[1]) ops::throw_not_multiplicable({rows, in}, {sw[1], sw[0]}, "linear", bias.defined());
  if (bias.defined()) check_bias(x, w, bias);
  if (sx.size() == 2) return linear_of_matrix(x, w, bias);
  Dims out = sx;
  out.back() = sw[0];
  return linear_of_matrix(x.reshape({rows, in}), w, bias).view(out);
}

}  // namespace naru
