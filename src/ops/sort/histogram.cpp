// Counts of elements in bins, and reductions of pieces: histogram, histogramdd, segment_reduce.
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "autograd/history/constant.h"
#include "autograd/history/history.h"
#include "naru/autograd.h"
#include "naru/ops.h"
#include "naru/ops/functions.h"
#include "ops/elementwise/half.h"
#include "ops/elementwise/host_loop.h"
#include "ops/reduce/reduction.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

void check_input(const Tensor& t, const Tensor& weight, const char* role) {
  ops::require_defined(t, "histogramdd", role);
  if (t.dtype() != DType::F32 && t.dtype() != DType::F64) ops::throw_not_implemented("histogramdd", t.dtype());
  if (t.dim() < 2) throw RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions, but got {}", t.dim());
  if (!weight.defined()) return;
  if (weight.dtype() != t.dtype())
    throw RuntimeError(
        "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got input({}), "
        "and weight({})",
        ops::c_name(t.dtype()), ops::c_name(weight.dtype()));
  if (!(weight.sizes() == Dims(std::span<const int64_t>(t.sizes()).first(t.sizes().size() - 1))))
    throw RuntimeError(
        "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its innermost "
        "dimension, "
        "but got input with shape {} and weight with shape {}",
        t.sizes().str(), weight.sizes().str());
}

// Least and greatest of a column; 0 and 1 of none.
std::pair<double, double> bounds_of(const Tensor& column, const Range& given, size_t number) {
  auto [low, high] = given            ? *given
                     : column.numel() ? std::pair{min(column).item<double>(), max(column).item<double>()}
                                      : std::pair{0.0, 1.0};
  if (!std::isfinite(low) || !std::isfinite(high))
    throw RuntimeError("torch.histogramdd: dimension {}'s range [{}, {}] is not finite", number, low, high);
  if (low > high)
    throw RuntimeError("torch.histogramdd: min should not exceed max, but got min {} max {} for dimension {}", low, high, number);
  if (low == high) low -= 0.5, high += 0.5;
  return {low, high};
}

// points (n, d) and d lists of edges, each of one bin more.
Tensor counted(const Tensor& points, const std::vector<Tensor>& edges, const Tensor& weight, bool density) {
  const NoGrad no_history;
  const Options like(points.dtype(), points.device());
  Dims shape;
  Tensor place, inside;
  for (size_t d = 0; d < edges.size(); ++d) {
    const Tensor x = points.select(-1, static_cast<int64_t>(d)).contiguous();
    const int64_t bins = edges[d].size(0) - 1;
    const Tensor last = edges[d].select(0, bins);
    // The last bin has its end; every other ends before its own.
    const Tensor at = where(eq(x, last), Operand(bins - 1), sub(bucketize(x, edges[d], false, true), Operand(1)));
    const Tensor in = logical_and(ge(x, edges[d].select(0, 0)), le(x, last));
    place = place.defined() ? add(mul(place, Operand(bins)), at) : at;
    inside = inside.defined() ? logical_and(inside, in) : in;
    shape.push_back(bins);
  }
  const int64_t all = product(shape);
  const Tensor where_to = where(inside, place, Operand(all)).to(DType::I64);
  const Tensor sums = zeros({all + 1}, like);
  index_add_(sums, 0, where_to, weight.defined() ? weight.reshape({-1}) : ones({points.size(0)}, like));
  Tensor hist = sums.narrow(0, 0, all).reshape(shape);
  if (!density) return hist;
  Tensor volume = sum(hist);
  for (size_t d = 0; d < edges.size(); ++d) {
    Dims along(edges.size(), 1);
    along[d] = shape[d];
    hist = div(hist, sub(edges[d].narrow(0, 1, shape[d]), edges[d].narrow(0, 0, shape[d])).reshape(along));
  }
  return div(hist, volume);
}

Tensor points_of(const Tensor& t) { return t.detach().reshape({-1, t.size(-1)}); }

}  // namespace

std::pair<Tensor, std::vector<Tensor>> histogramdd(const Tensor& t, const std::vector<int64_t>& bins, const std::vector<Range>& ranges,
                                                   const Tensor& weight, bool density) {
  check_input(t, weight, "input");
  if (static_cast<int64_t>(bins.size()) != t.size(-1))
    throw RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.");
  if (!ranges.empty() && ranges.size() != bins.size())
    throw RuntimeError("torch.histogramdd: for a {}-dimensional histogram range should have {} elements, but got {}", bins.size(),
                       2 * bins.size(), 2 * ranges.size());
  const Tensor points = points_of(t);
  std::vector<Tensor> edges;
  for (size_t d = 0; d < bins.size(); ++d) {
    if (bins[d] < 1) throw RuntimeError("torch.histogram(): bins must be > 0, but got {} for dimension {}", bins[d], d);
    const auto [low, high] = bounds_of(points.select(-1, static_cast<int64_t>(d)), ranges.empty() ? Range() : ranges[d], d);
    edges.push_back(linspace(low, high, bins[d] + 1, Options(t.dtype(), t.device())));
  }
  for (Tensor& e : edges) e = autograd::record_refused(e, {&t}, "_histogramdd_bin_edges");
  return {autograd::record_refused(counted(points, edges, weight, density), {&t, &weight}, "_histogramdd_from_bin_cts"), edges};
}

std::pair<Tensor, std::vector<Tensor>> histogramdd(const Tensor& t, const std::vector<Tensor>& edges, const Tensor& weight, bool density) {
  check_input(t, weight, "input");
  if (static_cast<int64_t>(edges.size()) != t.size(-1))
    throw RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.");
  for (size_t d = 0; d < edges.size(); ++d) {
    if (edges[d].dtype() != t.dtype())
      throw RuntimeError(
          "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype {} and bins for dimension "
          "{} with dtype {}",
          ops::c_name(t.dtype()), d, ops::c_name(edges[d].dtype()));
    if (edges[d].dim() != 1)
      throw RuntimeError(
          "torch.histogramdd: bins tensor should have one dimension, but got {} dimensions in the bins tensor for dimension {}",
          edges[d].dim(), d);
    if (edges[d].numel() < 2)
      throw RuntimeError(
          "torch.histogramdd: bins tensor should have at least 1 element, but got {} elements in the bins tensor for dimension {} (edges "
          "of a bin are two)",
          edges[d].numel(), d);
  }
  return {autograd::record_refused(counted(points_of(t), edges, weight, density), {&t, &weight}, "_histogramdd_from_bin_tensors"), edges};
}

namespace {

Tensor column_of(const Tensor& t) { return t.reshape({-1, 1}); }
Tensor flat(const Tensor& weight, const Tensor& t) {
  if (!weight.defined()) return weight;
  // Its shape must be t's, which the general form checks as (n) beside (n, 1).
  if (!(weight.sizes() == t.sizes()))
    throw RuntimeError(
        "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its innermost "
        "dimension, "
        "but got input with shape {} and weight with shape {}",
        Dims{t.numel(), 1}.str(), weight.sizes().str());
  return weight.detach().reshape({-1});
}
Tensor refused(const Tensor& result, const Tensor& t, const Tensor& weight) {
  return autograd::record_refused(result, {&t, &weight}, "histogram");
}

}  // namespace

std::pair<Tensor, Tensor> histogram(const Tensor& t, int64_t bins, const Range& range, const Tensor& weight, bool density) {
  ops::require_defined(t, "histogram", "input");
  const auto [hist, edges] = histogramdd(column_of(t.detach()), std::vector<int64_t>{bins}, {range}, flat(weight, t), density);
  return {refused(hist, t, weight), refused(edges[0], t, weight)};
}

std::pair<Tensor, Tensor> histogram(const Tensor& t, const Tensor& edges, const Tensor& weight, bool density) {
  ops::require_defined(t, "histogram", "input");
  const Tensor hist = histogramdd(column_of(t.detach()), std::vector<Tensor>{edges}, flat(weight, t), density).first;
  return {refused(hist, t, weight), refused(edges.detach().clone(), t, weight)};
}

namespace {

struct Reducing {
  std::string_view name, scatter;
  double start;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Reducing kReductions[] = {
    {"sum", "sum", 0}, {"mean", "sum", 0}, {"prod", "prod", 1}, {"max", "amax", -kInfinity}, {"min", "amin", kInfinity}};

// The extreme of each place, of which NaN is one. Its gradient goes in equal parts to all elements that are it.
Tensor scattered_extreme(const Tensor& begin, int64_t dim, const Tensor& index, const Tensor& data, std::string_view reduce) {
  const auto backward = [dim](const std::vector<Tensor>& g, const std::vector<Tensor>& saved) {
    const Tensor &x = saved[0], &places = saved[1], &y = saved[2];
    if (!g[0].defined()) return std::vector<Tensor>(1);
    const DType type = ops::accumulator_of(x.dtype());  // float16 does not count to 70,000
    const Tensor chosen = logical_or(eq(x, gather(y, dim, places)), isnan(x)).to(type);
    const Tensor count = clamp_min(scatter_add(zeros_like(y).to(type), dim, places, chosen), Operand(1));
    return std::vector{(chosen * gather(g[0].to(type) / count, dim, places)).to(x.dtype())};
  };
  return autograd::record(scatter_reduce(begin, dim, index, data.detach(), reduce, true), "SegmentReduceBackward0", {&data},
                          {&data, &index}, backward, true);
}

}  // namespace

Tensor segment_reduce(const Tensor& data, std::string_view reduce, const Tensor& given, const Tensor& offsets, int64_t axis, bool unsafe,
                      std::optional<double> initial) {
  ops::require_defined(data, "segment_reduce", "data");
  const auto* const row = std::find_if(std::begin(kReductions), std::end(kReductions), [&](const Reducing& r) { return r.name == reduce; });
  if (row == std::end(kReductions)) throw RuntimeError("reduce argument must be either sum, prod, mean, amax or amin, got {}", reduce);
  if (!given.defined() && !offsets.defined()) throw RuntimeError("segment_reduce(): Either lengths or offsets must be defined.");
  const Tensor& form = given.defined() ? given : offsets;
  const int64_t d = wrap_dim(axis, data.dim());
  if (form.dim() == 0 || d != form.dim() - 1)
    throw RuntimeError("segment_reduce(): Expected axis to be the last dimension of lengths but got {}.", d);
  if (!is_floating(data.dtype())) ops::throw_not_implemented("_segment_reduce_cpu", data.dtype());
  if (!is_integral(form.dtype()))
    throw RuntimeError("segment_reduce(): wanted lengths or offsets of integers, got {}", name_of(form.dtype()));
  if (ops::is_half(data.dtype()) && reduce != "max" && reduce != "min")  // rounded once
    return segment_reduce(data.to(DType::F32), reduce, given, offsets, axis, unsafe, initial).to(data.dtype());
  const Tensor lengths = given.defined() ? given : diff(offsets);
  if (!given.defined()) unsafe = true;  // offsets may leave elements out, at both ends
  const Dims batch(std::span<const int64_t>(lengths.sizes()).first(static_cast<size_t>(d)));
  if (!(batch == Dims(std::span<const int64_t>(data.sizes()).first(static_cast<size_t>(d)))))
    throw RuntimeError("segment_reduce(): Expected all leading dimensions of lengths to match data, got {} and {}", lengths.sizes().str(),
                       data.sizes().str());
  const int64_t n = data.size(d), segments = lengths.size(-1);
  if (!unsafe) {
    if (lengths.numel() > 0 && !ops::holds(min(lengths) >= 0)) throw RuntimeError("lengths contains negative value!");
    const Tensor whole = sum(lengths, Dims{-1});
    if (whole.numel() > 0 && !ops::holds(all(whole == n)))
      throw RuntimeError("segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe.");
  }
  // Which segment each place of the dimension is in: how many of them end at it or before. The first is of what is before all (by offsets).
  Dims first = lengths.sizes();
  first.back() = 1;
  Tensor ends;
  if (given.defined()) {  // not by ?:, see unique_on_device
    const Tensor start = zeros(first, Options(DType::I64, lengths.device())), rest = cumsum(lengths, -1);
    ends = cat({start, rest}, -1);
  } else {
    ends = offsets.contiguous();
  }
  const Tensor position = arange(0, n, 1, Options(DType::I64, data.device()));
  Dims wide = batch;
  wide.push_back(n);
  const Tensor segment = searchsorted(ends, position.expand(wide).contiguous(), false, true);
  Dims shape = data.sizes();
  Tensor index = segment;
  for (int64_t k = d + 1; k < data.dim(); ++k) index = index.unsqueeze(-1);
  index = index.expand(data.sizes());
  // What lies before the first segment, and behind the last (unsafe), goes to one more each, which nobody sees.
  shape[static_cast<size_t>(d)] = segments + 2;
  const double start = initial.value_or(row->start);
  const Tensor begin = full(shape, Scalar(start), Options(data.dtype(), data.device()));
  const bool extreme = row->scatter == "amax" || row->scatter == "amin";
  const Tensor all =
      extreme ? scattered_extreme(begin, d, index, data, row->scatter) : scatter_reduce(begin, d, index, data, row->scatter, true);
  constexpr const char* kGradient = "_segment_reduce_backward";
  const Tensor out = all.narrow(d, 1, segments);
  if (reduce != "mean") return autograd::refusing_second(out, kGradient);
  Tensor count = lengths.to(data.dtype());
  for (int64_t k = d + 1; k < data.dim(); ++k) count = count.unsqueeze(-1);
  return autograd::refusing_second(initial ? div(out, clamp_min(count, Operand(1.0))) : div(out, count), kGradient);
}

Tensor histc(const Tensor& t, int64_t bins, double low, double high) {
  if (t.device().is_cpu()) ops::require_floating(t.dtype(), "histogram_cpu");  // PyTorch counts integers on GPUs only
  if (bins < 1) throw RuntimeError("bins must be > 0, got {}", bins);
  if (t.device().is_meta()) return empty({bins}, Options(t.dtype(), t.device()));
  const Tensor x = t.detach().reshape({-1});
  if (low == high && x.numel() > 0) low = min(x).item<double>(), high = max(x).item<double>();
  if (!std::isfinite(low) || !std::isfinite(high)) throw RuntimeError("torch.histc: range of [{}, {}] is not finite", low, high);
  if (low == high) low -= 1, high += 1;
  if (low > high) throw RuntimeError("max must be larger than min, got {} and {}", high, low);
  const double per_unit = static_cast<double>(bins) / (high - low);
  if ((x.dtype() == DType::F32 || x.dtype() == DType::F64) && bins < std::numeric_limits<int32_t>::max() && ops::can_use_host_loop({&x})) {
    const Tensor row = x.contiguous(), counts = ops::make_result({bins}, DType::I64, x.device(), "histc");
    const auto bits_of = [](double v) { return std::bit_cast<int64_t>(v); };
    ops::run_host_loop(ir::HostLoop::Kind::Histogram, {&row}, {&counts}, {bits_of(low), bits_of(high), bits_of(per_unit)});
    return counts.to(t.dtype());
  }
  const Tensor inside = masked_select(x, logical_and(ge(x, Operand(low)), le(x, Operand(high))));
  const Tensor place = mul(sub(inside, Operand(low)), Operand(per_unit)).to(DType::I64);
  return bincount(clamp_max(place, Operand(bins - 1)), bins).to(t.dtype());
}

}  // namespace naru
