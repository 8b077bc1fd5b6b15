// Reductions into indexed positions. Sources of one position are sorted by index, stably, so that the results are bit-identical on every device. Sums
// use scatter_add. Products are scanned within the run of a position. For minima and maxima, the last write wins, and the sort puts the extreme last.
#include <string_view>

#include "autograd/history/constant.h"
#include "autograd/history/history.h"
#include "naru/ops.h"
#include "ops/elementwise/half.h"
#include "ops/elementwise/host_loop.h"
#include "ops/index/addressing.h"
#include "ops/reduce/reduction.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

enum class Kind { Sum, Prod, Mean, Amax, Amin };

Kind parse(std::string_view name, const char* op) {
  constexpr std::pair<std::string_view, Kind> kNames[] = {{"sum", Kind::Sum},   {"prod", Kind::Prod}, {"mean", Kind::Mean},
                                                          {"amax", Kind::Amax}, {"amin", Kind::Amin}, {"max", Kind::Amax},
                                                          {"min", Kind::Amin}};
  for (const auto& [word, kind] : kNames)
    if (word == name) return kind;
  throw RuntimeError("reduce argument must be either sum, prod, mean, amax or amin, got {}. ({})", name, op);
}

struct Call {
  ir::IndexName op;
  const Tensor& self;
  int64_t dim;
  const Tensor& index;
  Tensor source;  // has index's shape
  bool include_self;

  Tensor ones() const { return ones_like(source.detach()); }
  Tensor put(const Tensor& to, const Tensor& at, const Operand& value) const { return ops::scatter_for(op, to, dim, at, value); }
  Tensor added(const Tensor& to, const Tensor& value) const { return ops::scatter_for(op, to, dim, index, value, true); }
  // self with `value` at the indexed positions.
  Tensor with(double value) const { return put(self, index, Operand(self.dtype() == DType::Bool ? Scalar(value != 0) : Scalar(value))); }
};

Tensor sum(const Call& c) { return c.added(c.include_self ? c.self : c.with(0), c.source); }

// The number of elements in each position's mean; 1 where there are none.
Tensor count(const Call& c) {
  const Tensor before = c.include_self ? ones_like(c.self.detach()) : c.put(ones_like(c.self.detach()), c.index, Operand(0));
  const Tensor n = c.added(before, c.ones());
  return where(n == 0, ones_like(n), n);
}

Tensor mean(const Call& c) {
  const Tensor n = count(c);
  return is_inexact(c.self.dtype()) ? sum(c) / n : floor_divide(sum(c), n);
}

// Multiplies elements of the same position over distances of 1, 2, 4 ...; then the last of each run has the whole product.
Tensor prod(const Call& c) {
  const auto [places, order] = sort(c.index, c.dim);
  Tensor value = gather(c.source, c.dim, order);
  const int64_t n = value.dim() == 0 ? 1 : value.size(c.dim);
  for (int64_t step = 1; step < n; step *= 2) {
    const Tensor same = places.narrow(c.dim, 0, n - step) == places.narrow(c.dim, step, n - step);
    const Tensor later = value.narrow(c.dim, step, n - step), ones = ones_like(later.detach());
    // Replace factors of other positions by 1: a gradient of 0 times NaN would be NaN.
    const Tensor product = where(same, value.narrow(c.dim, 0, n - step), ones) * where(same, later, ones);
    value = cat({value.narrow(c.dim, 0, step), where(same, product, later)}, c.dim);
  }
  // Elements that a later write overwrites get no gradient.
  if (n > 1) {
    const Tensor overwritten = cat({places.narrow(c.dim, 0, n - 1) == places.narrow(c.dim, 1, n - 1),
                                    zeros_like(places.narrow(c.dim, 0, 1), Options(DType::Bool, places.device()))},
                                   c.dim);
    value = where(overwritten, value.detach(), value);
  }
  return autograd::reading_inputs(c.include_self ? c.self * c.put(ones_like(c.self.detach()), places, value)
                                                 : c.put(c.self, places, value));
}

// For the cpu without autograd: a sequential loop into a copy. Returns an undefined tensor otherwise. The general path reports sizes that do not
// match.
Tensor extreme_at_once(const Call& c, bool greatest) {
  const Dims &to = c.self.sizes(), &from = c.index.sizes();
  if (to.empty() || to.size() != from.size() || !(c.source.sizes() == from) || c.index.dtype() != DType::I64 ||
      size_of(c.self.dtype()) < 4 || !ops::can_use_host_loop({&c.self, &c.index, &c.source}))
    return {};
  for (size_t d = 0; d < to.size(); ++d)
    if (static_cast<int64_t>(d) != c.dim && from[d] > to[d]) return {};
  const Tensor out = c.self.clone(MemoryFormat::Contiguous), index = c.index.contiguous(), source = c.source.contiguous();
  ops::run_host_loop(ir::HostLoop::Kind::ScatterExtreme, {&index, &source, &out}, {&out},
                     {c.dim, greatest, c.include_self | (std::string_view(c.op) == "index_reduce_" ? 2 : 0)});
  return out;
}

// The gradient is shared equally by all elements that equal the result.
Tensor extreme(const Call& c, bool greatest) {
  if (Tensor out = extreme_at_once(c, greatest); out.defined()) return out;
  const bool floats = is_inexact(c.self.dtype());
  const auto [value, order] = sort(c.source.detach(), c.dim, !greatest);
  const Tensor places = gather(c.index, c.dim, order);
  const Tensor self = c.self.detach();
  Tensor found = c.put(self, places, value);
  if (floats && !greatest) {  // the sort puts NaN at the greatest end; amin must return it too
    const Tensor none = c.added(zeros_like(self), (c.source.detach() != c.source.detach()).to(self.dtype()));
    found = where(none == 0, found, none / 0.0 * 0.0);
  }
  Tensor out = !c.include_self ? found : greatest ? maximum(self, found) : minimum(self, found);
  auto backward = [dim = c.dim, include = c.include_self](const std::vector<Tensor>& g, const std::vector<Tensor>& s,
                                                          autograd::Needed needed) {
    const Tensor &x = s[0], &positions = s[1], &source = s[2], &y = s[3];
    std::vector<Tensor> r(2);
    if (!g[0].defined()) return r;
    const DType type = ops::accumulator_of(x.dtype());  // float16 cannot count to 70,000
    const Tensor mine = (x == y).to(type);
    const Tensor theirs = (source == gather(y, dim, positions)).to(type);
    const Tensor n = scatter_add(mine, dim, positions, theirs);
    const Tensor part = g[0].to(type) / n;  // NaN if the extreme is NaN, which equals nothing
    if (needed[0])
      r[0] = include ? (mine * part).to(x.dtype()) : where(scatter(zeros_like(x), dim, positions, Operand(1)) == 0, g[0], zeros_like(g[0]));
    if (needed[1]) r[1] = (theirs * gather(part, dim, positions)).to(x.dtype());
    return r;
  };
  return autograd::record(out, "ScatterReduceBackward0", {&c.self, &c.source}, {&c.self, &c.index, &c.source}, backward, true);
}

Tensor reduced(ir::IndexName op, const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
               bool include_self) {
  const Kind kind = parse(reduce, "scatter_reduce");
  ops::require_defined(t, "scatter_reduce", "input");
  ops::require_defined(index, "scatter_reduce", "index");
  ops::require_defined(source, "scatter_reduce", "src");
  if (source.dtype() != t.dtype())
    throw RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype (scatter_reduce: {} and {})", name_of(t.dtype()),
                       name_of(source.dtype()));
  if (index.numel() == 0)
    return autograd::record(t.detach().clone(), "ScatterReduceBackward0", {&t, &source}, {&source},
                            [](const std::vector<Tensor>& g, const std::vector<Tensor>& s) {
                              return std::vector{g[0], g[0].defined() ? zeros_like(s[0]) : Tensor()};
                            });
  if (ops::is_half(t.dtype()) && (kind == Kind::Mean || kind == Kind::Prod))  // computed in float32 and rounded once
    return reduced(op, t.to(DType::F32), dim, index, source.to(DType::F32), reduce, include_self).to(t.dtype());
  // The scatter that every reduction runs checks the sizes.
  Tensor used = source;
  for (int64_t d = 0; d < index.dim() && d < source.dim(); ++d)
    if (source.dim() == index.dim() && index.size(d) <= source.size(d)) used = used.narrow(d, 0, index.size(d));
  const Call call{op, t, wrap_dim(dim, t.dim()), index, used, include_self};
  switch (kind) {
    case Kind::Sum:
      return sum(call);
    case Kind::Mean:
      return mean(call);
    case Kind::Prod:
      return prod(call);
    default:
      return extreme(call, kind == Kind::Amax);
  }
}

}  // namespace

Tensor scatter_reduce(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce, bool include_self) {
  return reduced("scatter_reduce", t, dim, index, source, reduce, include_self);
}

Tensor index_reduce(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce, bool include_self) {
  if (reduce == "sum")
    throw RuntimeError("reduce argument must be either prod, mean, amax or amin, got sum. (index_reduce; index_add sums)");
  ops::require_defined(t, "index_reduce", "input");
  ops::require_defined(index, "index_reduce", "index");
  ops::require_defined(source, "index_reduce", "source");
  if (index.dim() > 1)
    throw IndexError("index_reduce_(): Index is supposed to be a vector, but got dim: {} with type: {} and size: {}", index.dim(),
                     ops::torch_name(index.dtype()), index.sizes().str());
  const int64_t d = wrap_dim(dim, t.dim());
  if (source.dim() > 0 && index.numel() != source.size(d))
    throw RuntimeError("index_reduce_(): Number of indices ({}) should be equal to source.size(dim): ({}), for dim: {}", index.numel(),
                       source.size(d), d);
  Dims line(static_cast<size_t>(source.dim()), 1);
  if (!line.empty()) line[static_cast<size_t>(d)] = index.numel();
  const Tensor places = source.dim() == 0 ? index.reshape({}) : index.reshape(line).expand(source.sizes());
  return reduced("index_reduce_", t, dim, places, source, reduce, include_self);
}

}  // namespace naru
