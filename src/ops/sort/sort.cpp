// Sorting and functions based on it: sort, argsort, topk, unique, bincount.
#include <algorithm>
#include <numeric>

#include "autograd/history/constant.h"
#include "core/sizes.h"
#include "naru/autograd.h"
#include "naru/ops.h"
#include "naru/ops/functions.h"
#include "ops/call/wrapped.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/host_loop.h"
#include "ops/elementwise/unsigned.h"
#include "ops/index/addressing.h"
#include "ops/index/positions.h"
#include "ops/reduce/reduction.h"
#include "ops/shape/strides.h"
#include "ops/tensor/needs_elements.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

using Grads = std::vector<Tensor>&;

// The first k elements in sorted order along `dim`; NaN counts as greatest. Returns only their indices unless with_values.
std::pair<Tensor, Tensor> ordered(const Tensor& t, int64_t k, int64_t dim, bool descending, bool with_values, const char* op,
                                  const char* node) {
  if (auto y = ops::wrapped(ops::kNoCasts, ordered, t, k, ops::Dim{dim}, descending, with_values, op, node)) return *std::move(y);
  ops::require_defined(t, op, "input");
  dim = wrap_dim(dim, t.dim());
  if (is_wide_unsigned(t.dtype())) {
    const Tensor places = ordered(ops::in_signed_order(t), k, dim, descending, false, op, node).second;
    return {with_values ? gather(t, dim, places) : Tensor(), places};
  }
  const int64_t n = t.dim() == 0 ? 1 : t.size(dim);
  if (k < 0 || k > n) throw RuntimeError("selected index k out of range ({}: wanted 0 to {}, got {})", op, n, k);
  Dims shape = t.sizes();
  if (t.dim() > 0) shape[dim] = k;
  const Dims strides = k == n ? ops::strides_like(shape, t.strides(), MemoryFormat::Preserve) : contiguous_strides(shape);
  Tensor values, indices = ops::make_result(shape, strides, DType::I64, t.device(), op);
  if (with_values) values = ops::make_result(shape, strides, t.dtype(), t.device(), op);
  if (t.numel() > 0 && k > 0) {
    // A view with the sorted dimension last.
    const auto dim_last = [&](const Tensor& x) {
      ir::View v;
      if (!x.defined()) return v;
      v = ops::view_of(x, x.sizes());
      // The instruction iterates over whole rows, so use the real strides: view_of sets the stride of a dimension of size 1 to 0, for broadcasting.
      v.strides = x.strides();
      if (x.dim() == 0) v.strides.push_back(1);
      const int64_t step = v.strides[dim];
      v.strides.erase(dim);
      v.strides.push_back(step);
      return v;
    };
    ir::Sort s;
    s.shape = t.sizes();
    if (t.dim() > 0) s.shape.erase(dim);
    s.shape.push_back(n);
    s.k = k;
    s.descending = descending;
    s.in = dim_last(t);
    s.values = dim_last(values);
    s.indices = dim_last(indices);
    ops::submit(std::move(s), {&t}, {&indices, &values});
  }
  if (!with_values) return {values, indices};
  values = ops::record_saving(values, node, {&t}, {indices}, [dim, sizes = t.sizes()](Grads g, Grads saved) {
    if (!g[0].defined()) return std::vector{Tensor()};
    return std::vector{scatter(zeros(sizes, Options(g[0].dtype(), g[0].device())), dim, saved[0], g[0])};
  });
  return {values, indices};
}

}  // namespace

std::pair<Tensor, Tensor> sort(const Tensor& t, int64_t dim, bool descending) {
  ops::require_defined(t, "sort", "input");
  return ordered(t, t.dim() == 0 ? 1 : t.size(dim), dim, descending, true, "sort", "SortBackward0");
}

Tensor argsort(const Tensor& t, int64_t dim, bool descending) {
  ops::require_defined(t, "argsort", "input");
  return ordered(t, t.dim() == 0 ? 1 : t.size(dim), dim, descending, false, "argsort", "").second;
}

std::pair<Tensor, Tensor> topk(const Tensor& t, int64_t k, int64_t dim, bool largest, bool) {
  if (t.defined() && t.dtype() == DType::Bool)
    throw NotImplementedError("topk does not support bool dtypes on CPU (convert to numbers first)");
  // topk of a 0-d tensor returns its element even for k = 0.
  const bool one = t.defined() && t.dim() == 0 && k == 0;
  return ordered(t, one ? 1 : k, dim, largest, true, "topk", "TopkBackward0");
}

namespace {

// unique() of a nonempty tensor on an accelerator. The host reads only the number of distinct values.
std::tuple<Tensor, Tensor, Tensor> unique_on_device(const Tensor& t) {
  const int64_t n = t.numel();
  const Options whole(DType::I64, t.device());
  const auto [values, order] = sort(t.detach().reshape({-1}));
  // A new value starts where an element differs from the one before.
  const Tensor first = ones({1}, Options(DType::Bool, t.device()));
  // (Not by ?:, whose temporaries g++ 12 destroys behind their scope where one of them throws.)
  Tensor begins = first;
  if (n > 1) {
    const Tensor differs = ne(values.slice(0, 1, {}), values.slice(0, {}, n - 1));
    begins = cat({first, differs});
  }
  const Tensor starts = ops::flat_nonzero(begins);
  const Tensor ends = cat({starts.slice(0, 1, {}), full({1}, n, whole)});
  const Tensor inverse = scatter(zeros({n}, whole), 0, order, sub(cumsum(begins, 0), Operand(1)));
  return {index_select(values, 0, starts), inverse.reshape(t.sizes()), sub(ends, starts)};
}

}  // namespace

namespace {

std::tuple<Tensor, Tensor, Tensor> distinct(const Tensor& t) {
  const NoGrad no_history;
  const int64_t n = t.numel();
  if (!t.device().is_cpu() && n > 0 && !is_complex(t.dtype()) && !is_wide_unsigned(t.dtype())) return unique_on_device(t);
  const auto [values, order] = sort(t.detach().cpu().reshape({-1}));
  // A new value starts where an element differs from the one before.
  std::vector<int64_t> starts;
  Tensor inverse = ops::make_result(t.sizes(), DType::I64, Device(DeviceType::Cpu), "unique");
  if (n > 0) {
    const Tensor differs = n > 1 ? ne(values.slice(0, 1, {}), values.slice(0, {}, n - 1)) : Tensor();
    const uint8_t* is_new = n > 1 ? static_cast<const uint8_t*>(differs.data_ptr()) : nullptr;
    const int64_t* from = order.data<int64_t>();
    int64_t* to = inverse.data<int64_t>();
    for (int64_t i = 0; i < n; ++i) {
      if (i == 0 || is_new[i - 1]) starts.push_back(i);
      to[from[i]] = static_cast<int64_t>(starts.size()) - 1;
    }
  }
  std::vector<int64_t> counts(starts.size());
  for (size_t i = 0; i < starts.size(); ++i) counts[i] = (i + 1 < starts.size() ? starts[i + 1] : n) - starts[i];
  const Options host{Device(DeviceType::Cpu)};
  const Device device = t.device();
  return {index_select(values, 0, tensor(starts, host)).to(device), inverse.to(device), tensor(counts, host).to(device)};
}

// Sorts slices by their elements on the host. Returns their indices, and for each whether it differs from the one before.
template <class T>
std::pair<std::vector<int64_t>, std::vector<bool>> slices_in_order(const std::vector<T>& elements, int64_t count) {
  const auto width = count ? static_cast<std::ptrdiff_t>(elements.size()) / count : 0;
  const auto begin = [&](int64_t i) { return elements.begin() + i * width; };
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::lexicographical_compare(begin(a), begin(a) + width, begin(b), begin(b) + width);
  });
  std::vector<bool> differs(order.size(), true);
  for (size_t i = 1; i < order.size(); ++i) differs[i] = !std::equal(begin(order[i]), begin(order[i]) + width, begin(order[i - 1]));
  return {order, differs};
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> unique(const Tensor& t) {
  ops::require_defined(t, "unique", "input");
  ops::require_elements(t, "_unique2");
  const auto [values, inverse, counts] = distinct(t);
  return {autograd::record_underived(values, "Unique2Backward0", {&t}, "_unique2"), inverse, counts};
}

std::tuple<Tensor, Tensor, Tensor> unique(const Tensor& t, int64_t given) {
  ops::require_defined(t, "unique", "input");
  ops::require_elements(t, "unique_dim");
  const int64_t dim = wrap_dim(given, t.dim());
  if (t.dim() == 0) return unique(t);
  const int64_t count = t.size(dim);
  ops::require_unique_dim(t, dim);
  const Tensor rows = t.detach().movedim(dim, 0).reshape({count, t.numel() ? -1 : 0});
  const auto [order, differs] =
      is_floating(t.dtype()) ? slices_in_order(rows.to_doubles(), count) : slices_in_order(ops::in_signed_order(rows).to_ints(), count);
  std::vector<int64_t> firsts, places(order.size()), counts;
  for (size_t i = 0; i < order.size(); ++i) {
    if (differs[i]) firsts.push_back(order[i]), counts.push_back(0);
    places[static_cast<size_t>(order[i])] = static_cast<int64_t>(firsts.size()) - 1;
    ++counts.back();
  }
  const auto list = [&](const std::vector<int64_t>& v) { return tensor(v, Options(DType::I64, t.device())); };
  const Tensor values = index_select(t.detach(), dim, list(firsts));
  return {autograd::record_underived(values, "UniqueDimBackward0", {&t}, "unique_dim"), list(places), list(counts)};
}

Tensor bincount(const Tensor& t, int64_t minlength) {
  ops::require_defined(t, "bincount", "input");
  ops::require_elements(t, "bincount");
  if (!is_integral(t.dtype()))
    throw NotImplementedError("\"bincount_cpu\" not implemented for '{}' (wanted integers)", ops::torch_name(t.dtype()));
  if (minlength < 0) throw RuntimeError("minlength should be >= 0 (got {})", minlength);
  if (t.dim() == 1 && t.numel() > 0 && !t.device().is_cpu() && !is_wide_unsigned(t.dtype())) {
    const Tensor numbers = t.detach().to(t.device(), DType::I64, false, false);
    if (min(numbers).item<int64_t>() < 0) throw RuntimeError("bincount only supports 1-d non-negative integral inputs.");
    const Options whole(DType::I64, t.device());
    const Tensor counts = zeros({std::max(plus(max(numbers).item<int64_t>(), 1), minlength)}, whole);
    index_add_(counts, 0, numbers, ones({1}, whole).expand(numbers.sizes()));
    return counts;
  }
  const Tensor host = t.detach().to(Device(DeviceType::Cpu), DType::I64, false, false).contiguous();
  const int64_t n = host.numel();
  const int64_t* p = n ? host.data<int64_t>() : nullptr;
  if (t.dim() != 1) throw RuntimeError("bincount only supports 1-d non-negative integral inputs.");
  int64_t greatest = -1;
  for (int64_t i = 0; i < n; ++i) {
    if (p[i] < 0) throw RuntimeError("bincount only supports 1-d non-negative integral inputs.");
    greatest = std::max(greatest, p[i]);
  }
  const Tensor counts = zeros({std::max(plus(greatest, 1), minlength)}, Options(DType::I64, Device(DeviceType::Cpu)));
  auto* const count = counts.numel() ? counts.data<int64_t>() : nullptr;
  for (int64_t i = 0; i < n; ++i) ++count[p[i]];
  return counts.to(t.device());
}

Tensor bincount(const Tensor& t, const Tensor& weights, int64_t minlength) {
  const Tensor counts = bincount(t, minlength);
  if (weights.dim() != 1 || weights.numel() != t.numel())
    throw RuntimeError("weights should be 1-d and have the same length as input (got shapes {} and {})", weights.sizes().str(),
                       t.sizes().str());
  if (t.numel() == 0) return counts;  // integers even if weights are given, as in PyTorch
  const DType type = weights.dtype() == DType::F32 ? DType::F32 : DType::F64;
  const Tensor out = zeros(counts.sizes(), Options(type, t.device()));
  index_add_(out, 0, t.to(DType::I64), weights.detach().to(type));
  return autograd::record_refused(out, {&weights}, "bincount");
}

namespace {

bool host_finds_modes(const Tensor& t, int64_t d) { return d == t.dim() - 1 && size_of(t.dtype()) >= 4 && ops::can_use_host_loop({&t}); }

// Without the host loop, NaN that mode() must choose is not.
std::pair<Tensor, Tensor> mode_of_rows(const Tensor& t, int64_t d, bool keepdim) {
  const int64_t n = t.size(d);
  const auto [sorted, order] = sort(t.detach(), d);
  if (host_finds_modes(t, d)) {
    const Dims shape = ops::reduced_shape(t.sizes(), ops::dim_set(d, t.dim()), keepdim);
    const Tensor values = ops::make_result(shape, t.dtype(), t.device(), "mode"),
                 places = ops::make_result(shape, DType::I64, t.device(), "mode");
    const Tensor rows = sorted.contiguous(), numbers = order.contiguous();
    ops::run_host_loop(ir::HostLoop::Kind::Modes, {&rows, &numbers}, {&values, &places});
    return {values, places};
  }
  const Tensor at = ops::positions_along(sorted, d);
  // Each element's index in its run of equal values; argmax finds the longest run, the one with the least value first.
  const Tensor same = cat(
      {zeros_like(sorted.narrow(d, 0, 1), Options(DType::Bool, t.device())), sorted.narrow(d, 1, n - 1) == sorted.narrow(d, 0, n - 1)}, d);
  const Tensor begins = cummax(where(same, zeros_like(at), at), d).first;
  const Tensor index = gather(order, d, argmax(at - begins, d, true));
  const Tensor value = gather(t, d, index);
  return keepdim ? std::pair(value, index) : std::pair(value.squeeze(d), index.squeeze(d));
}

}  // namespace

// NaN equals nothing, so it can be the mode only if no value repeats; then the mode is NaN if the first element is NaN.
std::pair<Tensor, Tensor> mode(const Tensor& t, int64_t dim, bool keepdim) {
  ops::require_defined(t, "mode", "input");
  if (t.dim() == 0) return {t.clone(), zeros({}, Options(DType::I64, t.device()))};
  const int64_t d = wrap_dim(dim, t.dim());
  if (t.size(d) == 0) throw IndexError("mode(): Expected reduction dim {} to have non-zero size.", d);
  if (!is_floating(t.dtype()) || t.size(d) == 1 || t.numel() == 0 || host_finds_modes(t, d)) return mode_of_rows(t, d, keepdim);
  const auto [values, places] = mode_of_rows(t, d, true);
  const Tensor first = t.narrow(d, 0, 1);
  const Tensor alone = logical_and(isnan(first.detach()), sum(eq(t.detach(), values.detach()), Dims{d}, true) <= 1);
  const Tensor value = where(alone, first, values), place = where(alone, Operand(0), places);
  return keepdim ? std::pair(value, place) : std::pair(value.squeeze(d), place.squeeze(d));
}

namespace {

std::tuple<Tensor, Tensor, Tensor> runs(const Tensor& t, std::optional<int64_t> dim) {
  const NoGrad no_history;
  const Tensor x = dim ? t.detach().movedim(*dim, 0) : t.detach().reshape({-1});
  const int64_t n = x.size(0);
  if (n == 0)
    return {dim ? t.clone() : x.clone(), zeros(dim ? Dims{0} : t.sizes(), Options(DType::I64, t.device())),
            zeros({0}, Options(DType::I64, t.device()))};
  Tensor differs = ne(x.narrow(0, 1, n - 1), x.narrow(0, 0, n - 1));
  if (differs.dim() > 1) differs = any(differs.reshape({n - 1, differs.numel() / std::max<int64_t>(n - 1, 1)}), Dims{1});
  differs = cat({ones({1}, Options(DType::Bool, t.device())), differs}, 0);
  const Tensor starts = nonzero(differs).reshape({-1});
  const Tensor ends = cat({starts.narrow(0, 1, starts.numel() - 1), full({1}, n, Options(DType::I64, t.device()))}, 0);
  const Tensor inverse = cumsum(differs.to(DType::I64), 0) - 1;
  const Tensor values = index_select(x, 0, starts);
  return {dim ? values.movedim(0, *dim) : values, dim ? inverse : inverse.reshape(t.sizes()), ends - starts};
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& t, std::optional<int64_t> dim) {
  ops::require_defined(t, "unique_consecutive", "input");
  ops::refuse_complex(t.dtype(), "unique");
  if (dim) ops::require_unique_dim(t, *dim);
  const auto [values, inverse, counts] = runs(t, dim);
  return {autograd::record_underived(values, "UniqueConsecutiveBackward0", {&t}, "unique_consecutive"), inverse, counts};
}

}  // namespace naru
