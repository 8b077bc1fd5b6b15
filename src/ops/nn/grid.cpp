// grid_sample and affine_grid.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "autograd/history/constant.h"
#include "autograd/history/history.h"
#include "naru/autograd.h"
#include "naru/ops.h"
#include "naru/ops/resampling.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/host_loop.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

enum class Outside { Zeros, Border, Reflection };

struct Sampling {
  Outside outside;
  bool align_corners;
};

// Maps -1 ... 1 to positions among `size` elements.
Tensor unnormalised(const Tensor& t, int64_t size, bool align_corners) {
  const auto n = static_cast<double>(size);
  return align_corners ? (t + 1.0) / 2.0 * Operand(n - 1) : ((t + 1.0) * Operand(n) - 1.0) / 2.0;
}

// Reflects positions at the edges, as often as needed.
Tensor reflected(const Tensor& at, int64_t size, bool align_corners) {
  const double low = align_corners ? 0 : -0.5, span = align_corners ? static_cast<double>(size - 1) : static_cast<double>(size);
  if (span == 0) return at * 0.0;
  const Tensor distance = abs(at - Operand(low));
  const Tensor extra = fmod(distance, Operand(span));
  const Tensor flips = floor(distance.detach() / Operand(span));
  return where(eq(remainder(flips, Operand(2.0)), Operand(0.0)), extra + Operand(low), Scalar(span + low) - extra);
}

Tensor inside(const Tensor& at, int64_t size, const Sampling& s) {
  if (s.outside == Outside::Zeros) return at;
  const Tensor turned = s.outside == Outside::Reflection ? reflected(at, size, s.align_corners) : at;
  return where(isnan(turned.detach()), 0.0, clamp(turned, 0.0, static_cast<double>(size - 1)));  // as PyTorch does
}

// The elements of x (N, C, d1...) at integer positions (N, P) per dimension; 0 outside.
Tensor elements(const Tensor& x, const std::vector<Tensor>& at) {
  Tensor number, there;
  {
    NoGrad guard;
    for (size_t d = 0; d < at.size(); ++d) {
      const int64_t size = x.sizes()[d + 2];
      const Tensor whole = at[d].detach();
      const Tensor ok = logical_and(ge(whole, Operand(0.0)), le(whole, Operand(static_cast<double>(size - 1))));
      there = there.defined() ? logical_and(there, ok) : ok;
      // A NaN is outside, and its position must not become an address.
      const Tensor place = where(ok, whole, Operand(0.0)).to(DType::I64);
      number = number.defined() ? number * Operand(size) + place : place;
    }
  }
  const Dims shape{x.size(0), x.size(1), number.size(1)};
  const Tensor found = gather(x.flatten(2), 2, number.unsqueeze(1).expand(shape));
  return where(there.unsqueeze(1), found, Operand(0.0));
}

Tensor nearest(const Tensor& x, const std::vector<Tensor>& places) {
  std::vector<Tensor> whole;
  for (const Tensor& p : places) whole.push_back(round(p));
  return elements(x, whole);
}

// Interpolates linearly between the 2^n neighbors.
Tensor linear_at(const Tensor& x, const std::vector<Tensor>& places) {
  const size_t n = places.size();
  std::vector<Tensor> low;
  for (const Tensor& p : places) low.push_back(floor(p.detach()));
  Tensor sum;
  for (size_t corner = 0; corner < size_t{1} << n; ++corner) {
    std::vector<Tensor> at;
    Tensor weight;
    for (size_t d = 0; d < n; ++d) {
      const bool high = corner >> (n - 1 - d) & 1;
      at.push_back(high ? low[d] + 1.0 : low[d]);
      const Tensor part = high ? places[d] - low[d] : low[d] + 1.0 - places[d];
      weight = weight.defined() ? weight * part : part;
    }
    const Tensor term = elements(x, at) * weight.unsqueeze(1);
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}

// The four weights of Keys' cubic (slope -0.75) around a position t past an element.
std::vector<Tensor> cubic_weights(const Tensor& t) {
  constexpr double a = -0.75;
  const auto near = [](const Tensor& v) { return (v * (a + 2) - (a + 3)) * v * v + 1.0; };
  const auto far = [](const Tensor& v) { return ((v * a - 5 * a) * v + 8 * a) * v - 4 * a; };
  return {far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)};
}

// Interpolates cubically between the 4^n neighbors.
Tensor cubic(const Tensor& x, const std::vector<Tensor>& places, const Sampling& s) {
  std::vector<Tensor> low;
  std::vector<std::vector<Tensor>> weights;
  for (const Tensor& p : places) {
    low.push_back(floor(p.detach()));
    weights.push_back(cubic_weights(p - low.back()));
  }
  const size_t n = places.size();
  Tensor sum;
  for (size_t around = 0; around < size_t{1} << 2 * n; ++around) {
    std::vector<Tensor> at;
    Tensor weight;
    for (size_t d = 0; d < n; ++d) {
      const size_t i = around >> 2 * (n - 1 - d) & 3;
      at.push_back(inside(low[d] + Operand(static_cast<int64_t>(i) - 1), x.sizes()[d + 2], s));
      weight = weight.defined() ? weight * weights[d][i] : weights[d][i];
    }
    const Tensor term = elements(x, at) * weight.unsqueeze(1);
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}

// Returns y with a zero gradient for the grid: the nearest element does not change when the position moves slightly.
Tensor without_slope(const Tensor& y, const Tensor& grid) {
  if (!autograd::recording({&grid})) return y;
  return autograd::reading_inputs(
      autograd::record(y.detach(), "GridSampler2DBackward0", {&y, &grid}, {&grid},
                       [](const std::vector<Tensor>& g, const std::vector<Tensor>& saved) -> std::vector<Tensor> {
                         return {g[0], zeros_like(saved[0])};
                       }));
}

void check_grid(const Tensor& x, const Tensor& grid) {
  ops::require_defined(x, "grid_sample", "input");
  ops::require_defined(grid, "grid_sample", "grid");
  const Tensor* tensors[] = {&x, &grid};
  const char* roles[] = {"input", "grid"};
  ops::common_device(tensors, roles, "grid_sample");
  const std::string sizes = fmt::format("but got input with sizes {} and grid with sizes {}", x.sizes().str(), grid.sizes().str());
  if (x.dim() == 0 || grid.dim() == 0 || x.size(0) != grid.size(0))
    throw RuntimeError("grid_sampler(): expected grid and input to have same batch size, {}", sizes);
  if (grid.size(-1) != x.dim() - 2)
    throw RuntimeError("grid_sampler(): expected grid to have size {} in last dimension, but got grid with sizes {}", x.dim() - 2,
                       grid.sizes().str());
  for (int64_t d = 2; d < x.dim(); ++d)
    if (x.size(d) == 0)
      throw RuntimeError(
          "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {} with dimension {} being empty",
          x.sizes().str(), d);
  if ((x.dim() != 4 && x.dim() != 5) || grid.dim() != x.dim())
    throw RuntimeError("grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, {}", sizes);
  if (!is_floating(x.dtype())) ops::throw_not_implemented("grid_sampler_2d_cpu", x.dtype());
  if (x.dtype() != grid.dtype())
    throw RuntimeError("expected scalar type {} but found {} (grid_sample: input and grid)", ops::torch_name(x.dtype()),
                       ops::torch_name(grid.dtype()));
}

}  // namespace

Tensor grid_sample(const Tensor& x, const Tensor& grid, std::string_view mode, std::string_view padding_mode, bool align_corners) {
  if (mode != "bilinear" && mode != "nearest" && mode != "bicubic")
    throw ValueError("nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{}'", mode);
  if (padding_mode != "zeros" && padding_mode != "border" && padding_mode != "reflection")
    throw ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{}'",
                     padding_mode);
  if (auto y = ops::wrapped("grid_sample", grid_sample, x, grid, mode, padding_mode, align_corners)) return *std::move(y);
  check_grid(x, grid);
  const Sampling s{padding_mode == "zeros"    ? Outside::Zeros
                   : padding_mode == "border" ? Outside::Border
                                              : Outside::Reflection,
                   align_corners};
  const int64_t n = x.dim() - 2;
  Dims out{x.size(0), x.size(1)};
  for (int64_t d = 1; d <= n; ++d) out.push_back(grid.size(d));
  if (n == 2 && mode != "bicubic" && s.outside != Outside::Reflection && product(out) > 0 && size_of(x.dtype()) >= 4 &&
      x.size(2) * x.size(3) <= std::numeric_limits<int32_t>::max() && ops::can_use_host_loop({&x, &grid})) {
    const Tensor image = x.contiguous(), places = grid.contiguous(), y = ops::make_result(out, x.dtype(), x.device(), "grid_sample");
    ops::run_host_loop(ir::HostLoop::Kind::GridSample, {&image, &places}, {&y},
                       {mode == "bilinear", s.outside == Outside::Border, align_corners});
    return y;
  }
  // For 16-bit types, positions are computed in float32.
  const DType exact = x.dtype() == DType::F64 ? DType::F64 : DType::F32;
  const Tensor flat = grid.flatten(1, n).to(exact);
  std::vector<Tensor> places;
  for (int64_t d = 0; d < n; ++d) {
    const Tensor at = unnormalised(flat.select(2, n - 1 - d), x.size(d + 2), align_corners);
    places.push_back(mode == "bicubic" ? at : inside(at, x.size(d + 2), s));
  }
  const Tensor source = x.to(exact);
  if (mode == "nearest") return without_slope(nearest(source, places).to(x.dtype()).view(out), grid);
  return (mode == "bilinear" ? linear_at(source, places) : cubic(source, places, s)).to(x.dtype()).view(out);
}

Tensor affine_grid(const Tensor& theta, const Dims& size, bool align_corners) {
  ops::require_defined(theta, "affine_grid", "theta");
  if (!is_floating(theta.dtype())) throw ValueError("Expected theta to have floating point type, but got torch.{}", name_of(theta.dtype()));
  const auto n = static_cast<int64_t>(size.size()) - 2;
  if (n != 2 && n != 3)
    throw NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size {}.",
                              size.str());
  if (theta.dim() != 3 || theta.size(-2) != n || theta.size(-1) != n + 1)
    throw ValueError("Expected a batch of {}D affine matrices of shape Nx{}x{} for size {}. Got {}.", n, n, n + 1, size.str(),
                     theta.sizes().str());
  for (const int64_t s : size)
    if (s <= 0) throw ValueError("Expected non-zero, positive output size. Got {}", size.str());
  const Options like(theta.dtype(), theta.device());
  // (d..., h, w, n + 1): coordinates x, y, z, then 1.
  Dims shape(std::span<const int64_t>(size).subspan(2));
  std::vector<Tensor> along;
  for (int64_t k = 0; k < n; ++k) {
    const auto d = static_cast<size_t>(n - 1 - k);
    const int64_t count = shape[d];
    Tensor line = count > 1 ? linspace(-1, 1, count, like) : zeros({1}, like);
    if (!align_corners) line = line * Operand(static_cast<double>(count - 1) / static_cast<double>(count));
    Dims column(shape.size(), 1);
    column[d] = count;
    along.push_back(line.reshape(column).expand(shape));
  }
  along.push_back(ones(shape, like));
  Dims out{size[0]};
  for (const int64_t s : shape) out.push_back(s);
  out.push_back(n);
  const Tensor base = stack(along, -1).reshape({1, product(shape), n + 1}).expand({size[0], product(shape), n + 1});
  return bmm(base, theta.transpose(1, 2)).view(out);
}

}  // namespace naru
