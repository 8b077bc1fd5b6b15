// Search in sorted elements: searchsorted, bucketize, isin.
#include <algorithm>

#include "naru/autograd.h"
#include "naru/ops/functions.h"
#include "ops/elementwise/host_loop.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {

namespace {

// Up to this many elements are all compared with each value, in one pass; longer rows use binary search.
constexpr int64_t kFew = 32;

// The number of elements in the sorted last dimension that are less than each value (or equal, if `right`). NaN sorts last.
Tensor places(const Tensor& sorted, const Tensor& values, bool right) {
  ops::refuse_bool(sorted.dtype(), "searchsorted_out_cpu");
  const NoGrad off;
  const int64_t n = sorted.size(-1);
  const auto is_before = [&](const Tensor& s, const Tensor& v) {
    const Tensor before = right ? le(s, v) : lt(s, v);
    return is_floating(v.dtype()) ? logical_or(before, isnan(v)) : before;
  };
  if (n <= kFew) return sum(is_before(sorted.unsqueeze(-2), values.unsqueeze(-1)), Dims{-1});
  const Tensor order = sorted.contiguous();
  if (sorted.dtype() == values.dtype() && size_of(sorted.dtype()) >= 4 && ops::can_use_host_loop({&order, &values})) {
    const Dims& shape = values.sizes();
    if (order.dim() == 1 || (values.dim() == order.dim() && product(std::span<const int64_t>(order.sizes()).first(shape.size() - 1)) ==
                                                                product(std::span<const int64_t>(shape).first(shape.size() - 1)))) {
      const Tensor wanted = values.contiguous(), out = ops::make_result(shape, DType::I64, values.device(), "searchsorted");
      ops::run_host_loop(ir::HostLoop::Kind::Places, {&order, &wanted}, {&out}, {right});
      return out;
    }
  }
  Tensor below = zeros(values.sizes(), Options(DType::I64, values.device()));  // a lower bound of the result
  int64_t step = 1;
  while (step <= n / 2) step *= 2;
  for (; step > 0; step /= 2) {
    const Tensor more = below + step;
    const Tensor at = clamp_max(more, Operand(n)) - 1;
    const Tensor s = order.dim() == 1 ? take(order, at) : gather(order, -1, at);
    below = where(logical_and(le(more, Operand(n)), is_before(s, values)), more, below);
  }
  return below;
}

Tensor is_one_of(const Tensor& a, const Tensor& tests) {
  const int64_t n = tests.numel();
  if (n <= kFew) return any(eq(a.unsqueeze(-1), tests), Dims{-1});
  const NoGrad off;
  const DType type = promote(a.dtype(), tests.dtype());
  const Tensor order = sort(tests.to(type)).first, flat = a.to(type).reshape({-1});
  return eq(take(order, clamp_max(places(order, flat, false), Operand(n - 1))), flat).reshape(a.sizes());
}

}  // namespace

Tensor searchsorted(const Tensor& sorted, const Operand& values, bool out_int32, bool right, std::optional<std::string_view> side,
                    const Tensor& sorter) {
  if (side && *side != "left" && *side != "right")
    throw RuntimeError("torch.searchsorted(): side can only be 'left' or 'right' but got {}", *side);
  if (side && *side == "left" && right)
    throw RuntimeError("torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True");
  const Tensor in_order = sorter.defined() ? gather(sorted, -1, sorter) : sorted;
  const Tensor v = values.is_tensor() ? values.tensor() : scalar_tensor(values.scalar(), sorted.device());
  const bool behind = right || (side && *side == "right");
  const Tensor out = v.dim() == 0 ? places(in_order, v.reshape({1}), behind).reshape({}) : places(in_order, v, behind);
  return out_int32 ? out.to(DType::I32) : out;
}

Tensor bucketize(const Tensor& values, const Tensor& boundaries, bool out_int32, bool right) {
  const Tensor out = places(boundaries, values.reshape({-1}), right).reshape(values.sizes());
  return out_int32 ? out.to(DType::I32) : out;
}

Tensor isin(const Operand& elements, const Operand& tests, bool invert) {
  if (!elements.is_tensor() && !tests.is_tensor()) throw TypeError("isin(): wanted a Tensor among elements and test_elements");
  const Tensor a = elements.is_tensor() ? elements.tensor() : scalar_tensor(elements.scalar(), tests.tensor().device());
  if (a.dtype() == DType::Bool || is_complex(a.dtype()))
    throw NotImplementedError("Unsupported input type encountered for isin(): {}", ops::torch_name(a.dtype()));
  const Tensor found = tests.is_tensor() ? is_one_of(a, tests.tensor().reshape({-1})) : eq(a, tests);
  return invert ? logical_not(found) : found;
}

}  // namespace naru
