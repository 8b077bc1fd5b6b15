// Removing and moving dimensions; repeating, flipping and rolling elements.
#include <algorithm>
#include <cstdlib>

#include "autograd/history/history.h"
#include "core/sizes.h"
#include "naru/ops.h"
#include "naru/ops/aliases.h"
#include "naru/ops/complex.h"
#include "naru/ops/functions.h"
#include "ops/call/wrapped.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/unsigned.h"
#include "ops/shape/strides.h"
#include "ops/tensor/common.h"

namespace naru {

using Grads = std::vector<Tensor>&;

Tensor squeeze(const Tensor& t, const Dims& dims) {
  if (dims.size() == 1) return t.squeeze(dims[0]);
  std::vector<int64_t> order;
  for (int64_t d : dims) order.push_back(wrap_dim(d, t.dim()));
  std::sort(order.rbegin(), order.rend());
  Tensor out = t;
  for (int64_t d : order) out = out.squeeze(d);
  return out;
}

Tensor movedim(const Tensor& t, const Dims& from, const Dims& to) {
  if (from.size() != to.size())
    throw RuntimeError(
        "movedim: Invalid source or destination dims: source ({} dims) should contain the same number of dims as destination ({} dims)",
        from.str(), to.str());
  const int64_t n = t.dim();
  if (n == 0) {
    for (int64_t d : from) wrap_dim(d, 0);
    for (int64_t d : to) wrap_dim(d, 0);
    return t.view(t.sizes());
  }
  std::vector<int64_t> order(static_cast<size_t>(n), -1);
  std::vector<bool> taken(static_cast<size_t>(n), false);
  for (size_t i = 0; i < from.size(); ++i) {
    const auto a = static_cast<size_t>(wrap_dim(from[i], n)), b = static_cast<size_t>(wrap_dim(to[i], n));
    if (taken[a]) throw RuntimeError("movedim: repeated dim in `source` ({})", from.str());
    if (order[b] >= 0) throw RuntimeError("movedim: repeated dim in `destination` ({})", to.str());
    order[b] = static_cast<int64_t>(a);
    taken[a] = true;
  }
  int64_t next = 0;
  for (auto& d : order) {
    if (d >= 0) continue;
    while (taken[static_cast<size_t>(next)]) ++next;
    d = next++;
  }
  return t.permute(Dims(order));
}

Tensor numpy_T(const Tensor& t) {
  Dims order;
  for (int64_t d = t.dim(); d-- > 0;) order.push_back(d);
  return t.permute(order);
}

Tensor mT(const Tensor& t) {
  if (t.dim() == 0) {
    warn("Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases.");
    return t.view(t.sizes());
  }
  if (t.dim() < 2) throw RuntimeError("tensor.mT is only supported on matrices or batches of matrices. Got {}-D tensor.", t.dim());
  return t.transpose(-2, -1);
}

Tensor matrix_H(const Tensor& t) {
  if (t.dim() == 0) {
    warn("Tensor.H is deprecated on 0-D tensors. Consider using x.conj().");
    return conj(t);
  }
  if (t.dim() != 2) throw RuntimeError("tensor.H is only supported on matrices (2-D tensors). Got {}-D tensor.", t.dim());
  return conj(t.t());
}

Tensor mH(const Tensor& t) {
  if (t.dim() == 0) {
    warn("Tensor.mH is deprecated on 0-D tensors. Consider using x.conj().");
    return conj(t);
  }
  if (t.dim() < 2) throw RuntimeError("tensor.mH is only supported on matrices or batches of matrices. Got {}-D tensor.", t.dim());
  return conj(t.transpose(-2, -1));
}

Tensor rot90(const Tensor& t, int64_t k, const Dims& dims) {
  if (dims.size() != 2) throw RuntimeError("expected total rotation dims == 2, but got dims = {}", dims.size());
  if (t.dim() < 2) throw RuntimeError("expected total dims >= 2, but got total dims = {}", t.dim());
  switch (((k % 4) + 4) % 4) {
    case 1:
      return flip(t, {dims[1]}).transpose(dims[0], dims[1]);
    case 2:
      return flip(t, dims);
    case 3:
      return flip(t, {dims[0]}).transpose(dims[0], dims[1]);
    default:
      return t.clone();
  }
}

Tensor repeat(const Tensor& t, const Dims& times) {
  ops::require_defined(t, "repeat", "input");
  if (static_cast<int64_t>(times.size()) < t.dim())
    throw RuntimeError(
        "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor (repeat {}, shape "
        "{})",
        times.str(), t.sizes().str());
  const size_t extra = times.size() - t.sizes().size();
  // View each dimension as a pair (1, size), expand it to (times, size), then merge the pair.
  Dims pairs, spread, shape;
  for (size_t d = 0; d < times.size(); ++d) {
    const int64_t n = d < extra ? 1 : t.sizes()[d - extra];
    if (times[d] < 0)
      throw RuntimeError("Trying to create tensor with negative dimension {} (repeat {} of shape {})", times[d], times.str(),
                         t.sizes().str());
    shape.push_back(naru::times(times[d], n));
    for (int64_t v : {int64_t{1}, n}) pairs.push_back(v);
    for (int64_t v : {times[d], n}) spread.push_back(v);
  }
  return t.reshape(pairs).expand(spread).clone(MemoryFormat::Contiguous).view(shape);
}

namespace {

// Reverses the dimensions d for which turned[d] is true.
Tensor flipped(const Tensor& t, const std::vector<bool>& turned) {
  Tensor out =
      ops::make_result(t.sizes(), ops::strides_like(t.sizes(), t.strides(), MemoryFormat::Preserve), t.dtype(), t.device(), "flip", true);
  if (t.numel() > 0) {
    ir::Gather g;
    g.shape = t.sizes();
    g.source = ops::view_of(t, t.sizes());
    int64_t first = 0;
    for (size_t d = 0; d < turned.size(); ++d)
      if (turned[d]) {
        first += (t.sizes()[d] - 1) * g.source.strides[d];
        g.source.strides[d] = -g.source.strides[d];
      }
    g.source.data = static_cast<char*>(g.source.data) + first * static_cast<int64_t>(t.element_size());
    g.out = ops::view_of(out, t.sizes());
    g.op = "flip";
    ops::submit(std::move(g), {&t}, {&out});
  }
  return out;
}

}  // namespace

Tensor flip(const Tensor& t, const Dims& dims) {
  ops::require_defined(t, "flip", "input");
  std::vector<bool> turned(t.sizes().size());
  for (int64_t wanted : dims) {
    const int64_t d = wrap_dim(wanted, t.dim());
    if (t.dim() == 0) continue;
    if (turned[d]) throw RuntimeError("dim {} appears multiple times in the list of dims", d);
    turned[d] = true;
  }
  if (auto y = ops::wrapped(ops::kNoCasts, flip, t, ops::Over{dims, true})) return *std::move(y);
  Tensor out = is_complex(t.dtype()) ? ops::as_complex(flipped(ops::as_real(t), turned))
                                     : ops::as_elements(flipped(ops::as_stored(t), turned), t.dtype());
  return autograd::record(out, "FlipBackward0", {&t}, {},
                          autograd::WithJvp([dims](Grads g, Grads) { return std::vector{g[0].defined() ? flip(g[0], dims) : Tensor()}; },
                                            [dims](Grads t, Grads) { return flip(t[0], dims); }));
}

Tensor roll(const Tensor& t, const Dims& shifts, const Dims& dims) {
  ops::require_defined(t, "roll", "input");
  if (shifts.empty()) throw RuntimeError("`shifts` required");
  if (dims.empty() && shifts.size() == 1) return roll(t.reshape({-1}), shifts, {0}).view(t.sizes());
  if (shifts.size() != dims.size()) throw RuntimeError("shifts and dimensions must align. shifts: {}, dims:{}", shifts.size(), dims.size());
  Tensor out = t;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = wrap_dim(dims[i], t.dim()), n = t.dim() == 0 ? 1 : t.size(d);
    const int64_t shift = n == 0 ? 0 : (shifts[i] % n + n) % n;
    if (shift != 0) out = cat({out.narrow(d, n - shift, shift), out.narrow(d, 0, n - shift)}, d);
  }
  return out.is(t) ? t.clone() : out;
}

Tensor fliplr(const Tensor& t) {
  if (t.dim() < 2) throw RuntimeError("Input must be >= 2-d. (fliplr: input has {} dimensions)", t.dim());
  return flip(t, {1});
}

Tensor flipud(const Tensor& t) {
  if (t.dim() < 1) throw RuntimeError("Input must be >= 1-d. (flipud: input has no dimensions)");
  return flip(t, {0});
}

}  // namespace naru
